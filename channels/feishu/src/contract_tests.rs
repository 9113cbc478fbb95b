//! The contract of the port (`docs/CHANNEL-CONTRACT.md`) on the scripted platform.

use gatepost_channel::contract::{self, HOSTILE, Made, Next, Platform, Press, Sent, Typed, WAIT};
use gatepost_channel::{
    Card, CardForm, Channel, Decision, Failure, FullView, Health, Note, Posted, RawRequest, UtcMillis, Wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::FeishuChannel;
use crate::card::BUDGET;
use crate::fake::{self, Answer, Fake, coded, refusal};
use crate::fixture::{self, CLOCK, now, sealed, signed, signed_with, unsigned};
use crate::page_tests::boxed;
use crate::talk::{key, posted_message, there};

struct Feishu(FeishuChannel);

fn feishu() -> Feishu {
    Feishu(fake::channel("http://127.0.0.1:1"))
}

fn block_on<T>(act: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(act)
}

fn scripted(next: Next, gone: i64) -> Answer {
    match next {
        Next::Done => posted_message(),
        Next::RateLimited => {
            let wait = vec![("x-ogw-ratelimit-reset", WAIT.as_secs().to_string())];
            Answer::Http(
                429,
                wait,
                json!({"code": 99_991_400, "msg": "canary"}).to_string(),
            )
        }
        Next::ServerError => coded(502, &json!("canary")),
        Next::ContentRefused => refusal(400, 230_025),
        Next::NotThere => refusal(400, gone),
        Next::HangUp => Answer::Drop,
        Next::Nothing => coded(200, &json!({"code": 0})),
    }
}

fn play<T>(script: &[Next], gone: i64, act: impl AsyncFnOnce(FeishuChannel) -> T) -> (T, Vec<Sent>) {
    block_on(async {
        let fake = Fake::start(script.iter().map(|next| scripted(*next, gone))).await;
        let out = act(fake.channel()).await;
        let sent = |call: fake::Asked| Sent {
            card: call.card(),
            bytes: call.size,
        };
        (out, fake.calls().into_iter().map(sent).collect())
    })
}

/// The decisions and values of all buttons, and every tag.
fn walk(value: &Value, buttons: &mut Vec<(Decision, String)>, tags: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, buttons, tags)),
        Value::Object(fields) => {
            if let Some(decision) = fields.get("decision") {
                let decision = if decision == "approve" {
                    Decision::Approve
                } else {
                    Decision::Reject
                };
                buttons.push((decision, fields["b"].as_str().unwrap().to_owned()));
            }
            tags.extend(fields.get("tag").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| walk(field, buttons, tags));
        }
        _ => {}
    }
}

/// The objects of a card of which this is true.
fn found(value: &Value, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value> {
    let inside = match value {
        Value::Array(items) => items.iter().flat_map(|item| found(item, wanted)).collect(),
        Value::Object(fields) => fields.values().flat_map(|field| found(field, wanted)).collect(),
        _ => Vec::new(),
    };
    let itself = (value.is_object() && wanted(value)).then(|| value.clone());
    itself.into_iter().chain(inside).collect()
}

/// The event as it travels.
fn made_of(mut event: Value, made: Made) -> RawRequest {
    if made == Made::OtherApp {
        event["header"]["app_id"] = json!("cli_another_app_0001");
    }
    let body = sealed(event.to_string().as_bytes());
    match made {
        Made::Authentic | Made::OtherApp => signed(&body),
        Made::Unsigned => unsigned(&body),
        Made::OtherSecret => {
            let mut request = signed(&body);
            let other = crate::crypto::signature(
                CLOCK.to_string().as_bytes(),
                b"n0nce-01",
                &fixture::secret("another secret"),
                body.as_bytes(),
            );
            let signature = request
                .headers
                .iter_mut()
                .find(|(name, _)| name == "X-Lark-Signature");
            signature.unwrap().1 = other.into_bytes();
            request
        }
        Made::At(offset) => signed_with(&body, &(CLOCK + offset).to_string(), "n0nce-01"),
    }
}

impl Platform for Feishu {
    fn channel(&self) -> &dyn Channel {
        &self.0
    }

    fn now(&self) -> UtcMillis {
        now()
    }

    fn request(&self, press: &Press, made: Made) -> RawRequest {
        let mut event = fixture::press(&json!({ "decision": press.decision.as_str(), "b": press.value }));
        event["header"]["event_id"] = json!(format!("ev_{}", press.serial));
        event["header"]["app_id"] = json!(self.0.app().id);
        event["event"]["operator"]["open_id"] = json!(press.user);
        event["event"]["context"] =
            json!({ "open_message_id": press.at.message, "open_chat_id": press.at.chat });
        made_of(event, made)
    }

    fn words(&self, words: &str, user: &str, serial: u32, made: Made) -> Option<RawRequest> {
        let mut event = fixture::message(words);
        event["header"]["app_id"] = json!(self.0.app().id);
        event["event"]["message"]["message_id"] = json!(format!("om_said_{serial}"));
        event["event"]["sender"]["sender_id"]["open_id"] = json!(user);
        Some(made_of(event, made))
    }

    fn post(&self, script: &[Next], card: &Card) -> (Posted, Vec<Sent>) {
        play(script, 230_002, async |channel| channel.post(card, &key()).await)
    }

    fn edit(&self, script: &[Next], card: &Card) -> (Result<CardForm, Failure>, Vec<Sent>) {
        play(script, 230_011, async |channel| {
            channel.edit(&there(), card).await
        })
    }

    fn health_when_down(&self) -> Health {
        block_on(self.0.check())
    }

    fn assert_ours(&self, sent: &Sent) {
        let (mut buttons, mut tags) = (vec![], vec![]);
        walk(&sent.card, &mut buttons, &mut tags);
        let ours = [
            "plain_text",
            "div",
            "column_set",
            "column",
            "button",
            "form",
            "input",
        ];
        assert!(tags.iter().all(|tag| ours.contains(&tag.as_str())), "{tags:?}");
        assert!(sent.bytes <= BUDGET, "{}", sent.bytes);
    }

    fn buttons(&self, sent: &Sent) -> Vec<(Decision, String)> {
        let (mut buttons, mut tags) = (vec![], vec![]);
        walk(&sent.card, &mut buttons, &mut tags);
        buttons
    }

    fn asks(&self, press: &Press, wants: Wants, made: Made) -> Option<RawRequest> {
        if wants != Wants::Everything {
            return None;
        }
        let mut event = fixture::press(&json!({ "show": "everything", "b": press.value }));
        event["header"]["app_id"] = json!(self.0.app().id);
        event["event"]["operator"]["open_id"] = json!(press.user);
        event["event"]["context"] =
            json!({ "open_message_id": press.at.message, "open_chat_id": press.at.chat });
        Some(made_of(event, made))
    }

    fn page(&self, script: &[Next], view: &FullView, number: u32) -> (Posted, Vec<Sent>) {
        play(script, 230_013, async |channel| {
            let pages = channel.pages().expect("Feishu has pages");
            pages.send(self.person(), view, number, &key()).await
        })
    }

    fn edit_page(&self, script: &[Next], view: &FullView) -> (Result<(), Failure>, Vec<Sent>) {
        play(script, 230_011, async |channel| {
            let pages = channel.pages().expect("Feishu has pages");
            pages.edit(&there(), view).await
        })
    }

    fn assert_view(&self, sent: &Sent) {
        self.assert_ours(sent);
        for field in found(&sent.card, &|fields| fields["tag"] == "input") {
            let text = field["default_value"].as_str().unwrap_or_default();
            assert!(text.encode_utf16().count() <= 1_000, "{}", text.len());
            assert_eq!(field["max_length"], 1_000);
        }
    }

    fn literally(&self, sent: &Sent) -> String {
        boxed(&sent.card)
    }

    fn answer(&self, sent: &Sent, decision: Decision, typed: Typed<'_>, user: &str) -> Option<RawRequest> {
        let by_field = typed != Typed::Nothing;
        let wanted = |button: &Value| {
            let value = &button["behaviors"][0]["value"];
            button["tag"] == "button"
                && value["decision"] == decision.as_str()
                && (value["edited"] == true) == by_field
        };
        let button = found(&sent.card, &wanted).into_iter().next()?;
        let mut event = fixture::press(&button["behaviors"][0]["value"]);
        event["header"]["app_id"] = json!(self.0.app().id);
        event["event"]["operator"]["open_id"] = json!(user);
        event["event"]["action"]["name"] = button["name"].clone();
        let field = found(&sent.card, &|fields| fields["name"] == "arguments");
        let given = field.first().map(|field| field["default_value"].clone());
        event["event"]["action"]["form_value"] = match typed {
            Typed::Nothing => json!({}),
            Typed::AsGiven => json!({ "arguments": given? }),
            Typed::Text(text) => json!({ "arguments": text }),
        };
        Some(made_of(event, Made::Authentic))
    }

    fn person(&self) -> &'static str {
        "ou_demo_mira"
    }

    fn reply(&self, script: &[Next], note: &Note) -> (Posted, Vec<Sent>) {
        play(script, 230_011, async |channel| {
            let threads = channel.threads().expect("Feishu has answers");
            threads.reply(&there(), note, &key()).await
        })
    }

    fn assert_note(&self, sent: &Sent) {
        let elements = sent.card["body"]["elements"].as_array().unwrap();
        let [mentions, text] = &elements[..] else {
            panic!("{elements:?}")
        };
        assert_eq!(
            *mentions,
            json!({ "tag": "markdown", "content": format!("<at id={}></at>", self.person()) }),
            "what reads markup holds mentions and nothing else"
        );
        assert_eq!(
            (&text["tag"], &text["text"]["tag"]),
            (&json!("div"), &json!("plain_text"))
        );
        assert!(sent.bytes <= BUDGET, "{}", sent.bytes);
    }
}

#[test]
fn refusals() {
    contract::check_refusals(&feishu());
}

#[test]
fn clicks() {
    contract::check_clicks(&feishu());
}

#[test]
fn commands() {
    contract::check_commands(&feishu());
}

#[test]
fn answers() {
    contract::check_answers(&feishu());
}

#[test]
fn outcomes() {
    contract::check_outcomes(&feishu());
}

#[test]
fn fallback() {
    contract::check_fallback(&feishu());
}

#[test]
fn cards() {
    contract::check_cards(&feishu());
}

#[test]
fn sets() {
    contract::check_sets(&feishu());
}

#[test]
fn threads() {
    contract::check_threads(&feishu());
}

#[test]
fn views() {
    contract::check_views(&feishu());
    contract::check_view_hostile(&feishu());
}

#[test]
fn silence() {
    contract::check_silence(&feishu());
}

#[test]
fn what_it_says_of_itself() {
    let feishu = feishu();
    contract::check_channel(feishu.channel(), Some(&feishu.health_when_down()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn text_stays_text(
        pieces in proptest::collection::vec(
            prop_oneof![proptest::sample::select(HOSTILE).prop_map(str::to_owned), any::<String>(), "[ -~]{0,400}"],
            1..24,
        ),
    ) {
        contract::check_text(&feishu(), &pieces.concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn text_stays_text_where_it_is_shown_to_one_person(
        pieces in proptest::collection::vec(
            prop_oneof![proptest::sample::select(HOSTILE).prop_map(str::to_owned), any::<String>(), "[ -~]{0,400}"],
            1..24,
        ),
    ) {
        contract::check_view_text(&feishu(), &pieces.concat());
    }
}
