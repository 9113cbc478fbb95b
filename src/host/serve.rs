//! A host's question answered: policy, then people, then the permit, and always in the host's own words.
//!
//! Hosts take every failure as consent, so nothing here fails: what cannot be decided is denied. An allow is the consumption
//! of the permit, committed before it is said. This file knows no web server; whoever has one sends the answer with status 200.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::warn;

use super::executed::Executed;
use super::{Asking, Changed, HookCall, HookEvent, HookReport, HookVerdict, Host, words};
use crate::confirmation::consume::{Granted, NotGranted};
use crate::confirmation::roll::Roll;
use crate::confirmation::{Dossier, Outcome, Status};
use crate::gate::json::ReadLimits;
use crate::gate::policy::Voices;
use crate::gate::{Arguments, DenyReason, Digest};
use crate::gatekeeper::council::{News, What};
use crate::gatekeeper::{Answer, Caller, Gatekeeper, Question, Via};
use crate::ids::ConfirmationId;
use crate::lifecycle::Tasks;
use crate::storage::{CallKey, StoreError, TwinKey};

/// How long a host is kept waiting when it does not say: hosts give up after 600 seconds and then run the call.
pub const DEFAULT_HOLD: Duration = Duration::from_mins(9);
/// The longest wait that a host may ask for: below the longest limit that can be set in one, a day.
pub const MAX_HOLD: Duration = Duration::from_hours(23);

/// The hooks of a call may always take this long: less than `gatepost gate` waits for an answer beyond the hold, and less than
/// any host waits for its hook.
const LEAST_FOR_HOOKS: Duration = Duration::from_secs(8);
/// What is left of the hold for the answer itself.
const FOR_THE_ANSWER: Duration = Duration::from_secs(2);

/// How long the hooks of a call may take together.
fn hooks_within(hold: Duration) -> Duration {
    hold.saturating_sub(FOR_THE_ANSWER).max(LEAST_FOR_HOOKS)
}

/// Why nobody stands behind a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFailure {
    /// There is no token, or it is not known.
    UnknownToken,
    /// The token is not an agent's.
    NotAnAgent,
}

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFailure {
    /// It is larger than [`MAX_BODY`](super::MAX_BODY).
    TooLarge,
    /// It did not arrive whole, or not in time.
    Broken,
}

/// A message of a host as it came in.
#[derive(Debug)]
pub struct Incoming<B> {
    /// Who sends it.
    pub caller: Result<Caller, AuthFailure>,
    /// The host's JSON, as it was sent.
    pub body: Result<B, BodyFailure>,
    /// How long it may be kept waiting; see [`hold`].
    pub hold: Duration,
    /// The header [`CALL_HEADER`](super::CALL_HEADER).
    pub call: Option<String>,
    /// The header [`PENDING_HEADER`](super::PENDING_HEADER), sent back.
    pub pending: Option<String>,
}

/// What to send: status 200, JSON, and the header [`PENDING_HEADER`](super::PENDING_HEADER) where it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAnswer {
    /// The body.
    pub body: String,
    /// The request that still waits for a person; the body denies the call for now.
    pub pending: Option<ConfirmationId>,
}

/// The wait that a query asks for, within bounds. What cannot be read is as if it was not said.
pub fn hold(seconds: Option<&str>) -> Duration {
    seconds
        .and_then(|text| text.parse().ok())
        .map_or(DEFAULT_HOLD, |seconds| Duration::from_secs(seconds).min(MAX_HOLD))
}

/// Denies without asking, for faults before anything could be asked (overload). `body` chooses the form, where there is one.
pub fn refuse(host: Host, body: Option<&[u8]>, what: &str, reason: DenyReason) -> HostAnswer {
    let dialect = host.dialect();
    let asking = body.map_or(Some(Asking::BeforeTool), |body| dialect.asking(body));
    let deny = HookVerdict::Deny {
        reason: words::denied(what, reason),
    };
    HostAnswer {
        body: asking.map_or_else(|| dialect.silence(), |asking| dialect.speak(asking, &deny)),
        pending: None,
    }
}

/// Answers a host. It ends at the latest with the hold, or when the server stops.
pub async fn answer<B: AsRef<[u8]>>(
    gatekeeper: &Gatekeeper,
    tasks: &Tasks,
    host: Host,
    incoming: Incoming<B>,
) -> HostAnswer {
    let (call, caller) = match heard(host, &incoming) {
        Heard::Asks(call, caller) => (call, caller),
        Heard::Ran(report, caller) => {
            ran(gatekeeper, &caller, report).await;
            return silence(host);
        }
        Heard::Answered(answer) => return answer,
    };
    // The wait can be long; the body is not needed for it.
    drop(incoming.body);
    let asking = call.asking;
    let wait = Wait {
        gatekeeper,
        tasks,
        host,
        caller: &caller,
        hold: incoming.hold.min(MAX_HOLD),
    };
    let judged = wait.judge(*call, incoming.call.as_deref(), incoming.pending.as_deref());
    let judged = AssertUnwindSafe(Box::pin(judged)).catch_unwind().await;
    let (verdict, pending) = match judged {
        Ok(Ok(judged)) => judged,
        Ok(Err(error)) => {
            warn!(%host, %error, "a host's question could not be answered and was denied");
            (deny("the gate's store failed", DenyReason::GateError), None)
        }
        Err(_) => {
            warn!(%host, "answering a host's question panicked; it was denied");
            (deny("the gate failed", DenyReason::GateError), None)
        }
    };
    let word = match (&verdict, &pending) {
        (_, Some(_)) => "pending",
        (HookVerdict::Allow { .. }, None) => "allow",
        (HookVerdict::Deny { .. }, None) => "deny",
    };
    metrics::counter!("gatepost_hook_answers_total", "host" => host.name(), "verdict" => word).increment(1);
    HostAnswer {
        body: host.dialect().speak(asking, &verdict),
        pending,
    }
}

/// What a message comes to.
enum Heard {
    /// A call is asked about.
    Asks(Box<HookCall>, Caller),
    /// A call ran.
    Ran(HookReport, Caller),
    /// There is nothing to find out.
    Answered(HostAnswer),
}

fn heard<B: AsRef<[u8]>>(host: Host, incoming: &Incoming<B>) -> Heard {
    let refused = |body, what: &str, reason| Heard::Answered(refuse(host, body, what, reason));
    let body = match &incoming.body {
        Ok(body) => body.as_ref(),
        Err(BodyFailure::TooLarge) => {
            let what = "the call is too large to be shown to a person";
            return refused(None, what, DenyReason::InvalidArguments);
        }
        Err(BodyFailure::Broken) => {
            return refused(None, "the question did not arrive whole", DenyReason::GateError);
        }
    };
    let caller = match &incoming.caller {
        Ok(caller) => caller.clone(),
        Err(failure) => {
            let what = match failure {
                AuthFailure::UnknownToken => "the gate does not know this token",
                AuthFailure::NotAnAgent => "this token is not an agent's",
            };
            return refused(Some(body), what, DenyReason::NotAuthorised);
        }
    };
    match host.dialect().read(body) {
        Ok(HookEvent::Asks(call)) => Heard::Asks(call, caller),
        Ok(HookEvent::Ran(report)) => Heard::Ran(report, caller),
        Ok(HookEvent::Observed) => Heard::Answered(silence(host)),
        Err(error) => refused(Some(body), &error.to_string(), DenyReason::InvalidArguments),
    }
}

/// A verdict, and the request on which it may still change.
type Judged = (HookVerdict, Option<ConfirmationId>);

/// What one answer is made with.
struct Wait<'a> {
    gatekeeper: &'a Gatekeeper,
    tasks: &'a Tasks,
    host: Host,
    caller: &'a Caller,
    hold: Duration,
}

impl Wait<'_> {
    async fn judge(
        &self,
        call: HookCall,
        given_id: Option<&str>,
        pending: Option<&str>,
    ) -> Result<Judged, StoreError> {
        let began = Instant::now();
        let digest = Digest::of(&call.tool, &call.args);
        let carries_edits = self.host.dialect().carries_edits(call.asking);
        let question = question(call, given_id, carries_edits);
        let answer = if let Some(dossier) = self.followed(&question, digest, pending).await? {
            Answer::Asked(Box::new(dossier))
        } else {
            let within = hooks_within(self.hold);
            self.gatekeeper.ask_council(self.caller, question, within).await?
        };
        match answer {
            Answer::Allow { rule, .. } => {
                let reason = words::allowed(rule.as_deref());
                Ok((
                    HookVerdict::Allow {
                        reason,
                        changed: None,
                    },
                    None,
                ))
            }
            Answer::Deny {
                reason,
                message,
                rule,
                ..
            } => {
                let reason = words::forbidden(rule.as_deref(), &message, reason);
                Ok((HookVerdict::Deny { reason }, None))
            }
            Answer::Conflict(id) => {
                let what = format!("this call's id was used before, for another call ({id})");
                Ok((deny(&what, DenyReason::ArgsChanged), None))
            }
            Answer::Asked(dossier) => {
                // What the hooks took of the time is gone.
                let hold = self.hold.saturating_sub(began.elapsed());
                self.people(&dossier.confirmation.id, digest, hold).await
            }
        }
    }

    /// The request that an earlier answer named, if it is this caller's and about this very call.
    async fn followed(
        &self,
        question: &Question,
        digest: Digest,
        pending: Option<&str>,
    ) -> Result<Option<Dossier>, StoreError> {
        let Some(id) = pending.and_then(|text| ConfirmationId::parse(text).ok()) else {
            return Ok(None);
        };
        let dossier = self.gatekeeper.dossier(&self.caller.org, &id).await?;
        Ok(dossier.filter(|dossier| {
            let asked = &dossier.confirmation.asked;
            asked.token == self.caller.token
                && asked.digest == digest
                && asked.session_id == question.session_id
                && asked.job.is_none()
        }))
    }

    /// Waits for people, then takes the permit.
    async fn people(
        &self,
        id: &ConfirmationId,
        digest: Digest,
        hold: Duration,
    ) -> Result<Judged, StoreError> {
        let decided = tokio::select! {
            decided = self.gatekeeper.decided(id, hold) => decided,
            () = self.tasks.stopping() => return Ok(parked(id)),
        };
        let dossier = match decided {
            Ok(Some(dossier)) => dossier,
            Ok(None) => return Ok((deny("the request is gone", DenyReason::GateError), None)),
            Err(error) => {
                warn!(%id, %error, "a request could not be read while a host waited");
                return Ok(parked(id));
            }
        };
        let reason = match dossier.confirmation.state.status() {
            Status::Pending => return Ok(parked(id)),
            Status::Approved => return self.consume(&dossier, digest).await,
            Status::Rejected => words::rejected(&dossier, &self.gatekeeper.roll()),
            Status::Expired => words::denied(
                &format!("nobody decided request {id} in time"),
                DenyReason::Expired,
            ),
            Status::Cancelled => words::denied(&format!("request {id} was withdrawn"), DenyReason::Cancelled),
            Status::Undeliverable => {
                words::denied(&format!("request {id} reached nobody"), DenyReason::Undeliverable)
            }
        };
        Ok((HookVerdict::Deny { reason }, None))
    }

    async fn consume(&self, dossier: &Dossier, digest: Digest) -> Result<Judged, StoreError> {
        let id = &dossier.confirmation.id;
        let granted = self
            .gatekeeper
            .consume(Via::Host, self.caller, id, digest)
            .await?;
        let verdict = match granted {
            Ok(granted) => match changed(dossier, &granted, &self.gatekeeper.roll()) {
                Ok(changed) => HookVerdict::Allow {
                    reason: words::approved(dossier, &self.gatekeeper.roll()),
                    changed,
                },
                // The permit is used; nothing runs under it.
                Err(what) => deny(what, DenyReason::GateError),
            },
            Err(NotGranted::LookUpFailed) => {
                warn!(%id, "an approval could not be used now: who approved cannot be looked up");
                return Ok(parked(id));
            }
            Err(why) => {
                let (what, reason) = not_granted(why);
                deny(&format!("{what} ({id})"), reason)
            }
        };
        Ok((verdict, None))
    }
}

/// What the host must run in place of what it asked about, if people changed it.
fn changed(dossier: &Dossier, granted: &Granted, roll: &Roll) -> Result<Option<Changed>, &'static str> {
    if granted.edit == 0 {
        return Ok(None);
    }
    let args = Arguments::read(granted.args.as_bytes(), ReadLimits::bytes(granted.args.len()));
    let args = args.map_err(|_| "the approved call cannot be read")?;
    let told = words::changed(&dossier.confirmation, roll);
    Ok(Some(Changed { args, told }))
}

/// Hosts repeat calls under fresh ids, so an open request for the same call of the same session is joined.
fn question(call: HookCall, given_id: Option<&str>, carries_edits: bool) -> Question {
    Question {
        via: Via::Host,
        tool: call.tool,
        args: call.args,
        agent_id: Some(call.agent_id),
        session_id: Some(call.session_id),
        tool_call_id: call
            .call_id
            .or_else(|| given_id.and_then(acceptable).map(|id| format!("gate:{id}"))),
        requester: None,
        metadata: Some(call.metadata),
        job: None,
        lineage: Vec::new(),
        voices: Voices::default(),
        carries_edits,
        join_twin: true,
    }
}

/// An id that our own client made up for a call without one.
fn acceptable(id: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!id.is_empty() && id.len() <= 64 && id.bytes().all(plain)).then_some(id)
}

/// Every way not to get a permit, in words.
fn not_granted(why: NotGranted) -> (&'static str, DenyReason) {
    match why {
        NotGranted::NotFound => ("the request is not one of this token", DenyReason::GateError),
        NotGranted::NotApproved(_) => ("the request is not approved", DenyReason::GateError),
        NotGranted::LookUpFailed => ("who approved cannot be looked up now", DenyReason::GateError),
        NotGranted::ArgsChanged => ("another call was approved", DenyReason::ArgsChanged),
        NotGranted::AlreadyConsumed => ("the approval was used before", DenyReason::AlreadyConsumed),
        NotGranted::PermitExpired => ("the approval was not used in time", DenyReason::PermitExpired),
        NotGranted::NotAuthorised => (
            "who approved may no longer decide this",
            DenyReason::NotAuthorised,
        ),
        NotGranted::DeniedByRule => ("a rule denies the call by now", DenyReason::DeniedByRule),
    }
}

fn deny(what: &str, reason: DenyReason) -> HookVerdict {
    HookVerdict::Deny {
        reason: words::denied(what, reason),
    }
}

fn parked(id: &ConfirmationId) -> Judged {
    let reason = words::parked(id);
    (HookVerdict::Deny { reason }, Some(id.clone()))
}

fn silence(host: Host) -> HostAnswer {
    HostAnswer {
        body: host.dialect().silence(),
        pending: None,
    }
}

async fn ran(gatekeeper: &Gatekeeper, caller: &Caller, report: HookReport) {
    if let Some(told) = &report.told {
        gatekeeper.news(News {
            via: Via::Host,
            org: &caller.org,
            token: &caller.token,
            tool: &told.tool,
            agent_id: Some(&told.agent_id),
            session_id: Some(&report.session_id),
            tool_call_id: Some(&report.call_id),
            requester: None,
            what: What::Ended {
                args: &told.args,
                status: report.status,
                output: &told.output,
            },
        });
    }
    let twin = report.told.as_ref().map(|told| TwinKey {
        org: caller.org.clone(),
        token: caller.token.clone(),
        session: report.session_id.clone(),
        digest: *Digest::of(&told.tool, &told.args).as_bytes(),
    });
    let executed = Executed {
        twin,
        key: CallKey {
            org: caller.org.clone(),
            token: caller.token.clone(),
            session: report.session_id,
            call: report.call_id,
        },
        outcome: Outcome {
            status: report.status,
            detail: None,
        },
    };
    if let Err(error) = gatekeeper.store().run(executed).await {
        warn!(%error, "the outcome of a host's call could not be recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_have_spoken_before_the_host_gives_up() {
        for (hold, hooks) in [(0, 8), (5, 8), (25, 23), (540, 538)] {
            let within = hooks_within(Duration::from_secs(hold));
            assert_eq!(within, Duration::from_secs(hooks));
            // What `gatepost gate` waits beyond the hold is never used up.
            assert!(within < Duration::from_secs(hold + 10));
        }
    }
}
