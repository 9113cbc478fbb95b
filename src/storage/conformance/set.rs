//! Like requests that share a card: found, read whole and decided together, whatever is touched of them.

use std::sync::Arc;

use gatepost_channel::SetCode;

use super::*;
use crate::confirmation::decide_all::{AllRuling, DecideAll};
use crate::confirmation::set::{self, Alike, Fits, Joining};
use crate::delivery::button::ServerKey;
use crate::delivery::claim::Claim;
use crate::gate::collapse::Collapse;
use crate::ids::WorkerId;

#[derive(Debug)]
struct AlwaysFits;

impl Fits for AlwaysFits {
    fn fit(&self, _: &[Dossier]) -> bool {
        true
    }
}

/// A call that may share a card with four others.
fn like(place: &Place, call: &str) -> Create {
    let ask = Ask {
        cards: 2,
        args: format!("{{\"call\":\"{call}\"}}"),
        ..Ask::call(call)
    };
    let mut create = ask.create(place);
    create.terms.decision.collapse = Some(Collapse {
        window_ms: 60_000,
        most: 5,
    });
    let (rule, reason) = (create.rule.as_deref(), create.reason.as_deref());
    let alike = Alike::of(&create.org, &create.asked, rule, reason, &create.terms).expect("spelled");
    create.collapse = Some(Joining {
        alike,
        fits: Arc::new(AlwaysFits),
    });
    create
}

async fn stored(place: &Place, call: &str) -> Dossier {
    match place.store.run(like(place, call)).await.expect("create") {
        Created::Fresh(dossier) => dossier,
        other => panic!("{other:?}"),
    }
}

fn first(dossier: &Dossier) -> &ConfirmationId {
    &dossier.confirmation.set.as_ref().expect("in a set").first
}

fn key() -> ServerKey {
    ServerKey::new([3; 32])
}

fn code(dossiers: &[Dossier]) -> SetCode {
    set::code(&key(), dossiers.iter().map(|dossier| &dossier.confirmation))
}

pub(super) async fn like_requests_share_a_card_and_are_read_whole(place: &Place) {
    let mut dossiers = Vec::new();
    for call in ["a", "b", "c"] {
        dossiers.push(stored(place, call).await);
    }
    for dossier in &dossiers {
        assert_eq!(first(dossier), &dossiers[0].confirmation.id);
        assert_eq!(
            place.dossier(&dossier.confirmation.id).await,
            *dossier,
            "as it was answered"
        );
    }
    // One errand for each message, and it brings all that the message shows.
    let claim = Claim {
        worker: WorkerId::fresh(&*place.ids),
        lease: Duration::from_secs(45),
        limit: 10,
        room: std::collections::BTreeMap::new(),
    };
    let claimed = place.store.run(claim).await.expect("claim");
    assert_eq!(claimed.len(), 2);
    for one in &claimed {
        let fellows: Vec<_> = one.fellows.iter().map(|fellow| &fellow.confirmation.id).collect();
        let all: Vec<_> = dossiers.iter().map(|dossier| &dossier.confirmation.id).collect();
        assert_eq!(fellows, all);
    }
    // A click on the last of them answers that one, and leads to the others.
    let press = click(&dossiers[2], "row", "dana", Decision::Approve);
    place
        .by_the_back_door("UPDATE delivery SET unheard = 1")
        .await
        .expect("posts are under way");
    let decided = place.store.run(press).await.expect("decide");
    assert_eq!(decided.ruling, crate::confirmation::decide::Ruling::Settled);
    assert_eq!(decided.fellows.len(), 3);
    place.verify().await;
}

/// Sixteen that come at once fill cards of five, and none is left out.
pub(super) async fn a_storm_of_like_requests_fills_its_cards(place: &Place) {
    let storm = (0..16).map(|n| {
        let (store, create) = (place.store.clone(), like(place, &format!("call-{n}")));
        async move { store.run(create).await.expect("create") }
    });
    let mut sizes: std::collections::BTreeMap<ConfirmationId, usize> = std::collections::BTreeMap::new();
    for created in side_by_side(storm).await {
        let Created::Fresh(dossier) = created else {
            panic!("{created:?}")
        };
        *sizes.entry(first(&dossier).clone()).or_default() += 1;
    }
    assert_eq!(sizes.values().sum::<usize>(), 16);
    assert!(sizes.values().all(|size| *size <= 5), "{sizes:?}");
    assert_eq!(
        place.count("outbox").await,
        i64::try_from(2 * sizes.len()).expect("few"),
        "one errand for each message"
    );
    place.verify().await;
}

/// One of two people who press for all at once decides all of them, or each decides some; everything agrees with the rows.
pub(super) async fn all_at_once_and_single_presses_race(place: &Place) {
    let mut dossiers = Vec::new();
    for call in ["a", "b", "c", "d"] {
        dossiers.push(stored(place, call).await);
    }
    place
        .by_the_back_door("UPDATE delivery SET unheard = 1")
        .await
        .expect("posts are under way");
    let set = code(&dossiers);
    let all =
        |person: &str, decision| DecideAll::new(click(&dossiers[0], person, person, decision), set, key());
    let racers = [all("dana", Decision::Approve), all("erin", Decision::Reject)];
    let racers = racers.map(|racer| {
        let store = place.store.clone();
        async move { store.run(racer).await.expect("decide") }
    });
    let single = place
        .store
        .run(click(&dossiers[3], "single", "finn", Decision::Reject));
    let (answers, single) = tokio::join!(side_by_side(racers), single);
    let mut settled: usize =
        usize::from(single.expect("decide").ruling == crate::confirmation::decide::Ruling::Settled);
    for answer in answers {
        let AllRuling::Judged(tally) = answer.ruling else {
            panic!("{:?}", answer.ruling)
        };
        assert_eq!(tally.settled + tally.refused.len(), 4);
        settled += tally.settled;
    }
    assert_eq!(settled, 4, "each was settled once");
    for dossier in &dossiers {
        let row = place.dossier(&dossier.confirmation.id).await;
        assert_eq!(row.votes.len(), 1, "one vote settled it");
        assert_ne!(row.confirmation.state, crate::confirmation::State::Pending);
    }
    place.verify().await;
}
