//! The confirmation request: the durable row of a call that needs a person, its votes, its cards and its permit.
//!
//! This room is pure: it knows no SQL, no HTTP, no platform and no clock. Each moment of a request's life is a file that holds
//! one [`Transaction`](crate::storage::Transaction): [`create`], [`look`], [`decide`], [`expire`], [`cancel`], [`consume`],
//! [`outcome`]. All of them change the status through one function, [`settle`](settle::settle).

use std::borrow::Cow;

use gatepost_channel::{Decision, MessageRef, UtcMillis};
use serde::{Deserialize, Serialize};

use self::edit::Edit;
use break_glass::Broken;
use step_up::{Arm, Second};

use self::roll::Roll;
use crate::gate::grant::GrantScope;
use crate::gate::{Digest, Terms, ToolName};
use crate::ids::{
    ChannelName, ConfirmationId, DeliveryId, GrantId, JobId, OperatorId, Org, PermitId, TokenName,
};

#[cfg(test)]
mod armed_edit_tests;
pub mod away;
pub mod break_glass;
#[cfg(test)]
mod break_glass_tests;
pub mod cancel;
mod cast;
pub mod clicked;
pub mod consume;
#[cfg(test)]
mod content_tests;
mod count;
pub mod create;
pub mod decide;
pub mod decide_all;
#[cfg(test)]
mod decide_tests;
pub mod edit;
#[cfg(test)]
mod edit_tests;
pub mod expire;
#[cfg(test)]
pub mod fixture;
pub mod grant;
#[cfg(test)]
mod grant_tests;
#[cfg(test)]
mod identity_tests;
pub mod insight;
pub mod live;
pub mod look;
#[cfg(test)]
mod look_tests;
pub mod outcome;
mod proof;
pub mod refusal;
pub mod roll;
#[cfg(test)]
mod roll_tests;
pub mod set;
#[cfg(test)]
mod set_tests;
pub mod settle;
pub mod spoken;
pub mod stage;
#[cfg(test)]
mod stead_tests;
pub mod step_up;
#[cfg(test)]
mod step_up_tests;
pub mod sweeper;
pub mod together;

/// The call as it was asked, and who asked. Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The token that asked: authenticated, and the owner of the permit.
    pub token: TokenName,
    /// The tool.
    pub tool: ToolName,
    /// The arguments in canonical form, complete. What is approved is what runs.
    pub args: String,
    /// Over tool and arguments.
    pub digest: Digest,
    /// Asserted by the agent.
    pub agent_id: Option<String>,
    /// Asserted by the agent; with `tool_call_id` it makes asking idempotent.
    pub session_id: Option<String>,
    /// Asserted by the agent.
    pub tool_call_id: Option<String>,
    /// Asserted by the agent, as it was written.
    pub requester: Option<String>,
    /// Canonical JSON of the asserted metadata.
    pub metadata: Option<String>,
    /// The persons behind the call: the named requester when known, the owner of the token, requesters up the lineage.
    pub persons: Vec<OperatorId>,
    /// The job that is parked on this call.
    pub job: Option<JobId>,
}

/// Where a request stands. Every state but the first is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waiting for people.
    Pending,
    /// The quorum approved.
    Approved {
        /// When.
        at: UtcMillis,
        /// The right to execute.
        permit: Permit,
    },
    /// Rejected.
    Rejected {
        /// When.
        at: UtcMillis,
    },
    /// Nobody decided in time.
    Expired {
        /// The deadline at the latest.
        at: UtcMillis,
    },
    /// Withdrawn by who asked.
    Cancelled {
        /// When.
        at: UtcMillis,
    },
    /// No channel took the card.
    Undeliverable {
        /// The deadline at the latest.
        at: UtcMillis,
    },
}

/// The right to execute an approved call, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// Not yet used.
    Open,
    /// Used.
    Consumed {
        /// Handed to the tool as the idempotency key.
        id: PermitId,
        /// When.
        at: UtcMillis,
    },
}

/// The stable word of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// See [`State::Pending`].
    Pending,
    /// See [`State::Approved`].
    Approved,
    /// See [`State::Rejected`].
    Rejected,
    /// See [`State::Expired`].
    Expired,
    /// See [`State::Cancelled`].
    Cancelled,
    /// See [`State::Undeliverable`].
    Undeliverable,
}

impl Status {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Approved,
        Self::Rejected,
        Self::Expired,
        Self::Cancelled,
        Self::Undeliverable,
    ];

    /// The word of the API and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Undeliverable => "undeliverable",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl State {
    /// The word.
    pub const fn status(&self) -> Status {
        match self {
            Self::Pending => Status::Pending,
            Self::Approved { .. } => Status::Approved,
            Self::Rejected { .. } => Status::Rejected,
            Self::Expired { .. } => Status::Expired,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::Undeliverable { .. } => Status::Undeliverable,
        }
    }

    /// When it was decided.
    pub const fn decided_at(&self) -> Option<UtcMillis> {
        match self {
            Self::Pending => None,
            Self::Approved { at, .. }
            | Self::Rejected { at }
            | Self::Expired { at }
            | Self::Cancelled { at }
            | Self::Undeliverable { at } => Some(*at),
        }
    }

    /// The consumed permit.
    pub const fn consumed(&self) -> Option<(&PermitId, UtcMillis)> {
        match self {
            Self::Approved {
                permit: Permit::Consumed { id, at },
                ..
            } => Some((id, *at)),
            _ => None,
        }
    }
}

/// What happened after the decision: the resume ledger. A decided request whose run did not resume shows up here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The parked job was put back into the queue.
    pub woken_at: Option<UtcMillis>,
    /// The run took the decision: the call was re-issued, or its denial was handed over.
    pub resumed_at: Option<UtcMillis>,
    /// The call was executed.
    pub executed_at: Option<UtcMillis>,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

/// What an executed call led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: OutcomeStatus,
    /// In the words of who executed it; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How an executed call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeStatus {
    /// It did what was asked.
    Succeeded,
    /// It failed.
    Failed,
}

/// The request, without its votes and cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// Its id.
    pub id: ConfirmationId,
    /// The organisation it belongs to.
    pub org: Org,
    /// The call and who asked.
    pub asked: Asked,
    /// The rule that asked for a person.
    pub rule: Option<String>,
    /// Why, in the rule's words.
    pub reason: Option<String>,
    /// Who may decide, how many, until when: as the rule stood when the call was asked.
    pub terms: Terms,
    /// The like requests whose message it shares, where its terms let it.
    pub set: Option<set::Membership>,
    /// When it was asked.
    pub created_at: UtcMillis,
    /// The deadline; a decision counts while it lies in the future.
    pub expires_at: UtcMillis,
    /// Where it stands.
    pub state: State,
    /// What followed.
    pub ledger: Ledger,
    /// How far its decision got.
    pub progress: Progress,
    /// Counts what must be decided anew: buttons carry it, and a press on an older one casts no vote. A vote does not raise
    /// it, so that several people can answer the same card.
    pub revision: u32,
    /// Counts what cards must show anew: votes, states, outcomes.
    pub edition: u32,
    /// Counts writes of the row.
    pub version: i64,
}

impl Confirmation {
    /// Who may not approve it, nor have it approved in their place: whoever stands behind the call, unless the rule lets them.
    pub fn barred(&self) -> &[OperatorId] {
        if self.terms.self_approval {
            &[]
        } else {
            &self.asked.persons
        }
    }

    /// The terms as they hold now: a step of the escalation that was taken lets more people decide.
    pub fn in_force(&self) -> Cow<'_, Terms> {
        self.terms.after_steps(self.progress.escalated)
    }

    /// Until when an approval may be used.
    pub fn permit_until(&self) -> Option<UtcMillis> {
        match &self.state {
            State::Approved { at, .. } => Some(UtcMillis(at.0.saturating_add(self.terms.permit_ttl_ms))),
            _ => None,
        }
    }
}

/// How far the decision of a request got, beyond its votes. Stored as one JSON text: what is not there is not yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The stage that people vote in, from 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub stage: u32,
    /// What decided it instead of votes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// The grant that its approval made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted: Option<GrantId>,
    /// The arguments as a person changed them: what is voted on, and once approved runs, in place of what was proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
    /// How many steps of the escalation were taken.
    #[serde(skip_serializing_if = "is_zero")]
    pub escalated: u32,
    /// Whether the permit's time passed before anybody used it, and the cards were told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lapsed: bool,
    /// Approvals that count nothing yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub armed: Vec<Arm>,
    /// Cards whose channel failed for so long that another one asks as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lent: Vec<DeliveryId>,
}

/// What decides a request instead of votes on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A grant that was given before.
    Grant(GrantId),
    /// One person, past everybody else.
    BreakGlass(Box<Broken>),
}

impl Basis {
    /// The grant, if it is one.
    pub const fn grant(&self) -> Option<&GrantId> {
        match self {
            Self::Grant(id) => Some(id),
            Self::BreakGlass(_) => None,
        }
    }

    /// Who broke the glass, if somebody did.
    pub fn broken(&self) -> Option<&Broken> {
        match self {
            Self::Grant(_) => None,
            Self::BreakGlass(broken) => Some(broken),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a vote says beside yes or no. Stored as one JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VoteContent {
    /// The stage in which it was cast, from 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub stage: u32,
    /// The grant that the person asks for with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantScope>,
    /// In whose place it was cast: that of somebody away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acting_for: Option<OperatorId>,
    /// The edit of the arguments on which it was cast; 0 is what was proposed.
    #[serde(skip_serializing_if = "is_zero")]
    pub edit: u32,
    /// Whether the person gave a one-time code for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
    /// Who confirmed it, where it took a second person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Second>,
    /// The account through which it came, which is asked about again when the permit is consumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// An account of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The channel whose app knows it.
    pub channel: ChannelName,
    /// The platform's id.
    pub id: String,
    /// The name that its owner goes by, for people who read cards. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One person's answer. The first one stands, for the arguments on which it was cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// Who, as a person rather than a platform identity.
    pub person: OperatorId,
    /// What they answered.
    pub decision: Decision,
    /// Where: a channel, or nothing for the API, the console and the command line.
    pub channel: Option<ChannelName>,
    /// Through what: `card`, `api`, `console`, `terminal`.
    pub surface: String,
    /// Why, in their words; untrusted.
    pub reason: Option<String>,
    /// When.
    pub at: UtcMillis,
    /// What else it says.
    pub content: VoteContent,
}

impl Vote {
    /// The name to show for who voted.
    pub fn voter(&self, roll: &Roll) -> String {
        roll.name_of(&self.person, self.content.account.as_ref())
            .into_owned()
    }

    /// Whose place it takes: of the votes of one place, one approves.
    pub fn seat(&self) -> &OperatorId {
        self.content.acting_for.as_ref().unwrap_or(&self.person)
    }
}

/// How far one card got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// In the outbox.
    Queued,
    /// A post is under way or its outcome is unknown: a card may stand.
    Sending,
    /// It stands.
    Posted,
    /// It stands and shows the final state, or never stood and no longer needs to.
    Settled,
    /// Refused for good.
    Failed,
}

impl DeliveryState {
    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Posted => "posted",
            Self::Settled => "settled",
            Self::Failed => "failed",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Queued,
            Self::Sending,
            Self::Posted,
            Self::Settled,
            Self::Failed,
        ]
        .into_iter()
        .find(|s| s.as_str() == word)
    }
}

/// A message that shows the card, and the edition it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Where.
    pub at: MessageRef,
    /// Which edition it shows; 0 when that is not known.
    pub edition: u32,
    /// The platform refused the content there: it shows ids and our own words only, so that nothing is approved on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minimal: bool,
    /// Whose it is, where it is no card of the group but the last of the messages that showed one person everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<Reader>,
}

impl Standing {
    /// Lets go of what one person was shown: it is shown once more, as something they have not seen, so without answers, and is
    /// forgotten then.
    pub fn leave(&mut self) {
        self.edition = 0;
        if let Some(reader) = &mut self.reader {
            reader.revision = 0;
        }
    }

    /// Whether it was let go of. No request has the revision 0.
    pub fn is_leaving(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.revision == 0)
    }
}

/// A person who was shown everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reader {
    /// The platform's id of the person.
    pub user: String,
    /// The revision that they saw.
    pub revision: u32,
}

/// One card on one channel for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// On which channel.
    pub channel: ChannelName,
    /// The card of the set's first request in whose message it stands; `None` for a card with a message of its own.
    pub host: Option<DeliveryId>,
    /// How far it got.
    pub state: DeliveryState,
    /// Drawn at random; together with the server's key it makes the button token. Worthless without the key.
    pub nonce: [u8; 16],
    /// SHA-256 of the button token.
    pub token_hash: [u8; 32],
    /// Whether the card shows all of the arguments, so that Approve stands on it.
    pub approvable: bool,
    /// A post left and no answer told whether its card stands: one message that is not in `standing` may show it.
    pub unheard: bool,
    /// The messages that show it: one, or two after a post with an unknown outcome.
    pub standing: Vec<Standing>,
    /// Why it failed; the platform's code.
    pub error: Option<String>,
    /// Whether it only tells: nothing can be pressed on it, and whatever is pressed decides nothing.
    pub told: bool,
    /// How many of its messages were deleted by somebody while people were asked.
    pub lost: u32,
}

impl Delivery {
    /// Whether a card of it stands in the group; what was shown to one person is none.
    pub fn stands(&self) -> bool {
        self.in_group().is_some()
    }

    /// The first message of it in the group.
    pub fn in_group(&self) -> Option<&Standing> {
        self.standing.iter().find(|message| message.reader.is_none())
    }

    /// Whether people are asked on it.
    pub const fn asks(&self) -> bool {
        !self.told
    }
}

/// A request with everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dossier {
    /// The request.
    pub confirmation: Confirmation,
    /// Its votes, oldest first.
    pub votes: Vec<Vote>,
    /// Its cards.
    pub deliveries: Vec<Delivery>,
}
