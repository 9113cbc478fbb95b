//! Around hooks: each wraps the next, the first in the order is the outermost, the innermost is the model or the tool itself.
//!
//! A hook must go on exactly once, and the types see to it: [`Next::run`] takes the handler away, so it cannot be called twice;
//! an answer can only be given as [`Ran`], which only `run` makes, so it cannot be left out; and both carry a lifetime of
//! this one call, so no `Ran` can be kept for another.
//!
//! A hook that fails before it went on denies what it wraps (or is passed over, when it may fail). One that fails afterwards
//! changes nothing: what ran, ran, and its answer stands as it came.

use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tracing::warn;

use super::chain::Failed;
use super::registry::Entry;
use super::{HookContext, HookError, Hooks, ModelReply, ModelRequest, Point, ToolCall, ToolOutput};
use crate::config::hook::OnFailure;

/// Wraps the model, the tools, or both.
#[async_trait]
pub trait Around: Send + Sync {
    /// Around a question to the model.
    async fn around_model<'n>(
        &self,
        _: &HookContext,
        request: ModelRequest,
        next: Next<'n, ModelRequest, ModelReply>,
    ) -> Result<Ran<'n, ModelReply>, HookError> {
        next.run(request).await
    }

    /// Around a call of a tool. Whoever changes an approved call makes it another call, which the innermost handler refuses.
    async fn around_tool<'n>(
        &self,
        _: &HookContext,
        call: ToolCall,
        next: Next<'n, ToolCall, ToolOutput>,
    ) -> Result<Ran<'n, ToolOutput>, HookError> {
        next.run(call).await
    }
}

/// The lifetime of one call, neither longer nor shorter.
type Brand<'n> = PhantomData<fn(&'n ()) -> &'n ()>;
type Inner<'n, Q, A> = Box<dyn FnOnce(Q) -> BoxFuture<'n, Result<A, HookError>> + Send + 'n>;

/// The way on: the next hook, or what is wrapped.
pub struct Next<'n, Q, A> {
    inner: Inner<'n, Q, A>,
    slot: &'n Slot<A>,
    brand: Brand<'n>,
}

/// The answer of what is wrapped, and the proof that it ran.
pub struct Ran<'n, A> {
    answer: A,
    brand: Brand<'n>,
}

impl<'n, Q, A: Clone + Send + 'n> Next<'n, Q, A> {
    /// Goes on, once. An error means that what is wrapped did not run to its end; hand it on.
    pub async fn run(self, request: Q) -> Result<Ran<'n, A>, HookError> {
        self.slot.enter();
        let ran = (self.inner)(request).await;
        self.slot.leave(ran.clone());
        ran.map(|answer| Ran {
            answer,
            brand: PhantomData,
        })
    }
}

impl<A> Ran<'_, A> {
    /// The answer.
    pub const fn answer(&self) -> &A {
        &self.answer
    }

    /// A changed answer of the same run.
    #[must_use]
    pub fn map(self, change: impl FnOnce(A) -> A) -> Self {
        Self {
            answer: change(self.answer),
            brand: PhantomData,
        }
    }
}

/// How far one layer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Inside,
    After,
}

/// What one layer knows of what it wraps.
struct Slot<A> {
    state: Mutex<(Stage, Option<Result<A, HookError>>)>,
    left: Notify,
}

impl<A: Clone> Slot<A> {
    fn new() -> Self {
        Self {
            state: Mutex::new((Stage::Before, None)),
            left: Notify::new(),
        }
    }

    fn enter(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = Stage::Inside;
    }

    fn leave(&self, ran: Result<A, HookError>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (Stage::After, Some(ran));
        self.left.notify_one();
    }

    fn stage(&self) -> Stage {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn ran(&self) -> Option<Result<A, HookError>> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .clone()
    }
}

/// What can be wrapped.
trait Wrapped: Clone + Send + Sync + Sized + 'static {
    type Answer: Clone + Send + Sync + 'static;
    const POINT: Point;

    fn around<'n>(
        hook: &'n dyn Around,
        context: &'n HookContext,
        request: Self,
        next: Next<'n, Self, Self::Answer>,
    ) -> BoxFuture<'n, Result<Ran<'n, Self::Answer>, HookError>>;
}

impl Wrapped for ModelRequest {
    type Answer = ModelReply;
    const POINT: Point = Point::AroundModel;

    fn around<'n>(
        hook: &'n dyn Around,
        context: &'n HookContext,
        request: Self,
        next: Next<'n, Self, ModelReply>,
    ) -> BoxFuture<'n, Result<Ran<'n, ModelReply>, HookError>> {
        hook.around_model(context, request, next)
    }
}

impl Wrapped for ToolCall {
    type Answer = ToolOutput;
    const POINT: Point = Point::AroundTool;

    fn around<'n>(
        hook: &'n dyn Around,
        context: &'n HookContext,
        call: Self,
        next: Next<'n, Self, ToolOutput>,
    ) -> BoxFuture<'n, Result<Ran<'n, ToolOutput>, HookError>> {
        hook.around_tool(context, call, next)
    }
}

/// What is wrapped did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRun {
    /// A hook failed before it went on; nothing ran.
    Hook(Failed),
    /// The innermost handler itself said so.
    Inner(HookError),
}

/// A hook, and how far it came.
type Layer<'a, A> = (&'a Entry<dyn Around>, Slot<A>);

struct Nest<'a, 'n, Q: Wrapped> {
    hooks: &'a Hooks,
    context: &'a HookContext,
    tool: Option<&'a str>,
    layers: Vec<Layer<'a, Q::Answer>>,
    innermost: Mutex<Option<Inner<'n, Q, Q::Answer>>>,
}

impl Hooks {
    /// Asks the model inside all around hooks. `innermost` is called at most once, with the question as the hooks leave it.
    pub async fn around_model<'n>(
        &self,
        context: &HookContext,
        request: ModelRequest,
        innermost: impl FnOnce(ModelRequest) -> BoxFuture<'n, Result<ModelReply, HookError>> + Send + 'n,
    ) -> Result<ModelReply, NotRun> {
        self.around(context, None, request, Box::new(innermost)).await
    }

    /// Calls a tool inside all around hooks. `innermost` is called at most once, with the call as the hooks leave it: it must
    /// compare the digest of that call with what was permitted.
    pub async fn around_tool<'n>(
        &self,
        context: &HookContext,
        call: ToolCall,
        innermost: impl FnOnce(ToolCall) -> BoxFuture<'n, Result<ToolOutput, HookError>> + Send + 'n,
    ) -> Result<ToolOutput, NotRun> {
        let tool = call.tool.clone();
        self.around(context, Some(tool.as_str()), call, Box::new(innermost))
            .await
    }

    async fn around<Q: Wrapped>(
        &self,
        context: &HookContext,
        tool: Option<&str>,
        request: Q,
        innermost: Inner<'_, Q, Q::Answer>,
    ) -> Result<Q::Answer, NotRun> {
        let asked = self
            .arounds
            .iter()
            .filter(|entry| entry.is_asked(context.via, Q::POINT, tool));
        let nest = Nest {
            hooks: self,
            context,
            tool,
            layers: asked.map(|entry| (entry, Slot::new())).collect(),
            innermost: Mutex::new(Some(innermost)),
        };
        descend(&nest, 0, request).await
    }
}

fn descend<'a, 'n: 'a, Q: Wrapped>(
    nest: &'a Nest<'a, 'n, Q>,
    at: usize,
    request: Q,
) -> BoxFuture<'a, Result<Q::Answer, NotRun>> {
    Box::pin(async move {
        let Some((entry, slot)) = nest.layers.get(at) else {
            let innermost = nest
                .innermost
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let Some(innermost) = innermost else {
                return Err(NotRun::Inner(HookError::Rule("what is wrapped runs once")));
            };
            return innermost(request).await.map_err(NotRun::Inner);
        };
        // What went wrong further in, in its own form: a hook only hands on that something did.
        let below = Mutex::new(None);
        let error = {
            let below = &below;
            let way_on = Next {
                inner: Box::new(move |request| {
                    Box::pin(async move {
                        descend(nest, at + 1, request).await.map_err(|not_run| {
                            let told = match &not_run {
                                NotRun::Hook(failed) => failed.told(),
                                NotRun::Inner(error) => error.to_string(),
                            };
                            *below.lock().unwrap_or_else(PoisonError::into_inner) = Some(not_run);
                            HookError::Inner(told)
                        })
                    })
                }),
                slot,
                brand: PhantomData,
            };
            let hook = Q::around(&*entry.hook, nest.context, request.clone(), way_on);
            match in_time(hook, slot, entry.limit).await {
                Ok(ran) => return Ok(ran.answer),
                Err(error) => error,
            }
        };
        let below = below.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(not_run) = below {
            return Err(not_run);
        }
        warn!(hook = %entry.name, point = Q::POINT.name(), %error, "an around hook failed");
        let recorder = &nest.hooks.recorder;
        recorder.failed(
            &entry.name,
            Q::POINT,
            nest.context,
            nest.tool,
            &error,
            entry.on_failure,
        );
        match slot.ran() {
            Some(Ok(answer)) => Ok(answer),
            _ if entry.on_failure == OnFailure::Continue && slot.stage() == Stage::Before => {
                descend(nest, at + 1, request).await
            }
            _ => Err(NotRun::Hook(Failed {
                hook: entry.name.clone(),
                error,
            })),
        }
    })
}

/// Waits for a hook. Its own work before and after what it wraps has a limit each; what it wraps has limits of its own and is
/// never cut off by this one.
async fn in_time<'n, A: Clone>(
    hook: BoxFuture<'n, Result<Ran<'n, A>, HookError>>,
    slot: &Slot<A>,
    limit: Duration,
) -> Result<Ran<'n, A>, HookError> {
    let mut hook = AssertUnwindSafe(hook).catch_unwind();
    let ended = loop {
        let stage = slot.stage();
        tokio::select! {
            ended = &mut hook => break ended,
            () = slot.left.notified(), if stage == Stage::Inside => {}
            () = tokio::time::sleep(limit), if stage != Stage::Inside => {
                if slot.stage() == stage {
                    return Err(HookError::TimedOut(limit));
                }
            }
        }
    };
    ended.unwrap_or(Err(HookError::Panicked))
}
