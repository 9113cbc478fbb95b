//! The contract of the port (`docs/CHANNEL-CONTRACT.md`) on the scripted Web API.

use gatepost_channel::contract::{self, HOSTILE, Made, Next, Platform, Press, Sent, Typed, WAIT};
use gatepost_channel::{
    Card, CardForm, Channel, Decision, Dialog, DialogRef, Failure, Health, MessageRef, Note, Opener, Posted,
    RawRequest, UtcMillis, Wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::SlackChannel;
use crate::card_tests::assert_fits;
use crate::fake_api::{Scripted, at, key, posted, refuses, says, with_api};
use crate::fixture::{self, NOW, SECRET, interaction, signed_at};
use crate::modal_tests;

struct Slack(SlackChannel);

fn slack() -> Slack {
    Slack(fixture::channel("http://127.0.0.1:1"))
}

fn block_on<T>(act: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(act)
}

fn scripted(next: Next, gone: &str) -> Scripted {
    match next {
        Next::Done => posted(),
        Next::RateLimited => Scripted {
            headers: vec![("retry-after", WAIT.as_secs().to_string())],
            ..says(429, "canary")
        },
        Next::ServerError => says(503, "upstream canary"),
        Next::ContentRefused => says(
            200,
            json!({ "ok": false, "error": "invalid_blocks", "errors": ["canary"] }),
        ),
        Next::NotThere => refuses(gone),
        Next::Nothing => says(200, json!({ "ok": true })),
        Next::HangUp => panic!("not an answer"),
    }
}

/// Plays the script; a connection that is closed without an answer is all of it.
fn play<T>(script: &[Next], gone: &str, act: impl AsyncFnOnce(SlackChannel) -> T) -> (T, Vec<Sent>) {
    block_on(async {
        if script == [Next::HangUp] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let channel = fixture::channel(&format!("http://{}", listener.local_addr().unwrap()));
            let server = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await.unwrap();
                drop(stream);
                let _second = listener.accept().await;
                panic!("asked again");
            };
            return tokio::select! { () = server => unreachable!(), out = act(channel) => (out, vec![]) };
        }
        let answers = script.iter().map(|next| scripted(*next, gone)).collect();
        let (out, seen) = with_api(answers, act).await;
        let sent = |body: Value| Sent {
            bytes: body.to_string().len(),
            card: body,
        };
        (out, seen.into_iter().map(|call| sent(call.body)).collect())
    })
}

/// The same, where what is done has a view.
fn play_view<T>(script: &[Next], act: impl AsyncFnOnce(SlackChannel) -> T, gone: &str) -> (T, Vec<Sent>) {
    if script == [Next::Done] {
        let opened = says(200, json!({ "ok": true, "view": { "id": "V0DEMO0001" } }));
        return block_on(async {
            let (out, seen) = with_api(vec![opened], act).await;
            let sent = seen.into_iter().map(|call| Sent {
                bytes: call.body.to_string().len(),
                card: call.body,
            });
            (out, sent.collect())
        });
    }
    play(script, gone, act)
}

/// What Slack makes of the text of a field on its way to a person and back.
fn as_slack_gives_it(text: &str) -> String {
    let read = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    read.replace('🚀', ":rocket:").replace('✅', ":white_check_mark:")
}

/// The values of a modal's fields once somebody filled it in; nothing where it cannot be filled in so.
fn filled_in(view: &Value, decision: Decision, typed: Typed<'_>) -> Option<Value> {
    let mut values = json!({});
    let inputs = view["blocks"].as_array()?.iter();
    for block in inputs.filter(|block| block["type"] == "input") {
        let element = &block["element"];
        let (id, action) = (block["block_id"].as_str()?, element["action_id"].as_str()?);
        values[id][action] = match (element["type"].as_str()?, id) {
            ("radio_buttons", _) => {
                let options = element["options"].as_array()?;
                let chosen = options
                    .iter()
                    .find(|option| option["value"] == decision.as_str())?;
                json!({ "type": "radio_buttons", "selected_option": chosen })
            }
            (kind, "args") => {
                let given = as_slack_gives_it(element["initial_value"].as_str()?);
                let typed = match typed {
                    Typed::Nothing | Typed::AsGiven => given.as_str(),
                    Typed::Text(typed) => typed,
                };
                json!({ "type": kind, "value": Some(typed).filter(|typed| !typed.is_empty()) })
            }
            (kind, _) => json!({ "type": kind, "value": "because" }),
        };
    }
    (typed == Typed::Nothing || values.get("args").is_some()).then_some(values)
}

impl Platform for Slack {
    fn channel(&self) -> &dyn Channel {
        &self.0
    }

    fn now(&self) -> UtcMillis {
        UtcMillis::from_secs(NOW)
    }

    fn request(&self, press: &Press, made: Made) -> RawRequest {
        let mut payload = fixture::press();
        payload["user"]["id"] = json!(press.user);
        payload["container"] =
            json!({ "type": "message", "message_ts": press.at.message, "channel_id": press.at.chat });
        payload["actions"][0]["action_id"] = json!(press.decision.as_str());
        payload["actions"][0]["value"] = json!(press.value);
        payload["actions"][0]["action_ts"] = json!(format!("1795953600.{:06}", press.serial));
        if made == Made::OtherApp {
            payload["api_app_id"] = json!("A0OTHER001");
        }
        let mut request = interaction(&payload);
        let form = "application/x-www-form-urlencoded";
        match made {
            Made::Authentic | Made::OtherApp => request,
            Made::Unsigned => {
                request.headers.truncate(1);
                request
            }
            Made::OtherSecret => fixture::signed("another secret", form, &request.body),
            Made::At(offset) => signed_at(NOW + offset, SECRET, form, &request.body),
        }
    }

    fn words(&self, words: &str, user: &str, serial: u32, made: Made) -> Option<RawRequest> {
        let app = if made == Made::OtherApp {
            "A0OTHER001"
        } else {
            "A0DEMO0001"
        };
        let trigger = format!("1.{serial}.abc");
        let fields = [
            ("token", "legacy"),
            ("team_id", "T0DEMO0001"),
            ("channel_id", "D0AAAA1111"),
            ("user_id", user),
            ("command", "/gatepost"),
            ("text", words),
            ("api_app_id", app),
            ("response_url", "https://hooks.slack.com/commands/T0/1/canary"),
            ("trigger_id", &trigger),
        ];
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let form = "application/x-www-form-urlencoded";
        let (at, secret) = match made {
            Made::At(offset) => (NOW + offset, SECRET),
            Made::OtherSecret => (NOW, "another secret"),
            Made::Authentic | Made::OtherApp | Made::Unsigned => (NOW, SECRET),
        };
        let mut request = signed_at(at, secret, form, body.as_bytes());
        if made == Made::Unsigned {
            request.headers.truncate(1);
        }
        Some(request)
    }

    fn post(&self, script: &[Next], card: &Card) -> (Posted, Vec<Sent>) {
        play(script, "channel_not_found", async |channel| {
            channel.post(card, &key()).await
        })
    }

    fn edit(&self, script: &[Next], card: &Card) -> (Result<CardForm, Failure>, Vec<Sent>) {
        let at: MessageRef = at();
        play(script, "message_not_found", async |channel| {
            channel.edit(&at, card).await
        })
    }

    fn health_when_down(&self) -> Health {
        block_on(self.0.check())
    }

    fn assert_ours(&self, sent: &Sent) {
        assert_fits(&sent.card);
        assert_eq!(
            (&sent.card["parse"], &sent.card["link_names"]),
            (&json!("none"), &json!(false))
        );
    }

    fn buttons(&self, sent: &Sent) -> Vec<(Decision, String)> {
        let blocks = sent.card["blocks"].as_array().into_iter().flatten();
        let elements = blocks.flat_map(|block| block["elements"].as_array().into_iter().flatten());
        let decides = |element: &Value| match element["action_id"].as_str()? {
            "approve" | "approve_all" => Some((Decision::Approve, element["value"].as_str()?.to_owned())),
            "reject" | "reject_all" => Some((Decision::Reject, element["value"].as_str()?.to_owned())),
            _ => None,
        };
        elements.filter_map(decides).collect()
    }

    fn asks(&self, press: &Press, wants: Wants, made: Made) -> Option<RawRequest> {
        let mut payload = fixture::press();
        payload["user"]["id"] = json!(press.user);
        payload["container"] =
            json!({ "type": "message", "message_ts": press.at.message, "channel_id": press.at.chat });
        payload["trigger_id"] = json!("7.8.leave");
        payload["actions"][0]["value"] = json!(press.value);
        payload["actions"][0]["action_id"] = match wants {
            Wants::Everything => json!("show_everything"),
            Wants::Reason(Decision::Reject) => json!("reject_with_reason"),
            Wants::Reason(Decision::Approve) => return None,
        };
        let mut request = interaction(&payload);
        match made {
            Made::OtherSecret => {
                let form = "application/x-www-form-urlencoded";
                request = fixture::signed("another secret", form, &request.body);
            }
            Made::Unsigned => request.headers.truncate(1),
            Made::Authentic | Made::At(_) | Made::OtherApp => {}
        }
        Some(request)
    }

    fn open(&self, script: &[Next], dialog: &Dialog) -> (Result<DialogRef, Failure>, Vec<Sent>) {
        let act = async |channel: SlackChannel| {
            let dialogs = channel.dialogs().expect("Slack has modals");
            dialogs.open(&Opener::new("7.8.leave"), dialog).await
        };
        play_view(script, act, "expired_trigger_id")
    }

    fn change(&self, script: &[Next], dialog: &Dialog) -> (Result<(), Failure>, Vec<Sent>) {
        let act = async |channel: SlackChannel| {
            let dialogs = channel.dialogs().expect("Slack has modals");
            dialogs.change(&DialogRef("V0DEMO0001".to_owned()), dialog).await
        };
        play_view(script, act, "not_found")
    }

    fn assert_view(&self, sent: &Sent) {
        modal_tests::assert_fits(&sent.card["view"]);
        assert!(sent.bytes <= 250_000, "{}", sent.bytes);
    }

    fn literally(&self, sent: &Sent) -> String {
        modal_tests::literally(&sent.card["view"])
    }

    fn answer(&self, sent: &Sent, decision: Decision, typed: Typed<'_>, user: &str) -> Option<RawRequest> {
        let mut view = sent.card["view"].clone();
        if view["submit"].is_null() {
            return None;
        }
        view["id"] = json!("V0DEMO0001");
        view["state"] = json!({ "values": filled_in(&view, decision, typed)? });
        Some(interaction(&json!({
            "type": "view_submission",
            "team": { "id": "T0DEMO0001" },
            "user": { "id": user, "team_id": "T0DEMO0001" },
            "api_app_id": "A0DEMO0001",
            "trigger_id": "9.9.next",
            "view": view,
        })))
    }

    fn person(&self) -> &'static str {
        "U024BE7LH"
    }

    fn reply(&self, script: &[Next], note: &Note) -> (Posted, Vec<Sent>) {
        let at: MessageRef = at();
        play(script, "message_not_found", async |channel| {
            let threads = channel.threads().expect("Slack has threads");
            threads.reply(&at, note, &key()).await
        })
    }

    fn assert_note(&self, sent: &Sent) {
        let section = &sent.card["blocks"][0]["elements"][0];
        assert_eq!(sent.card["blocks"].as_array().map(Vec::len), Some(1));
        assert_eq!(section["type"], "rich_text_section");
        for part in section["elements"].as_array().unwrap() {
            let keys: Vec<_> = part.as_object().unwrap().keys().map(String::as_str).collect();
            match part["type"].as_str().unwrap() {
                "text" => {
                    assert_eq!(keys, ["text", "type"]);
                    assert!((1..=3_000).contains(&part["text"].as_str().unwrap().encode_utf16().count()));
                }
                "user" => assert_eq!(part["user_id"], self.person()),
                other => panic!("{other}"),
            }
        }
        assert_eq!(
            (
                &sent.card["thread_ts"],
                &sent.card["parse"],
                &sent.card["link_names"],
                &sent.card["mrkdwn"]
            ),
            (&json!(at().message), &json!("none"), &json!(false), &json!(false))
        );
        assert_eq!(sent.card["reply_broadcast"], true);
    }
}

#[test]
fn refusals() {
    contract::check_refusals(&slack());
}

#[test]
fn clicks() {
    contract::check_clicks(&slack());
}

#[test]
fn commands() {
    contract::check_commands(&slack());
}

#[test]
fn answers() {
    contract::check_answers(&slack());
}

#[test]
fn outcomes() {
    contract::check_outcomes(&slack());
}

#[test]
fn fallback() {
    contract::check_fallback(&slack());
}

#[test]
fn cards() {
    contract::check_cards(&slack());
}

#[test]
fn sets() {
    contract::check_sets(&slack());
}

#[test]
fn threads() {
    contract::check_threads(&slack());
}

#[test]
fn views() {
    contract::check_views(&slack());
    contract::check_view_hostile(&slack());
}

#[test]
fn silence() {
    contract::check_silence(&slack());
}

#[test]
fn what_it_says_of_itself() {
    let slack = slack();
    contract::check_channel(slack.channel(), Some(&slack.health_when_down()));
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
        contract::check_text(&slack(), &pieces.concat());
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
        contract::check_view_text(&slack(), &pieces.concat());
    }
}
