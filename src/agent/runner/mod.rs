//! The runner: does what the engine says, for one claimed job, under its lease. Before anything with an effect begins, the
//! memory that says so is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use hook::Asked;

use super::engine::{self, Effect, Event, Setting};
use super::limits::Limits;
use super::memory::Memory;
use super::model::{Model, ModelError};
use super::piece::{Movement, Piece, Pieces};
use super::prompt;
use super::scene::{House, Scene};
use super::sentinel::LeadsTo;
use super::tool::{Shelf, Toolbox, told};
use crate::audit::Opening;
use crate::config::hook::HookDefaults;
use crate::confirmation::OutcomeStatus;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::roll::Roll;
use crate::confirmation::{Confirmation, edit};
use crate::gate::json::ReadLimits;
use crate::gate::{Arguments, DenyReason, Digest, ToolName};
use crate::gatekeeper::{Caller, Gatekeeper};
use crate::hook::{EventKind, Hooks, Outside, Severity};
use crate::ids::{ConfirmationId, Org, TokenName};
use crate::job::begin_call::Right;
use crate::job::cancel::{By, Cancel, Cancelled};
use crate::job::family::Family;
use crate::job::finish::{Ending, Finish};
use crate::job::finish_call;
use crate::job::park::Until;
use crate::job::progress::{Feed, Progress};
use crate::job::spawn::Newborn;
use crate::job::worker::{Ran, Reins, Run};
use crate::job::{Hold, Job, LostLease};
use crate::storage::{Store, StoreError};

mod decision;
mod hook;
mod judge;
mod keep;
mod send;
mod subtask;
mod tell;

#[cfg(test)]
mod hook_tests;

/// See the module.
pub struct Runner {
    gatekeeper: Gatekeeper,
    model: Arc<dyn Model>,
    toolbox: Toolbox,
    pieces: Arc<Pieces>,
    limits: Limits,
    hooks: HookSets,
    submits: BTreeMap<TokenName, BTreeSet<String>>,
    evaluations: BTreeSet<TokenName>,
    /// The agents' tokens, each with its organisation; `None` lets every job run.
    tokens: Option<BTreeMap<TokenName, Org>>,
    feed: Feed,
}

/// The hooks of each piece, and of all that have none of their own.
pub struct HookSets {
    general: Arc<Hooks>,
    own: BTreeMap<String, Hooks>,
}

impl HookSets {
    /// These.
    pub const fn new(general: Arc<Hooks>, own: BTreeMap<String, Hooks>) -> Self {
        Self { general, own }
    }

    fn of(&self, piece: &str) -> &Hooks {
        self.own.get(piece).unwrap_or(&self.general)
    }
}

impl Runner {
    /// A runner of these pieces with these tools.
    pub fn new(
        gatekeeper: Gatekeeper,
        model: Arc<dyn Model>,
        toolbox: Toolbox,
        pieces: Arc<Pieces>,
        limits: Limits,
    ) -> Self {
        let none = Hooks::new(
            HookDefaults::default(),
            &Outside::none(Arc::clone(gatekeeper.ids())),
        );
        Self {
            feed: Feed::new(&**gatekeeper.ids()),
            gatekeeper,
            model,
            toolbox,
            pieces,
            limits,
            hooks: HookSets::new(Arc::new(none), BTreeMap::new()),
            submits: BTreeMap::new(),
            evaluations: BTreeSet::new(),
            tokens: None,
        }
    }

    /// The same runner with these hooks.
    #[must_use]
    pub fn with_hooks(self, hooks: HookSets) -> Self {
        Self { hooks, ..self }
    }

    /// What goes on in its runs, for those who watch.
    pub const fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Jobs of these tokens are evaluations: their calls go past the people whom policy wants asked, each on record as
    /// `gate.bypassed`. What policy or a hook denies stays denied.
    #[must_use]
    pub fn with_evaluations(mut self, tokens: BTreeSet<TokenName>) -> Self {
        self.evaluations = tokens;
        self
    }

    /// Only jobs of these tokens run, each in its own organisation: a job outlives its token in the store, the right to act does
    /// not.
    #[must_use]
    pub fn with_tokens(mut self, tokens: BTreeMap<TokenName, Org>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sub-tasks of jobs of these tokens play only these pieces, where the job's own piece does not list any.
    #[must_use]
    pub fn with_submits(mut self, submits: BTreeMap<TokenName, BTreeSet<String>>) -> Self {
        self.submits = submits;
        self
    }
}

#[async_trait]
impl Run for Runner {
    async fn run(&self, job: Job, reins: &Reins) -> Ran {
        match self.is_orphan(&job).await {
            Ok(false) => {}
            Ok(true) => return self.end_orphan(&job).await,
            Err(error) => return Ran::Failed(error.to_string()),
        }
        if !self.is_known(&job) {
            let why = format!(
                "the configuration has no agent's token `{}` of this organisation any more",
                job.token.as_str()
            );
            return self.refuse(&job, why).await;
        }
        tokio::select! {
            // A server that was just started has a moment to name its tools.
            () = self.settled(&job) => {}
            () = reins.stopping() => return Ran::Stopped,
        }
        let mut session = match Session::open(self, job.clone()) {
            Ok(session) => session,
            Err(why) => return self.refuse(&job, why).await,
        };
        match session.drive(reins).await {
            Ok(ran) => ran,
            Err(Halt::Lost) => {
                session.let_go().await;
                Ran::Lost
            }
            Err(Halt::Store(error)) => Ran::Failed(format!("the run could not be kept: {error}")),
        }
    }
}

impl Runner {
    fn is_known(&self, job: &Job) -> bool {
        self.tokens
            .as_ref()
            .is_none_or(|tokens| tokens.get(&job.token) == Some(&job.org))
    }

    async fn settled(&self, job: &Job) {
        let Some(piece) = self.pieces.get(&job.piece) else {
            return;
        };
        for movement in &piece.movements {
            self.toolbox.settled(&movement.allowed_tools.to_vec()).await;
        }
    }

    /// Whether the job that began this one ended without it: there is nobody whom it could report to.
    async fn is_orphan(&self, job: &Job) -> Result<bool, StoreError> {
        let Some(parent) = &job.parent else {
            return Ok(false);
        };
        let parent = self.gatekeeper.store().read().job(parent).await?;
        Ok(parent.is_none_or(|parent| parent.state.status().is_final()))
    }

    async fn end_orphan(&self, job: &Job) -> Ran {
        let hooks = self.hooks.of(&job.piece);
        tell::of_job(hooks, job, EventKind::SubturnOrphan, Severity::Warn);
        let store = self.gatekeeper.store();
        let family = match Family::of(store.read(), job).await {
            Ok(family) => family,
            Err(error) => return Ran::Failed(error.to_string()),
        };
        let cancel = Cancel {
            job: job.id.clone(),
            org: job.org.clone(),
            by: By::Token(job.token.clone()),
            confirmations: job.confirmations.clone(),
            parent: job.parent.clone(),
            family,
        };
        match store.run(cancel).await {
            Ok(Cancelled::Done(_) | Cancelled::TooLate(_) | Cancelled::NotFound) => Ran::Done,
            Ok(Cancelled::Moved) => Ran::Stopped,
            Err(error) => Ran::Failed(error.to_string()),
        }
    }

    /// Ends a job that cannot be run at all.
    async fn refuse(&self, job: &Job, why: String) -> Ran {
        tell::of_job(self.hooks.of(&job.piece), job, EventKind::Error, Severity::Error);
        let family = match Family::of(self.gatekeeper.store().read(), job).await {
            Ok(family) => family,
            Err(error) => return Ran::Failed(error.to_string()),
        };
        let finish = Finish {
            family,
            hold: Hold::on(job),
            said: self.gatekeeper.text(Some(&why)),
            ending: Ending::Failed { error: why },
            remembered: None,
            confirmations: job.confirmations.clone(),
            parent: job.parent.clone(),
        };
        match self.gatekeeper.store().run(finish).await {
            Ok(Ok(())) => Ran::Done,
            Ok(Err(LostLease)) => Ran::Lost,
            Err(error) => Ran::Failed(error.to_string()),
        }
    }
}

/// Why a run stops where it is.
enum Halt {
    Lost,
    Store(StoreError),
}

impl From<LostLease> for Halt {
    fn from(_: LostLease) -> Self {
        Self::Lost
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What follows an effect.
enum Then {
    /// This happened.
    Event(Event),
    /// The run is at a rest.
    Rest(Ran),
    /// The same effect again, on what stands now.
    Again,
}

/// The result of a call, to be put on record with the memory that holds it.
struct Record {
    ran: finish_call::Ran,
    status: OutcomeStatus,
    detail: Option<Opening>,
}

/// An approved call in its stored form: as people approved it, whatever the model proposed.
struct Stored {
    tool: ToolName,
    args: String,
    digest: Digest,
    /// What a person changed of it, for the model.
    changed: Option<String>,
}

impl Stored {
    fn of(row: &Confirmation, roll: &Roll) -> Self {
        let call = row.call();
        Self {
            tool: row.asked.tool.clone(),
            args: call.args.to_owned(),
            digest: call.digest,
            changed: edit::in_words(row, roll),
        }
    }
}

/// One claimed job while it runs.
struct Session<'r> {
    runner: &'r Runner,
    job: Job,
    hold: Hold,
    /// What the run may spend: the house's limits with those of its piece.
    limits: Limits,
    caller: Caller,
    piece: &'r Piece,
    movement: &'r Movement,
    /// The tools that there are, as of the last step.
    shelf: Shelf,
    memory: Memory,
    /// The memory holds more than the store.
    dirty: bool,
    /// Requests whose decision entered the memory since it was saved.
    taken: Vec<ConfirmationId>,
    /// By what right the next call begins.
    right: Option<Right>,
    /// The approved call that is about to be sent.
    stored: Option<Stored>,
    /// The result that is about to be recorded.
    record: Option<Record>,
    /// What runs around the model and the tools.
    hooks: &'r Hooks,
    /// A hook ends the run as soon as what happened is on record.
    halted: Option<crate::hook::Halt>,
    /// The sub-task that is about to begin.
    newborn: Option<Newborn>,
}

impl<'r> Session<'r> {
    fn open(runner: &'r Runner, job: Job) -> Result<Self, String> {
        let piece = runner
            .pieces
            .get(&job.piece)
            .ok_or_else(|| format!("there is no piece `{}` any more", job.piece))?;
        let movement = piece
            .movement(&job.movement)
            .ok_or_else(|| format!("the piece has no movement `{}` any more", job.movement))?;
        let memory = Memory::read(&job.memory, &job.input).map_err(|error| error.to_string())?;
        Ok(Self {
            runner,
            hold: Hold::on(&job),
            limits: runner.limits.with(&piece.limits),
            caller: Caller {
                token: job.token.clone(),
                org: job.org.clone(),
                // Who runs the token is among the persons of the job.
                owner: None,
            },
            piece,
            movement,
            shelf: runner.toolbox.shelf(),
            memory,
            dirty: false,
            taken: Vec::new(),
            right: None,
            stored: None,
            record: None,
            hooks: runner.hooks.of(&job.piece),
            halted: None,
            newborn: None,
            job,
        })
    }

    fn store(&self) -> &'r Store {
        self.runner.gatekeeper.store()
    }

    /// What the run may do at this moment.
    fn scene(&self) -> Scene<'_> {
        let house = House {
            toolbox: &self.shelf,
            pieces: &self.runner.pieces,
            submits: self.runner.submits.get(&self.job.token),
            limits: self.limits,
        };
        Scene::set(house, self.piece, self.movement, &self.memory)
    }

    /// Takes an event into the memory; what comes next is given back.
    fn step(&mut self, event: Event) -> Effect {
        let (memory, effect) = {
            let scene = self.scene();
            let setting = Setting {
                limits: self.limits,
                scene: &scene,
            };
            engine::step(self.memory.clone(), event, &setting)
        };
        self.dirty |= memory != self.memory;
        let before = std::mem::replace(&mut self.memory, memory);
        if self.memory.compactions > before.compactions {
            self.tell_compressed(before.history.len());
        }
        effect
    }

    async fn drive(&mut self, reins: &Reins) -> Result<Ran, Halt> {
        self.tell_start();
        if self.memory.replies > 0 {
            self.progress(Progress::Resumed);
        }
        let ran = self.go(reins).await;
        self.tell(EventKind::TurnEnd, Severity::Info, &[]);
        ran
    }

    async fn go(&mut self, reins: &Reins) -> Result<Ran, Halt> {
        let mut effect = self.step(Event::Resumed);
        loop {
            // A call that has begun is finished first; parking and ending are quick and leave less to be done again.
            let may_halt = matches!(
                effect,
                Effect::AskModel
                    | Effect::Judge { .. }
                    | Effect::RefuseAgain { .. }
                    | Effect::Await { .. }
                    | Effect::Spawn { .. }
            );
            if may_halt && let Some(ran) = reins.halt() {
                self.tell_interrupt(&ran);
                if ran == Ran::Stopped {
                    self.save().await?;
                }
                return Ok(ran);
            }
            let event = match self.perform(&effect, reins).await? {
                Then::Rest(ran) => return Ok(ran),
                Then::Again => continue,
                Then::Event(event) => event,
            };
            self.tell_of(&event);
            // Until the permit is consumed the call has not begun: a refusal goes on from the memory before.
            let before = matches!(event, Event::Permitted { .. }).then(|| (self.memory.clone(), self.dirty));
            effect = self.step(event);
            if let Some(record) = self.record.take() {
                self.finish_call(record).await?;
            }
            if let Some(newborn) = self.newborn.take() {
                self.spawn(newborn).await?;
            }
            if let Some(halt) = self.halted.take()
                && let Then::Rest(ran) = self.halt(halt).await?
            {
                return Ok(ran);
            }
            if let (Effect::Begin { at }, Some((memory, dirty))) = (&effect, before) {
                let at = *at;
                let event = match self.begin().await? {
                    Ok(()) => Event::Begun { at },
                    // The permit stays usable: whoever claims the job next asks again.
                    Err(NotGranted::LookUpFailed) => return Ok(Ran::Later),
                    Err(why) => {
                        (self.memory, self.dirty) = (memory, dirty);
                        self.refused(at, why)
                    }
                };
                self.tell_of(&event);
                effect = self.step(event);
            }
        }
    }

    async fn perform(&mut self, effect: &Effect, reins: &Reins) -> Result<Then, Halt> {
        self.shelf = self.runner.toolbox.shelf();
        match effect {
            Effect::AskModel => self.ask_model(reins).await,
            Effect::Judge { at } => self.judge(*at).await,
            Effect::RefuseAgain { at } => Ok(self.refuse_again(*at)),
            Effect::Await { waiting, sentinel } => self.look(waiting, *sentinel).await,
            // Begun by `drive`, which keeps the memory before it.
            Effect::Begin { .. } => Ok(Then::Rest(Ran::Failed("a call began twice".to_owned()))),
            Effect::Send { at } => self.send(*at).await,
            Effect::Settle { at } => {
                self.prepare_record(
                    *at,
                    OutcomeStatus::Succeeded,
                    "an operator says that it was carried out",
                );
                Ok(Then::Event(Event::Ran {
                    at: *at,
                    told: "The call was carried out, as an operator found out. What it returned is not known; do not \
                           make it again."
                        .to_owned(),
                }))
            }
            Effect::Park(sentinel) => {
                let LeadsTo::People(reason) = sentinel.leads_to() else {
                    return Ok(Then::Rest(Ran::Failed("the run waits for nobody".to_owned())));
                };
                let asks = self.memory.question().map(|question| question.text);
                self.park(Until::Answered(reason), None, asks).await
            }
            Effect::Enter { movement } => self.enter(movement).await,
            Effect::Spawn { at, piece, input } => Ok(self.conceive(*at, piece, input)),
            Effect::AwaitSubtasks { at, resume } => self.await_subtasks(*at, resume.as_deref()).await,
            Effect::Finish(ending) => self.finish(ending.clone()).await,
        }
    }

    /// For those who watch.
    fn progress(&self, progress: Progress) {
        self.runner.feed.tell(&self.job.id, progress);
    }

    fn refuse_again(&self, at: usize) -> Then {
        self.note_refusal(at, DenyReason::RejectedByOperator, "repeated");
        let told = format!(
            "denied (rejected_by_operator): a person rejected exactly this call before in this job.\n{}",
            DenyReason::RejectedByOperator.advice()
        );
        denied(at, DenyReason::RejectedByOperator, told)
    }

    async fn ask_model(&mut self, reins: &Reins) -> Result<Then, Halt> {
        if let Err(halt) = self.begin_session().await {
            return self.halt(halt).await;
        }
        self.save().await?;
        self.tell(
            EventKind::LlmRequest,
            Severity::Info,
            &[("Messages", self.memory.history.len().into())],
        );
        self.progress(Progress::TurnStarted {
            turn: self.memory.replies,
        });
        let question = prompt::question(&self.scene(), &self.shelf, &self.memory);
        let asked = tokio::select! {
            // Asking has no effect: a stop need not wait for the answer.
            () = reins.stopping() => {
                self.tell_interrupt(&Ran::Stopped);
                return Ok(Then::Rest(Ran::Stopped));
            }
            asked = self.ask_through_hooks(question) => asked,
        };
        match asked {
            Asked::Reply(reply) => {
                let (calls, usage) = (reply.calls.len(), reply.usage);
                self.progress(Progress::ModelAnswered {
                    calls,
                    input_tokens: usage.input_tokens,
                    cached_tokens: usage.cached_tokens,
                    output_tokens: usage.output_tokens,
                });
                self.tell(
                    EventKind::LlmResponse,
                    Severity::Info,
                    &[("ToolCalls", calls.into())],
                );
                Ok(Then::Event(Event::Replied(reply)))
            }
            Asked::Halt(halt) => self.halt(halt).await,
            Asked::Failed(error @ ModelError::Refused(_)) => {
                self.finish(Ending::Failed {
                    error: error.to_string(),
                })
                .await
            }
            Asked::Failed(error) => {
                self.tell(EventKind::Error, Severity::Error, &[("Stage", "model".into())]);
                Ok(Then::Rest(Ran::Failed(error.to_string())))
            }
        }
    }
}

fn denied(at: usize, reason: DenyReason, told: String) -> Then {
    Then::Event(Event::Denied { at, reason, told })
}

/// What the model is told of a denial.
fn denial(reason: DenyReason, why: &str) -> String {
    let text = if why.is_empty() {
        format!("denied ({}).\n{}", reason.code(), reason.advice())
    } else {
        format!("denied ({}): {why}.\n{}", reason.code(), reason.advice())
    };
    told(&text)
}

fn read(args: &str) -> Result<Arguments, crate::gate::InvalidArguments> {
    Arguments::read(args.as_bytes(), ReadLimits::bytes(args.len()))
}
