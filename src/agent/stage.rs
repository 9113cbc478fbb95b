//! A stage for tests of whole runs: pieces written as YAML, a model that plays one script for each movement, tools that count.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gatepost_channel::Decision;
use serde_json::Value;

use super::desk::Desk;
use super::fixture::{Ledger, gatekeeper, toolbox};
use super::limits::Limits;
use super::memory::{Entry, Memory, Past};
use super::model::{Model, ModelError, Question, Reply};
use super::piece::{Piece, Pieces};
use super::runner::{HookSets, Runner};
use crate::audit::Opening;
use crate::confirmation::Status;
use crate::confirmation::decide::Surface;
use crate::gatekeeper::Gatekeeper;
use crate::gatekeeper::journal::Scribe;
use crate::ids::{ConfirmationId, Ids, JobId};
use crate::job::answer::{Answer, Answered};
use crate::job::cancel::{By, Cancel, Cancelled};
use crate::job::family::Family;
use crate::job::fixture::{LEASE, World, dana, org, roll, token};
use crate::job::submit::Submit;
use crate::job::worker::{Ran, Reins, Run};
use crate::job::{Job, JobState};
use crate::lifecycle::Tasks;

/// What was asked of the model.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) system: String,
    pub(super) tools: Vec<(String, Value)>,
    pub(super) history: Vec<Entry>,
}

impl Seen {
    /// The parameters of a tool that was offered.
    pub(super) fn offer(&self, tool: &str) -> Option<&Value> {
        self.tools
            .iter()
            .find(|(name, _)| name == tool)
            .map(|(_, offer)| offer)
    }
}

/// For each movement, by its instruction, what the model says in it, by the number of its replies in the movement so far.
pub(super) type Script = Vec<(&'static str, Vec<Reply>)>;

#[derive(Default)]
pub(super) struct Player {
    script: Script,
    seen: Mutex<Vec<Seen>>,
}

impl Player {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            seen: Mutex::default(),
        }
    }
}

#[async_trait]
impl Model for Player {
    async fn ask(&self, question: Question<'_>) -> Result<Reply, ModelError> {
        self.seen.lock().unwrap().push(Seen {
            system: question.system.clone(),
            tools: question
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), tool.parameters.clone()))
                .collect(),
            history: question.history.to_vec(),
        });
        let (_, replies) = self
            .script
            .iter()
            .find(|(instruction, _)| question.system.contains(instruction))
            .expect("a script for the movement");
        // How far the movement came is told by the history, so that a restart goes on where it stands.
        let before: usize = question
            .history
            .iter()
            .rev()
            .take_while(|entry| !entered(entry))
            .filter(|entry| matches!(entry, Entry::Model { .. }))
            .count();
        Ok(replies.get(before).or(replies.last()).expect("a reply").clone())
    }
}

fn entered(entry: &Entry) -> bool {
    match entry {
        Entry::Model { calls, .. } => calls
            .iter()
            .any(|call| call.result.contains("You are now in the movement")),
        Entry::User(_) => false,
    }
}

pub(super) struct Stage {
    pub(super) world: World,
    pub(super) gatekeeper: Gatekeeper,
    pub(super) ledger: Ledger,
    pub(super) desk: Desk,
    pieces: Arc<Pieces>,
    player: Arc<Player>,
    runner: Runner,
    /// Kept, for a journal that nobody can write down allows nothing.
    _scribe: Scribe,
}

impl Stage {
    pub(super) fn new(pieces: &[&str], script: Script) -> Self {
        Self::with(pieces, script, Limits::default())
    }

    pub(super) fn with(pieces: &[&str], script: Script, limits: Limits) -> Self {
        let tools: BTreeSet<String> = ["t_free", "t_pay", "hidden"].map(str::to_owned).into();
        let pieces = pieces
            .iter()
            .map(|text| Piece::parse(text, "piece.yaml", &tools).unwrap());
        let pieces = Arc::new(Pieces::new(pieces));
        let world = World::new();
        let (gatekeeper, scribe) = gatekeeper(world.store(), Arc::clone(&world.ids) as Arc<dyn Ids>);
        let ledger = Ledger::default();
        let player = Arc::new(Player::new(script));
        let runner = Runner::new(
            gatekeeper.clone(),
            Arc::clone(&player) as Arc<dyn Model>,
            toolbox(&ledger),
            Arc::clone(&pieces),
            limits,
        );
        Self {
            desk: Desk::new(Arc::clone(&pieces)),
            world,
            gatekeeper,
            ledger,
            pieces,
            player,
            runner,
            _scribe: scribe,
        }
    }

    pub(super) fn with_hooks(self, hooks: HookSets) -> Self {
        Self {
            runner: self.runner.with_hooks(hooks),
            ..self
        }
    }

    pub(super) fn submit(&self, piece: &str) -> JobId {
        let piece = self.pieces.get(piece).unwrap();
        let submit = Submit {
            id: JobId::fresh(&*self.world.ids),
            org: org(),
            token: token(),
            piece: piece.name.clone(),
            movement: piece.initial_movement.clone(),
            input: "go".to_owned(),
            shown_input: None,
            agent_id: Some("clerk".to_owned()),
            session_id: None,
            requester: Some("ines".to_owned()),
            persons: Vec::new(),
            parent: None,
            priority: 3,
            run_at: None,
        };
        self.world.run(&submit).id
    }

    /// Runs one claimed job, the process dying after so many writes.
    pub(super) async fn run_one(&self, job: Job, writes: Option<u64>) -> Ran {
        self.world.fail_after(writes);
        let ran = self.runner.run(job, &Reins::new(Tasks::new())).await;
        self.world.fail_after(None);
        ran
    }

    /// Claims and runs until nothing may run.
    pub(super) async fn work(&self) {
        loop {
            let claimed = self.world.claim(10);
            if claimed.jobs.is_empty() {
                return;
            }
            for job in claimed.jobs {
                assert_eq!(self.run_one(job, None).await, Ran::Done);
            }
        }
    }

    /// A job that was running when its process died is taken again, as if nothing had been counted.
    pub(super) fn revive(&self) {
        for job in self.world.jobs() {
            if matches!(job.state, JobState::Running(_)) {
                self.world.tamper(&job.id, |job| job.attempts = 0);
            }
        }
        self.world.clock.advance(LEASE);
    }

    pub(super) fn pending(&self) -> Vec<ConfirmationId> {
        let rows = self.world.requests().into_iter();
        rows.filter(|row| row.state.status() == Status::Pending)
            .map(|row| row.id)
            .collect()
    }

    pub(super) async fn decide(&self, id: &ConfirmationId, decision: Decision) {
        self.gatekeeper
            .respond(&dana(), &org(), id, decision, None, Surface::Api)
            .await
            .unwrap();
    }

    /// Answers the question that is open at this moment.
    pub(super) async fn answer(&self, by: By, id: &JobId, text: &str) -> Answered {
        let open = self
            .desk
            .question(&self.world.job(id))
            .map(|question| question.id);
        self.answer_to(open.as_deref(), by, id, text).await
    }

    pub(super) async fn answer_to(&self, question: Option<&str>, by: By, id: &JobId, text: &str) -> Answered {
        let answer = Answer {
            job: id.clone(),
            org: org(),
            by,
            answer: Opening::new(text, &*self.world.ids),
            question: question.map(str::to_owned),
            hear: self.desk.hear(),
            confirmations: self.world.job(id).confirmations,
            roll: roll(),
        };
        self.gatekeeper.store().run(answer).await.unwrap()
    }

    pub(super) async fn cancel(&self, id: &JobId) -> Cancelled {
        let job = self.world.job(id);
        let family = Family::of(self.gatekeeper.store().read(), &job).await.unwrap();
        self.world.run(&Cancel {
            job: id.clone(),
            org: org(),
            by: By::Operator(dana()),
            confirmations: job.confirmations,
            parent: job.parent,
            family,
        })
    }

    pub(super) fn memory(&self, id: &JobId) -> Memory {
        Memory::read(&self.world.job(id).memory, "").unwrap()
    }

    /// Every call that is over, in order.
    pub(super) fn past(&self, id: &JobId) -> Vec<Past> {
        let history = self.memory(id).history.into_iter();
        history
            .filter_map(|entry| match entry {
                Entry::Model { calls, .. } => Some(calls),
                Entry::User(_) => None,
            })
            .flatten()
            .collect()
    }

    pub(super) fn results(&self, id: &JobId) -> Vec<String> {
        self.past(id).into_iter().map(|past| past.result).collect()
    }

    pub(super) fn feed(&self) -> &crate::job::progress::Feed {
        self.runner.feed()
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.player.seen.lock().unwrap().clone()
    }

    /// How many events of this kind tell of the job.
    pub(super) fn count(&self, kind: &str, id: &JobId) -> usize {
        let events = self.world.events().into_iter();
        events
            .filter(|event| event.kind == kind && event.job.as_ref() == Some(id))
            .count()
    }
}
