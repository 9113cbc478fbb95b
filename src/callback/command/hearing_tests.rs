//! Which words are heard at all, how often, and how they are answered apart.

use std::time::Duration;

use serde_json::json;

use super::fixture::{Mouth, votes};
use super::*;
use crate::clock::UtcMillis;
use crate::http::fixture::START;

#[tokio::test]
async fn only_fresh_words_to_the_bot_in_a_place_of_ours_are_heard() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "pay", json!({})).await;
    let approve = || mouth.command("dana", &format!("approve {id}"));
    let group = |chat: &str, mentioned: &str| Command {
        place: Place::Group {
            chat: chat.into(),
            message: "om_1".into(),
            mentioned: vec![mentioned.into()],
        },
        ..approve()
    };
    let heard = mouth.obey(&group("elsewhere", "bot")).await.reply;
    assert_eq!(heard.text.as_str(), Mouth::phrase("unknown_chat"));
    mouth.event("callback.refused", "unknown_chat").await;
    let overheard = mouth.obey(&group("chat", "somebody")).await;
    assert!(overheard.stored && overheard.reply.text.as_str().is_empty());
    assert!(
        !mouth.obey(&group("chat", "unknown")).await.stored,
        "the platform brings it again"
    );
    let foreign = Command {
        app: Some("another".into()),
        ..approve()
    };
    assert_eq!(
        mouth.obey(&foreign).await.reply.text.as_str(),
        Mouth::phrase("unknown_chat")
    );
    mouth.event("callback.refused", "other_app").await;
    let minutes = |minutes: i64| UtcMillis(START.0 + minutes * 60_000 + minutes.signum());
    for at in [minutes(-5), minutes(5), UtcMillis(i64::MIN), UtcMillis(i64::MAX)] {
        let stale = Command {
            said_at: Some(at),
            ..approve()
        };
        let said = mouth.obey(&stale).await.reply;
        assert!(
            said.text.as_str().starts_with("This message reached me too late"),
            "{said:?}"
        );
    }
    mouth.event("callback.refused", "stale_message").await;
    assert_eq!(votes(&mouth, &id).await, 0);
    // From a chat that is nowhere configured, privately: the app is of one organisation.
    let private = Command {
        place: Place::Private {
            chat: "D0ELSEWHERE".into(),
        },
        said_at: Some(UtcMillis(START.0 - 299_000)),
        ..approve()
    };
    assert_eq!(mouth.obey(&private).await.reply.tone, ReplyTone::Success);
    let grouped = mouth.ask("agent", "pay", json!({"b": 2})).await;
    let group = Command {
        words: format!("approve {grouped}"),
        ..group("chat", "bot")
    };
    assert_eq!(mouth.obey(&group).await.reply.tone, ReplyTone::Success);
}

#[tokio::test]
async fn one_person_is_not_heard_without_end_and_others_are() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "pay", json!({})).await;
    for _ in 0..pace::MOST {
        assert!(mouth.say("dana", "pending").await.contains(&id));
    }
    for _ in 0..3 {
        let said = mouth.say("dana", &format!("approve {id}")).await;
        assert!(said.starts_with("That is too much at once."), "{said}");
    }
    assert_eq!(votes(&mouth, &id).await, 0);
    assert!(mouth.say("mira", "pending").await.contains(&id));
    mouth.bench.clock.advance(Duration::from_mins(1));
    assert!(
        mouth
            .say("dana", &format!("approve {id}"))
            .await
            .starts_with(&Mouth::phrase("settled_approve"))
    );
}

#[tokio::test]
async fn apart_each_command_is_answered_once_and_to_the_person_alone() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "pay", json!({"amount": 7})).await;
    mouth.bench.deliver().await;
    let apart = |words: &str| Command {
        answered: Answered::Apart,
        ..mouth.command("dana", words)
    };
    let told = || std::mem::take(&mut *mouth.bench.whispers.lock().unwrap());
    let pending = apart("pending");
    for _ in 0..2 {
        let answer = mouth.obey(&pending).await;
        assert!(
            answer.stored && answer.reply.text.as_str().is_empty(),
            "nothing is said there"
        );
        mouth.bench.deliver().await;
    }
    let whispers = told();
    assert_eq!(whispers.len(), 1, "a repeat is not answered again");
    let (to, reply, _) = &whispers[0];
    assert_eq!(
        (to.user.as_str(), to.chat.as_str(), &to.message),
        ("u-dana", "chat", &None)
    );
    assert!(reply.text.as_str().contains(&id));

    mouth.obey(&apart(&format!("show {id}"))).await;
    mouth.bench.deliver().await;
    let card = told().remove(0).1.card.unwrap();
    assert!(card.arguments.as_str().contains('7'));

    let approve = Command {
        place: Place::Group {
            chat: "chat".into(),
            message: "om_1".into(),
            mentioned: vec!["bot".into()],
        },
        ..apart(&format!("approve {id}"))
    };
    mouth.obey(&approve).await;
    mouth.bench.deliver().await;
    mouth.obey(&approve).await;
    mouth.bench.deliver().await;
    let whispers = told();
    assert_eq!(votes(&mouth, &id).await, 1);
    assert_eq!(whispers[0].0.message.as_deref(), Some("om_1"));
    assert!(
        whispers[0]
            .1
            .text
            .as_str()
            .starts_with(&Mouth::phrase("settled_approve"))
    );
    // Whether the first answer went out is not known when words come again, so the same answer goes out under the same key, which the
    // platform shows once.
    assert!(
        whispers
            .iter()
            .all(|(_, reply, key)| reply == &whispers[0].1 && key == &whispers[0].2)
    );

    for _ in 0..pace::MOST + 3 {
        mouth.obey(&apart("help")).await;
    }
    mouth.bench.deliver().await;
    let too_many = told()
        .into_iter()
        .filter(|(_, reply, _)| reply.text.as_str().starts_with("That is too much"));
    assert_eq!(too_many.count(), 1, "a flood is told off once");
}
