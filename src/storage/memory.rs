//! A store of maps, for tests of the pure rooms: every transaction sees everything, and nothing is concurrent.

use std::collections::BTreeMap;

use gatepost_channel::UtcMillis;

use super::note::{Note, NoteKey};
use super::tally::{Tally, TallyKey};
use super::workspace::{CallKey, Changes, Loaded, ReplayKey, ReplayRow, Touches, TwinKey};
use super::{Transaction, Workspace};
use crate::audit::{ChainHead, Checker, Sealed, opening};
use crate::confirmation::grant::Grant;
use crate::confirmation::{Dossier, Status};
use crate::delivery::OutboxItem;
use crate::ids::{ConfirmationId, GrantId, JobId, Org, OutboxId};
use crate::job::{Job, JobState, JobStatus};

/// See the module.
#[derive(Debug, Default)]
pub struct Memory {
    /// The clock.
    pub now: UtcMillis,
    /// Requests.
    pub dossiers: BTreeMap<ConfirmationId, Dossier>,
    /// Jobs.
    pub jobs: BTreeMap<JobId, Job>,
    /// Outbox rows.
    pub outbox: BTreeMap<OutboxId, OutboxItem>,
    /// Grants.
    pub grants: BTreeMap<GrantId, Grant>,
    /// Accepted callbacks.
    pub replays: Vec<ReplayRow>,
    /// Tallies.
    pub tallies: BTreeMap<TallyKey, Tally>,
    /// Notes.
    pub notes: BTreeMap<(NoteKey, String), Note>,
    /// Audit events, oldest first.
    pub events: Vec<Sealed>,
    /// Chain heads.
    pub heads: BTreeMap<Org, ChainHead>,
}

impl Memory {
    /// An empty store whose clock stands at `now`.
    pub fn at(now: i64) -> Self {
        Self {
            now: UtcMillis(now),
            ..Self::default()
        }
    }

    /// Runs a transaction and keeps what it changed.
    pub fn run<T: Transaction>(&mut self, transaction: &T) -> T::Answer {
        let mut touches = Touches::default();
        transaction.touches(&mut touches);
        let mut workspace = Workspace::over(self.load(&touches));
        let answer = transaction.apply(&mut workspace);
        self.keep(workspace.finish());
        answer
    }

    fn load(&self, touches: &Touches) -> Loaded {
        let open = |dossier: &&Dossier| dossier.confirmation.state.status() == Status::Pending;
        let mut due: Vec<_> = self
            .dossiers
            .values()
            .filter(open)
            .filter(|d| d.confirmation.expires_at <= self.now)
            .collect();
        due.sort_by_key(|d| d.confirmation.expires_at);
        let mut outbox: Vec<_> = self
            .outbox
            .values()
            .filter(|item| item.not_before <= self.now)
            .collect();
        outbox.retain(|item| item.lease.as_ref().is_none_or(|(_, until)| *until <= self.now));
        outbox.sort_by_key(|item| item.not_before);
        let runnable = self.jobs.values().filter(|job| match &job.state {
            JobState::Queued => job.run_at <= self.now,
            JobState::Running(lease) => lease.until <= self.now,
            _ => false,
        });
        let settled = |id: &String| {
            ConfirmationId::parse(id).is_ok_and(|id| self.dossiers.get(&id).is_some_and(|d| !open(&d)))
                || JobId::parse(id).is_ok_and(|id| {
                    self.jobs
                        .get(&id)
                        .is_some_and(|job| job.state.status().is_final())
                })
        };
        let stranded = self.jobs.values().filter(|job| {
            matches!(
                job.state.status(),
                JobStatus::WaitingHuman | JobStatus::WaitingSubtasks
            ) && !job.waiting_on.is_empty()
                && job.waiting_on.iter().all(settled)
        });
        Loaded {
            now: self.now,
            dossiers: self.dossiers.values().cloned().collect(),
            calls: self.dossiers.values().filter_map(call).collect(),
            twins: self.dossiers.values().map(twin).collect(),
            replays: self.replays.clone(),
            tallies: self.tallies.values().cloned().collect(),
            jobs: self.jobs.values().cloned().collect(),
            outbox: self.outbox.values().cloned().collect(),
            grants: self.grants.values().cloned().collect(),
            notes: self.notes.values().cloned().collect(),
            due_confirmations: due
                .into_iter()
                .take(touches.due_confirmations)
                .map(|d| d.confirmation.id.clone())
                .collect(),
            due_outbox: outbox
                .into_iter()
                .take(touches.due_outbox)
                .map(|item| item.id.clone())
                .collect(),
            runnable_jobs: runnable
                .take(touches.runnable_jobs)
                .map(|job| job.id.clone())
                .collect(),
            stranded_jobs: stranded
                .take(touches.stranded_jobs)
                .map(|job| job.id.clone())
                .collect(),
            heads: self.heads.values().cloned().collect(),
        }
    }

    fn keep(&mut self, changes: Changes) {
        for confirmation in changes.new_confirmations {
            let dossier = Dossier {
                confirmation,
                votes: Vec::new(),
                deliveries: Vec::new(),
            };
            let before = self.dossiers.insert(dossier.confirmation.id.clone(), dossier);
            assert!(before.is_none(), "an id was used twice");
        }
        for changed in changes.changed_confirmations {
            let row = self
                .dossiers
                .get_mut(&changed.value.id)
                .expect("a changed row is there");
            assert_eq!(row.confirmation.version, changed.stored_version);
            let was_pending = row.confirmation.state.status() == Status::Pending;
            let settles = was_pending && changed.value.state.status() != Status::Pending;
            assert_eq!(changed.settles, settles, "the guard is named");
            if !was_pending {
                assert_eq!(
                    row.confirmation.state.status(),
                    changed.value.state.status(),
                    "a final state is final"
                );
            }
            row.confirmation = changed.value;
        }
        for (id, vote) in changes.new_votes {
            let votes = &mut self.dossiers.get_mut(&id).expect("a vote has a request").votes;
            assert!(
                votes.iter().all(|before| {
                    before.person != vote.person || before.content.edit != vote.content.edit
                }),
                "one person, one vote on one form of the call"
            );
            votes.push(vote);
        }
        for (id, delivery) in changes
            .new_deliveries
            .into_iter()
            .chain(changes.changed_deliveries)
        {
            let cards = &mut self
                .dossiers
                .get_mut(&id)
                .expect("a card has a request")
                .deliveries;
            cards.retain(|before| before.id != delivery.id);
            cards.push(delivery);
            cards.sort_by(|a, b| a.id.cmp(&b.id));
        }
        for job in changes.new_jobs {
            self.jobs.insert(job.id.clone(), job);
        }
        for (job, version) in changes.changed_jobs {
            assert_eq!(self.jobs.get(&job.id).map(|before| before.version), Some(version));
            self.jobs.insert(job.id.clone(), job);
        }
        for item in changes.outbox {
            self.outbox.insert(item.id.clone(), item);
        }
        for id in changes.removed_outbox {
            self.outbox.remove(&id);
        }
        self.replays.extend(changes.new_replays);
        for grant in changes.new_grants {
            self.grants.insert(grant.id.clone(), grant);
        }
        for (grant, version) in changes.changed_grants {
            assert_eq!(
                self.grants.get(&grant.id).map(|before| before.version),
                Some(version)
            );
            self.grants.insert(grant.id.clone(), grant);
        }
        for tally in changes.tallies {
            self.tallies.insert(tally.key.clone(), tally);
        }
        for note in changes.notes {
            self.notes.insert((note.key.clone(), note.name.clone()), note);
        }
        self.events.extend(changes.events);
        for head in changes.heads {
            self.heads.insert(head.org.clone(), head);
        }
    }

    /// The kinds of all events, in order.
    pub fn kinds(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.kind.as_str()).collect()
    }

    /// Checks every chain against its head.
    pub fn assert_chains_hold(&self) {
        for head in self.heads.values() {
            let mut checker = Checker::new(head.org.clone());
            for event in self.events.iter().filter(|event| event.org == head.org) {
                let mut event = event.clone();
                let request = event.confirmation.as_ref().and_then(|id| self.dossiers.get(id));
                let args = request.map(|dossier| dossier.confirmation.asked.args.as_str());
                if opening::stands_elsewhere(&event) {
                    opening::fill_in(&mut event, args);
                }
                checker.take(&event).expect("the chain holds");
            }
            checker.end(head).expect("the head is the end");
        }
    }

    /// Whether an accepted callback is remembered.
    pub fn remembers(&self, key: &ReplayKey) -> bool {
        self.replays.iter().any(|row| row.key == *key)
    }
}

fn call(dossier: &Dossier) -> Option<(CallKey, ConfirmationId)> {
    let row = &dossier.confirmation;
    let key = CallKey {
        org: row.org.clone(),
        token: row.asked.token.clone(),
        session: row.asked.session_id.clone().unwrap_or_default(),
        call: row.asked.tool_call_id.clone()?,
    };
    Some((key, row.id.clone()))
}

fn twin(dossier: &Dossier) -> (TwinKey, ConfirmationId) {
    let row = &dossier.confirmation;
    let key = TwinKey {
        org: row.org.clone(),
        token: row.asked.token.clone(),
        session: row.asked.session_id.clone().unwrap_or_default(),
        digest: *row.asked.digest.as_bytes(),
    };
    (key, row.id.clone())
}
