//! Answering one person.

use gatepost_channel::{Card, Tone};
use serde_json::json;

use super::*;
use crate::fake::{Answer, Fake, coded, ok, refusal};
use crate::fixture::card;

fn reply(card: Option<Card>) -> Reply {
    Reply {
        refused: false,
        field: gatepost_channel::Field::Answer,
        tone: ReplyTone::Info,
        text: Inert::new("2 requests wait\n<at id=all></at> **x**"),
        card,
    }
}

fn listener(message: Option<&str>) -> Listener {
    Listener {
        user: "ou_demo_mira".into(),
        chat: "oc_vector_chat_1".into(),
        message: message.map(str::to_owned),
    }
}

async fn whispered(
    script: impl IntoIterator<Item = Answer>,
    message: Option<&str>,
    reply: &Reply,
) -> (Result<(), Failure>, Fake) {
    let fake = Fake::start(script).await;
    let key = PostKey("ob_0123456789abcdef0123456789abcdef".into());
    let aloud = Inert::new("I could not write to you");
    let told = fake
        .channel()
        .whisper(&listener(message), reply, &aloud, &key)
        .await;
    (told, fake)
}

fn sent() -> Answer {
    ok(&json!({"message_id": "om_private_1"}))
}

#[tokio::test]
async fn the_person_is_written_to_in_their_own_conversation_with_the_bot() {
    for message in [None, Some("om_said_0001")] {
        let (told, fake) = whispered([sent()], message, &reply(None)).await;
        assert_eq!(told, Ok(()));
        let calls = fake.calls();
        let call = &calls[0];
        assert_eq!((calls.len(), call.query.as_str()), (1, "receive_id_type=open_id"));
        assert_eq!(call.body["receive_id"], "ou_demo_mira");
        assert_eq!(call.body["uuid"], "ob_0123456789abcdef0123456789abcdef");
        let card = call.card();
        assert_eq!(
            card["config"]["summary"]["content"], "Gatepost",
            "a lock screen shows nothing of it"
        );
        assert_eq!(
            card["body"]["elements"],
            json!([{ "tag": "div", "text": {
                "tag": "plain_text", "content": "2 requests wait\n<at id=all></at> **x**" } }])
        );
    }
}

#[tokio::test]
async fn a_card_is_shown_without_buttons_and_a_plainer_one_when_its_content_is_refused() {
    let shown = Card {
        actions: gatepost_channel::Actions::None,
        ..card(Tone::Pending, "{\"amount\": 51000}", false)
    };
    let (told, fake) = whispered([refusal(400, 230_028), sent()], None, &reply(Some(shown))).await;
    assert_eq!(told, Ok(()));
    let calls = fake.calls();
    assert!(calls[0].card().to_string().contains("51000"));
    assert!(!calls[1].card().to_string().contains("51000"));
    assert!(
        calls
            .iter()
            .all(|call| !call.card().to_string().contains("behaviors"))
    );
    assert!(calls.iter().all(|call| call.query == "receive_id_type=open_id"));
}

#[tokio::test]
async fn a_group_hears_own_words_only_when_the_person_cannot_be_reached() {
    let (told, fake) = whispered(
        [refusal(400, 230_013), sent()],
        Some("om_said_0001"),
        &reply(None),
    )
    .await;
    assert_eq!(told, Ok(()));
    let call = &fake.calls()[1];
    assert_eq!(call.path, "/open-apis/im/v1/messages/om_said_0001/reply");
    let said = call.card().to_string();
    assert!(
        said.contains("I could not write to you") && !said.contains("requests wait"),
        "{said}"
    );
    // In their own conversation there is nobody else to tell.
    let (told, _) = whispered([refusal(400, 230_013)], None, &reply(None)).await;
    assert!(matches!(told, Err(Failure::Target { .. })), "{told:?}");
    // What may come right is tried again, and nothing is said aloud.
    let (told, fake) = whispered([refusal(400, 230_020)], Some("om_said_0001"), &reply(None)).await;
    assert!(matches!(told, Err(Failure::Retry { .. })), "{told:?}");
    assert_eq!(fake.calls().len(), 1);
}

#[tokio::test]
async fn the_bot_knows_itself_by_the_platforms_word_and_asks_once() {
    let me = coded(
        200,
        &json!({"code": 0, "msg": "ok", "bot": {"activate_status": 2, "open_id": "ou_bot"}}),
    );
    let fake = Fake::start([coded(200, &json!({"code": 0, "bot": {}})), me]).await;
    let channel = fake.channel();
    let is_me = async |ids: &[&str]| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        channel.is_me(&ids).await
    };
    assert!(
        matches!(is_me(&["ou_bot"]).await, Err(Failure::Retry { .. })),
        "not told, not known"
    );
    assert_eq!(is_me(&["ou_noor", "ou_bot"]).await, Ok(true));
    assert_eq!(is_me(&["ou_noor"]).await, Ok(false));
    assert_eq!(is_me(&[]).await, Ok(false));
    assert_eq!(fake.calls().len(), 2);
}
