//! The life of a request.

use super::*;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::decide::{Refusal, Ruling};
use crate::confirmation::expire::Expire;
use crate::confirmation::{State, Status, cancel::Cancelled, create::Created};

pub(super) async fn asking_twice_finds_the_same_request(place: &Place) {
    let ask = Ask::call("call-1");
    let first = place.fresh(&ask).await;
    let again = place.store.run(ask.create(place)).await.expect("again");
    assert_eq!(again, Created::Same(first.clone()));
    assert_eq!(
        place.dossier(&first.confirmation.id).await,
        first,
        "it is stored as it was answered"
    );
    let racers = (0..8).map(|_| {
        let (store, create) = (place.store.clone(), Ask::call("call-2").create(place));
        async move { store.run(create).await.expect("create") }
    });
    let answers = side_by_side(racers).await;
    let fresh = answers
        .iter()
        .filter(|answer| matches!(answer, Created::Fresh(_)))
        .count();
    assert_eq!(fresh, 1, "one of the racers made it, the others found it");
}

pub(super) async fn the_same_call_id_with_other_arguments_is_a_conflict(place: &Place) {
    let first = place.fresh(&Ask::call("call")).await;
    let other = Ask {
        args: r#"{"amount":121}"#.to_owned(),
        ..Ask::call("call")
    };
    let answer = place.store.run(other.create(place)).await.expect("answer");
    assert_eq!(answer, Created::Conflict(first.confirmation.id.clone()));
    let elsewhere = Ask { org: "beta", ..other };
    assert!(matches!(
        place.store.run(elsewhere.create(place)).await.expect("answer"),
        Created::Fresh(_)
    ));
}

pub(super) async fn an_identical_open_call_is_joined_until_it_is_consumed(place: &Place) {
    let ask = Ask {
        join: true,
        ..Ask::default()
    };
    let first = place.fresh(&ask).await;
    let id = &first.confirmation.id;
    assert_eq!(
        place.store.run(ask.create(place)).await.expect("pending"),
        Created::Same(first.clone())
    );
    place.approve(id, "dana").await;
    let approved = place.store.run(ask.create(place)).await.expect("approved");
    assert!(matches!(approved, Created::Same(same) if same.confirmation.id == *id));
    place
        .store
        .run(consume(place, id, ask.digest()))
        .await
        .expect("run")
        .expect("granted");
    let after = place.store.run(ask.create(place)).await.expect("consumed");
    assert!(matches!(after, Created::Fresh(other) if other.confirmation.id != *id));
}

pub(super) async fn a_quorum_counts_persons(place: &Place) {
    let ask = Ask {
        quorum: 2,
        ..Ask::default()
    };
    let id = place.fresh(&ask).await.confirmation.id;
    assert_eq!(place.approve(&id, "dana").await.ruling, Ruling::Counted);
    assert_eq!(
        place.approve(&id, "dana").await.ruling,
        Ruling::Refused(Refusal::AlreadyVoted)
    );
    assert_eq!(place.dossier(&id).await.confirmation.state, State::Pending);
    assert_eq!(place.approve(&id, "erin").await.ruling, Ruling::Settled);
    let dossier = place.dossier(&id).await;
    assert_eq!(dossier.confirmation.state.status(), Status::Approved);
    assert_eq!(dossier.votes.len(), 2);
    assert_eq!(dossier.confirmation.version, 2);
}

pub(super) async fn of_sixteen_deciders_one_settles(place: &Place) {
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    let racers = (0..16).map(|n| {
        let decision = if n % 2 == 0 {
            Decision::Approve
        } else {
            Decision::Reject
        };
        let (store, decide) = (place.store.clone(), decide(&id, &format!("p{n}"), decision));
        async move { store.run(decide).await.expect("decide") }
    });
    let answers = side_by_side(racers).await;
    let dossier = place.dossier(&id).await;
    let winners: Vec<_> = answers
        .iter()
        .filter(|answer| answer.ruling == Ruling::Settled)
        .collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(dossier.votes.len(), 1, "one vote, and it is the winner's");
    let status = dossier.confirmation.state.status();
    for answer in &answers {
        let told = answer
            .dossier
            .as_ref()
            .expect("a dossier")
            .confirmation
            .state
            .status();
        assert_eq!(told, status, "everybody is told what is stored");
    }
    let kinds = place.kinds(&id).await;
    let settled = format!("confirmation.{}", status.as_str());
    assert_eq!(kinds.iter().filter(|kind| **kind == settled).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| *kind == "vote.cast").count(), 1);
    assert_eq!(kinds.iter().filter(|kind| *kind == "vote.refused").count(), 15);
    place.verify().await;
}

pub(super) async fn a_decision_counts_until_the_deadline(place: &Place) {
    // A clock that runs needs room between the two sides of the deadline.
    let room = if place.stands() { 1 } else { 60_000 };
    let (early, late) = (
        place.fresh(&Ask::default()).await,
        place.fresh(&Ask::default()).await,
    );
    place.set(UtcMillis(early.confirmation.expires_at.0 - room)).await;
    let id = &early.confirmation.id;
    assert_eq!(place.approve(id, "dana").await.ruling, Ruling::Settled);
    assert_eq!(
        place.dossier(id).await.confirmation.state.status(),
        Status::Approved
    );
    let id = &late.confirmation.id;
    place.set(late.confirmation.expires_at).await;
    assert_eq!(
        place.approve(id, "dana").await.ruling,
        Ruling::Refused(Refusal::Expired)
    );
    let stored = place.dossier(id).await;
    assert_eq!(
        stored.confirmation.state,
        State::Undeliverable {
            at: late.confirmation.expires_at
        },
        "no card of it ever stood"
    );
    assert!(stored.votes.is_empty());
}

pub(super) async fn a_late_decision_and_the_sweeper_agree(place: &Place) {
    for round in 0..8 {
        let dossier = place.fresh(&Ask::default()).await;
        let id = dossier.confirmation.id.clone();
        let room = if place.stands() { 1 } else { 60_000 };
        let late = round % 2 == 0;
        let at = dossier.confirmation.expires_at.0 - if late { 0 } else { room };
        place.set(UtcMillis(at)).await;
        let (one, other) = (place.store.clone(), place.store.clone());
        let decide = decide(&id, "dana", Decision::Approve);
        let (swept, decided) = tokio::join!(one.run(Expire { limit: 100 }), other.run(decide));
        let (swept, decided) = (swept.expect("sweep"), decided.expect("decide"));
        let status = place.dossier(&id).await.confirmation.state.status();
        if late {
            assert!(matches!(
                decided.ruling,
                Ruling::Refused(Refusal::Expired | Refusal::AlreadySettled)
            ));
            assert_eq!(status, Status::Undeliverable);
        } else {
            assert_eq!((swept, decided.ruling), (0, Ruling::Settled));
            assert_eq!(status, Status::Approved);
        }
        let kinds = place.kinds(&id).await;
        let settled = format!("confirmation.{}", status.as_str());
        assert_eq!(kinds.iter().filter(|kind| **kind == settled).count(), 1);
    }
    place.verify().await;
}

pub(super) async fn cancelling_settles_once(place: &Place) {
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    let stranger = Cancel {
        token: TokenName::from("other"),
        ..cancel(&id)
    };
    assert_eq!(
        place.store.run(stranger).await.expect("cancel"),
        Cancelled::NotFound
    );
    for _ in 0..2 {
        assert!(matches!(
            place.store.run(cancel(&id)).await.expect("cancel"),
            Cancelled::Done(_)
        ));
    }
    assert_eq!(
        place.approve(&id, "dana").await.ruling,
        Ruling::Refused(Refusal::AlreadySettled)
    );
    let kinds = place.kinds(&id).await;
    assert_eq!(
        kinds,
        ["confirmation.created", "confirmation.cancelled", "vote.refused"]
    );
}

pub(super) async fn a_permit_is_consumed_once_under_sixteen_racers(place: &Place) {
    let ask = Ask::default();
    let id = place.fresh(&ask).await.confirmation.id;
    assert_eq!(
        place
            .store
            .run(consume(place, &id, ask.digest()))
            .await
            .expect("run"),
        Err(NotGranted::NotApproved(Status::Pending))
    );
    place.approve(&id, "dana").await;
    let racers = (0..16).map(|_| {
        let (store, consume) = (place.store.clone(), consume(place, &id, ask.digest()));
        async move { store.run(consume).await.expect("consume") }
    });
    let answers = side_by_side(racers).await;
    let granted: Vec<_> = answers.iter().flatten().collect();
    assert_eq!(granted.len(), 1);
    assert_eq!(granted[0].args, ask.args);
    assert!(
        answers
            .iter()
            .filter_map(|answer| answer.as_ref().err())
            .all(|why| *why == NotGranted::AlreadyConsumed)
    );
    let stored = place.dossier(&id).await;
    assert_eq!(
        stored.confirmation.state.consumed().map(|(id, _)| id),
        Some(&granted[0].permit)
    );
    let kinds = place.kinds(&id).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "permit.consumed").count(), 1);
}

pub(super) async fn a_permit_is_bound_to_the_digest_and_to_its_time(place: &Place) {
    let ask = Ask::default();
    let id = place.fresh(&ask).await.confirmation.id;
    place.approve(&id, "dana").await;
    let other = Ask {
        args: r#"{"amount":9000}"#.to_owned(),
        ..Ask::default()
    };
    let changed = place
        .store
        .run(consume(place, &id, other.digest()))
        .await
        .expect("run");
    assert_eq!(changed, Err(NotGranted::ArgsChanged));
    place.advance(Duration::from_hours(1)).await;
    let late = place
        .store
        .run(consume(place, &id, ask.digest()))
        .await
        .expect("run");
    assert_eq!(late, Err(NotGranted::PermitExpired));
    assert_eq!(place.dossier(&id).await.confirmation.state.consumed(), None);
}

pub(super) async fn a_repeated_click_gets_the_first_answer(place: &Place) {
    let dossier = place.fresh(&Ask::default()).await;
    let id = &dossier.confirmation.id;
    let mut press = click(&dossier, "press-1", "dana", Decision::Approve);
    let first = place.store.run(press.clone()).await.expect("click");
    assert_eq!(
        first.ruling,
        Ruling::Refused(Refusal::OtherMessage),
        "no card stands yet"
    );
    place
        .by_the_back_door(
            r#"UPDATE delivery SET state = 'posted', standing = '[{"at":{"chat":"chat","message":"message"},"edition":1}]'"#,
        )
        .await
        .expect("posted");
    let again = place.store.run(press.clone()).await.expect("click");
    assert_eq!(again.ruling, Ruling::Replayed("other_message".to_owned()));
    if let Target::Card(clicked) = &mut press.target {
        clicked.replay.key = "press-2".to_owned();
    }
    let racers = (0..8).map(|_| {
        let (store, press) = (place.store.clone(), press.clone());
        async move { store.run(press).await.expect("click").ruling }
    });
    let rulings = side_by_side(racers).await;
    assert_eq!(
        rulings
            .iter()
            .filter(|ruling| **ruling == Ruling::Settled)
            .count(),
        1
    );
    assert_eq!(
        rulings
            .iter()
            .filter(|ruling| **ruling == Ruling::Replayed("settled".to_owned()))
            .count(),
        7
    );
    assert_eq!(place.dossier(id).await.votes.len(), 1);
}

pub(super) async fn texts_come_back_exactly_whatever_they_hold(place: &Place) {
    let nasty = "nul \0 sub \u{1a} six \\u0000 quote ' \" percent % _ line\n組\u{1f600}\u{202e}";
    let mut create = Ask::call(nasty).create(place);
    create.asked.requester = Some(nasty.to_owned());
    create.asked.session_id = Some(nasty.to_owned());
    create.reason = Some(nasty.to_owned());
    create.shown_args = shown_args(&create.asked.args, Some(nasty), &*place.ids);
    let id = create.id.clone();
    place.store.run(create.clone()).await.expect("kept");
    let stored = place.dossier(&id).await;
    assert_eq!(stored.confirmation.asked.requester.as_deref(), Some(nasty));
    assert_eq!(stored.confirmation.asked.session_id.as_deref(), Some(nasty));
    assert_eq!(stored.confirmation.reason.as_deref(), Some(nasty));
    let again = place.store.run(create).await.expect("again");
    assert!(
        matches!(again, Created::Same(same) if same.confirmation.id == id),
        "and its call id finds it"
    );
    let mut decide = decide(&id, "dana", Decision::Reject);
    decide.reason = Some(Opening::new(nasty, &*place.ids));
    place.store.run(decide).await.expect("decide");
    assert_eq!(place.dossier(&id).await.votes[0].reason.as_deref(), Some(nasty));
    place.verify().await;
}
