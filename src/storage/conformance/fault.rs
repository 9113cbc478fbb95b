//! What goes wrong hurts nobody else and leaves nothing half-written.

use super::*;
use crate::confirmation::decide::Ruling;
use crate::confirmation::expire::Expire;
use crate::delivery::{Errand, OutboxItem};
use crate::ids::OutboxId;
use crate::storage::{ConfirmationFilter, Touches, Transaction, Workspace};

/// Its code panics, after it changed something.
struct Panics(ConfirmationId);

impl Transaction for Panics {
    type Answer = ();
    const NAME: &'static str = "test.panics";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.insert(self.0.clone());
    }

    fn apply(&self, workspace: &mut Workspace) {
        workspace.change_confirmation(&self.0, |row| row.edition = 99);
        panic!("on purpose");
    }
}

/// Breaks a rule of the database: a notice about a request that is not there.
struct Orphan {
    id: OutboxId,
    confirmation: ConfirmationId,
}

impl Transaction for Orphan {
    type Answer = ();
    const NAME: &'static str = "test.orphan";

    fn touches(&self, _: &mut Touches) {}

    fn apply(&self, workspace: &mut Workspace) {
        workspace.put_outbox(OutboxItem {
            id: self.id.clone(),
            confirmation: Some(self.confirmation.clone()),
            channel: ChannelName::from("channel-0"),
            errand: Errand::Notice {
                user: "U1".to_owned(),
                chat: "C1".to_owned(),
                text: "hello".to_owned(),
            },
            attempts: 0,
            not_before: UtcMillis(0),
            lease: None,
            fence: 0,
            created_at: UtcMillis(0),
        });
    }
}

pub(super) async fn a_bad_item_does_not_hurt_its_neighbours(place: &Place) {
    let requests = [
        place.fresh(&Ask::default()).await.confirmation.id,
        place.fresh(&Ask::default()).await.confirmation.id,
        place.fresh(&Ask::default()).await.confirmation.id,
    ];
    let orphan = Orphan {
        id: OutboxId::fresh(&*place.ids),
        confirmation: ConfirmationId::fresh(&*place.ids),
    };
    let [a, b, c] = &requests;
    // All of them are queued before the writer runs: this test and the writer share one thread.
    let (first, panicked, second, orphaned, third) = tokio::join!(
        place.approve(a, "dana"),
        place.store.run(Panics(a.clone())),
        place.approve(b, "dana"),
        place.store.run(orphan),
        place.approve(c, "dana"),
    );
    for answer in [first, second, third] {
        assert_eq!(answer.ruling, Ruling::Settled);
    }
    assert!(matches!(panicked, Err(StoreError::Panicked("test.panics"))));
    let Err(StoreError::Database(text)) = orphaned else {
        panic!("the database lets an orphan in");
    };
    assert!(!text.contains("hello"), "no value in an error: {text}");
    assert_eq!(place.dossier(a).await.confirmation.edition, 2);
    place.verify().await;
}

pub(super) async fn a_statement_that_fails_leaves_nothing_half_written(place: &Place) {
    let before = place.fresh(&Ask::default()).await;
    let id = &before.confirmation.id;
    let events = place.verify().await;
    let rows = place.store.read().counts().await.expect("counts");
    for (table, operation) in [
        ("confirmation", "INSERT"),
        ("delivery", "INSERT"),
        ("outbox", "INSERT"),
        ("audit_event", "INSERT"),
        ("chain_head", "UPDATE"),
    ] {
        place.sabotage(table, operation).await;
        let failed = place.store.run(Ask::default().create(place)).await;
        assert!(
            matches!(failed, Err(StoreError::Database(_))),
            "create, {table}: {failed:?}"
        );
        place.repair(table).await;
        assert_eq!(
            place.store.read().counts().await.expect("counts"),
            rows,
            "create, {table}"
        );
        assert_eq!(place.verify().await, events, "create, {table}");
    }
    for (table, operation) in [
        ("confirmation", "UPDATE"),
        ("vote", "INSERT"),
        ("outbox", "UPDATE"),
        ("audit_event", "INSERT"),
        ("chain_head", "UPDATE"),
    ] {
        place.sabotage(table, operation).await;
        let failed = place.store.run(decide(id, "dana", Decision::Approve)).await;
        assert!(
            matches!(failed, Err(StoreError::Database(_))),
            "decide, {table}: {failed:?}"
        );
        place.repair(table).await;
        assert_eq!(place.dossier(id).await, before, "decide, {table}");
        assert_eq!(place.verify().await, events, "decide, {table}");
    }
    assert_eq!(
        place.approve(id, "dana").await.ruling,
        Ruling::Settled,
        "and then it works"
    );
}

pub(super) async fn a_row_that_makes_no_sense_does_not_stop_the_others(place: &Place) {
    let bad = place.fresh(&Ask::default()).await.confirmation.id;
    let good = place.fresh(&Ask::default()).await.confirmation.id;
    place
        .by_the_back_door(&format!(
            "UPDATE confirmation SET terms = 'nonsense', expires_at = expires_at - 1 WHERE id = '{bad}'"
        ))
        .await
        .expect("spoiled");
    place.advance(Duration::from_secs(200)).await;
    // The bad row is the first that is due, and there is room for one only.
    assert_eq!(place.store.run(Expire { limit: 1 }).await.expect("sweep"), 1);
    assert!(
        place
            .dossier(&good)
            .await
            .confirmation
            .state
            .decided_at()
            .is_some()
    );
    let page = place
        .store
        .read()
        .confirmations(&ConfirmationFilter::default())
        .await
        .expect("a page");
    assert_eq!(page.items.len(), 1, "the list goes on without it");
    let named = place.store.run(decide(&bad, "dana", Decision::Approve)).await;
    assert!(
        matches!(
            named,
            Err(StoreError::Inconsistent {
                table: "confirmation",
                ..
            })
        ),
        "{named:?}"
    );
    assert!(place.store.read().dossier(&bad).await.is_err());
}

pub(super) async fn a_change_that_misses_its_row_keeps_nothing(place: &Place) {
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    let before = place.dossier(&id).await;
    place.swallow("confirmation").await;
    let missed = place.store.run(decide(&id, "dana", Decision::Approve)).await;
    assert!(matches!(missed, Err(StoreError::Database(_))), "{missed:?}");
    assert_eq!(place.dossier(&id).await, before, "neither vote nor status");
    assert_eq!(place.verify().await, 1);
    place.repair("confirmation").await;
    let answer = place.approve(&id, "dana").await;
    assert_eq!(answer.ruling, crate::confirmation::decide::Ruling::Settled);
    assert_eq!(place.verify().await, 3);
}

pub(super) async fn what_was_queued_is_committed_before_the_store_ends(place: &Place) {
    let creates: Vec<_> = (0..40).map(|_| Ask::default().create(place)).collect();
    let ids: Vec<_> = creates.iter().map(|create| create.id.clone()).collect();
    let runs: Vec<_> = creates
        .into_iter()
        .map(|create| place.store.run(create))
        .collect();
    let stop = async {
        place.tasks.ask_to_stop();
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(runs), stop);
    assert!(answers.iter().all(Result::is_ok), "what was accepted is kept");
    for id in &ids {
        place.dossier(id).await;
    }
    let late = place.store.run(Ask::default().create(place)).await;
    assert!(matches!(late, Err(StoreError::Closed)), "{late:?}");
}
