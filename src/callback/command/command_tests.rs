//! Words to the bot over a real store: who is shown what, and which answers count.

use std::time::Duration;

use serde_json::json;

use super::fixture::{Mouth, votes};
use super::*;

#[tokio::test]
async fn pending_lists_what_waits_for_the_person_and_nothing_else() {
    let mouth = Mouth::new().await;
    assert_eq!(mouth.say("dana", "pending").await, "Nothing waits for you.");
    let pay = mouth.ask("agent", "pay", json!({"amount": 60_000})).await;
    let staged = mouth.ask("agent", "staged__x", json!({})).await;
    let foreign = mouth.ask("stranger", "nowhere__x", json!({})).await;
    let dana = mouth.say("dana", "pending").await;
    assert!(dana.starts_with("Waiting for you: 2\n"), "{dana}");
    assert!(
        dana.contains(&pay) && dana.contains(&staged) && !dana.contains(&foreign),
        "{dana}"
    );
    let code = mouth.code(&pay).await;
    assert!(
        dana.contains(&format!(
            "{code} · pay · agent · decide before 2026-01-31 12:02:00 UTC · {pay}"
        )),
        "{dana}"
    );
    // Mira is asked in the second stage, Ines in none, Gus in another organisation.
    let mira = mouth.say("mira", "pending").await;
    assert!(mira.contains(&pay) && !mira.contains(&staged), "{mira}");
    assert_eq!(mouth.say("ines", "pending").await, "Nothing waits for you.");
    assert_eq!(
        mouth.say("gus", "pending").await,
        Mouth::phrase("unknown_operator")
    );
    // What was answered, decided, or is over waits no more.
    let two = mouth.ask("agent", "two__x", json!({})).await;
    mouth.say("dana", &format!("approve {two}")).await;
    assert_eq!(votes(&mouth, &two).await, 1);
    assert!(!mouth.say("dana", "pending").await.contains(&two));
    assert!(mouth.say("mira", "pending").await.contains(&two));
    mouth.say("mira", &format!("reject {pay} too much")).await;
    assert!(!mouth.say("dana", "pending").await.contains(&pay));
    mouth.bench.clock.advance(Duration::from_mins(2));
    assert_eq!(mouth.say("dana", "pending").await, "Nothing waits for you.");
}

#[tokio::test]
async fn a_long_list_is_paged_and_says_how_many_more() {
    let mouth = Mouth::new().await;
    let mut ids = Vec::new();
    for amount in 0..23 {
        ids.push(mouth.ask("agent", "pay", json!({"amount": amount})).await);
    }
    ids.reverse();
    for (words, shown, more) in [
        ("pending", 0..10, Some("13 more: /gatepost pending 2")),
        ("pending 2", 10..20, Some("3 more: /gatepost pending 3")),
        ("pending 3", 20..23, None),
        (
            "pending 99999999999999999999",
            0..10,
            Some("13 more: /gatepost pending 2"),
        ),
        ("pending 18446744073709551615", 20..23, None),
    ] {
        let said = mouth.say("dana", words).await;
        let listed: Vec<_> = ids.iter().filter(|id| said.contains(*id)).collect();
        assert_eq!(listed, ids[shown].iter().collect::<Vec<_>>(), "{words}");
        assert_eq!(
            said.lines().last().filter(|line| line.contains("more")),
            more,
            "{words}"
        );
        assert!(
            said.chars().count() < 2_500,
            "it fits one message: {}",
            said.len()
        );
    }
}

#[tokio::test]
async fn show_gives_the_redacted_request_to_who_may_decide_it_and_is_put_on_record() {
    let mouth = Mouth::new().await;
    let id = mouth
        .ask(
            "agent",
            "card__charge",
            json!({"card": {"number": "4111-canary"}, "note": "lunch"}),
        )
        .await;
    let code = mouth.code(&id).await;
    for name in [
        id.clone(),
        id[..15].to_owned(),
        id[3..].to_owned(),
        code.to_lowercase(),
    ] {
        let reply = mouth.hear("dana", &format!("show {name}")).await;
        let card = reply.card.unwrap();
        assert_eq!(card.request_id, id);
        assert_eq!(
            card.actions,
            gatepost_channel::Actions::None,
            "words are answered by words"
        );
        let arguments = card.arguments.as_str();
        assert!(
            arguments.contains("lunch") && !arguments.contains("canary"),
            "{arguments}"
        );
        let how = &card.facts[0];
        assert_eq!(how.label, "To answer");
        assert_eq!(
            how.value.as_str(),
            format!("/gatepost approve {code}   or   /gatepost reject {code} reason")
        );
    }
    let viewed = mouth
        .until("confirmation.viewed", |event| {
            event["confirmation_id"] == json!(id)
        })
        .await;
    assert_eq!(
        (&viewed["channel"], &viewed["data"]["surface"]),
        (&json!("chat"), &json!("command"))
    );

    let refused = mouth.hear("ines", &format!("show {id}")).await;
    assert_eq!(refused.text.as_str(), Mouth::phrase("not_authorised"));
    assert!(refused.card.is_none());
    let event = mouth.event("callback.refused", "not_authorised").await;
    assert_eq!(event["data"]["surface"], "command");
    assert_eq!(event["confirmation_id"], json!(id));
    for name in [
        "cr_00000000000000000000000000000000",
        "zzzz",
        "K7QF-2M9X",
        "fffffff",
        "%",
        "cr_",
    ] {
        let said = mouth.hear("dana", &format!("show {name}")).await;
        assert_eq!(said.text.as_str(), Mouth::phrase("not_found"), "{name}");
    }
    let foreign = mouth.ask("stranger", "nowhere__x", json!({})).await;
    assert_eq!(
        mouth.say("dana", &format!("show {foreign}")).await,
        Mouth::phrase("not_found"),
        "another organisation's does not exist"
    );
}

#[tokio::test]
async fn an_answer_counts_as_a_press_does_and_its_repeat_changes_nothing() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "pay", json!({"amount": 60_000})).await;
    let code = mouth.code(&id).await;
    let command = mouth.command("dana", &format!("approve {code} looks  fine"));
    let first = mouth.obey(&command).await.reply;
    assert!(
        first.text.as_str().starts_with(&Mouth::phrase("settled_approve")),
        "{first:?}"
    );
    assert_eq!(first.tone, ReplyTone::Success);
    let request = mouth.request(&id).await;
    assert_eq!(request["status"], "approved");
    assert_eq!(
        (
            &request["votes"][0]["operator"],
            &request["votes"][0]["channel"],
            &request["votes"][0]["reason"]
        ),
        (&json!("dana"), &json!("chat"), &json!("looks  fine"))
    );
    assert_eq!(mouth.events("vote.cast").await[0]["data"]["surface"], "command");

    let again = mouth.obey(&command).await.reply;
    assert_eq!(again.text, first.text, "a repeat gets the first answer");
    assert_eq!(votes(&mouth, &id).await, 1);
    let refused = mouth.events("callback.refused").await;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["data"]["reason"], "replayed");
    // Said anew, by anybody, it hears the truth.
    for name in [code, id[..20].to_owned()] {
        let late = mouth.say("mira", &format!("reject {name} no")).await;
        assert!(late.starts_with(&Mouth::phrase("already_approved")), "{late}");
    }
    let job = mouth.ask("agent", "pay", json!({"amount": 1})).await;
    mouth.bench.deliver().await;
    mouth.bench.clock.advance(Duration::from_mins(2));
    let late = mouth.say("dana", &format!("approve {job}")).await;
    assert!(late.starts_with(&Mouth::phrase("expired")), "{late}");
    assert_eq!(mouth.request(&job).await["status"], "expired");
}

#[tokio::test]
async fn who_may_not_decide_hears_the_words_of_clicks() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "pay", json!({"amount": 60_000})).await;
    let own = mouth
        .ask("other", "pay", json!({"amount": 60_000, "own": true}))
        .await;
    for (user, words, key) in [
        ("ines", format!("approve {id}"), "not_authorised"),
        ("nobody", format!("approve {id}"), "unknown_operator"),
        ("nobody", "pending".to_owned(), "unknown_operator"),
        ("nobody", format!("show {id}"), "unknown_operator"),
        ("gus", format!("reject {id} no"), "unknown_operator"),
        ("dana", format!("approve {own}"), "self_approval"),
    ] {
        let said = mouth.hear(user, &words).await;
        assert!(
            said.text.as_str().starts_with(&Mouth::phrase(key)),
            "{user} {words}: {said:?}"
        );
        assert_eq!(
            (said.tone, &said.card),
            (ReplyTone::Error, &None),
            "{user} {words}"
        );
        mouth.event("callback.refused", key).await;
        // Who may not know of a request hears nothing of it.
        assert_eq!(
            said.text.as_str().contains("pay"),
            key == "self_approval",
            "{said:?}"
        );
    }
    assert_eq!((votes(&mouth, &id).await, votes(&mouth, &own).await), (0, 0));
    let mine = mouth.say("dana", &format!("reject {own} not now")).await;
    assert!(
        mine.starts_with(&Mouth::phrase("settled_reject")),
        "refusing one's own is allowed: {mine}"
    );
    assert!(mouth.say("nobody", "help").await.contains("/gatepost approve ID"));
}

#[tokio::test]
async fn persons_count_and_a_first_answer_stands() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "two__x", json!({})).await;
    let say = async |user: &str, words: &str| mouth.say(user, &format!("{words} {id} because")).await;
    assert!(
        say("dana", "approve")
            .await
            .starts_with(&Mouth::phrase("counted_approve"))
    );
    assert!(
        say("dana", "approve")
            .await
            .starts_with(&Mouth::phrase("already_voted"))
    );
    assert!(
        say("dana", "reject")
            .await
            .starts_with(&Mouth::phrase("already_voted"))
    );
    assert!(
        say("mira", "approve")
            .await
            .starts_with(&Mouth::phrase("settled_approve"))
    );
    assert_eq!(mouth.request(&id).await["status"], "approved");
}

#[tokio::test]
async fn stages_reasons_and_the_second_question_hold_for_words() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "staged__x", json!({"a": 1})).await;
    let code = mouth.code(&id).await;
    let say = async |user: &str, words: String| mouth.say(user, &words).await;
    let starts = |said: String, key: &str| assert!(said.starts_with(&Mouth::phrase(key)), "{key}: {said}");
    starts(
        say("mira", format!("approve {id} {code} fine")).await,
        "not_this_stage",
    );
    // Neither the id alone nor the code alone says that somebody is sure.
    let asked = say("dana", format!("approve {id} fine")).await;
    assert!(
        asked.contains(&format!("/gatepost approve {id} {code}")),
        "{asked}"
    );
    starts(asked, "not_confirmed");
    starts(say("dana", format!("approve {code} fine")).await, "not_confirmed");
    let other = say("dana", format!("approve {id} AAAA-AAAA fine")).await;
    assert!(other.starts_with("This code is not the code"), "{other}");
    starts(
        say("dana", format!("approve {id} {code}")).await,
        "reason_required",
    );
    assert_eq!(votes(&mouth, &id).await, 0);
    let shown = mouth.hear("dana", &format!("show {code}")).await.card.unwrap();
    assert!(
        shown.facts[0]
            .value
            .as_str()
            .starts_with(&format!("/gatepost approve {id} {code}"))
    );
    starts(
        say("dana", format!("approve {id} {code} fine")).await,
        "counted_approve",
    );
    starts(say("dana", format!("reject {id} no")).await, "already_voted");
    starts(
        say("mira", format!("approve {} {code} fine", &id[..18])).await,
        "settled_approve",
    );
    assert_eq!(mouth.request(&id).await["status"], "approved");
}

#[tokio::test]
async fn what_cannot_be_shown_whole_is_not_approved_by_words() {
    let mouth = Mouth::new().await;
    let id = mouth
        .ask("agent", "pay", json!({"note": "too long to be shown"}))
        .await;
    let card = mouth.hear("dana", &format!("show {id}")).await.card.unwrap();
    let labels: Vec<_> = card.facts.iter().map(|fact| fact.label.as_str()).collect();
    assert_eq!(labels[..2], ["To answer", "Not all of it is shown"]);
    assert!(!card.facts[0].value.as_str().contains("approve"), "{card:?}");
    let said = mouth.say("dana", &format!("approve {id}")).await;
    assert!(said.starts_with(&Mouth::phrase("partial_view")), "{said}");
    let code = mouth.code(&id).await;
    let said = mouth.say("dana", &format!("approve {id} {code}")).await;
    assert!(said.starts_with(&Mouth::phrase("partial_view")), "{said}");
    assert_eq!(votes(&mouth, &id).await, 0);
    let said = mouth.say("dana", &format!("reject {code} cannot see it")).await;
    assert!(
        said.starts_with(&Mouth::phrase("settled_reject")),
        "denying is always possible: {said}"
    );
}

#[tokio::test]
async fn what_is_named_twice_is_asked_about_and_nothing_is_decided() {
    let mouth = Mouth::new().await;
    let first = mouth.ask("agent", "pay", json!({"amount": 5})).await;
    let second = mouth.ask("agent", "pay", json!({"amount": 5})).await;
    assert_ne!(first, second);
    let code = mouth.code(&first).await;
    for words in [
        format!("approve {code}"),
        format!("show {code}"),
        format!("approve {}", &first[..12]),
    ] {
        let said = mouth.say("dana", &words).await;
        assert!(said.starts_with("Several requests are named so."), "{said}");
        assert!(said.contains(&first) && said.contains(&second), "{said}");
    }
    assert_eq!(
        (votes(&mouth, &first).await, votes(&mouth, &second).await),
        (0, 0)
    );
    mouth.say("dana", &format!("approve {first}")).await;
    assert_eq!(mouth.request(&first).await["status"], "approved");
    assert_eq!(mouth.request(&second).await["status"], "pending");
    // Now the code names one that is undecided.
    mouth.say("dana", &format!("reject {code} once is enough")).await;
    assert_eq!(mouth.request(&second).await["status"], "rejected");
}

#[tokio::test]
async fn wrong_words_get_help_and_change_nothing() {
    let mouth = Mouth::new().await;
    let id = mouth.ask("agent", "pay", json!({})).await;
    for (words, begins) in [
        ("aprove x", "I do not understand that."),
        ("approve", "Say which request: /gatepost approve ID."),
        ("show", "Say which request: /gatepost show ID."),
        (&format!("reject {id}"), "A rejection needs a reason"),
        ("", "/gatepost pending"),
        ("help", "/gatepost pending"),
    ] {
        let said = mouth.say("dana", words).await;
        assert!(said.starts_with(begins), "{words:?}: {said}");
    }
    assert_eq!(votes(&mouth, &id).await, 0);
}

#[tokio::test]
async fn who_is_away_says_so_and_the_substitute_answers_in_the_chat_until_they_are_back() {
    let mouth = Mouth::new().await;
    let pay = mouth.ask("agent", "pay", json!({})).await;
    let how = mouth.say("dana", "away").await;
    assert!(
        how.starts_with("Say until when: /gatepost away until") && how.contains("time in UTC"),
        "{how}"
    );
    let set = mouth
        .say("dana", "away until 2026-02-01 09:30 substitute @ines")
        .await;
    assert_eq!(
        set,
        "You are away from 2026-01-31 12:00:00 UTC until 2026-02-01 09:30:00 UTC. INES Doe may answer in your place \
         meanwhile. /gatepost back ends it."
    );
    assert!(mouth.say("ines", "pending").await.contains(&pay));
    mouth.say("ines", &format!("approve {pay}")).await;
    let vote = &mouth.request(&pay).await["votes"][0];
    assert_eq!(
        (&vote["operator"], &vote["acting_for"]),
        (&json!("ines"), &json!("dana"))
    );
    let back = mouth.say("dana", "back").await;
    assert_eq!(back, "Welcome back. INES Doe no longer answers in your place.");
    let next = mouth.ask("agent", "pay", json!({"n": 2})).await;
    assert!(!mouth.say("ines", "pending").await.contains(&next));
    assert!(
        mouth
            .say("dana", "back")
            .await
            .starts_with("You have set no absence"),
        "said twice"
    );
    assert_eq!(mouth.events("operator.away").await[0]["actor"], "operator:dana");
    assert_eq!(mouth.events("operator.back").await.len(), 1);
}

#[tokio::test]
async fn nobody_hands_their_right_to_whom_they_like() {
    let mouth = Mouth::new().await;
    for (user, words, told) in [
        ("dana", "away for 3d substitute mira", "these may: INES Doe"),
        (
            "dana",
            "away for 3d substitute @u-gus",
            "may not answer in your place",
        ),
        ("dana", "away for 93d", "92 days at most"),
        ("dana", "away until 2026-01-01", "over already"),
        ("dana", "away until tomorrow", "Say until when"),
        (
            "mira",
            "away for 3d substitute ines",
            "names nobody who may answer in your place",
        ),
    ] {
        let said = mouth.say(user, words).await;
        assert!(said.contains(told), "{words}: {said}");
    }
    let stranger = mouth.say("nobody", "away for 3d").await;
    assert_eq!(stranger, Mouth::phrase("unknown_operator"));
    assert_eq!(mouth.events("operator.away").await.len(), 0);
}
