//! Whole runs with a scripted model and scripted tools on a store in memory (and a few on SQLite): who runs what, how often,
//! what the model is told, and that no crash changes any of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::Decision;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::desk::Desk;
use super::engine::Limits;
use super::memory::{CallState, Entry, Memory, Past};
use super::model::{Model, ModelError, Question, RawCall, Reply, Usage};
use super::piece::{Movement, Piece, Pieces};
use super::runner::Runner;
use super::tool::{Carried, Scripted, Toolbox};
use crate::audit::Opening;
use crate::clock::{Clock as _, SystemClock};
use crate::confirmation::decide::Surface;
use crate::confirmation::expire::Expire;
use crate::confirmation::{OutcomeStatus, Status};
use crate::delivery::button::ServerKey;
use crate::delivery::card::CardMaker;
use crate::delivery::phrase::{Language, Phrasebook};
use crate::delivery::registry::{Listed, Registry};
use crate::gate::policy::{
    Approvers, ConfirmSource, Effect, Limits as PolicyLimits, Policy, PolicySource, RuleSource,
};
use crate::gatekeeper::journal::Scribe;
use crate::gatekeeper::{Gatekeeper, Journal, Parts, People};
use crate::ids::{ChannelName, ConfirmationId, Ids, JobId, PermitId, SystemIds};
use crate::job::answer::{Answer, Answered};
use crate::job::cancel::{By, Cancel, Cancelled};
use crate::job::family::Family;
use crate::job::fixture::{Folder, LEASE, World, dana, is_parked, org, roll, token};
use crate::job::queue::Queue;
use crate::job::submit::Submit;
use crate::job::worker::{Ran, Reins, Run};
use crate::job::{Job, JobState, JobStatus, WaitReason};
use crate::lifecycle::Tasks;
use crate::storage::Store;
use crate::storage::open::{Settings, open};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

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
    replies: Vec<Reply>,
    /// Says something else each time, as models do: the calls carry which time it is.
    vary: bool,
    asked: AtomicU32,
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

    fn tool(
        &self,
        name: &'static str,
        gated: bool,
        idempotent: bool,
        flaky: bool,
    ) -> (&'static str, bool, bool, Scripted) {
        let ledger = self.clone();
        let does: Scripted = Arc::new(move |args: &str, permit: &PermitId| {
            let mut ledger = ledger.0.lock().unwrap();
            let again = ledger.iter().any(|execution| execution.permit == *permit);
            ledger.push(Execution {
                tool: name.to_owned(),
                args: args.to_owned(),
                permit: permit.clone(),
            });
            if flaky && !again {
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
        movements: vec![Movement {
            name: "start".to_owned(),
            instruction: "Pay what is due.".to_owned(),
            persona: None,
            allowed_tools: vec!["t_*".to_owned()],
            rules: Vec::new(),
            default_next: None,
            max_revisits: None,
        }],
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
            }),
            timeout: Some(timeout),
            ..ConfirmSource::default()
        },
        rules: vec![RuleSource {
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
        }],
    };
    Policy::compile(&source, &PolicyLimits::default()).unwrap()
}

pub(super) fn gatekeeper(store: Store, ids: Arc<dyn Ids>) -> (Gatekeeper, Scribe) {
    let (journal, scribe) = Journal::open();
    let registry = Registry::new([Listed {
        name: ChannelName("desk".to_owned()),
        org: org(),
        language: Language::En,
        channel: Arc::new(gatepost_local::LocalChannel::new("desk")),
    }]);
    let gatekeeper = Gatekeeper::new(Parts {
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
    });
    (gatekeeper, scribe)
}

pub(super) fn toolbox(ledger: &Ledger) -> Toolbox {
    Toolbox::scripted([
        ledger.tool("t_free", false, false, false),
        ledger.tool("t_free_again", false, true, false),
        ledger.tool("t_pay", true, false, false),
        ledger.tool("t_pay_again", true, true, false),
        ledger.tool("t_vanish", true, false, true),
        ledger.tool("t_vanish_again", true, true, true),
        ledger.tool("hidden", false, false, false),
    ])
}

impl Lab {
    pub(super) fn new(replies: Vec<Reply>) -> Self {
        Self::with(replies, Limits::default())
    }

    fn with(replies: Vec<Reply>, limits: Limits) -> Self {
        Self::build(replies, limits, false)
    }

    fn build(replies: Vec<Reply>, limits: Limits, vary: bool) -> Self {
        let world = World::new();
        let (gatekeeper, scribe) = gatekeeper(world.store(), Arc::clone(&world.ids) as Arc<dyn Ids>);
        let ledger = Ledger::default();
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

    async fn answer(&self, by: By, id: &JobId, text: &str) -> Answered {
        let answer = Answer {
            job: id.clone(),
            org: org(),
            by,
            answer: Opening::new(text, &*self.world.ids),
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

    fn memory(&self, id: &JobId) -> Memory {
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

async fn submit(store: &Store, ids: &dyn Ids) -> JobId {
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
    };
    store.run(submit).await.unwrap().id
}

pub(super) fn operator() -> By {
    By::Operator(dana())
}

#[tokio::test]
async fn an_approved_call_runs_once_in_its_stored_form() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"payee": "x", "amount": 1.0}))]),
        complete("success", "paid"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let job = lab.world.job(&id);
    assert_eq!(job.state.wait_reason(), Some(WaitReason::ToolApproval));
    assert_eq!(job.state.resume_movement(), Some("start"));
    let [request] = &lab.pending()[..] else {
        panic!("one card")
    };
    assert_eq!(job.confirmations, std::slice::from_ref(request));
    assert!(lab.ledger.all().is_empty());

    lab.decide(request, Decision::Approve, None).await;
    lab.work().await;
    let [run] = &lab.ledger.all()[..] else {
        panic!("one execution")
    };
    assert_eq!(run.args, r#"{"amount":1,"payee":"x"}"#, "canonical");
    let row = lab.world.request(request);
    assert_eq!(row.asked.session_id.as_deref(), Some("s-1"));
    let call_id = format!("{id}:t0000c000");
    assert_eq!(
        row.asked.tool_call_id.as_deref(),
        Some(&*call_id),
        "jobs of one session do not clash"
    );
    assert_eq!(row.state.consumed().map(|(permit, _)| permit), Some(&run.permit));
    assert!(row.ledger.resumed_at.is_some() && row.ledger.executed_at.is_some());
    assert_eq!(
        lab.world.job(&id).state,
        JobState::Completed {
            result: "paid".to_owned()
        }
    );
    assert_eq!(
        lab.results(&id),
        [format!("t_pay did {}", run.args), "accepted".to_owned()]
    );
    assert_eq!(
        lab.kinds().await,
        [
            "job.submitted",
            "confirmation.created",
            "job.parked",
            "vote.cast",
            "confirmation.approved",
            "job.resumed",
            "permit.consumed",
            "tool.executed",
            "job.completed"
        ]
    );
    assert!(lab.world.chain_is_sound());
}

#[tokio::test]
async fn a_denial_says_who_and_why_and_the_same_call_is_not_asked_again() {
    let pay = || calls(vec![call("t_pay", &json!({"to": "board", "body": "Q2"}))]);
    let other_order = calls(vec![RawCall {
        arguments: Some(r#"{ "body":"Q2",  "to":"board" }"#.to_owned()),
        ..call("t_pay", &json!({}))
    }]);
    let near = calls(vec![call("t_pay", &json!({"to": "board", "body": "Q2 "}))]);
    let lab = Lab::new(vec![pay(), pay(), other_order, near, complete("aborted", "no")]);
    let id = lab.submit().await;
    lab.work().await;
    let first = lab.pending().remove(0);
    lab.decide(&first, Decision::Reject, Some("too early")).await;
    lab.work().await;

    let results = lab.memory(&id);
    let told: Vec<String> = results
        .history
        .iter()
        .filter_map(|entry| match entry {
            Entry::Model { calls, .. } => calls.first().map(|call| call.result.clone()),
            Entry::User(_) => None,
        })
        .collect();
    assert_eq!(told.len(), 3, "three of the same");
    assert!(
        told[0].contains("rejected_by_operator") && told[0].contains("Dana Kim: too early"),
        "{}",
        told[0]
    );
    assert!(told[0].contains("That answer is final"));
    assert!(
        told[1..]
            .iter()
            .all(|told| told.contains("rejected exactly this call before"))
    );
    assert!(
        lab.world.request(&first).ledger.resumed_at.is_some(),
        "the denial was taken"
    );
    // What differs in a blank is another call, and asked about.
    assert_eq!(lab.world.requests().len(), 2);
    let second = lab.pending().remove(0);
    lab.decide(&second, Decision::Reject, None).await;
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Aborted);
    assert!(lab.ledger.all().is_empty());
    let kinds = lab.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "call.denied").count(), 2);
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| *kind == "confirmation.created")
            .count(),
        2
    );
}

#[tokio::test]
async fn several_calls_wait_together_and_end_in_order() {
    let lab = Lab::new(vec![
        calls(vec![
            call("t_pay", &json!({"n": 0})),
            call("t_free", &json!({"n": 1})),
            call("t_pay", &json!({"n": 2})),
            call("t_pay", &json!({"n": 3})),
            call("t_free", &json!({"never": true})),
        ]),
        complete("success", "done"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 1, "what needs nobody ran at once");
    let pending = lab.pending();
    assert_eq!(pending.len(), 3);
    lab.decide(&pending[2], Decision::Approve, None).await;
    lab.decide(&pending[1], Decision::Reject, None).await;
    lab.work().await;
    assert!(is_parked(&lab.world.job(&id)), "one is open");
    assert_eq!(lab.ledger.all().len(), 1);
    lab.decide(&pending[0], Decision::Approve, None).await;
    lab.work().await;
    let results = lab.results(&id);
    assert_eq!(results[0], r#"t_pay did {"n":0}"#);
    assert_eq!(results[1], r#"t_free did {"n":1}"#);
    assert!(results[2].starts_with("denied (rejected_by_operator)"));
    assert_eq!(results[3], r#"t_pay did {"n":3}"#);
    assert!(
        results[4].starts_with("denied (denied_by_rule): never ever"),
        "{}",
        results[4]
    );
    assert_eq!(lab.ledger.all().len(), 3);
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn nobody_answering_is_a_denial_that_resumes_the_job() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 0}))]),
        complete("aborted", "late"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.world.clock.advance(Duration::from_hours(24));
    lab.world.run(&Expire { limit: 10 });
    lab.work().await;
    let result = lab.results(&id).remove(0);
    assert!(
        result.starts_with("denied (expired)") || result.starts_with("denied (undeliverable)"),
        "{result}"
    );
    assert!(lab.ledger.all().is_empty());
}

#[tokio::test]
async fn the_user_is_asked_and_the_answer_is_the_result_of_the_question() {
    let lab = Lab::new(vec![
        complete("needs_user_input", "Which colour?"),
        complete("success", "blue it is"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let job = lab.world.job(&id);
    assert_eq!(job.state.wait_reason(), Some(WaitReason::UserInput));
    assert_eq!(lab.desk.question(&job).as_deref(), Some("Which colour?"));
    let own = By::Token(token());
    let answered = lab.answer(own.clone(), &id, "blue").await;
    assert!(matches!(answered, Answered::Done(_)));
    lab.work().await;
    assert_eq!(lab.results(&id), ["blue", "accepted"]);
    let again = lab.answer(own.clone(), &id, "red").await;
    assert_eq!(again, Answered::NotWaiting);
}

#[tokio::test]
async fn arguments_have_one_meaning_or_none() {
    let spellings: [(Option<&str>, Option<&str>); 15] = [
        (None, Some("{}")),
        (Some(""), Some("{}")),
        (Some(" \n"), Some("{}")),
        (Some("{}"), Some("{}")),
        (Some(r#"{"b":1,"a":2}"#), Some(r#"{"a":2,"b":1}"#)),
        (Some("null"), None),
        (Some("[]"), None),
        (Some("7"), None),
        (Some(r#""{\"a\":1}""#), None),
        (Some("```json\n{}\n```"), None),
        (Some("{'a':1}"), None),
        (Some("{} ok"), None),
        (Some(r#"{"a":1,"a":2}"#), None),
        (Some(r#"{"a":"\ud800"}"#), None),
        (Some(r#"{"a":"#), None),
    ];
    for (spelling, meaning) in spellings {
        for tool in ["t_free", "t_pay"] {
            let raw = RawCall {
                arguments: spelling.map(str::to_owned),
                ..call(tool, &json!({}))
            };
            let lab = Lab::new(vec![calls(vec![raw]), complete("success", "")]);
            let id = lab.submit().await;
            lab.work().await;
            let asked = lab.pending();
            match (meaning, tool) {
                (Some(args), "t_free") => assert_eq!(lab.ledger.all()[0].args, args),
                (Some(args), _) => assert_eq!(lab.world.request(&asked[0]).asked.args, args),
                (None, _) => {
                    assert!(asked.is_empty() && lab.ledger.all().is_empty(), "{spelling:?}");
                    assert!(lab.results(&id)[0].starts_with("error: "), "{spelling:?}");
                    assert_eq!(lab.past(&id)[0].args, "{}", "the history stays valid");
                }
            }
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_about_arguments_that_the_tool_could_not_take() {
    let lab = Lab::new(vec![
        calls(vec![
            call("t_pay", &json!({"amount": "much"})),
            call("t_free", &json!({"amount": []})),
        ]),
        calls(vec![call("t_pay", &json!({"amount": 5}))]),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let asked = lab.pending();
    assert_eq!(asked.len(), 1, "the mended call only");
    assert_eq!(lab.world.request(&asked[0]).asked.args, r#"{"amount":5}"#);
    assert!(lab.ledger.all().is_empty());
    for told in &lab.results(&id)[..2] {
        assert!(
            told.starts_with("error: `/amount` must be of type number, not "),
            "{told}"
        );
        assert!(!told.contains("much"), "{told}");
    }
}

#[tokio::test]
async fn what_cannot_be_told_for_certain_is_never_a_call() {
    let cut = Reply {
        complete: false,
        ..calls(vec![call("t_pay", &json!({"whole": true}))])
    };
    let nameless = RawCall {
        name: None,
        ..call("t_pay", &json!({}))
    };
    let strange = RawCall {
        name: Some("t_pay\u{202e}".to_owned()),
        ..call("t_pay", &json!({}))
    };
    let twin = |n: u32| RawCall {
        id: Some("same".to_owned()),
        ..call("t_pay", &json!({"n": n}))
    };
    let lab = Lab::new(vec![
        cut,
        calls(vec![nameless, strange]),
        calls(vec![twin(1), twin(2)]),
        calls(vec![call("hidden", &json!({})), call("nowhere", &json!({}))]),
        calls(vec![
            call("complete", &json!({"status": "success", "result": "x"})),
            call("t_free", &json!({"ran": 1})),
        ]),
        complete("perhaps", "x"),
        calls((0..33).map(|n| call("t_pay", &json!({"n": n}))).collect()),
        complete("success", "the end"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(
        lab.world.job(&id).state,
        JobState::Completed {
            result: "the end".to_owned()
        }
    );
    assert!(lab.world.requests().is_empty(), "nobody was asked");
    assert_eq!(lab.ledger.all().len(), 1);
    let results = lab.results(&id);
    assert_eq!(results.len(), 2 + 2 + 2 + 2 + 1 + 1);
    let errors = results
        .iter()
        .filter(|result| result.starts_with("error: "))
        .count();
    assert_eq!(errors, results.len() - 2, "{results:#?}");
}

#[tokio::test]
async fn a_missing_id_is_no_reason_to_refuse() {
    let anonymous = |n: u32| RawCall {
        id: None,
        ..call("t_free", &json!({"n": n}))
    };
    let lab = Lab::new(vec![
        calls(vec![anonymous(1), anonymous(2)]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 2);
    let ids: BTreeSet<String> = lab.past(&id).into_iter().map(|past| past.id).collect();
    assert_eq!(ids.len(), 3);
    assert!(
        ids.iter()
            .all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()))
    );
}

#[tokio::test]
async fn every_loop_ends() {
    let limits = Limits {
        max_iterations: 6,
        cards: 2,
        questions: 2,
        ..Limits::default()
    };
    let lab = Lab::with(vec![words("Let me think.")], limits);
    let id = lab.submit().await;
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("text_only_limit"), "{result}");
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 3);

    let lab = Lab::with(vec![calls(vec![call("t_free", &json!({}))])], limits);
    let id = lab.submit().await;
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("max_iterations"), "{result}");
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 6);

    let cards: Vec<Reply> = (0..5)
        .map(|n| calls(vec![call("t_pay", &json!({"n": n}))]))
        .collect();
    let lab = Lab::with(cards, limits);
    let id = lab.submit().await;
    for _ in 0..2 {
        lab.work().await;
        let request = lab.pending().remove(0);
        lab.decide(&request, Decision::Reject, None).await;
    }
    lab.work().await;
    assert_eq!(lab.world.requests().len(), 2, "no third card");
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Aborted);
    assert!(lab.kinds().await.contains(&"call.denied".to_owned()));

    let lab = Lab::with(vec![complete("needs_user_input", "What now?")], limits);
    let id = lab.submit().await;
    for _ in 0..2 {
        lab.work().await;
        lab.answer(operator(), &id, "hm").await;
    }
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("ask_limit"), "{result}");
}

#[tokio::test]
async fn a_call_without_an_answer_waits_for_an_operator() {
    for (said, sends) in [("done", 1), ("not_done", 2)] {
        let lab = Lab::new(vec![
            calls(vec![call("t_vanish", &json!({"n": 1}))]),
            complete("success", ""),
        ]);
        let id = lab.submit().await;
        lab.work().await;
        lab.decide(&lab.pending()[0], Decision::Approve, None).await;
        lab.work().await;
        assert_eq!(
            lab.world.job(&id).state.wait_reason(),
            Some(WaitReason::OutcomeUnknown)
        );
        assert_eq!(lab.ledger.all().len(), 1);
        let own = By::Token(token());
        let by_itself = lab.answer(own.clone(), &id, said).await;
        assert_eq!(by_itself, Answered::NotAllowed);
        let answered = lab.answer(operator(), &id, said).await;
        assert!(matches!(answered, Answered::Done(_)));
        lab.work().await;
        let runs = lab.ledger.all();
        assert_eq!(runs.len(), sends);
        assert!(runs.iter().all(|run| run.permit == runs[0].permit), "one permit");
        let outcome = lab.world.requests()[0].ledger.outcome.clone().unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Succeeded);
        assert_eq!(
            lab.results(&id)[0].contains("as an operator found out"),
            said == "done"
        );
        assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
    }
}

#[tokio::test]
async fn an_idempotent_call_without_an_answer_is_sent_again_under_its_permit() {
    let lab = Lab::new(vec![
        calls(vec![call("t_vanish_again", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.decide(&lab.pending()[0], Decision::Approve, None).await;
    lab.work().await;
    let runs = lab.ledger.all();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0], runs[1]);
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
}

#[tokio::test]
async fn a_rule_that_denies_by_now_stops_an_approved_call() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let request = lab.pending().remove(0);
    lab.decide(&request, Decision::Approve, None).await;
    // Long after the permit lapsed.
    lab.world.clock.advance(Duration::from_hours(2));
    lab.work().await;
    assert!(lab.results(&id)[0].starts_with("denied (permit_expired)"));
    assert!(lab.ledger.all().is_empty());
    assert!(lab.world.request(&request).ledger.resumed_at.is_some());
}

#[tokio::test]
async fn the_stored_arguments_are_what_is_sent_and_a_changed_row_is_not() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.decide(&lab.pending()[0], Decision::Approve, None).await;
    // Somebody rewrites what the model remembers: it is not what runs.
    lab.world.tamper(&id, |job| {
        job.memory = job.memory.replace(r#"{\"n\":1}"#, r#"{\"n\":9}"#);
    });
    lab.work().await;
    assert_eq!(lab.ledger.all()[0].args, r#"{"n":1}"#);

    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let request = lab.pending().remove(0);
    lab.decide(&request, Decision::Approve, None).await;
    lab.world
        .tamper_request(&request, |row| row.asked.args = r#"{"n":9}"#.to_owned());
    lab.work().await;
    assert!(lab.ledger.all().is_empty());
    assert!(lab.results(&id)[0].starts_with("denied (args_changed)"));
}

#[tokio::test]
async fn a_run_that_lost_its_job_writes_nothing_and_withdraws_what_it_asked() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    let job = lab.world.claim_one();
    let cancelled = lab.world.run(&Cancel {
        job: id.clone(),
        org: org(),
        by: operator(),
        confirmations: Vec::new(),
        parent: None,
        family: Family::default(),
    });
    assert!(matches!(cancelled, Cancelled::Done(_)));
    let ran = lab.runner.run(job, &Reins::new(Tasks::new())).await;
    assert_eq!(ran, Ran::Lost);
    assert!(lab.pending().is_empty());
    assert_eq!(lab.world.job(&id).state, JobState::Cancelled);
    assert!(lab.ledger.all().is_empty());
}

#[tokio::test]
async fn a_job_that_cannot_be_run_ends_with_an_error() {
    for spoil in [
        (|job: &mut Job| job.piece = "gone".to_owned()) as fn(&mut Job),
        |job| job.movement = "gone".to_owned(),
        |job| job.memory = "{\"version\":99}".to_owned(),
        |job| job.memory = "not json".to_owned(),
    ] {
        let lab = Lab::new(vec![complete("success", "")]);
        let id = lab.submit().await;
        lab.world.tamper(&id, spoil);
        lab.work().await;
        assert_eq!(lab.world.job(&id).state.status(), JobStatus::Error);
    }
}

/// The kinds of calls that the property makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Free,
    FreeAgain,
    Pay,
    PayAgain,
    Vanish,
    Bad,
}

impl Made {
    const fn tool(self) -> &'static str {
        match self {
            Self::Free => "t_free",
            Self::FreeAgain => "t_free_again",
            Self::Pay => "t_pay",
            Self::PayAgain => "t_pay_again",
            Self::Vanish => "t_vanish",
            Self::Bad => "no_such_tool",
        }
    }

    const fn is_gated(self) -> bool {
        matches!(self, Self::Pay | Self::PayAgain | Self::Vanish)
    }

    const fn is_idempotent(self) -> bool {
        matches!(self, Self::FreeAgain | Self::PayAgain)
    }
}

fn made() -> impl Strategy<Value = Made> {
    prop::sample::select(vec![
        Made::Free,
        Made::FreeAgain,
        Made::Pay,
        Made::Pay,
        Made::PayAgain,
        Made::Vanish,
        Made::Bad,
    ])
}

/// Plays a script to its end while the process dies again and again, each time after so many more writes.
async fn survive(turns: &[Vec<Made>], rejected: &BTreeSet<u64>, crashes: &[u64], order: u64) {
    let mut replies: Vec<Reply> = turns
        .iter()
        .enumerate()
        .map(|(turn, made)| {
            calls(
                made.iter()
                    .enumerate()
                    .map(|(at, made)| call(made.tool(), &json!({"n": turn * 100 + at})))
                    .collect(),
            )
        })
        .collect();
    replies.push(complete("success", "survived"));
    let lab = Lab::build(replies, Limits::default(), true);
    let id = lab.submit().await;
    let mut crashes = crashes.iter().copied();
    for round in 0_u64..500 {
        let job = lab.world.job(&id);
        match &job.state {
            JobState::Queued | JobState::Running(_) => {
                if matches!(job.state, JobState::Running(_)) {
                    lab.world.clock.advance(LEASE);
                    lab.world.tamper(&id, |job| job.attempts = 0);
                }
                let job = lab.world.claim_one();
                lab.world.fail_after(crashes.next());
                // Whatever it says: the process is gone, and only what was committed is left.
                let _ = lab.runner.run(job, &Reins::new(Tasks::new())).await;
                lab.world.fail_after(None);
            }
            JobState::WaitingHuman {
                reason: WaitReason::ToolApproval,
                ..
            } => {
                let mut pending = lab.pending();
                assert!(!pending.is_empty(), "parked on nothing");
                let at = usize::try_from((order + round) % pending.len() as u64).unwrap();
                let request = pending.swap_remove(at);
                let args = lab.world.request(&request).asked.args;
                let decision = if rejected.contains(&number(&args)) {
                    Decision::Reject
                } else {
                    Decision::Approve
                };
                lab.decide(&request, decision, None).await;
            }
            JobState::WaitingHuman {
                reason: WaitReason::OutcomeUnknown,
                ..
            } => {
                let memory = lab.memory(&id);
                let permit = memory
                    .calls()
                    .iter()
                    .find_map(|call| match &call.state {
                        CallState::Unsure { permit, .. } => Some(permit.clone()),
                        _ => None,
                    })
                    .expect("a call is unsure");
                let happened = lab.ledger.all().iter().any(|run| run.permit == permit);
                let said = if happened { "done" } else { "not_done" };
                lab.answer(operator(), &id, said).await;
            }
            _ => break,
        }
    }
    check_survival(&lab, &id, turns, rejected);
}

fn number(args: &str) -> u64 {
    serde_json::from_str::<Value>(args).unwrap()["n"]
        .as_u64()
        .unwrap()
}

/// Every call has one result in its place, and ran as often as it may.
fn check_survival(lab: &Lab, id: &JobId, turns: &[Vec<Made>], rejected: &BTreeSet<u64>) {
    assert_eq!(
        lab.world.job(id).state,
        JobState::Completed {
            result: "survived".to_owned()
        }
    );
    let mut by_call: HashMap<u64, Vec<PermitId>> = HashMap::new();
    for run in lab.ledger.all() {
        by_call.entry(number(&run.args)).or_default().push(run.permit);
    }
    let past = lab.past(id);
    let made: Vec<(u64, Made)> = turns
        .iter()
        .enumerate()
        .flat_map(|(turn, made)| {
            made.iter()
                .enumerate()
                .map(move |(at, made)| ((turn * 100 + at) as u64, *made))
        })
        .collect();
    assert_eq!(past.len(), made.len() + 1, "every call has exactly one result");
    for ((n, made), past) in made.iter().zip(&past) {
        assert_eq!(past.tool, made.tool(), "in order");
        assert!(!past.result.is_empty());
        let runs = by_call.get(n).map(Vec::as_slice).unwrap_or_default();
        let permits: BTreeSet<&PermitId> = runs.iter().collect();
        assert!(permits.len() <= 1, "one permit a call");
        if *made == Made::Bad || (made.is_gated() && rejected.contains(n)) {
            assert_eq!(runs.len(), 0, "{made:?} {n} must not run");
        } else if made.is_idempotent() {
            assert!(!runs.is_empty());
        } else {
            assert_eq!(runs.len(), 1, "{made:?} {n} runs once");
        }
    }
    let requests = lab.world.requests();
    let gated = made.iter().filter(|(_, made)| made.is_gated()).count();
    assert_eq!(requests.len(), gated, "each gated call is asked about once");
    let consumed: BTreeMap<_, _> = requests
        .iter()
        .filter_map(|row| {
            row.state
                .consumed()
                .map(|(permit, _)| (permit.clone(), row.id.clone()))
        })
        .collect();
    for (n, made) in &made {
        if made.is_gated() {
            for permit in by_call.get(n).into_iter().flatten() {
                assert!(
                    consumed.contains_key(permit),
                    "nothing gated runs without a consumed permit"
                );
            }
        }
    }
    assert!(
        requests.iter().all(|row| row.ledger.resumed_at.is_some()),
        "every decision was taken"
    );
    assert!(lab.world.chain_is_sound());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_crash_changes_what_runs(
        turns in prop::collection::vec(prop::collection::vec(made(), 1..5), 1..4),
        rejected in prop::collection::btree_set((0..4_u64, 0..5_u64).prop_map(|(turn, at)| turn * 100 + at), 0..5),
        crashes in prop::collection::vec(0..9_u64, 0..40),
        order in any::<u16>(),
    ) {
        block_on(survive(&turns, &rejected, &crashes, u64::from(order)));
    }
}

#[test]
fn a_crash_at_each_write_of_one_turn_changes_nothing() {
    let turn = vec![vec![Made::Free, Made::Pay, Made::Pay, Made::PayAgain]];
    for at in 0..14 {
        block_on(survive(&turn, &BTreeSet::from([2]), &[at, at], 0));
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}

fn queue(lab: &Lab, run: Arc<dyn Run>, workers: usize, tasks: &Tasks) {
    let queue = Queue::new(
        lab.world.store(),
        run,
        workers,
        LEASE,
        &*lab.world.ids,
        tasks.clone(),
    );
    queue.start();
}

#[tokio::test]
async fn a_thousand_parked_jobs_hold_no_worker() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let mut parked = Vec::new();
    for _ in 0..1_000 {
        parked.push(lab.submit().await);
    }
    let tasks = Tasks::new();
    queue(&lab, Arc::clone(&lab.runner) as Arc<dyn Run>, 1, &tasks);
    until("parking", || lab.world.jobs().iter().all(is_parked)).await;
    let fresh = lab.submit().await;
    until("parking of the fresh one", || is_parked(&lab.world.job(&fresh))).await;
    let request = lab.world.job(&fresh).confirmations.remove(0);
    lab.decide(&request, Decision::Approve, None).await;
    until("the end of the fresh one", || {
        lab.world.job(&fresh).state.status() == JobStatus::Completed
    })
    .await;
    assert!(parked.iter().all(|id| is_parked(&lab.world.job(id))));
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}

/// Panics on jobs of one input, and counts.
struct Panics {
    runner: Arc<Runner>,
    poison: JobId,
}

#[async_trait]
impl Run for Panics {
    async fn run(&self, job: Job, reins: &Reins) -> Ran {
        assert_ne!(job.id, self.poison, "poison");
        self.runner.run(job, reins).await
    }
}

#[tokio::test]
async fn a_panic_ends_its_own_job_only() {
    let lab = Lab::new(vec![complete("success", "fine")]);
    let poison = lab.submit().await;
    let mut healthy = Vec::new();
    for _ in 0..20 {
        healthy.push(lab.submit().await);
    }
    let tasks = Tasks::new();
    let run = Panics {
        runner: Arc::clone(&lab.runner),
        poison: poison.clone(),
    };
    queue(&lab, Arc::new(run), 2, &tasks);
    until("the end of the healthy ones", || {
        healthy
            .iter()
            .all(|id| lab.world.job(id).state.status() == JobStatus::Completed)
    })
    .await;
    // The pauses between its attempts pass.
    until("the end of the poison", || {
        lab.world.clock.advance(Duration::from_secs(1));
        lab.world.job(&poison).state.status() == JobStatus::Error
    })
    .await;
    assert_eq!(
        lab.world.job(&poison).state,
        JobState::Error {
            error: "the run panicked".to_owned()
        }
    );
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}

/// Never answers.
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn ask(&self, _: Question<'_>) -> Result<Reply, ModelError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_stop_hands_jobs_back_uncounted() {
    let lab = Lab::new(Vec::new());
    let id = lab.submit().await;
    let tasks = Tasks::new();
    let runner = Runner::new(
        lab.gatekeeper.clone(),
        Arc::new(Silent),
        toolbox(&lab.ledger),
        Arc::new(Pieces::new([piece()])),
        Limits::default(),
    );
    queue(&lab, Arc::new(runner), 4, &tasks);
    until("the claim", || {
        lab.world.job(&id).state.status() == JobStatus::Running
    })
    .await;
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let job = lab.world.job(&id);
    assert_eq!((job.state, job.attempts), (JobState::Queued, 0));
}

#[tokio::test]
async fn an_unavailable_model_is_an_error_in_the_end() {
    let lab = Lab::new(Vec::new());
    let id = lab.submit().await;
    let tasks = Tasks::new();
    queue(&lab, Arc::clone(&lab.runner) as Arc<dyn Run>, 1, &tasks);
    until("the error", || {
        lab.world.clock.advance(Duration::from_secs(1));
        lab.world.job(&id).state.status() == JobStatus::Error
    })
    .await;
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 3);
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_run_parks_and_resumes_on_sqlite_across_a_restart() {
    let folder = Folder::new();
    let url = format!("sqlite://{}", folder.0.join("jobs.db").display());
    let ledger = Ledger::default();
    let replies = vec![
        calls(vec![
            call("t_free", &json!({"n": 1})),
            call("t_pay", &json!({"n": 2})),
        ]),
        complete("success", "paid"),
    ];
    let mut job = None;
    for round in 0..2 {
        let (tasks, store_tasks) = (Tasks::new(), Tasks::new());
        let store = open(&Settings::new(&url, Arc::new(SystemClock)), &store_tasks)
            .await
            .unwrap();
        let (gatekeeper, _scribe) = gatekeeper(store.clone(), Arc::new(SystemIds));
        let pieces = Arc::new(Pieces::new([piece()]));
        let model = Script {
            replies: replies.clone(),
            vary: false,
            asked: AtomicU32::new(0),
            seen: Mutex::default(),
        };
        let runner = Runner::new(
            gatekeeper.clone(),
            Arc::new(model),
            toolbox(&ledger),
            Arc::clone(&pieces),
            Limits::default(),
        );
        let id = match &job {
            Some(id) => JobId::clone(id),
            None => submit(&store, &SystemIds).await,
        };
        let queue = Queue::new(
            store.clone(),
            Arc::new(runner),
            1,
            LEASE,
            &SystemIds,
            tasks.clone(),
        );
        queue.start();
        let wanted = if round == 0 {
            JobStatus::WaitingHuman
        } else {
            JobStatus::Completed
        };
        let mut watch = store.wakes().job(&id);
        let reached = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let row = store.read().job(&id).await.unwrap().unwrap();
                if row.state.status() == wanted {
                    return row;
                }
                if round == 1 && row.state.status() == JobStatus::WaitingHuman {
                    let request = &row.confirmations[0];
                    let decided = gatekeeper
                        .respond(&dana(), &org(), request, Decision::Approve, None, Surface::Api)
                        .await
                        .unwrap();
                    assert!(decided.dossier.is_some());
                }
                let _ = tokio::time::timeout(Duration::from_millis(200), watch.changed()).await;
            }
        })
        .await
        .unwrap();
        assert_eq!(ledger.all().len(), 1 + round);
        if round == 1 {
            assert_eq!(
                reached.state,
                JobState::Completed {
                    result: "paid".to_owned()
                }
            );
            assert!(SystemClock.now() >= reached.created_at);
        }
        job = Some(id);
        tasks.ask_to_stop();
        assert!(tasks.drain(Duration::from_secs(5)).await);
        store_tasks.ask_to_stop();
        assert!(store_tasks.drain(Duration::from_secs(5)).await);
    }
}
