//! The audit log and the replay memory.

use super::*;

pub(super) async fn the_chain_has_no_gaps_under_concurrency_and_verifies(place: &Place) {
    let racers = (0..24).map(|n| {
        let org = if n % 3 == 0 { "beta" } else { "acme" };
        let create = Ask {
            org,
            ..Ask::default()
        }
        .create(place);
        let id = create.id.clone();
        let store = place.store.clone();
        async move {
            store.run(create).await.expect("create");
            store
                .run(decide(&id, "dana", Decision::Approve))
                .await
                .expect("decide");
        }
    });
    side_by_side(racers).await;
    let heads = place.store.read().heads().await.expect("heads");
    let orgs: Vec<&str> = heads.iter().map(|head| head.org.as_str()).collect();
    assert_eq!(orgs, ["acme", "beta"]);
    // Requests of beta were named by a caller of acme: refused there, and one event each all the same.
    assert_eq!(place.verify().await, 24 + 16 * 2 + 8);
}

pub(super) async fn the_log_cannot_be_edited_or_cut_but_openings_can_be_erased(place: &Place) {
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    place.approve(&id, "dana").await;
    for sql in [
        "UPDATE audit_event SET actor = 'operator:eve' WHERE seq = 2",
        "UPDATE audit_event SET at = at + 1",
        "DELETE FROM audit_event WHERE seq = 3",
        "DELETE FROM chain_head",
        "UPDATE chain_head SET seq = seq - 1",
    ] {
        let refused = place.by_the_back_door(sql).await;
        assert!(refused.is_err(), "{sql}");
    }
    place
        .by_the_back_door(
            r#"UPDATE audit_event SET openings = '{"tool_args":null,"requester":null}' WHERE seq = 1"#,
        )
        .await
        .expect("erased");
    assert_eq!(place.verify().await, 3);
}

pub(super) async fn arguments_stand_once_and_the_log_shows_and_guards_them_all_the_same(place: &Place) {
    let plain = Ask::default();
    let id = place.fresh(&plain).await.confirmation.id;
    let mut redacted = Ask::call("redacted").create(place);
    redacted.shown_args = shown_args(&redacted.asked.args, Some("{}"), &*place.ids);
    place.store.run(redacted).await.expect("create");
    let shown = || async {
        let page = place.store.read().audit(&AuditFilter::default()).await;
        let opened = |event: crate::audit::Event| {
            let openings: std::collections::BTreeMap<String, Option<Opening>> =
                serde_json::from_str(&event.openings).expect("what everybody reads");
            openings["tool_args"].clone().map(|opening| opening.value)
        };
        let events = page.expect("events").items;
        events.into_iter().map(opened).collect::<Vec<_>>()
    };
    assert_eq!(shown().await, [Some(plain.args.clone()), Some("{}".to_owned())]);
    assert_eq!(place.verify().await, 2);
    let twice = place.count("audit_event WHERE openings LIKE '%amount%'").await;
    assert_eq!(twice, 0, "they stand once");

    // What the log says is no longer what would run: the log finds it.
    let edit = format!("UPDATE confirmation SET args = '{{\"amount\":9}}' WHERE id = '{id}'");
    place.by_the_back_door(&edit).await.expect("edited");
    let page = place
        .store
        .read()
        .audit(&AuditFilter::default())
        .await
        .expect("events");
    let fault = Checker::new(Org::from("acme"))
        .take(&page.items[0])
        .expect_err("edited");
    assert_eq!((fault.what, fault.seq), ("edited_text", 1));

    // Erased in both places, the chain stays true.
    for sql in [
        format!("UPDATE confirmation SET args = '{{}}' WHERE id = '{id}'"),
        r#"UPDATE audit_event SET openings = '{"tool_args":null}' WHERE seq = 1"#.to_owned(),
    ] {
        place.by_the_back_door(&sql).await.expect("erased");
    }
    assert_eq!(shown().await[0], None);
    assert_eq!(place.verify().await, 2);
}

pub(super) async fn old_callbacks_are_forgotten(place: &Place) {
    let dossier = place.fresh(&Ask::default()).await;
    let press = click(&dossier, "press", "dana", Decision::Approve);
    place.store.run(press.clone()).await.expect("click");
    let remembered = || async {
        let again = place.store.run(press.clone()).await.expect("click");
        matches!(again.ruling, crate::confirmation::decide::Ruling::Replayed(_))
    };
    assert!(remembered().await);
    place.advance(Duration::from_mins(62)).await;
    place.tidied().await;
    assert!(
        !remembered().await,
        "as long as the request can live, and an hour"
    );
}
