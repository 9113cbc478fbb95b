//! A store in memory for tests: the same steps as the real one (touch, load, apply, write the difference) without a database,
//! and with the checks that a database would make.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gatepost_channel::{Decision, UtcMillis};

use crate::audit::{ChainHead, Sealed};
use crate::clock::{Clock, ManualClock};
use crate::confirmation::consume::Consume;
use crate::confirmation::create::{Create, Created, shown_args};
use crate::confirmation::decide::{Backing, Ballot, Decide, Insight, Surface, Target};
use crate::confirmation::grant::Grant;
use crate::confirmation::roll::{Roll, Voter};
use crate::confirmation::{Asked, Confirmation, Dossier, Status};
use crate::gate::json::ReadLimits;
use crate::gate::policy::{Approvers, PartialView};
use crate::gate::{Arguments, DecisionTerms, Digest, Terms};
use crate::ids::{ConfirmationId, GrantId, JobId, OperatorId, Org, PermitId, SeededIds, TokenName, WorkerId};
use crate::job::claim::{Claim, Claimed};
use crate::job::submit::Submit;
use crate::job::{Job, JobState, JobStatus};
use crate::storage::{
    CallKey, Item, Loaded, Refused, Store, StoreError, Touches, Transaction, Wakes, Workspace, Writer,
};

mod folder;
mod read;
pub(crate) use folder::Folder;

/// The rows.
#[derive(Default)]
struct Rows {
    jobs: BTreeMap<JobId, Job>,
    dossiers: BTreeMap<ConfirmationId, Dossier>,
    heads: BTreeMap<Org, ChainHead>,
    events: Vec<Sealed>,
    outbox: BTreeMap<crate::ids::OutboxId, crate::delivery::OutboxItem>,
    /// Refuse this many items from now on, after so many.
    fail_after: Option<u64>,
    grants: BTreeMap<GrantId, Grant>,
}

/// See the module. Clones share the rows.
#[derive(Clone)]
pub(crate) struct World {
    rows: Arc<Mutex<Rows>>,
    pub(crate) clock: ManualClock,
    pub(crate) ids: Arc<SeededIds>,
    wakes: Wakes,
}

pub(crate) fn org() -> Org {
    Org("acme".to_owned())
}

pub(crate) fn token() -> TokenName {
    TokenName("build-agent".to_owned())
}

pub(crate) fn dana() -> OperatorId {
    OperatorId("dana".to_owned())
}

pub(crate) fn roll() -> Arc<Roll> {
    Arc::new(Roll::new([Voter {
        id: dana(),
        name: "Dana Kim".to_owned(),
        orgs: vec![org()],
        roles: vec!["finance".to_owned()],
    }]))
}

pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);
pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn terms() -> Terms {
    Terms {
        channels: Vec::new(),
        approvers: Approvers {
            roles: vec!["finance".to_owned()],
            operators: Vec::new(),
            ..Approvers::default()
        },
        also: vec![],
        quorum: 1,
        deny_threshold: 1,
        self_approval: false,
        timeout_ms: 120_000,
        permit_ttl_ms: 3_600_000,
        partial_view: PartialView::default(),
        risk: None,
        redact: Vec::new(),
        decision: DecisionTerms::default(),
        after: crate::gate::AfterTerms::default(),
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            rows: Arc::default(),
            clock: ManualClock::at(UtcMillis(1_800_000_000_000)),
            ids: Arc::new(SeededIds::default()),
            wakes: Wakes::new(),
        }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap()
    }

    /// The store over these rows.
    pub(crate) fn store(&self) -> Store {
        Store::new(Arc::new(self.clone()), Arc::new(self.clone()), self.wakes.clone())
    }

    /// Runs a transaction at once.
    pub(crate) fn run<T: Transaction>(&self, transaction: &T) -> T::Answer {
        let mut touches = Touches::default();
        transaction.touches(&mut touches);
        let mut workspace = self.load(&touches);
        let answer = transaction.apply(&mut workspace);
        self.keep(workspace);
        answer
    }

    fn load(&self, touches: &Touches) -> Workspace {
        let rows = self.rows();
        let now = self.clock.now();
        let mut loaded = Loaded {
            now,
            heads: rows.heads.values().cloned().collect(),
            ..Loaded::default()
        };
        let mut requests = touches.confirmations.clone();
        for dossier in rows.dossiers.values() {
            let asked = &dossier.confirmation.asked;
            if let Some(call) = &asked.tool_call_id {
                let key = CallKey {
                    org: dossier.confirmation.org.clone(),
                    token: asked.token.clone(),
                    session: asked.session_id.clone().unwrap_or_default(),
                    call: call.clone(),
                };
                if touches.calls.contains(&key) {
                    requests.insert(dossier.confirmation.id.clone());
                    loaded.calls.push((key, dossier.confirmation.id.clone()));
                }
            }
        }
        if touches.due_confirmations > 0 {
            let mut due: Vec<_> = rows
                .dossiers
                .values()
                .filter(|d| {
                    d.confirmation.state.status() == Status::Pending && d.confirmation.expires_at <= now
                })
                .map(|d| (d.confirmation.expires_at, d.confirmation.id.clone()))
                .collect();
            due.sort();
            due.truncate(touches.due_confirmations);
            loaded.due_confirmations = due.into_iter().map(|(_, id)| id).collect();
            requests.extend(loaded.due_confirmations.iter().cloned());
        }
        let mut jobs = touches.jobs.clone();
        if touches.runnable_jobs > 0 {
            let mut runnable: Vec<_> = rows
                .jobs
                .values()
                .filter(|job| super::claim::is_runnable(job, now))
                .map(|job| (-job.priority, job.run_at, job.id.clone()))
                .collect();
            runnable.sort();
            runnable.truncate(touches.runnable_jobs);
            loaded.runnable_jobs = runnable.into_iter().map(|(_, _, id)| id).collect();
            jobs.extend(loaded.runnable_jobs.iter().cloned());
        }
        if touches.stranded_jobs > 0 {
            let settled = |thing: &String| {
                let request = ConfirmationId::parse(thing)
                    .ok()
                    .and_then(|id| rows.dossiers.get(&id));
                let child = JobId::parse(thing).ok().and_then(|id| rows.jobs.get(&id));
                request.is_some_and(|d| d.confirmation.state.decided_at().is_some())
                    || child.is_some_and(|job| job.state.status().is_final())
            };
            loaded.stranded_jobs = rows
                .jobs
                .values()
                .filter(|job| {
                    matches!(
                        job.state.status(),
                        JobStatus::WaitingHuman | JobStatus::WaitingSubtasks
                    ) && job.waiting_on.iter().all(settled)
                })
                .map(|job| job.id.clone())
                .take(touches.stranded_jobs)
                .collect();
            jobs.extend(loaded.stranded_jobs.iter().cloned());
        }
        for id in &requests {
            let Some(dossier) = rows.dossiers.get(id) else {
                continue;
            };
            jobs.extend(dossier.confirmation.asked.job.clone());
            loaded.dossiers.push(dossier.clone());
        }
        loaded.outbox = rows
            .outbox
            .values()
            .filter(|item| item.confirmation.as_ref().is_some_and(|id| requests.contains(id)))
            .cloned()
            .collect();
        loaded.grants = rows.grants.values().cloned().collect();
        loaded.jobs = jobs.iter().filter_map(|id| rows.jobs.get(id)).cloned().collect();
        Workspace::over(loaded)
    }

    fn keep(&self, workspace: Workspace) {
        let changes = workspace.finish();
        let mut rows = self.rows();
        for value in changes.new_confirmations {
            let before = rows.dossiers.insert(
                value.id.clone(),
                Dossier {
                    confirmation: value,
                    votes: Vec::new(),
                    deliveries: Vec::new(),
                },
            );
            assert!(before.is_none(), "an id is used once");
        }
        for changed in changes.changed_confirmations {
            let row = &mut rows
                .dossiers
                .get_mut(&changed.value.id)
                .expect("a changed request is there")
                .confirmation;
            assert_eq!(row.version, changed.stored_version);
            let leaves =
                row.state.status() == Status::Pending && changed.value.state.status() != Status::Pending;
            assert_eq!(leaves, changed.settles);
            if leaves {
                let late = changes.now >= row.expires_at;
                match changed.value.state.status() {
                    Status::Expired => assert!(late, "expired before its deadline"),
                    Status::Undeliverable => {}
                    _ => assert!(!late, "settled after its deadline"),
                }
            } else {
                assert_eq!(
                    row.state.status(),
                    changed.value.state.status(),
                    "final states stay"
                );
            }
            *row = changed.value;
        }
        for (id, vote) in changes.new_votes {
            rows.dossiers.get_mut(&id).expect("there").votes.push(vote);
        }
        for (id, delivery) in changes.new_deliveries {
            rows.dossiers
                .get_mut(&id)
                .expect("there")
                .deliveries
                .push(delivery);
        }
        for (id, delivery) in changes.changed_deliveries {
            let cards = &mut rows.dossiers.get_mut(&id).expect("there").deliveries;
            cards.retain(|card| card.id != delivery.id);
            cards.push(delivery);
        }
        for job in changes.new_jobs {
            let before = rows.jobs.insert(job.id.clone(), job);
            assert!(before.is_none(), "an id is used once");
        }
        for (job, stored) in changes.changed_jobs {
            let row = rows.jobs.get_mut(&job.id).expect("a changed job is there");
            assert_eq!(row.version, stored);
            assert!(!row.state.status().is_final(), "a job that ended does not change");
            *row = job;
        }
        for item in changes.outbox {
            rows.outbox.insert(item.id.clone(), item);
        }
        for id in changes.removed_outbox {
            rows.outbox.remove(&id);
        }
        for head in changes.heads {
            rows.heads.insert(head.org.clone(), head);
        }
        let changed_grants = changes.changed_grants.into_iter().map(|(grant, _)| grant);
        for grant in changes.new_grants.into_iter().chain(changed_grants) {
            rows.grants.insert(grant.id.clone(), grant);
        }
        rows.events.extend(changes.events);
        drop(rows);
        self.wakes.publish(&changes.wakes);
    }

    // What tests say.

    /// The store refuses everything once so many more items were run.
    pub(crate) fn fail_after(&self, items: Option<u64>) {
        self.rows().fail_after = items;
    }

    pub(crate) fn job(&self, id: &JobId) -> Job {
        self.rows().jobs[id].clone()
    }

    pub(crate) fn jobs(&self) -> Vec<Job> {
        self.rows().jobs.values().cloned().collect()
    }

    /// Changes a row behind the rules' back.
    pub(crate) fn tamper(&self, id: &JobId, change: impl FnOnce(&mut Job)) {
        change(self.rows().jobs.get_mut(id).expect("there"));
    }

    /// Changes a request behind the rules' back.
    pub(crate) fn tamper_request(&self, id: &ConfirmationId, change: impl FnOnce(&mut Confirmation)) {
        change(&mut self.rows().dossiers.get_mut(id).expect("there").confirmation);
    }

    pub(crate) fn request(&self, id: &ConfirmationId) -> Confirmation {
        self.rows().dossiers[id].confirmation.clone()
    }

    pub(crate) fn requests(&self) -> Vec<Confirmation> {
        self.rows()
            .dossiers
            .values()
            .map(|d| d.confirmation.clone())
            .collect()
    }

    /// The kinds of all events, in order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.rows()
            .events
            .iter()
            .map(|event| event.kind.clone())
            .collect()
    }

    /// All events, in order.
    pub(crate) fn events(&self) -> Vec<Sealed> {
        self.rows().events.clone()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|k| *k == kind).count()
    }

    pub(crate) fn submit(&self, input: &str) -> JobId {
        self.spawn(input, None)
    }

    pub(crate) fn spawn(&self, input: &str, parent: Option<JobId>) -> JobId {
        let submit = Submit {
            id: JobId::fresh(&*self.ids),
            org: org(),
            token: token(),
            piece: "pay".to_owned(),
            movement: "start".to_owned(),
            input: input.to_owned(),
            shown_input: None,
            agent_id: None,
            session_id: None,
            requester: None,
            persons: Vec::new(),
            parent,
            priority: 0,
            run_at: None,
        };
        self.run(&submit).id
    }

    pub(crate) fn claim(&self, limit: usize) -> Claimed {
        self.run(&Claim {
            worker: WorkerId::fresh(&*self.ids),
            lease: LEASE,
            limit,
            holding: BTreeMap::new(),
            per_agent: None,
        })
    }

    /// Claims the one job that may run.
    pub(crate) fn claim_one(&self) -> Job {
        let mut claimed = self.claim(1);
        assert_eq!(claimed.spent, []);
        claimed.jobs.pop().expect("a job may run")
    }

    /// A request of the job, as the gatekeeper would make it.
    pub(crate) fn ask(&self, job: &JobId, call: &str) -> ConfirmationId {
        let args = Arguments::read(
            format!("{{\"call\":\"{call}\"}}").as_bytes(),
            ReadLimits::bytes(1_000),
        )
        .unwrap();
        let tool = "pay".parse().unwrap();
        let create = Create {
            id: ConfirmationId::fresh(&*self.ids),
            org: org(),
            asked: Asked {
                token: token(),
                digest: Digest::of(&tool, &args),
                tool,
                args: args.canonical().to_owned(),
                agent_id: None,
                session_id: Some(job.to_string()),
                tool_call_id: Some(call.to_owned()),
                requester: None,
                metadata: None,
                persons: Vec::new(),
                job: Some(job.clone()),
            },
            rule: None,
            reason: None,
            terms: terms(),
            deliveries: Vec::new(),
            grantors: None,
            collapse: None,
            join_twin: false,
            shown_args: shown_args(args.canonical(), None, &*self.ids),
            shown_requester: None,
        };
        match self.run(&create) {
            Created::Fresh(dossier) | Created::Same(dossier) => dossier.confirmation.id,
            Created::Conflict(id) => panic!("conflict with {id}"),
        }
    }

    pub(crate) fn decide(&self, id: &ConfirmationId, decision: Decision) {
        self.run(&Decide {
            target: Target::Request {
                id: id.clone(),
                org: org(),
            },
            ballot: Ballot::Person(dana()),
            decision,
            reason: Some(crate::audit::Opening::new("as I said", &*self.ids)),
            grant: None,
            edit: None,
            seen: None,
            surface: Surface::Api,
            backing: Backing::default(),
            roll: roll(),
            insight: Insight::default(),
        });
    }

    pub(crate) fn consumption(&self, id: &ConfirmationId) -> Consume {
        let row = self.request(id);
        Consume {
            id: id.clone(),
            token: row.asked.token,
            digest: row.asked.digest,
            judged: row.asked.digest,
            permit: PermitId::fresh(&*self.ids),
            roll: roll(),
            denied_by: None,
            grant: None,
            offered: None,
        }
    }

    /// Whether the audit chain of the organisation is sound.
    pub(crate) fn chain_is_sound(&self) -> bool {
        let rows = self.rows();
        let mut previous = "0".repeat(64);
        rows.events.iter().zip(1..).all(|(event, seq)| {
            let sound = event.seq == seq && event.prev_hash == previous;
            previous.clone_from(&event.hash);
            sound
        })
    }
}

impl Writer for World {
    fn submit(&self, mut item: Box<dyn Item>) -> Result<(), Refused> {
        {
            let mut rows = self.rows();
            if let Some(left) = &mut rows.fail_after {
                if *left == 0 {
                    return Err(Refused {
                        item,
                        error: StoreError::Closed,
                    });
                }
                *left -= 1;
            }
        }
        let mut touches = Touches::default();
        item.touches(&mut touches);
        let mut workspace = self.load(&touches);
        item.apply(&mut workspace);
        self.keep(workspace);
        item.acknowledge();
        Ok(())
    }
}

/// Whether the job is parked.
pub(crate) fn is_parked(job: &Job) -> bool {
    matches!(
        job.state,
        JobState::WaitingHuman { .. } | JobState::WaitingSubtasks { .. }
    )
}
