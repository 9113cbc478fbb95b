//! The life of a request.

use super::*;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::decide::{Refusal, Ruling};
use crate::confirmation::edit::Revised;
use crate::confirmation::expire::Expire;
use crate::confirmation::grant::{Grant, Revoke, Revoked, Wish};
use crate::confirmation::{Basis, State, Status, cancel::Cancelled, create::Created};
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::{EditScope, EditTerms};
use crate::ids::GrantId;
use crate::storage::GrantFilter;

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

const HOUR: i64 = 3_600_000;

/// A call of this id under a rule that offers grants.
fn grantable(place: &Place, call: &str, max_uses: Option<u32>) -> Create {
    let mut create = Ask::call(call).create(place);
    create.terms.decision.grants = Some(GrantTerms {
        scopes: vec![GrantScope::Span(HOUR)],
        max_uses,
        arguments: GrantArguments::At(vec!["/amount".parse().expect("a pointer")]),
    });
    create.asked.agent_id = Some("nul\u{0} and 組".to_owned());
    create
}

/// Approves it with a grant, and tells which.
async fn grant(place: &Place, create: Create) -> GrantId {
    let id = create.id.clone();
    place.store.run(create).await.expect("create");
    let wish = Wish {
        scope: "1h".to_owned(),
        id: GrantId::fresh(&*place.ids),
    };
    let approve = Decide {
        grant: Some(wish.clone()),
        ..decide(&id, "dana", Decision::Approve)
    };
    let decided = place.store.run(approve).await.expect("decide");
    assert_eq!(decided.ruling, Ruling::Settled);
    let dossier = place.dossier(&id).await;
    assert_eq!(dossier.confirmation.progress.granted.as_ref(), Some(&wish.id));
    assert_eq!(dossier.votes[0].content.grant, Some(GrantScope::Span(HOUR)));
    wish.id
}

async fn live(place: &Place, due_at: Option<UtcMillis>) -> Vec<Grant> {
    let filter = GrantFilter {
        orgs: vec![Org::from("acme")],
        live: true,
        due_at,
        limit: 1,
        ..GrantFilter::default()
    };
    place.store.read().grants(&filter).await.expect("grants").items
}

pub(super) async fn a_grant_is_kept_used_listed_and_ended(place: &Place) {
    let id = grant(place, grantable(place, "first", None)).await;
    let listed = live(place, None).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0].id, listed[0].uses, listed[0].agent_id.as_deref()),
        (&id, 0, Some("nul\u{0} and 組"))
    );
    let now = place.store.read().now().await.expect("now");
    assert_eq!(live(place, Some(now)).await, []);
    // Under the grant a later call is approved, consumed and counted.
    let second = grantable(place, "second", None);
    let (request, digest) = (second.id.clone(), second.asked.digest);
    place.store.run(second).await.expect("create");
    let dossier = place.dossier(&request).await;
    assert_eq!(dossier.confirmation.state.status(), Status::Approved);
    assert_eq!(
        dossier.confirmation.progress.basis,
        Some(Basis::Grant(id.clone()))
    );
    let consumption = Consume {
        grant: Some(id.clone()),
        offered: dossier.confirmation.terms.decision.grants.clone(),
        ..consume(place, &request, digest)
    };
    let unlooked = Consume {
        grant: None,
        ..consumption.clone()
    };
    let refused = place.store.run(unlooked).await.expect("answer");
    assert_eq!(
        refused,
        Err(NotGranted::NotAuthorised),
        "a grant that was not read lets nothing run"
    );
    assert!(place.store.run(consumption).await.expect("answer").is_ok());
    assert_eq!(live(place, None).await[0].uses, 1);
    // Another organisation finds nothing, and takes nothing back.
    let mut elsewhere = grantable(place, "third", None);
    elsewhere.org = Org::from("beta");
    let other = elsewhere.id.clone();
    place.store.run(elsewhere).await.expect("create");
    assert_eq!(
        place.dossier(&other).await.confirmation.state.status(),
        Status::Pending
    );
    let revoke = |org: &str| Revoke {
        id: id.clone(),
        org: Org::from(org),
        by: OperatorId::from("erin"),
    };
    let answer = place.store.run(revoke("beta")).await.expect("answer");
    assert_eq!(answer, Revoked::NotFound);
    let answer = place.store.run(revoke("acme")).await.expect("answer");
    assert!(matches!(answer, Revoked::Done(grant) if grant.uses == 1));
    assert_eq!(live(place, None).await, []);
    let fourth = grantable(place, "fourth", None);
    let asked = fourth.id.clone();
    place.store.run(fourth).await.expect("create");
    assert_eq!(
        place.dossier(&asked).await.confirmation.state.status(),
        Status::Pending
    );
}

pub(super) async fn a_grant_is_used_no_more_often_than_it_says(place: &Place) {
    let id = grant(place, grantable(place, "first", Some(3))).await;
    let racers = (0..8).map(|n| {
        let (store, create) = (place.store.clone(), grantable(place, &format!("c{n}"), Some(3)));
        async move { store.run(create).await.expect("create") }
    });
    let answers = side_by_side(racers).await;
    let approved = answers
        .iter()
        .filter(
            |answer| matches!(answer, Created::Fresh(d) if d.confirmation.state.status() == Status::Approved),
        )
        .count();
    assert_eq!(approved, 3);
    let grants = live(place, None).await;
    assert_eq!((&grants[0].id, grants[0].uses), (&id, 3));
}

pub(super) async fn an_edit_is_kept_exactly_and_one_person_answers_each_form_once(place: &Place) {
    let mut create = Ask {
        quorum: 2,
        cards: 2,
        ..Ask::call("edited")
    }
    .create(place);
    create.terms.decision.edits = Some(EditTerms {
        scope: EditScope::Any,
        carried: true,
    });
    let id = create.id.clone();
    let Created::Fresh(first) = place.store.run(create).await.expect("create") else {
        panic!("it is new")
    };
    place.approve(&id, "dana").await;
    // NUL, an escape of ours, and a number that no double holds.
    let text = r#"{"amount":12345678901234567890.5,"note":"\u0000\u001a組"}"#;
    let args = Arguments::read(text.as_bytes(), ReadLimits::bytes(1 << 20)).expect("arguments");
    let revised = Revised {
        args: args.canonical().to_owned(),
        digest: Digest::of(&tool(), &args),
        shown: Opening::new(args.canonical(), &*place.ids),
        shown_before: Opening::new(&first.confirmation.asked.args, &*place.ids),
        approvable: first
            .deliveries
            .iter()
            .take(1)
            .map(|card| (card.id.clone(), true))
            .collect(),
    };
    let edit = Decide {
        edit: Some(Ok(revised)),
        ..decide(&id, "erin", Decision::Approve)
    };
    let edited = place.store.run(edit).await.expect("decide");
    assert_eq!(edited.ruling, Ruling::Counted);
    let stored = place.dossier(&id).await;
    let mut written = edited.dossier.expect("told");
    written.confirmation.version = stored.confirmation.version;
    assert_eq!(stored, written, "as it was written, it is read");
    assert_eq!(stored.confirmation.call().args, args.canonical());
    assert_eq!(stored.deliveries.iter().filter(|card| card.approvable).count(), 1);
    // Who approved before approves once more, and not twice.
    let seen = |person: &str| Decide {
        seen: Some(1),
        ..decide(&id, person, Decision::Approve)
    };
    let again = place.store.run(seen("erin")).await.expect("decide");
    assert_eq!(again.ruling, Ruling::Refused(Refusal::AlreadyVoted));
    let racers = (0..4).map(|_| place.store.run(seen("dana")));
    let rulings = futures_util::future::join_all(racers).await;
    let settled = rulings
        .iter()
        .flatten()
        .filter(|decided| decided.ruling == Ruling::Settled);
    assert_eq!(settled.count(), 1);
    let stored = place.dossier(&id).await;
    let votes: Vec<_> = stored
        .votes
        .iter()
        .map(|vote| (vote.person.as_str(), vote.content.edit))
        .collect();
    assert_eq!(votes.len(), 3, "{votes:?}");
    assert_eq!(votes.iter().filter(|(person, _)| *person == "dana").count(), 2);
    let consumption = Consume {
        judged: stored.confirmation.call().digest,
        ..consume(place, &id, first.confirmation.asked.digest)
    };
    let granted = place
        .store
        .run(consumption)
        .await
        .expect("consume")
        .expect("granted");
    assert_eq!((granted.args.as_str(), granted.edit), (args.canonical(), 1));
    place.verify().await;
}
