//! The rows of what is remembered: audit events, chain heads, accepted callbacks, calls that were counted.

use gatepost_channel::{AppKey, UtcMillis};

use super::{Site, Text, keep, row};
use crate::audit::{ChainHead, Event, Sealed};
use crate::ids::{ConfirmationId, JobId, Org, TokenName};
use crate::storage::{Mark, ReplayKey, ReplayRow, StoreError, Tally, TallyKey};

row! {
    /// A row of `audit_event`.
    EventRow in "audit_event" {
        org: Text,
        seq: i64,
        at: i64,
        kind: String,
        actor: Text,
        confirmation: Option<String>,
        job: Option<String>,
        channel: Option<Text>,
        data: Text,
        commitments: Text,
        openings: Text,
        prev_hash: String,
        hash: String,
    }
}

impl From<&Sealed> for EventRow {
    fn from(event: &Sealed) -> Self {
        Self {
            org: Text::keep(event.org.as_str()),
            seq: event.seq,
            at: event.at.0,
            kind: event.kind.clone(),
            actor: Text::keep(&event.actor),
            confirmation: event.confirmation.as_ref().map(|id| id.as_str().to_owned()),
            job: event.job.as_ref().map(|id| id.as_str().to_owned()),
            channel: keep(event.channel.as_ref()),
            data: Text::keep(&event.data),
            commitments: Text::keep(&event.commitments),
            openings: Text::keep(&event.openings),
            prev_hash: event.prev_hash.clone(),
            hash: event.hash.clone(),
        }
    }
}

impl EventRow {
    /// What the row says; whether it is true is for [`crate::audit::Checker`] to find out.
    pub(in crate::storage) fn read(self) -> Result<Event, StoreError> {
        let site = Site::new("audit_event", &self.seq.to_string());
        Ok(Event {
            org: Org(site.text(self.org, "org")?),
            seq: self.seq,
            at: UtcMillis(self.at),
            kind: self.kind,
            actor: site.text(self.actor, "actor")?,
            confirmation: self
                .confirmation
                .map(|id| ConfirmationId::parse(&id).map_err(|_| site.fault("confirmation")))
                .transpose()?,
            job: self
                .job
                .map(|id| JobId::parse(&id).map_err(|_| site.fault("job")))
                .transpose()?,
            channel: site.maybe_text(self.channel, "channel")?,
            data: site.text(self.data, "data")?,
            commitments: site.text(self.commitments, "commitments")?,
            openings: site.text(self.openings, "openings")?,
            prev_hash: self.prev_hash,
            hash: self.hash,
        })
    }
}

row! {
    /// A row of `chain_head`.
    HeadRow in "chain_head" {
        org: Text,
        seq: i64,
        hash: String,
    }
}

impl From<&ChainHead> for HeadRow {
    fn from(head: &ChainHead) -> Self {
        Self {
            org: Text::keep(head.org.as_str()),
            seq: head.seq,
            hash: head.hash.clone(),
        }
    }
}

impl HeadRow {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<ChainHead, StoreError> {
        let site = Site::new("chain_head", "?");
        Ok(ChainHead {
            org: Org(site.text(self.org, "org")?),
            seq: self.seq,
            hash: self.hash,
        })
    }
}

row! {
    /// A row of `replay`.
    ReplayMemory in "replay" {
        app_kind: Text,
        app_id: Text,
        press: Text,
        confirmation: Option<String>,
        answer: Text,
        forget_at: i64,
    }
}

impl From<&ReplayRow> for ReplayMemory {
    fn from(row: &ReplayRow) -> Self {
        Self {
            app_kind: Text::keep(&row.key.app.kind),
            app_id: Text::keep(&row.key.app.id),
            press: Text::keep(&row.key.key),
            confirmation: row.confirmation.as_ref().map(|id| id.as_str().to_owned()),
            answer: Text::keep(&row.answer),
            forget_at: row.forget_at.0,
        }
    }
}

impl ReplayMemory {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<ReplayRow, StoreError> {
        let site = Site::new("replay", "?");
        Ok(ReplayRow {
            key: ReplayKey {
                app: AppKey {
                    kind: site.text(self.app_kind, "app_kind")?,
                    id: site.text(self.app_id, "app_id")?,
                },
                key: site.text(self.press, "press")?,
            },
            confirmation: self
                .confirmation
                .map(|id| ConfirmationId::parse(&id).map_err(|_| site.fault("confirmation")))
                .transpose()?,
            answer: site.text(self.answer, "answer")?,
            forget_at: UtcMillis(self.forget_at),
        })
    }
}

row! {
    /// A row of `tally`.
    TallyRow in "tally" {
        org: Text,
        counter: Text,
        scope: Text,
        token: Text,
        person: Text,
        marks: String,
        forget_at: i64,
    }
}

impl From<&Tally> for TallyRow {
    fn from(tally: &Tally) -> Self {
        let marks: Vec<_> = tally
            .marks
            .iter()
            .map(|mark| (mark.first.0, mark.last.0, mark.count))
            .collect();
        Self {
            org: Text::keep(tally.key.org.as_str()),
            counter: Text::keep(&tally.key.counter),
            scope: Text::keep(&tally.key.scope),
            token: Text::keep(tally.key.token.as_str()),
            person: Text::keep(&tally.key.person),
            marks: super::spell(&marks),
            forget_at: tally.forget_at.0,
        }
    }
}

impl TallyRow {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<Tally, StoreError> {
        let site = Site::new("tally", "?");
        let marks: Vec<(i64, i64, u64)> =
            serde_json::from_str(&self.marks).map_err(|_| site.fault("marks"))?;
        Ok(Tally {
            key: TallyKey {
                org: Org(site.text(self.org, "org")?),
                counter: site.text(self.counter, "counter")?,
                scope: site.text(self.scope, "scope")?,
                token: TokenName(site.text(self.token, "token")?),
                person: site.text(self.person, "person")?,
            },
            marks: marks
                .into_iter()
                .map(|(first, last, count)| Mark {
                    first: UtcMillis(first),
                    last: UtcMillis(last),
                    count,
                })
                .collect(),
            forget_at: UtcMillis(self.forget_at),
        })
    }
}
