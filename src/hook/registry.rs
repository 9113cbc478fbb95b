//! The registry: every hook, in the one order in which they are asked.
//!
//! In-process hooks come before programs; then the priority counts, the lower first; then the name; then the order in which
//! they were mounted. The confirmation gate is no entry: whatever comes out of the chain goes to it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use globset::{GlobSet, GlobSetBuilder};
use serde_json::{Map, Value};

use super::build::Outside;
use super::observe::{Observer, Wanted, Watch};
use super::{
    Around, Event, EventKind, EventScope, HookContext, HookError, HookResult, ModelReply, ModelRequest,
    Point, Recorder, SessionContext, Severity, ToolCall, ToolOutput,
};
use crate::clock::Clock;
use crate::config::hook::{HookDefaults, OnFailure};
use crate::gatekeeper::Via;
use crate::lifecycle::Tasks;

/// Answers of a hook.
pub type Answer<T> = Result<HookResult<T>, HookError>;

/// What may never be changed: an approver agrees or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchangeable {}

/// May change or stop. It is asked only at the points that its [`Mount`] lists.
#[async_trait]
pub trait Interceptor: Send + Sync {
    /// A session begins.
    async fn session_start(&self, _: &HookContext) -> Answer<SessionContext> {
        Ok(HookResult::silent())
    }

    /// The model is about to be asked.
    async fn before_model(&self, _: &HookContext, _: &ModelRequest) -> Answer<ModelRequest> {
        Ok(HookResult::silent())
    }

    /// The model answered.
    async fn after_model(&self, _: &HookContext, _: &ModelReply) -> Answer<ModelReply> {
        Ok(HookResult::silent())
    }

    /// A tool is about to be called.
    async fn pre_tool_use(&self, _: &HookContext, _: &ToolCall) -> Answer<ToolCall> {
        Ok(HookResult::silent())
    }

    /// A tool returned.
    async fn post_tool_use(&self, _: &HookContext, _: &ToolCall, _: &ToolOutput) -> Answer<ToolOutput> {
        Ok(HookResult::silent())
    }
}

/// Agrees to a call or not. All must agree.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Whether the call may run. Silence is no objection, and no permission either: the gate judges after it.
    async fn approve_tool(&self, context: &HookContext, call: &ToolCall) -> Answer<Unchangeable>;
}

/// Where a hook lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// In this process.
    InProcess,
    /// In a program.
    Program,
}

/// Every surface.
pub(super) const EVERYWHERE: [Via; 3] = [Via::Job, Via::Api, Via::Host];

/// How a hook stands in the registry.
#[derive(Debug, Clone)]
pub struct Mount {
    /// Its name.
    pub name: String,
    /// Where it lives.
    pub source: Source,
    /// Its place, the lower first.
    pub priority: i32,
    /// At which points an interceptor is asked.
    pub points: Vec<Point>,
    /// For which tools: globs; at the points of a tool only.
    pub tools: Vec<String>,
    /// Whose calls it is asked about.
    pub surfaces: Vec<Via>,
    /// How long it may take; `None` is the default of its kind.
    pub limit: Option<Duration>,
    /// What follows when it fails.
    pub on_failure: OnFailure,
}

impl Mount {
    /// An in-process hook for all tools that denies when it fails.
    pub fn in_process(name: &str, priority: i32, points: &[Point]) -> Self {
        Self {
            name: name.to_owned(),
            source: Source::InProcess,
            priority,
            points: points.to_vec(),
            tools: vec!["*".to_owned()],
            surfaces: EVERYWHERE.to_vec(),
            limit: None,
            on_failure: OnFailure::Deny,
        }
    }
}

/// A hook in its place.
pub(super) struct Entry<H: ?Sized> {
    pub(super) name: String,
    source: Source,
    priority: i32,
    points: Vec<Point>,
    surfaces: Vec<Via>,
    tools: GlobSet,
    pub(super) limit: Duration,
    pub(super) on_failure: OnFailure,
    pub(super) hook: Arc<H>,
}

impl<H: ?Sized> Entry<H> {
    pub(super) fn is_asked(&self, via: Via, point: Point, tool: Option<&str>) -> bool {
        self.points.contains(&point)
            && self.surfaces.contains(&via)
            && tool.is_none_or(|tool| self.tools.is_match(tool))
    }
}

/// A glob over tool names that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hook `{hook}` names tools by a glob that does not compile")]
pub struct BadGlob {
    /// Which hook.
    pub hook: String,
}

/// All hooks of one agent.
pub struct Hooks {
    pub(super) interceptors: Vec<Entry<dyn Interceptor>>,
    pub(super) approvers: Vec<Entry<dyn Approver>>,
    pub(super) arounds: Vec<Entry<dyn Around>>,
    watches: Vec<Watch>,
    pub(super) defaults: HookDefaults,
    /// On which surfaces every call needs a person.
    pub(super) confirm_all: Vec<Via>,
    pub(super) recorder: Recorder,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

impl Hooks {
    /// No hooks yet. Observers run as tasks of `outside`.
    pub fn new(defaults: HookDefaults, outside: &Outside) -> Self {
        Self {
            interceptors: Vec::new(),
            approvers: Vec::new(),
            arounds: Vec::new(),
            watches: Vec::new(),
            defaults,
            confirm_all: Vec::new(),
            recorder: outside.recorder.clone(),
            clock: Arc::clone(&outside.clock),
            tasks: outside.tasks.clone(),
        }
    }

    /// Every call of these surfaces needs a person, whatever the rules say.
    pub fn confirm_all(&mut self, surfaces: &[Via]) {
        self.confirm_all.extend(surfaces);
    }

    /// Adds an interceptor.
    pub fn intercept(&mut self, mount: Mount, hook: Arc<dyn Interceptor>) -> Result<(), BadGlob> {
        let limit = self.defaults.interceptor_timeout;
        place(&mut self.interceptors, mount, limit, hook)
    }

    /// Adds an approver.
    pub fn approve(&mut self, mut mount: Mount, hook: Arc<dyn Approver>) -> Result<(), BadGlob> {
        mount.points = vec![Point::ApproveTool];
        let limit = self.defaults.approval_timeout;
        place(&mut self.approvers, mount, limit, hook)
    }

    /// Adds an around hook. The first in the order is the outermost.
    pub fn wrap(&mut self, mut mount: Mount, hook: Arc<dyn Around>) -> Result<(), BadGlob> {
        mount.points = vec![Point::AroundModel, Point::AroundTool];
        let limit = self.defaults.interceptor_timeout;
        place(&mut self.arounds, mount, limit, hook)
    }

    /// Adds an observer and starts its task. A program keeps its own time; everybody else has the limit of observers.
    pub fn observe(&mut self, mount: &Mount, wanted: Wanted, observer: Arc<dyn Observer>) {
        let own = mount.limit.unwrap_or(self.defaults.observer_timeout);
        let limit = backstop(mount.source, own);
        let watch = Watch::start(mount, wanted, limit, observer, &self.tasks);
        self.watches.push(watch);
    }

    /// Tells observers of an event. It does not wait.
    pub fn tell(&self, event: Event) {
        if self.watches.is_empty() {
            return;
        }
        let event = Arc::new(event);
        for watch in &self.watches {
            watch.tell(&event);
        }
    }

    /// Tells observers that something happened in a run. `payload` is asked for only when somebody looks on.
    pub fn happened(
        &self,
        kind: EventKind,
        severity: Severity,
        context: &HookContext,
        payload: impl FnOnce() -> Map<String, Value>,
    ) {
        if self.watches.is_empty() {
            return;
        }
        self.tell(Event {
            id: format!("ev_{}", self.recorder.fresh_id()),
            kind,
            at: self.clock.now(),
            severity,
            scope: Some(EventScope {
                via: context.via,
                agent_id: context.agent_id.clone(),
                session_id: context.session_id.clone(),
                turn: context.turn,
            }),
            payload: payload(),
        });
    }

    /// Tells observers of something that belongs to no run and no call: the server, its channels.
    pub fn server(&self, kind: EventKind, severity: Severity, payload: impl FnOnce() -> Map<String, Value>) {
        if self.watches.is_empty() {
            return;
        }
        self.tell(Event {
            id: format!("ev_{}", self.recorder.fresh_id()),
            kind,
            at: self.clock.now(),
            severity,
            scope: None,
            payload: payload(),
        });
    }

    /// Whether anybody is asked at a point of a surface.
    pub fn any_at(&self, via: Via, point: Point) -> bool {
        !self.asked_at(via, point).is_empty()
    }

    /// How many events each observer has lost.
    pub fn dropped(&self) -> impl Iterator<Item = (&str, u64)> {
        self.watches.iter().map(|watch| (watch.name(), watch.dropped()))
    }

    /// The names of those asked at a point of a surface, in order.
    pub fn asked_at(&self, via: Via, point: Point) -> Vec<&str> {
        fn names<H: ?Sized>(entries: &[Entry<H>], via: Via, point: Point) -> impl Iterator<Item = &str> {
            entries
                .iter()
                .filter(move |entry| entry.is_asked(via, point, None))
                .map(|entry| entry.name.as_str())
        }
        names(&self.interceptors, via, point)
            .chain(names(&self.approvers, via, point))
            .chain(names(&self.arounds, via, point))
            .collect()
    }
}

/// Programs end their work at their limit themselves, in order; this is for the case that they do not.
fn backstop(source: Source, limit: Duration) -> Duration {
    match source {
        Source::InProcess => limit,
        Source::Program => limit.saturating_mul(2).saturating_add(Duration::from_secs(10)),
    }
}

fn place<H: ?Sized>(
    entries: &mut Vec<Entry<H>>,
    mount: Mount,
    default: Duration,
    hook: Arc<H>,
) -> Result<(), BadGlob> {
    let bad = || BadGlob {
        hook: mount.name.clone(),
    };
    let mut globs = GlobSetBuilder::new();
    for glob in &mount.tools {
        globs.add(globset::Glob::new(glob).map_err(|_| bad())?);
    }
    let tools = globs.build().map_err(|_| bad())?;
    let limit = backstop(mount.source, mount.limit.unwrap_or(default));
    let entry = Entry {
        name: mount.name,
        source: mount.source,
        priority: mount.priority,
        points: mount.points,
        surfaces: mount.surfaces,
        tools,
        limit,
        on_failure: mount.on_failure,
        hook,
    };
    let order = |entry: &Entry<H>| (entry.source, entry.priority, entry.name.clone());
    let at = entries.partition_point(|other| order(other) <= order(&entry));
    entries.insert(at, entry);
    Ok(())
}
