//! Reading slash commands, and answering them.

use gatepost_channel::{ReplyTone, Tone};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::callback::MediaType;
use crate::fixture::{self, SECRET, signed, signed_at, verify};
use gatepost_channel::{RefusalKind, UtcMillis, Verifier as _, Webhook as _};

const FORM: &str = "application/x-www-form-urlencoded";

/// A command as Slack sends it, with these fields changed; an empty value takes the field away.
fn form(changed: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("token", "legacy"),
        ("team_id", "T0DEMO0001"),
        ("team_domain", "example"),
        ("channel_id", "C0APPROVE1"),
        ("channel_name", "approvals"),
        ("user_id", "U0AAAA1111"),
        ("user_name", "mira"),
        ("command", "/gatepost"),
        ("text", "approve K7QF-2M9X looks fine"),
        ("api_app_id", "A0DEMO0001"),
        ("is_enterprise_install", "false"),
        (
            "response_url",
            "https://hooks.slack.com/commands/T0/1/canary-secret",
        ),
        ("trigger_id", "1.2.abc"),
    ];
    for (key, value) in changed {
        fields.retain(|(known, _)| known != key);
        if !value.is_empty() {
            fields.push((key, value));
        }
    }
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    form.finish()
}

fn judged(form: &str) -> Result<Inbound, Refusal> {
    verify(&signed(SECRET, FORM, form.as_bytes()))
}

fn command(form: &str) -> Command {
    match judged(form) {
        Ok(Inbound::Command(command)) => command,
        other => panic!("not a command: {other:?}"),
    }
}

#[test]
fn a_command_is_read_from_slacks_own_fields() {
    let read = command(&form(&[]));
    assert_eq!(
        Command {
            replay_key: String::new(),
            ..read.clone()
        },
        Command {
            app: Some("A0DEMO0001".into()),
            place: Place::Private {
                chat: "C0APPROVE1".into()
            },
            user: PlatformUser {
                ids: vec!["U0AAAA1111".into()],
                tenant: Some("T0DEMO0001".into()),
                from_elsewhere: false,
            },
            called: "/gatepost".into(),
            words: "approve K7QF-2M9X looks fine".into(),
            said_at: None,
            answered: Answered::There,
            replay_key: String::new(),
        }
    );
    assert!(
        !format!("{read:?}").contains("canary"),
        "the response_url is a secret"
    );
}

#[test]
fn a_repeat_has_the_key_of_the_first_and_the_next_command_another() {
    let key = |changed: &[(&str, &str)]| command(&form(changed)).replay_key;
    assert_eq!(key(&[]), key(&[]));
    for (field, value) in [
        ("trigger_id", "1.2.abd"),
        ("user_id", "U0BBBB2222"),
        ("text", "reject K7QF-2M9X no"),
        ("team_id", "T0OTHER001"),
    ] {
        assert_ne!(key(&[]), key(&[(field, value)]), "{field}");
    }
    // Without a trigger the signed second tells two commands apart.
    let at = |second: i64| {
        let form = form(&[("trigger_id", "")]);
        let request = signed_at(second, SECRET, FORM, form.as_bytes());
        match fixture::verifier(&[SECRET], AppId::Named).verify(&request, UtcMillis::from_secs(fixture::NOW))
        {
            Ok(Inbound::Command(command)) => command.replay_key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(at(fixture::NOW), at(fixture::NOW));
    assert_ne!(at(fixture::NOW), at(fixture::NOW - 1));
}

#[test]
fn what_is_missing_makes_no_command_and_what_stands_twice_is_refused() {
    for field in ["user_id", "channel_id", "api_app_id"] {
        assert!(
            matches!(
                judged(&form(&[(field, "")])),
                Ok(Inbound::Ignored {
                    why: "command_incomplete",
                    ..
                })
            ),
            "{field}"
        );
    }
    for twice in [
        "user_id=U0BBBB2222",
        "text=reject",
        "api_app_id=A0DEMO0001",
        "trigger_id=9",
    ] {
        let judged = judged(&format!("{}&{twice}", form(&[])));
        assert_eq!(judged, Err(Refusal::unreadable("field_duplicated")), "{twice}");
    }
    for odd in ["U 1", "U\u{202e}1", &"U".repeat(256)] {
        let judged = judged(&form(&[("user_id", odd)]));
        assert_eq!(judged, Err(Refusal::unreadable("id_malformed")), "{odd}");
    }
}

#[test]
fn a_probe_is_no_command_and_a_command_beside_a_probe_needs_its_signature() {
    let both = format!("ssl_check=1&{}", form(&[]));
    let unsigned = gatepost_channel::RawRequest {
        headers: vec![("Content-Type".into(), FORM.into())],
        body: both.clone().into_bytes(),
    };
    assert_eq!(verify(&unsigned).unwrap_err().kind, RefusalKind::Inauthentic);
    assert!(
        matches!(judged(&both), Ok(Inbound::Handshake(_))),
        "signed, it is still a probe and dispatches nothing"
    );
    assert!(matches!(
        crate::callback::media_type(&unsigned),
        Some(MediaType::Form)
    ));
}

#[test]
fn another_app_is_named_and_without_a_configured_one_the_secret_proves_it() {
    let foreign = command(&form(&[("api_app_id", "A0OTHER0001")]));
    assert_eq!(foreign.app.as_deref(), Some("A0OTHER0001"), "the core refuses it");
    let request = signed(SECRET, FORM, form(&[("api_app_id", "")]).as_bytes());
    let proven = fixture::verifier(&[SECRET], AppId::Proven("fingerprint".into()));
    match proven.verify(&request, UtcMillis::from_secs(fixture::NOW)) {
        Ok(Inbound::Command(command)) => assert_eq!(command.app.as_deref(), Some("fingerprint")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn words_are_trimmed_unescaped_and_capped() {
    let words = |text: &str| command(&form(&[("text", text)])).words;
    assert_eq!(words("  show  x \n"), "show  x");
    assert_eq!(
        words("reject x a &lt; b &amp;amp; c &gt; d"),
        "reject x a < b &amp; c > d"
    );
    assert_eq!(words(&"x".repeat(9_000)).len(), LONGEST_WORDS);
    assert_eq!(command(&form(&[("text", "")])).words, "");
    for odd in ["/gate post", "gatepost", "/\u{202e}", "/<!channel>"] {
        assert_eq!(command(&form(&[("command", odd)])).called, "/gatepost", "{odd}");
    }
}

fn reply(card: Option<gatepost_channel::Card>) -> Reply {
    Reply {
        refused: false,
        field: gatepost_channel::Field::Answer,
        tone: ReplyTone::Info,
        text: Inert::new("<!channel> *two*\nlines :tada:"),
        card,
    }
}

#[test]
fn the_answer_is_for_the_person_alone_and_reads_no_markup() {
    let channel = fixture::channel("http://127.0.0.1:1");
    let command = command(&form(&[]));
    let plain = channel.answer_command(&command, &reply(None));
    assert_eq!(plain.status, 200);
    let plain: Value = serde_json::from_slice(&plain.body).unwrap();
    assert_eq!(
        plain,
        json!({
            "response_type": "ephemeral",
            "text": "&lt;!channel&gt; *two*\nlines :tada:",
            "blocks": [{
                "type": "section",
                "text": { "type": "plain_text", "text": "<!channel> *two*\nlines :tada:", "emoji": false },
            }],
        })
    );
    let card = fixture::card(
        Tone::Pending,
        "{\"amount\": 51000}",
        gatepost_channel::Actions::None,
    );
    let shown = answer(&reply(Some(card)));
    assert_eq!(shown["response_type"], "ephemeral");
    let text = shown.to_string();
    assert!(text.contains("51000") && !text.contains("action_id"), "{text}");
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in any::<String>(), name in ".+") {
        let form = form(&[("text", &text), ("command", &name)]);
        match judged(&form) {
            Ok(Inbound::Command(command)) => {
                prop_assert!(command.words.chars().count() <= LONGEST_WORDS);
                prop_assert!(command.called.is_ascii() && command.called.starts_with('/'));
            }
            other => prop_assert!(matches!(other, Ok(Inbound::Ignored { .. })), "{other:?}"),
        }
    }
}

mod over_a_socket {
    use std::sync::atomic::Ordering;

    use serde_json::{Value, json};

    use crate::fake_socket::{APP, still, with_slack};

    fn envelope(id: &str, room: Option<bool>) -> Value {
        let mut envelope = json!({
            "type": "slash_commands",
            "envelope_id": id,
            "payload": {
                "command": "/gatepost", "text": "pending", "user_id": "U0AAAA1111", "team_id": "T0DEMO0001",
                "channel_id": "D0AAAA1111", "channel_name": "directmessage", "api_app_id": APP,
                "response_url": "https://hooks.slack.com/commands/T0/1/canary", "trigger_id": "1.2.abc",
                "is_enterprise_install": false,
            },
        });
        if let Some(room) = room {
            envelope["accepts_response_payload"] = json!(room);
        }
        envelope
    }

    #[tokio::test(start_paused = true)]
    async fn the_acknowledgement_holds_the_answer_where_it_may() {
        let _still = still();
        with_slack(vec![], async |mut world| {
            let mut link = world.greeted(1).await;
            link.send(&envelope("c-1", Some(true))).await;
            let spoken = link.next().await.unwrap();
            assert_eq!(spoken["envelope_id"], "c-1");
            assert_eq!(spoken["payload"]["response_type"], "ephemeral");
            assert_eq!(spoken["payload"]["blocks"][0]["text"]["text"], "heard pending");
            for room in [Some(false), None] {
                link.send(&envelope("c-2", room)).await;
                assert_eq!(link.acknowledged().await, "c-2", "the answer follows apart");
            }
            // What could not be stored is not acknowledged, so that Slack shows the command as failed.
            world.desk.stores.store(false, Ordering::SeqCst);
            link.send(&envelope("c-3", Some(true))).await;
            link.send(&json!({ "type": "events_api", "envelope_id": "behind" }))
                .await;
            assert_eq!(link.acknowledged().await, "behind");
            world
                .until(|world| world.desk.commands.lock().unwrap().len() == 4)
                .await;
            let commands = world.desk.commands.lock().unwrap().clone();
            assert!(
                commands
                    .iter()
                    .all(|command| command.replay_key == commands[0].replay_key)
            );
            assert!(
                commands
                    .iter()
                    .all(|command| !format!("{command:?}").contains("canary"))
            );
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_of_another_app_or_before_the_greeting_is_refused() {
        let _still = still();
        with_slack(vec![], async |mut world| {
            let mut link = world.greeted(1).await;
            let mut foreign = envelope("f-1", Some(true));
            foreign["payload"]["api_app_id"] = json!("A0OTHER0001");
            link.send(&foreign).await;
            let mut nameless = envelope("f-2", Some(true));
            nameless["payload"].as_object_mut().unwrap().remove("api_app_id");
            link.send(&nameless).await;
            link.send(&json!({ "type": "slash_commands", "envelope_id": "f-3", "payload": [1] }))
                .await;
            world
                .until(|world| world.desk.refused.lock().unwrap().len() == 3)
                .await;
            let mut early = world.link().await;
            early.send(&envelope("early", Some(true))).await;
            world
                .until(|world| world.desk.refused.lock().unwrap().len() == 4)
                .await;
            assert_eq!(
                *world.desk.refused.lock().unwrap(),
                [
                    "app_id_mismatch",
                    "app_id_mismatch",
                    "app_id_mismatch",
                    "before_greeting"
                ]
            );
            assert!(world.desk.commands.lock().unwrap().is_empty());
        })
        .await;
    }
}
