//! The runner: does what the engine says, for one claimed job, under its lease. Before anything with an effect begins, the
//! memory that says so is committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tracing::{info, warn};

use super::engine::{self, Effect, Event, Limits, Setting};
use super::memory::{CallState, Memory};
use super::model::{Model, ModelError};
use super::piece::{Movement, Piece, Pieces};
use super::prompt;
use super::tool::{Carried, Toolbox, told};
use crate::audit::{Actor, Draft, Opening};
use crate::confirmation::consume::NotGranted;
use crate::confirmation::{Dossier, Outcome, OutcomeStatus, Permit, State, Status};
use crate::gate::json::ReadLimits;
use crate::gate::policy::{Effect as Verdict, Voices};
use crate::gate::{Arguments, DenyReason, Digest, ToolName};
use crate::gatekeeper::{Answer, Caller, Gatekeeper, Question};
use crate::ids::{ConfirmationId, PermitId};
use crate::job::begin_call::{BeginCall, Begun, NotBegun, Right};
use crate::job::finish::{Ending, Finish};
use crate::job::finish_call::{self, FinishCall};
use crate::job::park::{Park, Parked, Until};
use crate::job::save::{Remembered, Save};
use crate::job::worker::{Ran, Reins, Run};
use crate::job::{Hold, Job, LostLease, WaitReason};
use crate::storage::{Store, StoreError};

/// How often an idempotent call whose answer is lost is sent, at most, before an operator is asked.
const SENDS: u32 = 3;

/// See the module.
pub struct Runner {
    gatekeeper: Gatekeeper,
    model: Arc<dyn Model>,
    toolbox: Toolbox,
    pieces: Arc<Pieces>,
    limits: Limits,
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
        Self {
            gatekeeper,
            model,
            toolbox,
            pieces,
            limits,
        }
    }
}

#[async_trait]
impl Run for Runner {
    async fn run(&self, job: Job, reins: &Reins) -> Ran {
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
    /// Ends a job that cannot be run at all.
    async fn refuse(&self, job: &Job, why: String) -> Ran {
        let finish = Finish {
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

/// An approved call in its stored form.
struct Stored {
    tool: ToolName,
    args: String,
    digest: Digest,
}

/// One claimed job while it runs.
struct Session<'r> {
    runner: &'r Runner,
    job: Job,
    hold: Hold,
    caller: Caller,
    piece: &'r Piece,
    movement: &'r Movement,
    tools: BTreeMap<String, bool>,
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
        let tools = runner
            .toolbox
            .all()
            .filter(|tool| movement.allows(&tool.name))
            .map(|tool| (tool.name.clone(), tool.idempotent))
            .collect();
        Ok(Self {
            runner,
            hold: Hold::on(&job),
            caller: Caller {
                token: job.token.clone(),
                org: job.org.clone(),
                // Who runs the token is among the persons of the job.
                owner: None,
            },
            piece,
            movement,
            tools,
            memory,
            dirty: false,
            taken: Vec::new(),
            right: None,
            stored: None,
            record: None,
            job,
        })
    }

    fn store(&self) -> &'r Store {
        self.runner.gatekeeper.store()
    }

    /// Takes an event into the memory; what comes next is given back.
    fn step(&mut self, event: Event) -> Effect {
        let setting = Setting {
            limits: self.runner.limits,
            tools: &self.tools,
        };
        let (memory, effect) = engine::step(self.memory.clone(), event, &setting);
        self.dirty |= memory != self.memory;
        self.memory = memory;
        effect
    }

    async fn drive(&mut self, reins: &Reins) -> Result<Ran, Halt> {
        let mut effect = self.step(Event::Resumed);
        loop {
            // A call that has begun is finished first; parking and ending are quick and leave less to be done again.
            let may_halt = matches!(
                effect,
                Effect::AskModel | Effect::Judge { .. } | Effect::RefuseAgain { .. } | Effect::Await { .. }
            );
            if may_halt && let Some(ran) = reins.halt() {
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
            // Until the permit is consumed the call has not begun: a refusal goes on from the memory before.
            let before = matches!(event, Event::Permitted { .. }).then(|| (self.memory.clone(), self.dirty));
            effect = self.step(event);
            if let Some(record) = self.record.take() {
                self.finish_call(record).await?;
            }
            if let (Effect::Begin { at }, Some((memory, dirty))) = (&effect, before) {
                let at = *at;
                let event = match self.begin().await? {
                    Ok(()) => Event::Begun { at },
                    Err(why) => {
                        (self.memory, self.dirty) = (memory, dirty);
                        self.refused(at, why)
                    }
                };
                effect = self.step(event);
            }
        }
    }

    async fn perform(&mut self, effect: &Effect, reins: &Reins) -> Result<Then, Halt> {
        match effect {
            Effect::AskModel => self.ask_model(reins).await,
            Effect::Judge { at } => self.judge(*at).await,
            Effect::RefuseAgain { at } => {
                self.note_refusal(*at, DenyReason::RejectedByOperator, "repeated");
                let told = format!(
                    "denied (rejected_by_operator): a person rejected exactly this call before in this job.\n{}",
                    DenyReason::RejectedByOperator.advice()
                );
                Ok(denied(*at, DenyReason::RejectedByOperator, told))
            }
            Effect::Await { waiting } => self.look(waiting).await,
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
            Effect::ParkForWords => {
                let asks = self.memory.question();
                self.park(Until::Answered(WaitReason::UserInput), asks).await
            }
            Effect::ParkForOutcome => self.park(Until::Answered(WaitReason::OutcomeUnknown), None).await,
            Effect::Finish(ending) => self.finish(ending.clone()).await,
        }
    }

    async fn ask_model(&mut self, reins: &Reins) -> Result<Then, Halt> {
        self.save().await?;
        let question = prompt::question(self.piece, self.movement, &self.runner.toolbox, &self.memory);
        let asked = tokio::select! {
            // Asking has no effect: a stop need not wait for the answer.
            () = reins.stopping() => return Ok(Then::Rest(Ran::Stopped)),
            asked = self.runner.model.ask(question) => asked,
        };
        match asked {
            Ok(reply) => Ok(Then::Event(Event::Replied(reply))),
            Err(error @ ModelError::Refused(_)) => {
                self.finish(Ending::Failed {
                    error: error.to_string(),
                })
                .await
            }
            Err(error) => Ok(Then::Rest(Ran::Failed(error.to_string()))),
        }
    }

    async fn judge(&mut self, at: usize) -> Result<Then, Halt> {
        // The reply must be on record before anybody is asked about a call of it.
        self.save().await?;
        let Some((call, tool)) = self
            .memory
            .call(at)
            .and_then(|call| Some((call, self.runner.toolbox.get(&call.tool)?)))
        else {
            let told = "error: there is no such tool".to_owned();
            return Ok(denied(at, DenyReason::DeniedByRule, told));
        };
        let (Ok(name), Ok(args)) = (call.tool.parse::<ToolName>(), read(&call.args)) else {
            let reason = DenyReason::InvalidArguments;
            return Ok(denied(at, reason, denial(reason, "")));
        };
        let question = Question {
            tool: name,
            args,
            agent_id: self.job.agent_id.clone(),
            session_id: Some(self.job.id.to_string()),
            tool_call_id: Some(call.id.clone()),
            requester: self.job.requester.clone(),
            metadata: None,
            job: Some(self.job.id.clone()),
            lineage: self.job.persons.clone(),
            voices: Voices {
                tool_requires_confirmation: tool.requires_confirmation,
                hooks: None,
            },
            join_twin: false,
        };
        let gatekeeper = &self.runner.gatekeeper;
        if self.memory.cards >= self.runner.limits.cards
            && gatekeeper.foresee(&self.caller, &question) == Verdict::Confirm
        {
            self.note_refusal(at, DenyReason::DeniedByRule, "card_limit");
            let why = "this job has asked people as often as a job may";
            return Ok(denied(
                at,
                DenyReason::DeniedByRule,
                denial(DenyReason::DeniedByRule, why),
            ));
        }
        Ok(match gatekeeper.ask(&self.caller, question).await? {
            Answer::Allow { .. } => self.permit(at, None),
            Answer::Deny { reason, message, .. } => denied(at, reason, denial(reason, &message)),
            Answer::Asked(dossier) if dossier.confirmation.asked.job.as_ref() == Some(&self.job.id) => {
                let request = dossier.confirmation.id.clone();
                Then::Event(Event::Asked { at, request })
            }
            // Somebody used the job's call id for a request of their own.
            Answer::Asked(_) | Answer::Conflict(_) => denied(
                at,
                DenyReason::GateError,
                denial(DenyReason::GateError, "the id of the call is taken"),
            ),
        })
    }

    /// The call may begin, by the approval of a request or by policy.
    fn permit(&mut self, at: usize, approved: Option<(&Dossier, Stored)>) -> Then {
        let permit = match approved {
            None => {
                let permit = PermitId::fresh(&**self.runner.gatekeeper.ids());
                self.stored = None;
                self.right = Some(Right::Allowed(permit.clone()));
                permit
            }
            Some((dossier, stored)) => {
                let digest = read(&stored.args).map_or(stored.digest, |args| Digest::of(&stored.tool, &args));
                let consume = self.runner.gatekeeper.consumption(&dossier.confirmation, digest);
                let permit = consume.permit.clone();
                self.stored = Some(stored);
                self.right = Some(Right::Approved(Box::new(consume)));
                permit
            }
        };
        Then::Event(Event::Permitted { at, permit })
    }

    /// Looks at the decisions. While one is open the job parks, and parking looks again under the requests' locks.
    async fn look(&mut self, waiting: &[(usize, ConfirmationId)]) -> Result<Then, Halt> {
        let mut dossiers = Vec::with_capacity(waiting.len());
        for (_, id) in waiting {
            dossiers.push(self.store().read().dossier(id).await?);
        }
        let is_open = |dossier: &Dossier| dossier.confirmation.state.status() == Status::Pending;
        if dossiers.iter().flatten().any(is_open) {
            let until = Until::Decided {
                reason: WaitReason::ToolApproval,
                requests: waiting.iter().map(|(_, id)| id.clone()).collect(),
            };
            return self.park(until, None).await;
        }
        let Some(((at, id), dossier)) = waiting.first().zip(dossiers.into_iter().next()) else {
            return Ok(Then::Rest(Ran::Failed("the run waits for nothing".to_owned())));
        };
        let Some(dossier) = dossier else {
            let why = denial(DenyReason::GateError, "the request is gone");
            return Ok(denied(*at, DenyReason::GateError, why));
        };
        if matches!(
            dossier.confirmation.state,
            State::Approved {
                permit: Permit::Open,
                ..
            }
        ) {
            let asked = &dossier.confirmation.asked;
            let stored = Stored {
                tool: asked.tool.clone(),
                args: asked.args.clone(),
                digest: asked.digest,
            };
            return Ok(self.permit(*at, Some((&dossier, stored))));
        }
        self.taken.push(id.clone());
        self.dirty = true;
        let (reason, why) = self.verdict(&dossier);
        Ok(denied(*at, reason, denial(reason, &why)))
    }

    /// Why a decided request permits nothing, and who said so.
    fn verdict(&self, dossier: &Dossier) -> (DenyReason, String) {
        let reason = match dossier.confirmation.state.status() {
            Status::Rejected => DenyReason::RejectedByOperator,
            Status::Expired => DenyReason::Expired,
            Status::Cancelled => DenyReason::Cancelled,
            Status::Undeliverable => DenyReason::Undeliverable,
            Status::Approved => DenyReason::AlreadyConsumed,
            Status::Pending => DenyReason::GateError,
        };
        if reason != DenyReason::RejectedByOperator {
            return (reason, String::new());
        }
        let roll = self.runner.gatekeeper.roll();
        let rejections = dossier
            .votes
            .iter()
            .filter(|vote| vote.decision == gatepost_channel::Decision::Reject);
        let said: Vec<String> = rejections
            .map(|vote| {
                let name = roll.name(&vote.person);
                match &vote.reason {
                    Some(reason) => format!("rejected by {name}: {reason}"),
                    None => format!("rejected by {name}, who gave no reason"),
                }
            })
            .collect();
        (reason, said.join("; "))
    }

    /// Consumes the permit and saves the memory in which the call runs.
    async fn begin(&mut self) -> Result<Result<(), NotGranted>, Halt> {
        let Some(right) = self.right.take() else {
            return Ok(Err(NotGranted::NotFound));
        };
        let begin = BeginCall {
            hold: self.hold.clone(),
            right,
            remembered: self.remembered(),
        };
        match self.store().run(begin).await? {
            Ok(Begun { stored_args, .. }) => {
                if let (Some(stored), Some(args)) = (&mut self.stored, stored_args) {
                    stored.args = args;
                }
                self.saved();
                Ok(Ok(()))
            }
            Err(NotBegun::Lost(LostLease)) => Err(Halt::Lost),
            Err(NotBegun::NotGranted(why)) => Ok(Err(why)),
        }
    }

    fn refused(&mut self, at: usize, why: NotGranted) -> Event {
        let request = self
            .memory
            .call(at)
            .and_then(|call| call.state.request().cloned());
        self.taken.extend(request);
        self.dirty = true;
        self.stored = None;
        let reason = match why {
            NotGranted::NotApproved(Status::Rejected) => DenyReason::RejectedByOperator,
            NotGranted::NotApproved(Status::Expired) => DenyReason::Expired,
            NotGranted::NotApproved(Status::Cancelled) => DenyReason::Cancelled,
            NotGranted::NotApproved(Status::Undeliverable) => DenyReason::Undeliverable,
            NotGranted::NotFound | NotGranted::NotApproved(_) => DenyReason::GateError,
            NotGranted::ArgsChanged => DenyReason::ArgsChanged,
            NotGranted::AlreadyConsumed => DenyReason::AlreadyConsumed,
            NotGranted::PermitExpired => DenyReason::PermitExpired,
            NotGranted::NotAuthorised => DenyReason::NotAuthorised,
            NotGranted::DeniedByRule => DenyReason::DeniedByRule,
        };
        Event::Denied {
            at,
            reason,
            told: denial(reason, ""),
        }
    }

    async fn send(&mut self, at: usize) -> Result<Then, Halt> {
        self.save().await?;
        let call = self.memory.call(at).cloned();
        let Some((call, (permit, request))) =
            call.and_then(
                |mut call| match std::mem::replace(&mut call.state, CallState::Planned) {
                    CallState::Running { permit, request } => Some((call, (permit, request))),
                    _ => None,
                },
            )
        else {
            return Ok(Then::Rest(Ran::Failed(
                "a call was sent that had not begun".to_owned(),
            )));
        };
        let args = match &request {
            None => Ok(call.args),
            Some(id) => self.stored_args(id, &call.tool).await?,
        };
        let carried = match (args, self.runner.toolbox.get(&call.tool)) {
            (Err(why), _) => Carried::Failed(why.to_owned()),
            (Ok(_), None) => {
                Carried::Failed("the tool is no longer configured; the call was not made".to_owned())
            }
            (Ok(args), Some(tool)) => {
                let mut carried = tool.carry_out(&args, &permit).await;
                let mut sends = 1;
                while tool.idempotent && sends < SENDS && matches!(carried, Carried::Unknown(_)) {
                    carried = tool.carry_out(&args, &permit).await;
                    sends += 1;
                }
                carried
            }
        };
        info!(job = %self.job.id, call = %call.id, ok = matches!(carried, Carried::Done(_)), "a call was carried out");
        let (status, text) = match carried {
            Carried::Unknown(_) if request.is_some() => {
                warn!(job = %self.job.id, call = %call.id, "an approved call was sent and not answered");
                return Ok(Then::Event(Event::Vanished { at }));
            }
            Carried::Done(text) if text.trim().is_empty() => {
                (OutcomeStatus::Succeeded, "(no output)".to_owned())
            }
            Carried::Done(text) => (OutcomeStatus::Succeeded, text),
            Carried::Failed(text) | Carried::Unknown(text) => {
                (OutcomeStatus::Failed, format!("error: {text}"))
            }
        };
        let detail = match status {
            OutcomeStatus::Succeeded => "",
            OutcomeStatus::Failed => text.lines().next().unwrap_or_default(),
        };
        self.prepare_record(at, status, detail);
        Ok(Then::Event(Event::Ran {
            at,
            told: told(&text),
        }))
    }

    /// The stored arguments of an approved call, if they are what was approved. This is the last look before they are sent.
    async fn stored_args(
        &mut self,
        id: &ConfirmationId,
        tool: &str,
    ) -> Result<Result<String, &'static str>, Halt> {
        const CHANGED: &str = "the stored call is not the approved one; it was not made";
        let stored = match self.stored.take() {
            Some(stored) => stored,
            None => match self.store().read().dossier(id).await? {
                None => return Ok(Err(CHANGED)),
                Some(dossier) => Stored {
                    tool: dossier.confirmation.asked.tool,
                    args: dossier.confirmation.asked.args,
                    digest: dossier.confirmation.asked.digest,
                },
            },
        };
        let same = stored.tool.as_str() == tool
            && read(&stored.args).is_ok_and(|args| {
                args.canonical() == stored.args && Digest::of(&stored.tool, &args) == stored.digest
            });
        Ok(if same { Ok(stored.args) } else { Err(CHANGED) })
    }

    fn prepare_record(&mut self, at: usize, status: OutcomeStatus, detail: &str) {
        let Some(call) = self.memory.call(at) else { return };
        let (CallState::Running { permit, request } | CallState::Unsure { permit, request, .. }) =
            &call.state
        else {
            return;
        };
        let ran = match (request, call.tool.parse()) {
            (Some(request), _) => finish_call::Ran::Approved(request.clone()),
            (None, Ok(tool)) => finish_call::Ran::Allowed {
                tool,
                permit: permit.clone(),
            },
            (None, Err(_)) => return,
        };
        self.record = Some(Record {
            ran,
            status,
            detail: self.runner.gatekeeper.text(Some(detail)),
        });
    }

    async fn finish_call(&mut self, record: Record) -> Result<(), Halt> {
        let finish = FinishCall {
            hold: self.hold.clone(),
            ran: record.ran.clone(),
            status: record.status,
            detail: record.detail.clone(),
            remembered: self.remembered(),
        };
        if let Err(LostLease) = self.store().run(finish).await? {
            // The job is not ours to write any more, but that the call ran is true all the same.
            self.tell_anyway(record).await;
            return Err(Halt::Lost);
        }
        self.saved();
        Ok(())
    }

    async fn tell_anyway(&self, record: Record) {
        let gatekeeper = &self.runner.gatekeeper;
        match record.ran {
            finish_call::Ran::Approved(request) => {
                let outcome = Outcome {
                    status: record.status,
                    detail: record.detail.map(|detail| detail.value),
                };
                if let Err(error) = gatekeeper.report(&self.caller, &request, outcome).await {
                    warn!(%request, %error, "the outcome of a call could not be put on record");
                }
            }
            finish_call::Ran::Allowed { tool, permit } => gatekeeper.journal().write(
                self.draft("tool.executed")
                    .with("tool_name", tool.as_str())
                    .with("permit", permit.as_str())
                    .with(
                        "status",
                        if record.status == OutcomeStatus::Succeeded {
                            "succeeded"
                        } else {
                            "failed"
                        },
                    )
                    .with_private("detail", record.detail),
            ),
        }
    }

    async fn park(&mut self, until: Until, asks: Option<String>) -> Result<Then, Halt> {
        let park = Park {
            hold: self.hold.clone(),
            until,
            resume_movement: self.job.movement.clone(),
            remembered: self.remembered(),
            asks: self.runner.gatekeeper.text(asks.as_deref()),
        };
        let parked = self.store().run(park).await??;
        self.saved();
        Ok(match parked {
            Parked::Waiting => Then::Rest(Ran::Done),
            Parked::Nothing => Then::Again,
        })
    }

    async fn finish(&mut self, ending: Ending) -> Result<Then, Halt> {
        let text = match &ending {
            Ending::Completed { result } | Ending::Aborted { result } => result,
            Ending::Failed { error } => error,
        };
        let finish = Finish {
            hold: self.hold.clone(),
            said: self.runner.gatekeeper.text(Some(text)),
            ending,
            confirmations: self.memory.asked.clone(),
            remembered: Some(self.remembered()),
            parent: self.job.parent.clone(),
        };
        self.store().run(finish).await??;
        Ok(Then::Rest(Ran::Done))
    }

    async fn save(&mut self) -> Result<(), Halt> {
        if self.dirty {
            let save = Save {
                hold: self.hold.clone(),
                remembered: self.remembered(),
            };
            self.store().run(save).await??;
            self.saved();
        }
        Ok(())
    }

    fn saved(&mut self) {
        self.dirty = false;
        self.taken.clear();
    }

    fn remembered(&self) -> Remembered {
        Remembered {
            memory: self.memory.write(),
            movement: self.job.movement.clone(),
            confirmations: self.memory.asked.clone(),
            taken: self.taken.clone(),
        }
    }

    fn note_refusal(&self, at: usize, reason: DenyReason, why: &str) {
        let tool = self
            .memory
            .call(at)
            .map(|call| call.tool.clone())
            .unwrap_or_default();
        self.runner.gatekeeper.journal().write(
            self.draft("call.denied")
                .with("tool_name", tool)
                .with("reason_code", reason.code())
                .with("why", why),
        );
    }

    fn draft(&self, kind: &'static str) -> Draft {
        let token = Actor::Token(self.caller.token.0.clone());
        Draft::new(&self.caller.org, kind, token).of_job(&self.job.id)
    }

    /// The job went to somebody else. When it ended, what this run asked meanwhile is withdrawn: nobody waits for it.
    async fn let_go(&self) {
        let ended = matches!(
            self.store().read().job(&self.job.id).await,
            Ok(Some(job)) if job.state.status().is_final()
        );
        if ended {
            for request in &self.memory.asked {
                if let Err(error) = self.runner.gatekeeper.cancel(&self.caller, request).await {
                    warn!(%request, %error, "a request of a job that ended could not be withdrawn");
                }
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
