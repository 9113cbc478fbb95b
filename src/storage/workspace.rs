//! The rows a batch touches, in memory, and what changed of them.
//!
//! A backend fills a workspace with locked rows, lets the items of the batch change it, and writes the difference. Everything
//! in between is pure: [`Workspace`] is where the rooms' rules meet the store.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gatepost_channel::{AppKey, UtcMillis};
use serde::{Deserialize, Serialize};

mod card;
mod grant;
mod note;
mod set;

pub use grant::GrantKey;

use super::note::{Note, NoteKey};
use super::tally::{Tally, TallyKey};
use super::wake::Wake;
use crate::audit::{ChainHead, Draft, Sealed};
use crate::confirmation::grant::Grant;
use crate::confirmation::set::Alike;
use crate::confirmation::{Confirmation, Delivery, Dossier, Vote};
use crate::delivery::OutboxItem;
use crate::ids::{ConfirmationId, DeliveryId, GrantId, JobId, Org, OutboxId, TokenName};
use crate::job::Job;

/// SHA-256 of a button token.
pub type TokenHash = [u8; 32];

/// What makes asking idempotent: the call id, inside the session, inside the token (all but the token are asserted).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey {
    /// The organisation.
    pub org: Org,
    /// The token that asks.
    pub token: TokenName,
    /// The session; empty when none was named.
    pub session: String,
    /// The call id.
    pub call: String,
}

/// An identical call of the same session: same token, session, tool and arguments. Finds the request that a host without
/// lasting call ids asks about again, as long as that request is undecided or approved and not consumed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TwinKey {
    /// The organisation.
    pub org: Org,
    /// The token that asks.
    pub token: TokenName,
    /// The session; empty when none was named.
    pub session: String,
    /// Tool and arguments, as the digest's bytes.
    pub digest: [u8; 32],
}

/// Names one accepted callback of one app.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReplayKey {
    /// The app.
    pub app: AppKey,
    /// The press.
    pub key: String,
}

/// What is remembered of an accepted callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRow {
    /// The callback.
    pub key: ReplayKey,
    /// The request it was about, when there was one.
    pub confirmation: Option<ConfirmationId>,
    /// The first answer, as the callback room spells it.
    pub answer: String,
    /// When it may be forgotten: as long as the request can live.
    pub forget_at: UtcMillis,
}

/// The rows that an item wants locked and read. A request brings the whole set that it is in, and each of these its votes, its
/// cards, the outbox rows of its cards and the job that is parked on it; a job brings its memory. The chain head of every organisation met on the way is locked first.
#[derive(Debug, Default, Clone)]
pub struct Touches {
    /// Organisations whose chain will be written even if no row of theirs is touched.
    pub orgs: BTreeSet<Org>,
    /// Requests by id.
    pub confirmations: BTreeSet<ConfirmationId>,
    /// Requests by call key.
    pub calls: BTreeSet<CallKey>,
    /// Requests by identical call: the newest that is pending or approved and not consumed, and those without an outcome.
    pub twins: BTreeSet<TwinKey>,
    /// The newest request of those that have this in common.
    pub alikes: BTreeSet<Alike>,
    /// Requests by the button token of one of their cards.
    pub tokens: BTreeSet<TokenHash>,
    /// Accepted callbacks.
    pub replays: BTreeSet<ReplayKey>,
    /// Tallies; locked after the chain heads, in their order. One that is not there yet begins empty.
    pub tallies: BTreeSet<TallyKey>,
    /// Jobs by id.
    pub jobs: BTreeSet<JobId>,
    /// Outbox rows by id (with their request).
    pub outbox: BTreeSet<OutboxId>,
    /// Grants by id. Their organisation must be touched too.
    pub grants: BTreeSet<GrantId>,
    /// Grants that have not ended, by what they may cover. Their organisation must be touched too.
    pub grant_keys: BTreeSet<GrantKey>,
    /// All notes of a kind in an organisation. The organisation must be touched too: its chain head keeps others from writing some.
    pub notes: BTreeSet<NoteKey>,
    /// This many requests whose deadline passed, oldest first.
    pub due_confirmations: usize,
    /// This many outbox rows that are due and not leased, oldest first; rows locked by others are skipped.
    pub due_outbox: usize,
    /// This many jobs that are queued and due, or running under a lease that ran out; rows locked by others are skipped.
    pub runnable_jobs: usize,
    /// This many parked jobs whose every awaited request is settled: what a reconciler redrives.
    pub stranded_jobs: usize,
}

/// A row as it was read (`stored` is its version) or as it is new.
#[derive(Debug, Clone)]
struct Held<T> {
    value: T,
    stored: Option<i64>,
    /// Still pending in the database: the guard of the conditional UPDATE.
    was_pending: bool,
    dirty: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Workspace {
    now: UtcMillis,
    confirmations: BTreeMap<ConfirmationId, Held<Confirmation>>,
    votes: BTreeMap<ConfirmationId, Vec<Vote>>,
    deliveries: BTreeMap<DeliveryId, Held<Delivery>>,
    cards_of: BTreeMap<ConfirmationId, Vec<DeliveryId>>,
    calls: HashMap<CallKey, ConfirmationId>,
    twins: HashMap<TwinKey, ConfirmationId>,
    tokens: HashMap<TokenHash, (ConfirmationId, DeliveryId)>,
    replays: HashMap<ReplayKey, ReplayRow>,
    tallies: BTreeMap<TallyKey, Tally>,
    changed_tallies: BTreeSet<TallyKey>,
    jobs: BTreeMap<JobId, Held<Job>>,
    outbox: BTreeMap<OutboxId, Held<OutboxItem>>,
    grants: BTreeMap<GrantId, Held<Grant>>,
    /// With whether it was changed.
    notes: BTreeMap<(NoteKey, String), (Note, bool)>,
    due_confirmations: Vec<ConfirmationId>,
    due_outbox: Vec<OutboxId>,
    runnable_jobs: Vec<JobId>,
    stranded_jobs: Vec<JobId>,
    heads: BTreeMap<Org, ChainHead>,
    new_votes: Vec<(ConfirmationId, Vote)>,
    new_replays: Vec<ReplayRow>,
    removed_outbox: HashSet<OutboxId>,
    events: Vec<Sealed>,
    wakes: Vec<Wake>,
}

/// What a backend reads into a workspace. Every field is optional work: empty means nothing was touched.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The store's clock, read after the locks were taken.
    pub now: UtcMillis,
    /// Locked requests with their votes and cards.
    pub dossiers: Vec<Dossier>,
    /// Which touched call key names which request.
    pub calls: Vec<(CallKey, ConfirmationId)>,
    /// Which touched identical call names which request.
    pub twins: Vec<(TwinKey, ConfirmationId)>,
    /// Remembered callbacks among the touched.
    pub replays: Vec<ReplayRow>,
    /// Locked tallies.
    pub tallies: Vec<Tally>,
    /// Locked jobs.
    pub jobs: Vec<Job>,
    /// Locked outbox rows.
    pub outbox: Vec<OutboxItem>,
    /// Locked grants.
    pub grants: Vec<Grant>,
    /// Notes of the touched kinds.
    pub notes: Vec<Note>,
    /// Due requests, oldest first (their dossiers are in `dossiers`).
    pub due_confirmations: Vec<ConfirmationId>,
    /// Due outbox rows, oldest first.
    pub due_outbox: Vec<OutboxId>,
    /// Jobs to run, in order.
    pub runnable_jobs: Vec<JobId>,
    /// Jobs to redrive.
    pub stranded_jobs: Vec<JobId>,
    /// Locked chain heads; an organisation without one starts its chain.
    pub heads: Vec<ChainHead>,
}

impl Workspace {
    /// A workspace over what was read.
    pub fn over(loaded: Loaded) -> Self {
        let mut workspace = Self {
            now: loaded.now,
            ..Self::default()
        };
        for Dossier {
            confirmation,
            votes,
            deliveries,
        } in loaded.dossiers
        {
            let id = confirmation.id.clone();
            let was_pending = confirmation.state.status() == crate::confirmation::Status::Pending;
            let stored = Some(confirmation.version);
            for delivery in deliveries {
                workspace
                    .tokens
                    .insert(delivery.token_hash, (id.clone(), delivery.id.clone()));
                workspace
                    .cards_of
                    .entry(id.clone())
                    .or_default()
                    .push(delivery.id.clone());
                let held = Held {
                    value: delivery,
                    stored: Some(0),
                    was_pending: false,
                    dirty: false,
                };
                workspace.deliveries.insert(held.value.id.clone(), held);
            }
            workspace.votes.insert(id.clone(), votes);
            workspace.confirmations.insert(
                id,
                Held {
                    value: confirmation,
                    stored,
                    was_pending,
                    dirty: false,
                },
            );
        }
        for job in loaded.jobs {
            let stored = Some(job.version);
            workspace.jobs.insert(
                job.id.clone(),
                Held {
                    value: job,
                    stored,
                    was_pending: false,
                    dirty: false,
                },
            );
        }
        for item in loaded.outbox {
            workspace.outbox.insert(
                item.id.clone(),
                Held {
                    value: item,
                    stored: Some(0),
                    was_pending: false,
                    dirty: false,
                },
            );
        }
        workspace.hold_grants(loaded.grants);
        workspace.hold_notes(loaded.notes);
        workspace.calls = loaded.calls.into_iter().collect();
        workspace.twins = loaded.twins.into_iter().collect();
        workspace.replays = loaded
            .replays
            .into_iter()
            .map(|row| (row.key.clone(), row))
            .collect();
        let tallies = loaded.tallies.into_iter();
        workspace.tallies = tallies.map(|tally| (tally.key.clone(), tally)).collect();
        workspace.due_confirmations = loaded.due_confirmations;
        workspace.due_outbox = loaded.due_outbox;
        workspace.runnable_jobs = loaded.runnable_jobs;
        workspace.stranded_jobs = loaded.stranded_jobs;
        workspace.heads = loaded
            .heads
            .into_iter()
            .map(|head| (head.org.clone(), head))
            .collect();
        workspace
    }

    /// The one clock of the store, at which deadlines are judged.
    pub const fn now(&self) -> UtcMillis {
        self.now
    }

    /// A request, by id.
    pub fn confirmation(&self, id: &ConfirmationId) -> Option<&Confirmation> {
        self.confirmations.get(id).map(|held| &held.value)
    }

    /// Its votes, oldest first.
    pub fn votes(&self, id: &ConfirmationId) -> &[Vote] {
        self.votes.get(id).map_or(&[], Vec::as_slice)
    }

    /// Its cards.
    pub fn deliveries<'a>(&'a self, id: &ConfirmationId) -> impl Iterator<Item = &'a Delivery> + use<'a> {
        self.cards_of
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|card| self.deliveries.get(card))
            .map(|held| &held.value)
    }

    /// One card.
    pub fn delivery(&self, id: &DeliveryId) -> Option<&Delivery> {
        self.deliveries.get(id).map(|held| &held.value)
    }

    /// A request with everything that belongs to it, copied.
    pub fn dossier(&self, id: &ConfirmationId) -> Option<Dossier> {
        Some(Dossier {
            confirmation: self.confirmation(id)?.clone(),
            votes: self.votes(id).to_vec(),
            deliveries: self.deliveries(id).cloned().collect(),
        })
    }

    /// The request and card that a button token names.
    pub fn by_token(&self, hash: &TokenHash) -> Option<(&ConfirmationId, &DeliveryId)> {
        self.tokens.get(hash).map(|(request, card)| (request, card))
    }

    /// The request that a call key names.
    pub fn by_call(&self, key: &CallKey) -> Option<&ConfirmationId> {
        self.calls.get(key)
    }

    /// The open request of an identical call. Rows of this batch that were settled or consumed meanwhile no longer count, nor
    /// does an approval that was not used in time: it would answer the call for ever.
    pub fn by_twin(&self, key: &TwinKey) -> Option<&ConfirmationId> {
        self.twins.get(key).filter(|id| {
            self.confirmation(id).is_some_and(|c| match &c.state {
                crate::confirmation::State::Pending => true,
                state @ crate::confirmation::State::Approved { at, .. } => {
                    state.consumed().is_none() && self.now.0 < at.0.saturating_add(c.terms.permit_ttl_ms)
                }
                _ => false,
            })
        })
    }

    /// The request of an identical call that may have been executed and has no outcome yet; of several, the first that was
    /// permitted.
    pub fn executing_twin(&self, key: &TwinKey) -> Option<&ConfirmationId> {
        let candidates = self.confirmations.values().map(|held| &held.value);
        let permitted = candidates.filter_map(|row| {
            let asked = &row.asked;
            let (_, at) = row.state.consumed().filter(|_| row.ledger.outcome.is_none())?;
            let same = row.org == key.org
                && asked.token == key.token
                && asked.session_id.as_deref().unwrap_or_default() == key.session
                && *asked.digest.as_bytes() == key.digest;
            same.then_some((at, &row.id))
        });
        permitted.min().map(|(_, id)| id)
    }

    /// An accepted callback that was remembered.
    pub fn replay(&self, key: &ReplayKey) -> Option<&ReplayRow> {
        self.replays.get(key)
    }

    /// A tally.
    pub fn tally(&self, key: &TallyKey) -> Option<&Tally> {
        self.tallies.get(key)
    }

    /// A job.
    pub fn job(&self, id: &JobId) -> Option<&Job> {
        self.jobs.get(id).map(|held| &held.value)
    }

    /// An outbox row.
    pub fn outbox(&self, id: &OutboxId) -> Option<&OutboxItem> {
        self.outbox.get(id).map(|held| &held.value)
    }

    /// Requests whose deadline passed.
    pub fn due_confirmations(&self) -> &[ConfirmationId] {
        &self.due_confirmations
    }

    /// Outbox rows to send.
    pub fn due_outbox(&self) -> &[OutboxId] {
        &self.due_outbox
    }

    /// Jobs to run.
    pub fn runnable_jobs(&self) -> &[JobId] {
        &self.runnable_jobs
    }

    /// Parked jobs that should not be.
    pub fn stranded_jobs(&self) -> &[JobId] {
        &self.stranded_jobs
    }

    /// Adds a request with its cards.
    pub fn insert_confirmation(&mut self, confirmation: Confirmation, deliveries: Vec<Delivery>) {
        let id = confirmation.id.clone();
        let asked = &confirmation.asked;
        let session = asked.session_id.clone().unwrap_or_default();
        if let Some(call) = &asked.tool_call_id {
            let key = CallKey {
                org: confirmation.org.clone(),
                token: asked.token.clone(),
                session: session.clone(),
                call: call.clone(),
            };
            self.calls.insert(key, id.clone());
        }
        let twin = TwinKey {
            org: confirmation.org.clone(),
            token: asked.token.clone(),
            session,
            digest: *asked.digest.as_bytes(),
        };
        self.twins.insert(twin, id.clone());
        for delivery in deliveries {
            self.tokens
                .insert(delivery.token_hash, (id.clone(), delivery.id.clone()));
            self.cards_of
                .entry(id.clone())
                .or_default()
                .push(delivery.id.clone());
            self.deliveries.insert(
                delivery.id.clone(),
                Held {
                    value: delivery,
                    stored: None,
                    was_pending: false,
                    dirty: true,
                },
            );
        }
        self.votes.insert(id.clone(), Vec::new());
        self.wakes.push(Wake::Confirmation(id.clone()));
        self.confirmations.insert(
            id,
            Held {
                value: confirmation,
                stored: None,
                was_pending: false,
                dirty: true,
            },
        );
    }

    /// Changes a request. Its version is raised by the store.
    pub fn change_confirmation(&mut self, id: &ConfirmationId, change: impl FnOnce(&mut Confirmation)) {
        if let Some(held) = self.confirmations.get_mut(id) {
            change(&mut held.value);
            held.dirty = true;
            self.wakes.push(Wake::Confirmation(id.clone()));
        }
    }

    /// Changes a card.
    pub fn change_delivery(&mut self, id: &DeliveryId, change: impl FnOnce(&mut Delivery)) {
        if let Some(held) = self.deliveries.get_mut(id) {
            change(&mut held.value);
            held.dirty = true;
        }
    }

    /// Adds a vote.
    pub fn insert_vote(&mut self, id: &ConfirmationId, vote: Vote) {
        self.votes.entry(id.clone()).or_default().push(vote.clone());
        self.new_votes.push((id.clone(), vote));
        self.wakes.push(Wake::Confirmation(id.clone()));
    }

    /// Adds a job.
    pub fn insert_job(&mut self, job: Job) {
        self.wakes.push(Wake::Queue);
        self.jobs.insert(
            job.id.clone(),
            Held {
                value: job,
                stored: None,
                was_pending: false,
                dirty: true,
            },
        );
    }

    /// Changes a job. A job that becomes runnable wakes the workers.
    pub fn change_job(&mut self, id: &JobId, change: impl FnOnce(&mut Job)) {
        if let Some(held) = self.jobs.get_mut(id) {
            change(&mut held.value);
            held.dirty = true;
            self.wakes.push(Wake::Job(id.clone()));
            if held.value.state.is_queued() {
                self.wakes.push(Wake::Queue);
            }
        }
    }

    /// Adds or replaces an outbox row.
    pub fn put_outbox(&mut self, item: OutboxItem) {
        self.wakes.push(Wake::Outbox);
        self.removed_outbox.remove(&item.id);
        let stored = self.outbox.get(&item.id).and_then(|held| held.stored);
        self.outbox.insert(
            item.id.clone(),
            Held {
                value: item,
                stored,
                was_pending: false,
                dirty: true,
            },
        );
    }

    /// Removes an outbox row that is done.
    pub fn remove_outbox(&mut self, id: &OutboxId) {
        if let Some(held) = self.outbox.remove(id)
            && held.stored.is_some()
        {
            self.removed_outbox.insert(id.clone());
        }
    }

    /// Remembers an accepted callback.
    pub fn insert_replay(&mut self, row: ReplayRow) {
        self.replays.insert(row.key.clone(), row.clone());
        self.new_replays.push(row);
    }

    /// Sets a tally.
    pub fn put_tally(&mut self, tally: Tally) {
        self.changed_tallies.insert(tally.key.clone());
        self.tallies.insert(tally.key.clone(), tally);
    }

    /// Writes an audit event: it gets the next place in its organisation's chain.
    pub fn audit(&mut self, draft: Draft) {
        let head = self
            .heads
            .entry(draft.org.clone())
            .or_insert_with(|| ChainHead::start(draft.org.clone()));
        let sealed = head.append(draft, self.now);
        self.events.push(sealed);
    }

    /// What must be written. Versions of changed rows are already raised.
    pub fn finish(mut self) -> Changes {
        let mut changes = Changes {
            now: self.now,
            ..Changes::default()
        };
        for (_, mut held) in std::mem::take(&mut self.confirmations) {
            if !held.dirty {
                continue;
            }
            match held.stored {
                None => changes.new_confirmations.push(held.value),
                Some(version) => {
                    held.value.version = version + 1;
                    let settles =
                        held.was_pending && held.value.state.status() != crate::confirmation::Status::Pending;
                    changes.changed_confirmations.push(ChangedConfirmation {
                        value: held.value,
                        stored_version: version,
                        settles,
                    });
                }
            }
        }
        for (request, cards) in std::mem::take(&mut self.cards_of) {
            for card in cards {
                if let Some(held) = self.deliveries.remove(&card)
                    && held.dirty
                {
                    let list = if held.stored.is_none() {
                        &mut changes.new_deliveries
                    } else {
                        &mut changes.changed_deliveries
                    };
                    list.push((request.clone(), held.value));
                }
            }
        }
        for (_, mut held) in std::mem::take(&mut self.jobs) {
            if !held.dirty {
                continue;
            }
            match held.stored {
                None => changes.new_jobs.push(held.value),
                Some(version) => {
                    held.value.version = version + 1;
                    changes.changed_jobs.push((held.value, version));
                }
            }
        }
        changes.outbox = std::mem::take(&mut self.outbox)
            .into_values()
            .filter(|held| held.dirty)
            .map(|held| held.value)
            .collect();
        (changes.new_grants, changes.changed_grants) = self.changed_grants();
        changes.notes = self.changed_notes();
        changes.removed_outbox = self.removed_outbox.into_iter().collect();
        changes.new_votes = self.new_votes;
        changes.new_replays = self.new_replays;
        let tallies = self.tallies.into_values();
        changes.tallies = tallies
            .filter(|tally| self.changed_tallies.contains(&tally.key))
            .collect();
        let written: BTreeSet<Org> = self.events.iter().map(|event| event.org.clone()).collect();
        changes.heads = self
            .heads
            .into_values()
            .filter(|head| written.contains(&head.org))
            .collect();
        changes.events = self.events;
        changes.wakes = self.wakes;
        changes
    }
}

/// A changed request and what guards its UPDATE.
#[derive(Debug, Clone)]
pub struct ChangedConfirmation {
    /// The row to be.
    pub value: Confirmation,
    /// The version it was read at.
    pub stored_version: i64,
    /// It leaves `pending`: the UPDATE holds `status = 'pending'`, and `expires_at > now` (for `expired` and
    /// `undeliverable` by deadline: `<= now`; for `undeliverable` before it: no bound).
    pub settles: bool,
}

/// The difference a batch made, for a backend to write set-wise. Each list may be empty.
#[derive(Debug, Default)]
pub struct Changes {
    /// The clock that the batch was judged by.
    pub now: UtcMillis,
    /// Rows to insert.
    pub new_confirmations: Vec<Confirmation>,
    /// Rows to update, each under its guard; a missing row fails the batch.
    pub changed_confirmations: Vec<ChangedConfirmation>,
    /// Rows to insert.
    pub new_votes: Vec<(ConfirmationId, Vote)>,
    /// Rows to insert.
    pub new_deliveries: Vec<(ConfirmationId, Delivery)>,
    /// Rows to update by id.
    pub changed_deliveries: Vec<(ConfirmationId, Delivery)>,
    /// Rows to insert.
    pub new_jobs: Vec<Job>,
    /// Rows to update where the version is still the one given.
    pub changed_jobs: Vec<(Job, i64)>,
    /// Rows to insert or replace by id.
    pub outbox: Vec<OutboxItem>,
    /// Rows to delete by id.
    pub removed_outbox: Vec<OutboxId>,
    /// Rows to insert.
    pub new_replays: Vec<ReplayRow>,
    /// Rows to insert.
    pub new_grants: Vec<Grant>,
    /// Rows to update where the version is still the one given.
    pub changed_grants: Vec<(Grant, i64)>,
    /// Rows to insert or replace by key.
    pub tallies: Vec<Tally>,
    /// Rows to insert or replace by key.
    pub notes: Vec<Note>,
    /// Events to insert, in order of organisation-wise `seq`.
    pub events: Vec<Sealed>,
    /// Chain heads to insert or replace.
    pub heads: Vec<ChainHead>,
    /// To publish after the commit.
    pub wakes: Vec<Wake>,
}

impl Changes {
    /// Whether there is nothing to write.
    pub const fn is_empty(&self) -> bool {
        self.new_confirmations.is_empty()
            && self.changed_confirmations.is_empty()
            && self.new_votes.is_empty()
            && self.new_deliveries.is_empty()
            && self.changed_deliveries.is_empty()
            && self.new_jobs.is_empty()
            && self.changed_jobs.is_empty()
            && self.outbox.is_empty()
            && self.removed_outbox.is_empty()
            && self.new_replays.is_empty()
            && self.new_grants.is_empty()
            && self.changed_grants.is_empty()
            && self.tallies.is_empty()
            && self.notes.is_empty()
            && self.events.is_empty()
    }
}
