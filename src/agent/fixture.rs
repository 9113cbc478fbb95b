//! A laboratory for tests of whole runs: a scripted model, scripted tools that keep a ledger, and a store in memory.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::Decision;
use serde_json::{Value, json};

use super::desk::Desk;
use super::limits::{Limits, OwnLimits};
use super::memory::{Entry, Memory, Past};
use super::model::{Model, ModelError, Question, RawCall, Reply, Usage};
use super::piece::{Allowed, Movement, Piece, Pieces};
use super::runner::Runner;
use super::tool::{Carried, Scripted, Toolbox};
use crate::audit::Opening;
use crate::confirmation::Status;
use crate::confirmation::decide::Surface;
use crate::delivery::button::ServerKey;
use crate::delivery::card::{CardMaker, Voice};
use crate::delivery::phrase::Phrasebook;
use crate::delivery::registry::{Listed, Registry};
use crate::gate::EditScope;
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::policy::{
    Approvers, ConfirmSource, Effect, Limits as PolicyLimits, Policy, PolicySource, RuleSource,
};
use crate::gatekeeper::journal::Scribe;
use crate::gatekeeper::{Gatekeeper, Journal, Parts, People};
use crate::ids::{ChannelName, ConfirmationId, Ids, JobId, PermitId};
use crate::job::answer::{Answer, Answered};
use crate::job::cancel::By;
use crate::job::fixture::{World, dana, org, roll, token};
use crate::job::submit::Submit;
use crate::job::worker::{Ran, Reins, Run as _};
use crate::lifecycle::Tasks;
use crate::storage::Store;

pub(super) fn call(name: &str, arguments: &Value) -> RawCall {
    RawCall {
        id: Some(format!("call_{name}_{arguments}")),
        name: Some(name.to_owned()),
        arguments: Some(arguments.to_string()),
        fault: None,
    }
}

pub(super) fn calls(calls: Vec<RawCall>) -> Reply {
    Reply {
        text: None,
        calls,
        complete: true,
        usage: Usage::default(),
    }
}

pub(super) fn complete(status: &str, result: &str) -> Reply {
    calls(vec![call(
        "complete",
        &json!({"status": status, "result": result}),
    )])
}

pub(super) fn words(text: &str) -> Reply {
    Reply {
        text: Some(text.to_owned()),
        calls: Vec::new(),
        complete: true,
        usage: Usage::default(),
    }
}

/// Plays replies by the number of its own contributions to the history, so that a restart continues where it stands.
pub(super) struct Script {
    pub(super) replies: Vec<Reply>,
    /// Says something else each time, as models do: the calls carry which time it is.
    pub(super) vary: bool,
    pub(super) asked: AtomicU32,
    pub(super) seen: Mutex<Vec<Vec<Entry>>>,
}

#[async_trait]
impl Model for Script {
    async fn ask(&self, question: Question<'_>) -> Result<Reply, ModelError> {
        let take = self.asked.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().unwrap().push(question.history.to_vec());
        let number = question
            .history
            .iter()
            .filter(|entry| matches!(entry, Entry::Model { .. }))
            .count();
        let mut reply = self
            .replies
            .get(number)
            .or(self.replies.last())
            .cloned()
            .ok_or_else(|| ModelError::Unavailable("no script".to_owned()))?;
        for args in reply.calls.iter_mut().filter_map(|call| call.arguments.as_mut()) {
            if self.vary && args.starts_with("{\"n\"") {
                *args = args.replace('}', &format!(",\"take\":{take}}}"));
            }
        }
        Ok(reply)
    }
}

/// What was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) tool: String,
    pub(super) args: String,
    pub(super) permit: PermitId,
}

#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<Execution>>>);

impl Ledger {
    pub(super) fn all(&self) -> Vec<Execution> {
        self.0.lock().unwrap().clone()
    }

    /// A tool whose answers are lost so many times for each permit.
    pub(super) fn tool(
        &self,
        name: &'static str,
        gated: bool,
        idempotent: bool,
        lost: usize,
    ) -> (&'static str, bool, bool, Scripted) {
        let ledger = self.clone();
        let does: Scripted = Arc::new(move |args: &str, permit: &PermitId| {
            let mut ledger = ledger.0.lock().unwrap();
            let before = ledger.iter().filter(|run| run.permit == *permit).count();
            ledger.push(Execution {
                tool: name.to_owned(),
                args: args.to_owned(),
                permit: permit.clone(),
            });
            if before < lost {
                Carried::Unknown("gone".to_owned())
            } else {
                Carried::Done(format!("{name} did {args}"))
            }
        });
        (name, gated, idempotent, does)
    }
}

pub(super) struct Lab {
    pub(super) world: World,
    pub(super) gatekeeper: Gatekeeper,
    pub(super) desk: Desk,
    pub(super) runner: Arc<Runner>,
    pub(super) model: Arc<Script>,
    pub(super) ledger: Ledger,
    pub(super) scribe: Mutex<Option<Scribe>>,
}

pub(super) fn piece() -> Piece {
    Piece {
        name: "pay".to_owned(),
        description: None,
        initial_movement: "start".to_owned(),
        max_movements: 10,
        hooks: None,
        pieces: Some(BTreeSet::new()),
        limits: OwnLimits::default(),
        movements: vec![Movement {
            name: "start".to_owned(),
            instruction: "Pay what is due.".to_owned(),
            persona: None,
            allowed_tools: Allowed::of(&["t_*".to_owned()]),
            rules: Vec::new(),
            default_next: None,
            max_revisits: None,
        }],
    }
}

/// Asks for a person where the agent says that it acts for olga; everything else about the tool is allowed by default.
fn lending() -> RuleSource {
    RuleSource {
        name: "lend".to_owned(),
        tools: vec!["t_lend".to_owned()],
        when: Some("requester == \"olga\"".to_owned()),
        effect: Effect::Confirm,
        reason: None,
        orgs: None,
        redact: Vec::new(),
        trust_asserted: false,
        verified_requester: false,
        confirm: ConfirmSource {
            grants: Some(GrantTerms {
                scopes: vec![GrantScope::Span(3_600_000)],
                max_uses: None,
                arguments: GrantArguments::Same,
            }),
            ..ConfirmSource::default()
        },
    }
}

fn policy(timeout: Duration) -> Policy {
    let source = PolicySource {
        default: Effect::Allow,
        confirm: ConfirmSource {
            channels: Some(vec!["desk".to_owned()]),
            approvers: Some(Approvers {
                roles: vec!["finance".to_owned()],
                operators: Vec::new(),
                ..Approvers::default()
            }),
            timeout: Some(timeout),
            ..ConfirmSource::default()
        },
        rules: vec![
            lending(),
            RuleSource {
                name: "editable".to_owned(),
                tools: vec!["t_edit".to_owned(), "request_tool".to_owned()],
                effect: Effect::Confirm,
                when: None,
                confirm: ConfirmSource {
                    edits: Some(EditScope::Any),
                    ..ConfirmSource::default()
                },
                ..lending()
            },
            RuleSource {
                name: "never".to_owned(),
                tools: vec!["t_free".to_owned()],
                when: Some("has(args.never)".to_owned()),
                effect: Effect::Deny,
                reason: Some("never ever".to_owned()),
                orgs: None,
                redact: Vec::new(),
                trust_asserted: false,
                verified_requester: false,
                confirm: ConfirmSource::default(),
            },
        ],
    };
    Policy::compile(&source, &PolicyLimits::default()).unwrap()
}

pub(super) fn gatekeeper(store: Store, ids: Arc<dyn Ids>) -> (Gatekeeper, Scribe) {
    let (journal, scribe) = Journal::open();
    let registry = Registry::new([Listed {
        name: ChannelName("desk".to_owned()),
        org: org(),
        voice: Voice::default(),
        channel: Arc::new(gatepost_local::LocalChannel::new("desk")),
    }]);
    let gatekeeper = Gatekeeper::new(Parts {
        directories: crate::gatekeeper::Directories::none(),
        store,
        policy: Arc::new(policy(Duration::from_hours(24))),
        roll: roll(),
        people: Arc::new(People::default()),
        registry,
        maker: CardMaker::new(
            Arc::new(Phrasebook::load().unwrap()),
            ServerKey::new([7; 32]),
            roll(),
            None,
        ),
        ids,
        journal,
        council: Arc::new(crate::gatekeeper::council::Nobody),
        shapes: crate::gatekeeper::KnownShapes::default(),
    });
    (gatekeeper, scribe)
}

pub(super) fn toolbox(ledger: &Ledger) -> Toolbox {
    Toolbox::scripted([
        ledger.tool("t_free", false, false, 0),
        ledger.tool("t_free_again", false, true, 0),
        ledger.tool("t_pay", true, false, 0),
        ledger.tool("t_edit", false, false, 0),
        ledger.tool("t_pay_again", true, true, 0),
        ledger.tool("t_vanish", true, false, 1),
        ledger.tool("t_vanish_again", true, true, 1),
        ledger.tool("t_lost", true, false, usize::MAX),
        ledger.tool("t_free_lost", false, false, usize::MAX),
        ledger.tool("hidden", false, false, 0),
    ])
}

impl Lab {
    pub(super) fn new(replies: Vec<Reply>) -> Self {
        Self::with(replies, Limits::default())
    }

    pub(super) fn with(replies: Vec<Reply>, limits: Limits) -> Self {
        Self::build(replies, limits, false)
    }

    pub(super) fn build(replies: Vec<Reply>, limits: Limits, vary: bool) -> Self {
        let world = World::new();
        let (gatekeeper, scribe) = gatekeeper(world.store(), Arc::clone(&world.ids) as Arc<dyn Ids>);
        let ledger = Ledger::default();
        gatekeeper.shapes().know(Arc::new(toolbox(&ledger).on_loan()));
        let model = Arc::new(Script {
            replies,
            vary,
            asked: AtomicU32::new(0),
            seen: Mutex::default(),
        });
        let pieces = Arc::new(Pieces::new([piece()]));
        let runner = Arc::new(Runner::new(
            gatekeeper.clone(),
            Arc::clone(&model) as Arc<dyn Model>,
            toolbox(&ledger),
            Arc::clone(&pieces),
            limits,
        ));
        Self {
            world,
            desk: Desk::new(pieces),
            gatekeeper,
            runner,
            model,
            ledger,
            scribe: Mutex::new(Some(scribe)),
        }
    }

    pub(super) async fn submit(&self) -> JobId {
        submit(self.gatekeeper.store(), &*self.world.ids).await
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

    /// Claims and runs until nothing may run.
    pub(super) async fn work(&self) {
        loop {
            let claimed = self.world.claim(10);
            assert_eq!(claimed.spent, []);
            if claimed.jobs.is_empty() {
                return;
            }
            for job in claimed.jobs {
                let ran = self.runner.run(job, &Reins::new(Tasks::new())).await;
                assert_eq!(ran, Ran::Done);
            }
        }
    }

    pub(super) fn pending(&self) -> Vec<ConfirmationId> {
        self.world
            .requests()
            .into_iter()
            .filter(|row| row.state.status() == Status::Pending)
            .map(|row| row.id)
            .collect()
    }

    pub(super) async fn decide(&self, id: &ConfirmationId, decision: Decision, reason: Option<&str>) {
        self.gatekeeper
            .respond(&dana(), &org(), id, decision, reason, Surface::Api)
            .await
            .unwrap();
    }

    pub(super) fn memory(&self, id: &JobId) -> Memory {
        Memory::read(&self.world.job(id).memory, "").unwrap()
    }

    /// Every call that is over, in order.
    pub(super) fn past(&self, id: &JobId) -> Vec<Past> {
        self.memory(id)
            .history
            .into_iter()
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

    /// The kinds of all events, those behind the answers included.
    pub(super) async fn kinds(&self) -> Vec<String> {
        let scribe = self.scribe.lock().unwrap().take();
        if let Some(scribe) = scribe {
            let tasks = Tasks::new();
            tasks.ask_to_stop();
            scribe
                .run(self.world.store(), Arc::new(self.world.clock.clone()), tasks)
                .await;
        }
        self.world.kinds()
    }
}

pub(super) async fn submit(store: &Store, ids: &dyn Ids) -> JobId {
    let submit = Submit {
        id: JobId::fresh(ids),
        org: org(),
        token: token(),
        piece: "pay".to_owned(),
        movement: "start".to_owned(),
        input: "pay the bills".to_owned(),
        shown_input: None,
        agent_id: None,
        session_id: Some("s-1".to_owned()),
        requester: None,
        persons: Vec::new(),
        parent: None,
        priority: 0,
        run_at: None,
    };
    store.run(submit).await.unwrap().id
}

pub(super) fn operator() -> By {
    By::Operator(dana())
}
