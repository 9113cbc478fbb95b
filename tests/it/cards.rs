//! Golden cards: every state of a request in every language on both platforms, from the stored row to the bytes that the
//! platform took. The real card maker, the real adapters, the fakes that keep the platforms' limits.

use std::sync::Arc;

use gatepost::clock::Zone;
use gatepost::confirmation::roll::{Roll, Voter};
use gatepost::confirmation::{
    Asked, Confirmation, Delivery, DeliveryState, Dossier, Ledger, Outcome, OutcomeStatus, Permit, Progress,
    State, Vote, VoteContent,
};
use gatepost::delivery::button::ServerKey;
use gatepost::delivery::card::{CardMaker, Voice};
use gatepost::delivery::phrase::{Language, Phrasebook};
use gatepost::gate::json::ReadLimits;
use gatepost::gate::{Arguments, Digest, Terms};
use gatepost::ids::{ConfirmationId, DeliveryId, PermitId, SeededIds};
use gatepost_channel::{Actions, Card, CardForm, Channel, Decision, MessageRef, PostKey, Posted, UtcMillis};
use serde_json::{Value, json};

use crate::channels::{feishu_channel, slack_channel};
use crate::support::fake_feishu::{self, Api, FakeFeishu};
use crate::support::fake_slack::{self, FakeSlack};
use crate::support::fault::Fault;

const CREATED: UtcMillis = UtcMillis(1_796_032_800_000);
const EXPIRES: UtcMillis = UtcMillis(1_796_040_000_000);
pub(crate) const DECIDED: UtcMillis = UtcMillis(1_796_034_600_000);

/// One state, and what makes it from the open request.
type Case = (&'static str, fn(&mut Dossier));

const CASES: [Case; 17] = [
    ("pending", |_| {}),
    ("pending_votes", |dossier| {
        dossier.confirmation.terms.quorum = 2;
        dossier.votes = vec![vote("dana", Decision::Approve, None)];
    }),
    ("pending_stage_2", |dossier| {
        dossier.votes = vec![vote("dana", Decision::Approve, None)];
        stages(&mut dossier.confirmation);
        dossier.confirmation.progress.stage = 1;
    }),
    ("pending_critical", |dossier| {
        let row = &mut dossier.confirmation;
        row.terms.risk = Some(gatepost_channel::Risk::Critical);
        row.terms.decision.confirm_step = true;
        row.terms.decision.require_reason = gatepost::gate::RequireReason::Both;
    }),
    ("pending_command", |dossier| {
        let args =
            json!({ "command": "kubectl -n prod \\\n  rollout restart deploy/billing-api", "timeout": 60 });
        ask(&mut dossier.confirmation, "Bash", &args);
    }),
    ("pending_edit", |dossier| {
        let args = json!({ "file_path": "/etc/hosts", "old_string": "127.0.0.1 a\n::1 a", "new_string": "127.0.0.1 a b\n::1 a" });
        ask(&mut dossier.confirmation, "Edit", &args);
    }),
    ("pending_tricks", |dossier| {
        let args = json!({ "payee": "p\u{0430}ypal <!channel> <at id=all></at>", "host": "example.com\u{2044}login\u{202e}", "note": "请尽快，谢谢！" });
        ask(&mut dossier.confirmation, "oa__purchase_pay", &args);
    }),
    ("cut", |dossier| {
        let args = json!({ "content": "one more line of a long document\n".repeat(2_000), "file_path": "/tmp/long" });
        ask(&mut dossier.confirmation, "Write", &args);
    }),
    ("approved", |dossier| approved(dossier, Permit::Open)),
    ("approved_begun", |dossier| approved(dossier, consumed())),
    ("approved_ran", |dossier| ran(dossier, OutcomeStatus::Succeeded)),
    ("approved_failed", |dossier| ran(dossier, OutcomeStatus::Failed)),
    ("approved_lapsed", |dossier| {
        dossier.confirmation.terms.permit_ttl_ms = 1;
        approved(dossier, Permit::Open);
    }),
    ("rejected", |dossier| {
        dossier.votes = vec![vote(
            "noor",
            Decision::Reject,
            Some("Wrong account:\nask the supplier again"),
        )];
        dossier.confirmation.state = State::Rejected { at: DECIDED };
    }),
    ("expired", |dossier| {
        dossier.confirmation.state = State::Expired { at: EXPIRES }
    }),
    ("cancelled", |dossier| {
        dossier.confirmation.state = State::Cancelled { at: DECIDED }
    }),
    ("undeliverable", |dossier| {
        dossier.confirmation.state = State::Undeliverable { at: DECIDED }
    }),
];

fn consumed() -> Permit {
    Permit::Consumed {
        id: PermitId::fresh(&SeededIds::default()),
        at: UtcMillis(DECIDED.0 + 5_000),
    }
}

fn approved(dossier: &mut Dossier, permit: Permit) {
    dossier.votes = vec![vote("dana", Decision::Approve, None)];
    dossier.confirmation.state = State::Approved { at: DECIDED, permit };
}

fn ran(dossier: &mut Dossier, status: OutcomeStatus) {
    approved(dossier, consumed());
    dossier.confirmation.ledger.outcome = Some(Outcome { status, detail: None });
}

fn vote(person: &str, decision: Decision, reason: Option<&str>) -> Vote {
    Vote {
        person: person.into(),
        decision,
        channel: None,
        surface: "card".to_owned(),
        reason: reason.map(str::to_owned),
        at: DECIDED,
        content: VoteContent::default(),
    }
}

fn stages(row: &mut Confirmation) {
    let mut terms = serde_json::to_value(&row.terms).unwrap();
    terms["quorum"] = json!(2);
    terms["decision"] = json!({ "stages": [
        { "name": "Finance", "approvers": { "roles": ["finance"] }, "quorum": 1 },
        { "name": "Direction", "approvers": { "operators": ["noor"] }, "quorum": 1 },
    ] });
    row.terms = serde_json::from_value(terms).unwrap();
}

/// People may change its arguments.
pub(crate) fn editable(row: &mut Confirmation) {
    let mut terms = serde_json::to_value(&row.terms).unwrap();
    terms["decision"]["edits"] = json!({ "scope": "any", "carried": true });
    row.terms = serde_json::from_value(terms).unwrap();
}

fn ask(row: &mut Confirmation, tool: &str, args: &Value) {
    let text = args.to_string();
    let args = Arguments::read(text.as_bytes(), ReadLimits::bytes(text.len())).unwrap();
    row.asked.tool = tool.parse().unwrap();
    row.asked.digest = Digest::of(&row.asked.tool, &args);
    args.canonical().clone_into(&mut row.asked.args);
}

/// The open request.
pub(crate) fn open() -> Dossier {
    let terms = json!({
        "channels": ["desk"], "approvers": { "roles": ["finance"] }, "quorum": 1, "risk": "high",
        "timeout_ms": EXPIRES.0 - CREATED.0, "permit_ttl_ms": 3_600_000, "redact": ["/card"],
    });
    let terms: Terms = serde_json::from_value(terms).unwrap();
    let args = json!({ "amount": 51000.50, "payee": "Northwind \"R&D\" Ltd.", "card": "4111111111111111", "urgent": true });
    let text = args.to_string();
    let read = Arguments::read(text.as_bytes(), ReadLimits::bytes(text.len())).unwrap();
    let tool = "oa__purchase_pay".parse().unwrap();
    Dossier {
        confirmation: Confirmation {
            id: ConfirmationId::fresh(&SeededIds::default()),
            org: "acme".into(),
            asked: Asked {
                token: "build-agent".into(),
                digest: Digest::of(&tool, &read),
                tool,
                args: read.canonical().to_owned(),
                agent_id: Some("claude".to_owned()),
                session_id: None,
                tool_call_id: None,
                requester: Some("dana@example.com".to_owned()),
                metadata: None,
                persons: Vec::new(),
                job: None,
            },
            rule: Some("big-payments".to_owned()),
            reason: Some("Payments of 50k or more need a person".to_owned()),
            terms,
            set: None,
            created_at: CREATED,
            expires_at: EXPIRES,
            state: State::Pending,
            ledger: Ledger::default(),
            progress: Progress::default(),
            revision: 1,
            edition: 1,
            version: 0,
        },
        votes: Vec::new(),
        deliveries: vec![Delivery {
            id: DeliveryId::fresh(&SeededIds::default()),
            channel: "desk".into(),
            host: None,
            state: DeliveryState::Queued,
            nonce: [5; 16],
            token_hash: [0; 32],
            approvable: true,
            unheard: false,
            lost: 0,
            told: false,
            standing: Vec::new(),
            error: None,
        }],
    }
}

pub(crate) fn maker() -> CardMaker {
    let voter = |id: &str, name: &str| Voter {
        id: id.into(),
        name: name.to_owned(),
        orgs: vec!["acme".into()],
        roles: vec!["finance".to_owned()],
    };
    CardMaker::new(
        Arc::new(Phrasebook::load().unwrap()),
        ServerKey::new([7; 32]),
        Arc::new(Roll::new([
            voter("dana", "Dana Kim"),
            voter("noor", "Noor Haddad"),
        ])),
        Some("https://gate.example.com".to_owned()),
    )
}

/// How each language is spoken here, with a zone of its own.
pub(crate) fn voices() -> [(&'static str, Voice); 3] {
    [
        ("en", Language::En, "UTC"),
        ("zh", Language::Zh, "Asia/Shanghai"),
        ("ja", Language::Ja, "Asia/Tokyo"),
    ]
    .map(|(word, language, zone)| {
        let zone: Zone = zone.parse().unwrap();
        (word, Voice { language, zone })
    })
}

fn card(change: fn(&mut Dossier), voice: &Voice) -> Card {
    let mut dossier = open();
    change(&mut dossier);
    let now = UtcMillis(DECIDED.0 + 60_000);
    maker().card(&dossier, &dossier.deliveries[0], voice, now)
}

/// Long texts keep their ends only, so that golden files stay readable.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > 400 => {
            let head: String = text.chars().take(60).collect();
            let tail: String = text
                .chars()
                .rev()
                .take(60)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            *text = format!("{head} [...] {tail}");
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

pub(crate) fn golden(platform: &str, state: &str, mut cards: Value) {
    shorten(&mut cards);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_json_snapshot!(format!("{platform}_{state}"), cards));
}

/// Posts the card of each state in each language, then once more where its content is refused, and edits it likewise.
async fn all(channel: &dyn Channel, platform: &str, refuse: impl Fn(bool), sent: impl Fn() -> Value) {
    let mut key = 0;
    for (state, change) in CASES {
        let (mut whole, mut minimal) = (json!({}), json!({}));
        for (word, voice) in voices() {
            let card = card(change, &voice);
            let mut post = async |refused: bool| {
                if refused {
                    refuse(true);
                }
                key += 1;
                let posted = channel.post(&card, &PostKey(format!("k{key}"))).await;
                (posted, sent())
            };
            let (posted, laid_out) = post(false).await;
            let Posted::At(at) = posted else {
                panic!("{platform} {state} {word}: {posted:?}")
            };
            whole[word] = laid_out;
            edits(channel, &at, &card, &refuse).await;
            let (posted, least) = post(true).await;
            assert!(
                matches!(posted, Posted::Minimal(_)),
                "{platform} {state} {word}: {posted:?}"
            );
            assert!(
                !least.to_string().contains("51000"),
                "the minimal card holds no argument"
            );
            minimal[word] = least;
        }
        golden(platform, state, whole);
        if matches!(state, "pending" | "rejected") {
            golden(platform, &format!("{state}_minimal"), minimal);
        }
    }
}

async fn edits(channel: &dyn Channel, at: &MessageRef, card: &Card, refuse: &impl Fn(bool)) {
    assert_eq!(channel.edit(at, card).await, Ok(CardForm::LaidOut));
    refuse(false);
    assert_eq!(channel.edit(at, card).await, Ok(CardForm::Minimal));
}

#[tokio::test]
async fn golden_cards_on_slack() {
    let slack = FakeSlack::start().await;
    slack.limit_rate(false);
    let refusal = json!({ "ok": false, "error": "invalid_blocks" });
    let refuse = |post| {
        let method = if post { "chat.postMessage" } else { "chat.update" };
        slack.fail_next(method, Fault::answer(200, &refusal));
    };
    let sent = || {
        let message = slack.messages(fake_slack::CHANNEL).pop().unwrap();
        let now = message.current();
        json!({ "text": now.text, "blocks": now.blocks })
    };
    all(&slack_channel(&slack), "slack", refuse, sent).await;
}

#[tokio::test]
async fn golden_cards_on_feishu() {
    let feishu = FakeFeishu::start().await;
    feishu.limit_rate(false);
    let refusal = json!({ "code": 230_028, "msg": "The messages do NOT pass the audit." });
    let refuse = |post| {
        let api = if post { Api::Send } else { Api::Patch };
        feishu.fail_next(api, Fault::answer(400, &refusal));
    };
    let sent = || {
        feishu
            .messages(fake_feishu::CHAT)
            .pop()
            .unwrap()
            .current()
            .clone()
    };
    all(&feishu_channel(&feishu), "feishu", refuse, sent).await;
}

#[test]
fn what_a_card_must_say_is_on_every_one() {
    for (state, change) in CASES {
        for (word, voice) in voices() {
            let card = card(change, &voice);
            let facts: Vec<&str> = card.facts.iter().map(|fact| fact.value.as_str()).collect();
            let case = format!("{state} {word}");
            for needed in [
                "build-agent",
                "claude",
                "dana@example.com",
                "Payments of 50k or more need a person",
            ] {
                assert!(facts.contains(&needed), "{case}: {needed} in {facts:?}");
            }
            assert_eq!(card.request_id, "cr_00000000000000000000000000000001", "{case}");
            let zone = voice.zone.to_string();
            assert!(
                facts.iter().any(|fact| fact.contains(&zone)),
                "{case}: a time names its zone"
            );
            assert!(
                !card.preview.contains("51000") && !card.preview.contains("dana"),
                "{case}"
            );
            match &card.actions {
                Actions::Decide { full_view, .. } => assert!(full_view.is_some(), "{case}"),
                Actions::None => assert_ne!(card.tone, gatepost_channel::Tone::Pending, "{case}"),
            }
        }
    }
}
