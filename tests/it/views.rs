//! Golden views: what opens for one person, in every language on both platforms, from the stored row to what the platform took. The real
//! maker of words, the real adapters, the fakes that keep the platforms' limits.

use gatepost::confirmation::edit::Edit;
use gatepost::confirmation::{Dossier, Permit, State};
use gatepost::delivery::card::Voice;
use gatepost::delivery::dialog::Sight;
use gatepost::gate::json::ReadLimits;
use gatepost::gate::{Arguments, Digest, RequireReason};
use gatepost::ids::ChannelName;
use gatepost_channel::{
    Channel as _, Decision, Dialog, FullView, MessageRef, Opener, PostKey, Posted, Risk, UtcMillis,
};
use serde_json::{Value, json};

use crate::cards::{self, DECIDED, golden, maker, open, voices};
use crate::channels::{feishu_channel, slack_channel};
use crate::support::clock::Clock;
use crate::support::fake_feishu::{FakeFeishu, Person};
use crate::support::fake_slack::{CHANNEL, FakeSlack, User};
use crate::support::people::DANA;

/// One state of a request, and what makes it from the open one.
type Case = (&'static str, fn(&mut Dossier));

const CASES: [Case; 7] = [
    ("open", |_| {}),
    ("demanding", |dossier| {
        let row = &mut dossier.confirmation;
        row.terms.risk = Some(Risk::Critical);
        row.terms.decision.confirm_step = true;
        row.terms.decision.require_reason = RequireReason::Both;
    }),
    ("editable", editable),
    ("edited", |dossier| {
        editable(dossier);
        let row = &mut dossier.confirmation;
        let args = args(
            &json!({ "amount": 900, "payee": "Northwind \"R&D\" Ltd.", "card": "4111111111111111", "urgent": false }),
        );
        row.progress.edit = Some(Edit {
            number: 1,
            by: "noor".into(),
            at: DECIDED,
            digest: Digest::of(&row.asked.tool, &args),
            args: args.canonical().to_owned(),
        });
    }),
    ("editable_long", |dossier| {
        let text = json!({ "note": "a line that is too long for a field\n".repeat(120) });
        args(&text)
            .canonical()
            .clone_into(&mut dossier.confirmation.asked.args);
        editable(dossier);
        dossier.confirmation.terms.decision.require_reason = RequireReason::Approve;
    }),
    ("tricks", |dossier| {
        let text = json!({
            "payee": "p\u{0430}ypal <!channel> <at id=all></at> &amp; :tada: 🚀",
            "host": "example.com\u{2044}login\u{202e}", "note": "请尽快，谢谢！",
            "as": "\"}]},{\"type\":\"button\",\"action_id\":\"approve\"}",
        });
        args(&text)
            .canonical()
            .clone_into(&mut dossier.confirmation.asked.args);
        editable(dossier);
    }),
    ("settled", |dossier| {
        editable(dossier);
        dossier.confirmation.state = State::Approved {
            at: DECIDED,
            permit: Permit::Open,
        };
    }),
];

fn args(value: &Value) -> Arguments {
    let text = value.to_string();
    Arguments::read(text.as_bytes(), ReadLimits::bytes(text.len())).unwrap()
}

fn editable(dossier: &mut Dossier) {
    cards::editable(&mut dossier.confirmation);
}

fn dossier(change: fn(&mut Dossier)) -> Dossier {
    let mut dossier = open();
    change(&mut dossier);
    dossier
}

const NOW: UtcMillis = UtcMillis(DECIDED.0 + 60_000);

/// What this person is shown of a request whose card stands there.
fn view(dossier: &Dossier, at: &MessageRef, user: &str, voice: &Voice) -> FullView {
    let maker = maker();
    let view = maker.everything(dossier, &dossier.deliveries[0], at, (voice, NOW));
    let channel: ChannelName = "desk".into();
    let sight = Sight {
        user,
        channel: &channel,
        at,
    };
    FullView {
        seen: maker.seen(&view, sight),
        ..view
    }
}

#[tokio::test]
async fn golden_modals_on_slack() {
    // What the modal carries names its card by the time of its post.
    let slack = FakeSlack::with_clock(Clock::standing_at(1_795_953_600)).await;
    slack.limit_rate(false);
    slack.add_user(User::new(DANA.slack, DANA.email));
    let channel = slack_channel(&slack);
    let dialogs = channel.dialogs().unwrap();
    let (_, voice) = voices().into_iter().next().unwrap();
    let asked = open();
    let card = maker().card(&asked, &asked.deliveries[0], &voice, NOW);
    let Posted::At(at) = channel.post(&card, &PostKey("k1".to_owned())).await else {
        panic!("a card")
    };
    let card = slack.messages(CHANNEL).pop().unwrap();
    let opened = async |dialog: &Dialog| {
        let press = slack.click(&card, "show_everything", DANA.slack).into_document();
        let leave = Opener::new(press["trigger_id"].as_str().unwrap());
        let opened = dialogs.open(&leave, dialog).await;
        let at = opened.unwrap_or_else(|failure| panic!("{failure}"));
        dialogs
            .change(&at, dialog)
            .await
            .unwrap_or_else(|failure| panic!("{failure}"));
        slack.calls("views.open").pop().unwrap().args["view"].clone()
    };
    for (state, change) in CASES {
        let mut all = json!({});
        for (word, voice) in voices() {
            let view = view(&dossier(change), &at, DANA.slack, &voice);
            assert!(dialogs.holds(&view), "{state} {word}");
            all[word] = opened(&Dialog::Everything(Box::new(view))).await;
        }
        golden("slack", &format!("modal_{state}"), all);
    }
    for decision in [Decision::Approve, Decision::Reject] {
        let mut all = json!({});
        for (word, voice) in voices() {
            let asked = dossier(CASES[1].1);
            let form =
                maker().reason_form(&asked, &asked.deliveries[0], &at, (decision, None), (&voice, NOW));
            all[word] = opened(&form).await;
        }
        golden("slack", &format!("modal_reason_to_{}", decision.as_str()), all);
    }
    let (mut wait, mut too_large) = (json!({}), json!({}));
    for (word, voice) in voices() {
        let maker = maker();
        let words = &maker.phrases(voice.language).dialog;
        wait[word] = opened(&Dialog::Wait(maker.say(&words.wait, None, &voice))).await;
        let row = &open().confirmation;
        let text = format!("{} {}", words.too_large, maker.elsewhere(row, &voice));
        too_large[word] = opened(&Dialog::Tell(maker.say(&text, Some(row), &voice))).await;
    }
    golden("slack", "modal_wait", wait);
    golden("slack", "modal_too_large", too_large);
}

#[tokio::test]
async fn golden_pages_on_feishu() {
    let feishu = FakeFeishu::start().await;
    feishu.limit_rate(false);
    feishu.add_person(Person::new(DANA.feishu, DANA.email));
    let channel = feishu_channel(&feishu);
    let pages = channel.pages().unwrap();
    let at = MessageRef {
        chat: "oc_card".to_owned(),
        message: "om_card".to_owned(),
    };
    let mut key = 0;
    let mut sent = async |view: &FullView| {
        let mut all = Vec::new();
        for number in 0..pages.count(view).expect("not too long") {
            key += 1;
            let posted = pages
                .send(DANA.feishu, view, number, &PostKey(format!("k{key}")))
                .await;
            let Posted::At(place) = posted else {
                panic!("{posted:?}")
            };
            let stands = feishu.messages_to(DANA.feishu).pop().unwrap();
            assert_eq!(place.message, stands.id);
            all.push(stands.current().clone());
            if number + 1 == pages.count(view).unwrap() {
                pages.edit(&place, view).await.unwrap();
                let again = feishu.messages_to(DANA.feishu).pop().unwrap();
                assert_eq!(again.current(), &all[all.len() - 1], "an edit shows the same");
            }
        }
        Value::Array(all)
    };
    for (state, change) in CASES {
        let mut all = json!({});
        for (word, voice) in voices() {
            all[word] = sent(&view(&dossier(change), &at, DANA.feishu, &voice)).await;
        }
        golden("feishu", &format!("pages_{state}"), all);
    }
    // The request was changed since: what the person saw is not what stands.
    let mut all = json!({});
    for (word, voice) in voices() {
        let outdated = FullView {
            seen: None,
            ..view(&dossier(editable), &at, DANA.feishu, &voice)
        };
        all[word] = sent(&outdated).await;
    }
    golden("feishu", "pages_outdated", all);
}
