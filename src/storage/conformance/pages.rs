//! Lists: pages, filters, cursors, counts.

use super::*;
use crate::confirmation::Status;
use crate::confirmation::expire::Expire;
use crate::storage::{ConfirmationFilter, JobFilter, ReadError};

async fn walk(place: &Place, filter: &ConfirmationFilter) -> Vec<ConfirmationId> {
    let mut filter = filter.clone();
    let mut seen = Vec::new();
    loop {
        let page = place.store.read().confirmations(&filter).await.expect("a page");
        assert!(page.items.len() <= filter.limit);
        seen.extend(page.items.into_iter().map(|dossier| dossier.confirmation.id));
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            return seen;
        }
        // New rows do not shift old pages.
        place.fresh(&Ask::default()).await;
    }
}

pub(super) async fn every_row_stands_on_exactly_one_page(place: &Place) {
    let mut newest_first = Vec::new();
    for n in 0..25 {
        // Ties: the clock moves at every fifth row only.
        if n % 5 == 0 {
            place.advance(Duration::from_millis(1)).await;
        }
        newest_first.insert(0, place.fresh(&Ask::default()).await.confirmation.id);
    }
    for limit in [1, 7, 10, 200] {
        let filter = ConfirmationFilter {
            limit,
            until: Some(
                place
                    .dossier(&newest_first[0])
                    .await
                    .confirmation
                    .created_at
                    .plus(Duration::from_millis(1)),
            ),
            ..ConfirmationFilter::default()
        };
        place.advance(Duration::from_secs(1)).await;
        assert_eq!(walk(place, &filter).await, newest_first, "pages of {limit}");
    }
    place.verify().await;
    for _ in 0..3 {
        place.submitted(place.new_job(JobState::Queued)).await;
    }
    let mut filter = JobFilter {
        limit: 2,
        ..JobFilter::default()
    };
    let first = place.store.read().jobs(&filter).await.expect("a page");
    filter.cursor = first.next_cursor;
    let second = place.store.read().jobs(&filter).await.expect("a page");
    assert_eq!(
        (first.items.len(), second.items.len(), second.next_cursor),
        (2, 1, None)
    );
}

pub(super) async fn filters_are_taken_literally(place: &Place) {
    let plain = place.fresh(&Ask::call("a")).await.confirmation.id;
    let mut odd = Ask {
        org: "beta",
        cards: 2,
        ..Ask::call("b")
    }
    .create(place);
    odd.reason = Some("100% _sure_ \\ of it".to_owned());
    odd.asked.requester = Some("\0NUL".to_owned());
    let odd_id = odd.id.clone();
    place.store.run(odd).await.expect("create");
    place.approve(&plain, "dana").await;
    let found = |filter: ConfirmationFilter| async move {
        let page = place.store.read().confirmations(&filter).await.expect("a page");
        page.items
            .into_iter()
            .map(|dossier| dossier.confirmation.id)
            .collect::<Vec<_>>()
    };
    let q = |q: &str| ConfirmationFilter {
        q: Some(q.to_owned()),
        ..ConfirmationFilter::default()
    };
    for (filter, expected) in [
        (q("100%"), vec![&odd_id]),
        (q("_SURE_ \\"), vec![&odd_id]),
        (q("0_ "), vec![]),
        (q("\0nul"), vec![&odd_id]),
        (q("PURCHASE"), vec![&odd_id, &plain]),
        (q(plain.as_str()), vec![&plain]),
        (q("' OR '1'='1"), vec![]),
        (
            ConfirmationFilter {
                orgs: vec![Org::from("beta"), Org::from("none")],
                ..ConfirmationFilter::default()
            },
            vec![&odd_id],
        ),
        (
            ConfirmationFilter {
                status: vec![Status::Approved],
                operator: Some("dana".to_owned()),
                ..ConfirmationFilter::default()
            },
            vec![&plain],
        ),
        (
            ConfirmationFilter {
                channel: Some(ChannelName::from("channel-1")),
                ..ConfirmationFilter::default()
            },
            vec![&odd_id],
        ),
        (
            ConfirmationFilter {
                requester: Some("\0NUL".to_owned()),
                token: Some(TokenName::from("build-agent")),
                agent: Some("agent".to_owned()),
                tool: Some(tool().to_string()),
                ..ConfirmationFilter::default()
            },
            vec![&odd_id],
        ),
        (
            ConfirmationFilter {
                stuck_since: Some(UtcMillis(i64::MAX)),
                ..ConfirmationFilter::default()
            },
            vec![],
        ),
    ] {
        assert_eq!(
            found(filter.clone()).await.iter().collect::<Vec<_>>(),
            expected,
            "{filter:?}"
        );
    }
    let filter = AuditFilter {
        kind: vec!["vote.cast".to_owned()],
        actor: Some("operator:dana".to_owned()),
        confirmation: Some(plain),
        since: Some(UtcMillis(0)),
        until: Some(UtcMillis(i64::MAX)),
        ..AuditFilter::default()
    };
    assert_eq!(
        place
            .store
            .read()
            .audit(&filter)
            .await
            .expect("events")
            .items
            .len(),
        1
    );
}

pub(super) async fn a_nonsense_cursor_is_refused(place: &Place) {
    for cursor in [
        "",
        "x",
        "-1",
        "%",
        "' OR 1=1 --",
        "\0",
        "YyAxIA",
        "..",
        "9223372036854775808",
    ] {
        let cursor = Some(cursor.to_owned());
        let requests = ConfirmationFilter {
            cursor: cursor.clone(),
            ..ConfirmationFilter::default()
        };
        assert!(matches!(
            place.store.read().confirmations(&requests).await,
            Err(ReadError::BadCursor)
        ));
        let events = AuditFilter {
            cursor: cursor.clone(),
            ..AuditFilter::default()
        };
        assert!(matches!(
            place.store.read().audit(&events).await,
            Err(ReadError::BadCursor)
        ));
        let jobs = JobFilter {
            cursor,
            ..JobFilter::default()
        };
        assert!(matches!(
            place.store.read().jobs(&jobs).await,
            Err(ReadError::BadCursor)
        ));
    }
}

pub(super) async fn counts_and_deadlines_are_told(place: &Place) {
    let read = place.store.read();
    read.ready().await.expect("ready");
    assert_eq!(read.next_deadline().await.expect("read"), None);
    let first = place.fresh(&Ask::default()).await.confirmation;
    place.advance(Duration::from_secs(1)).await;
    let second = place.fresh(&Ask::default()).await.confirmation;
    place.submitted(place.new_job(JobState::Queued)).await;
    assert_eq!(read.next_deadline().await.expect("read"), Some(first.expires_at));
    let counts = read.counts().await.expect("counts");
    assert_eq!(
        (counts.pending, counts.oldest_pending, counts.outbox),
        (2, Some(first.created_at), 2)
    );
    assert_eq!(counts.jobs, [("queued".to_owned(), 1)]);
    place.set(first.expires_at).await;
    assert_eq!(place.store.run(Expire { limit: 10 }).await.expect("sweep"), 1);
    assert_eq!(read.next_deadline().await.expect("read"), Some(second.expires_at));
}
