//! The rows of a request: the request itself, its votes, its cards.

use gatepost_channel::{Decision, UtcMillis};
use serde::Serialize;

use super::{Site, Text, keep, row, spell};
use crate::confirmation::set::{Alike, Membership};
use crate::confirmation::{
    Asked, Confirmation, Delivery, DeliveryState, Ledger, Permit, State, Status, Vote, VoteContent,
};
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, JobId, OperatorId, Org, PermitId, TokenName};
use crate::storage::{ChangedConfirmation, StoreError};

row! {
    /// A row of `confirmation`.
    ConfirmationRow in "confirmation" {
        id: String,
        org: Text,
        token: Text,
        tool: Text,
        args: Text,
        digest: String,
        agent_id: Option<Text>,
        session_id: Option<Text>,
        tool_call_id: Option<Text>,
        requester: Option<Text>,
        metadata: Option<Text>,
        persons: String,
        job: Option<String>,
        rule: Option<Text>,
        reason: Option<Text>,
        terms: String,
        alike: Option<String>,
        set_first: Option<String>,
        created_at: i64,
        expires_at: i64,
        status: String,
        decided_at: Option<i64>,
        permit: Option<String>,
        consumed_at: Option<i64>,
        woken_at: Option<i64>,
        resumed_at: Option<i64>,
        executed_at: Option<i64>,
        outcome: Option<String>,
        progress: String,
        revision: i64,
        edition: i64,
        version: i64,
    }
}

impl From<&Confirmation> for ConfirmationRow {
    fn from(value: &Confirmation) -> Self {
        let asked = &value.asked;
        let standing = StandingOf::of(value);
        Self {
            id: value.id.as_str().to_owned(),
            org: Text::keep(value.org.as_str()),
            token: Text::keep(asked.token.as_str()),
            tool: Text::keep(asked.tool.as_str()),
            args: Text::keep(&asked.args),
            digest: asked.digest.to_string(),
            agent_id: keep(asked.agent_id.as_ref()),
            session_id: keep(asked.session_id.as_ref()),
            tool_call_id: keep(asked.tool_call_id.as_ref()),
            requester: keep(asked.requester.as_ref()),
            metadata: keep(asked.metadata.as_ref()),
            persons: spell(&asked.persons),
            job: asked.job.as_ref().map(|job| job.as_str().to_owned()),
            rule: keep(value.rule.as_ref()),
            reason: keep(value.reason.as_ref()),
            terms: spell(&value.terms),
            alike: value.set.as_ref().map(|set| hex::encode(set.alike.as_bytes())),
            set_first: value.set.as_ref().map(|set| set.first.as_str().to_owned()),
            created_at: value.created_at.0,
            expires_at: value.expires_at.0,
            status: standing.status.to_owned(),
            decided_at: standing.decided_at,
            permit: standing.permit,
            consumed_at: standing.consumed_at,
            woken_at: standing.woken_at,
            resumed_at: standing.resumed_at,
            executed_at: standing.executed_at,
            outcome: standing.outcome,
            progress: standing.progress,
            revision: standing.revision,
            edition: standing.edition,
            version: standing.version,
        }
    }
}

/// The columns of a request that change.
#[derive(Debug, Serialize)]
struct StandingOf {
    status: &'static str,
    decided_at: Option<i64>,
    permit: Option<String>,
    consumed_at: Option<i64>,
    woken_at: Option<i64>,
    resumed_at: Option<i64>,
    executed_at: Option<i64>,
    outcome: Option<String>,
    progress: String,
    revision: i64,
    edition: i64,
    version: i64,
}

impl StandingOf {
    fn of(value: &Confirmation) -> Self {
        let consumed = value.state.consumed();
        let ledger = &value.ledger;
        Self {
            status: value.state.status().as_str(),
            decided_at: value.state.decided_at().map(|at| at.0),
            permit: consumed.map(|(id, _)| id.as_str().to_owned()),
            consumed_at: consumed.map(|(_, at)| at.0),
            woken_at: ledger.woken_at.map(|at| at.0),
            resumed_at: ledger.resumed_at.map(|at| at.0),
            executed_at: ledger.executed_at.map(|at| at.0),
            outcome: ledger.outcome.as_ref().map(spell),
            progress: spell(&value.progress),
            revision: value.revision.into(),
            edition: value.edition.into(),
            version: value.version,
        }
    }
}

/// A change of a request, with what guards it.
#[derive(Debug, Serialize)]
pub(in crate::storage) struct ConfirmationChange {
    id: String,
    stored: i64,
    settles: u8,
    #[serde(flatten)]
    standing: StandingOf,
}

impl From<&ChangedConfirmation> for ConfirmationChange {
    fn from(changed: &ChangedConfirmation) -> Self {
        Self {
            id: changed.value.id.as_str().to_owned(),
            stored: changed.stored_version,
            settles: changed.settles.into(),
            standing: StandingOf::of(&changed.value),
        }
    }
}

impl ConfirmationRow {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<Confirmation, StoreError> {
        let site = Site::new("confirmation", &self.id);
        let at = |at: Option<i64>| at.map(UtcMillis);
        let state = self.state(&site)?;
        let set = self.set(&site)?;
        Ok(Confirmation {
            id: ConfirmationId::parse(&self.id).map_err(|_| site.fault("id"))?,
            org: Org(site.text(self.org, "org")?),
            asked: Asked {
                token: TokenName(site.text(self.token, "token")?),
                tool: site
                    .text(self.tool, "tool")?
                    .parse()
                    .map_err(|_| site.fault("tool"))?,
                args: site.text(self.args, "args")?,
                digest: self.digest.parse().map_err(|_| site.fault("digest"))?,
                agent_id: site.maybe_text(self.agent_id, "agent_id")?,
                session_id: site.maybe_text(self.session_id, "session_id")?,
                tool_call_id: site.maybe_text(self.tool_call_id, "tool_call_id")?,
                requester: site.maybe_text(self.requester, "requester")?,
                metadata: site.maybe_text(self.metadata, "metadata")?,
                persons: site.json(&self.persons, "persons")?,
                job: self
                    .job
                    .map(|job| JobId::parse(&job).map_err(|_| site.fault("job")))
                    .transpose()?,
            },
            rule: site.maybe_text(self.rule, "rule")?,
            reason: site.maybe_text(self.reason, "reason")?,
            terms: site.json(&self.terms, "terms")?,
            set,
            created_at: UtcMillis(self.created_at),
            expires_at: UtcMillis(self.expires_at),
            state,
            ledger: Ledger {
                woken_at: at(self.woken_at),
                resumed_at: at(self.resumed_at),
                executed_at: at(self.executed_at),
                outcome: self
                    .outcome
                    .map(|outcome| site.json(&outcome, "outcome"))
                    .transpose()?,
            },
            progress: site.json(&self.progress, "progress")?,
            revision: site.count(self.revision, "revision")?,
            edition: site.count(self.edition, "edition")?,
            version: self.version,
        })
    }

    fn set(&self, site: &Site) -> Result<Option<Membership>, StoreError> {
        match (&self.alike, &self.set_first) {
            (None, None) => Ok(None),
            (Some(alike), Some(first)) => Ok(Some(Membership {
                alike: Alike::from_bytes(site.bytes(alike, "alike")?),
                first: ConfirmationId::parse(first).map_err(|_| site.fault("set_first"))?,
            })),
            (Some(_), None) | (None, Some(_)) => Err(site.fault("half a set")),
        }
    }

    fn state(&self, site: &Site) -> Result<State, StoreError> {
        let status = site.need(Status::parse(&self.status), "status")?;
        let permit = match (&self.permit, self.consumed_at) {
            (None, None) => Permit::Open,
            (Some(id), Some(at)) => Permit::Consumed {
                id: PermitId::parse(id).map_err(|_| site.fault("permit"))?,
                at: UtcMillis(at),
            },
            (Some(_), None) | (None, Some(_)) => return Err(site.fault("half a permit")),
        };
        match (status, self.decided_at.map(UtcMillis), permit) {
            (Status::Pending, None, Permit::Open) => Ok(State::Pending),
            (Status::Approved, Some(at), permit) => Ok(State::Approved { at, permit }),
            (Status::Rejected, Some(at), Permit::Open) => Ok(State::Rejected { at }),
            (Status::Expired, Some(at), Permit::Open) => Ok(State::Expired { at }),
            (Status::Cancelled, Some(at), Permit::Open) => Ok(State::Cancelled { at }),
            (Status::Undeliverable, Some(at), Permit::Open) => Ok(State::Undeliverable { at }),
            (_, _, Permit::Consumed { .. }) => Err(site.fault("a permit without an approval")),
            (Status::Pending, Some(_), _) => Err(site.fault("pending and decided")),
            (_, None, _) => Err(site.fault("decided without a time")),
        }
    }
}

row! {
    /// A row of `vote`.
    VoteRow in "vote" {
        confirmation: String,
        person: Text,
        decision: String,
        channel: Option<Text>,
        surface: String,
        reason: Option<Text>,
        at: i64,
        content: String,
        edit: i64,
    }
}

impl VoteRow {
    pub(in crate::storage) fn of(request: &ConfirmationId, vote: &Vote) -> Self {
        Self {
            confirmation: request.as_str().to_owned(),
            person: Text::keep(vote.person.as_str()),
            decision: vote.decision.as_str().to_owned(),
            channel: vote.channel.as_ref().map(|channel| Text::keep(channel.as_str())),
            surface: vote.surface.clone(),
            reason: keep(vote.reason.as_ref()),
            at: vote.at.0,
            content: spell(&vote.content),
            edit: vote.content.edit.into(),
        }
    }

    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<Vote, StoreError> {
        let site = Site::new("vote", &self.confirmation);
        let decision = [Decision::Approve, Decision::Reject]
            .into_iter()
            .find(|decision| decision.as_str() == self.decision);
        let content: VoteContent = site.json(&self.content, "content")?;
        if i64::from(content.edit) != self.edit {
            return Err(site.fault("edit"));
        }
        Ok(Vote {
            person: OperatorId(site.text(self.person, "person")?),
            decision: site.need(decision, "decision")?,
            channel: site.maybe_text(self.channel, "channel")?.map(ChannelName),
            surface: self.surface,
            reason: site.maybe_text(self.reason, "reason")?,
            at: UtcMillis(self.at),
            content,
        })
    }
}

row! {
    /// A row of `delivery`.
    DeliveryRow in "delivery" {
        id: String,
        confirmation: String,
        channel: Text,
        host: Option<String>,
        state: String,
        nonce: String,
        token_hash: String,
        approvable: u8,
        unheard: u8,
        standing: String,
        error: Option<Text>,
        told: u8,
        lost: i64,
    }
}

impl DeliveryRow {
    pub(in crate::storage) fn of(request: &ConfirmationId, card: &Delivery) -> Self {
        Self {
            id: card.id.as_str().to_owned(),
            confirmation: request.as_str().to_owned(),
            channel: Text::keep(card.channel.as_str()),
            host: card.host.as_ref().map(|host| host.as_str().to_owned()),
            state: card.state.as_str().to_owned(),
            nonce: hex::encode(card.nonce),
            token_hash: hex::encode(card.token_hash),
            approvable: card.approvable.into(),
            unheard: card.unheard.into(),
            standing: spell(&card.standing),
            error: keep(card.error.as_ref()),
            told: card.told.into(),
            lost: card.lost.into(),
        }
    }

    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<Delivery, StoreError> {
        let site = Site::new("delivery", &self.id);
        Ok(Delivery {
            id: DeliveryId::parse(&self.id).map_err(|_| site.fault("id"))?,
            channel: ChannelName(site.text(self.channel, "channel")?),
            host: self
                .host
                .map(|host| DeliveryId::parse(&host).map_err(|_| site.fault("host")))
                .transpose()?,
            state: site.need(DeliveryState::parse(&self.state), "state")?,
            nonce: site.bytes(&self.nonce, "nonce")?,
            token_hash: site.bytes(&self.token_hash, "token_hash")?,
            approvable: site.need(flag(self.approvable), "approvable")?,
            unheard: site.need(flag(self.unheard), "unheard")?,
            standing: site.json(&self.standing, "standing")?,
            error: site.maybe_text(self.error, "error")?,
            told: site.need(flag(self.told), "told")?,
            lost: site.count(self.lost, "lost")?,
        })
    }
}

const fn flag(stored: u8) -> Option<bool> {
    match stored {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
