//! Two processes on one PostgreSQL, side by side; and what opening refuses.

use std::collections::BTreeSet;

use super::*;
use crate::confirmation::Status;
use crate::confirmation::decide::Ruling;
use crate::job::JobStatus;
use crate::storage::open::{OpenError, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_decide_and_claim_side_by_side() {
    let place = Place::postgres().await;
    let (other, other_tasks) = place.neighbour().await;
    // One call, asked in both: one request.
    let ask = Ask::call("call");
    let (here, there) = tokio::join!(place.store.run(ask.create(&place)), other.run(ask.create(&place)));
    let answers = [here.expect("here"), there.expect("there")];
    assert_eq!(
        answers
            .iter()
            .filter(|answer| matches!(answer, Created::Fresh(_)))
            .count(),
        1
    );
    for _ in 0..6 {
        let id = place.fresh(&Ask::default()).await.confirmation.id;
        let racers = (0..16).map(|n| {
            let store = if n % 2 == 0 {
                place.store.clone()
            } else {
                other.clone()
            };
            let decision = if n % 4 < 2 {
                Decision::Approve
            } else {
                Decision::Reject
            };
            let decide = decide(&id, &format!("p{n}"), decision);
            async move { store.run(decide).await.expect("decide") }
        });
        let answers = side_by_side(racers).await;
        assert_eq!(
            answers
                .iter()
                .filter(|answer| answer.ruling == Ruling::Settled)
                .count(),
            1
        );
        let stored = place.dossier(&id).await;
        assert_eq!(stored.votes.len(), 1);
        assert_ne!(stored.confirmation.state.status(), Status::Pending);
        assert_eq!(other.read().dossier(&id).await.expect("read"), Some(stored));
    }
    for _ in 0..20 {
        place.submitted(place.new_job(JobState::Queued)).await;
    }
    let claimed = work::claimed_by(&place, &[place.store.clone(), other.clone()]).await;
    let distinct: BTreeSet<_> = claimed.iter().map(|job| job.id.clone()).collect();
    assert_eq!((claimed.len(), distinct.len()), (20, 20));
    for id in &distinct {
        assert_eq!(place.job(id).await.state.status(), JobStatus::Running);
    }
    place.verify().await;
    drop(other);
    other_tasks.ask_to_stop();
    assert!(other_tasks.drain(Duration::from_secs(20)).await);
    place.close().await;
}

/// Two replicas, many calls at once: together they let in as many as the limit says, and no lock of theirs stands in the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_a_limit() {
    let place = Place::postgres().await;
    let (other, other_tasks) = place.neighbour().await;
    let racers = (0..40_u32).map(|n| {
        let store = if n % 2 == 0 {
            place.store.clone()
        } else {
            other.clone()
        };
        let person = ["dana", "erin", "finn"][n as usize % 3];
        async move {
            let taken = store.run(tally::Take::of(person, 4)).await.expect("counted");
            (person, taken)
        }
    });
    let turns = side_by_side(racers).await;
    for person in ["dana", "erin", "finn"] {
        let taken = turns.iter().filter(|turn| **turn == (person, true));
        assert_eq!(taken.count(), 4, "{person}");
    }
    drop(other);
    other_tasks.ask_to_stop();
    assert!(other_tasks.drain(Duration::from_secs(20)).await);
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_here_wakes_who_waits_there() {
    let place = Place::postgres().await;
    let (other, other_tasks) = place.neighbour().await;
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    let mut watch = other.wakes().confirmation(&id);
    // The neighbour may not be listening yet: a wake-up is a hint, so whoever waits looks again.
    let heard = async {
        loop {
            place
                .store
                .run(decide(&id, "stranger", Decision::Approve))
                .await
                .expect("a refusal is an event");
            if tokio::time::timeout(Duration::from_millis(200), watch.changed())
                .await
                .is_ok()
            {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard)
        .await
        .expect("the hint arrives");
    other_tasks.ask_to_stop();
    assert!(other_tasks.drain(Duration::from_secs(20)).await);
    drop(other);
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_together_on_an_empty_database_come_up() {
    for _ in 0..5 {
        let place = Place::postgres_unmigrated().await;
        let opened = tokio::join!(place.open(), place.open(), place.open());
        for (store, tasks) in [opened.0, opened.1, opened.2] {
            store.read().ready().await.expect("ready");
            tasks.ask_to_stop();
            assert!(tasks.drain(Duration::from_secs(20)).await);
        }
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_lost_connection_is_made_anew() {
    let place = Place::postgres().await;
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    place
        .by_the_back_door(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await
        .expect("terminated");
    assert_eq!(
        place.approve(&id, "dana").await.ruling,
        Ruling::Settled,
        "without a word to the caller"
    );
    place.verify().await;
    place.close().await;
}

/// Stands between a store and its server. Connections from before the hush stay open and carry nothing any more, as when a
/// firewall has forgotten them.
struct Wire {
    url: String,
    hush: tokio::sync::watch::Sender<bool>,
}

impl Wire {
    async fn to(server: &str) -> Self {
        let mut url = url::Url::parse(server).expect("a URL");
        let host = url.host_str().expect("a host").to_owned();
        let address = format!("{host}:{}", url.port().unwrap_or(5432));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(listener.local_addr().expect("an address").port()))
            .expect("a port");
        let (hush, heard) = tokio::sync::watch::channel(false);
        let tasks = Tasks::new();
        let wires = tasks.clone();
        tasks.spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = tokio::net::TcpStream::connect(&address)
                    .await
                    .expect("the server");
                let mut heard = heard.clone();
                heard.mark_unchanged();
                wires.spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
                        _ = heard.changed() => {}
                    }
                    // Both ends stay open.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self {
            url: url.into(),
            hush,
        }
    }
}

#[tokio::test]
async fn a_connection_that_falls_silent_holds_nobody_up() {
    let place = Place::postgres().await;
    let wire = Wire::to(&place.url()).await;
    let shortly = |settings: &mut Settings| {
        settings.url.clone_from(&wire.url);
        settings.patience = Duration::from_millis(300);
    };
    let (store, tasks) = place.neighbour_with(shortly).await;
    let id = place.fresh(&Ask::default()).await.confirmation.id;
    assert!(store.read().dossier(&id).await.expect("read").is_some());
    wire.hush.send(true).expect("a wire");
    let decided = tokio::time::timeout(
        Duration::from_secs(20),
        store.run(decide(&id, "dana", Decision::Approve)),
    );
    let decided = decided.await.expect("in time").expect("over a new connection");
    assert_eq!(decided.ruling, Ruling::Settled);
    let read = tokio::time::timeout(Duration::from_secs(20), store.read().dossier(&id));
    drop(read.await.expect("an answer or an error, in time"));
    place.verify().await;
    tasks.ask_to_stop();
    drop(store);
    assert!(tasks.drain(Duration::from_secs(20)).await);
    place.close().await;
}

#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused_at_the_start() {
    let place = Place::sqlite().await;
    let settings = Settings::new(place.url(), Arc::new(ManualClock::at(place::START)));
    let refused = open(&settings, &Tasks::new()).await.map(|_| ());
    assert!(matches!(refused, Err(OpenError::InUse(_))), "{refused:?}");
    place.close().await;
}

#[tokio::test]
async fn the_file_and_its_log_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::sqlite().await;
    place.fresh(&Ask::default()).await;
    let path = place.url().replacen("sqlite://", "", 1);
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let mode = std::fs::metadata(format!("{path}{suffix}"))
            .expect(suffix)
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
    place.close().await;
}

#[tokio::test]
async fn after_a_stop_the_file_alone_holds_everything() {
    let place = Place::sqlite().await;
    place.fresh(&Ask::default()).await;
    let (_, url) = place.stopped().await;
    let log = format!("{}-wal", url.replacen("sqlite://", "", 1));
    assert_eq!(
        std::fs::metadata(log).map_or(0, |log| log.len()),
        0,
        "a copy of the file is a backup"
    );
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_both() {
    for place in [Place::sqlite().await, Place::postgres().await] {
        place
            .by_the_back_door("INSERT INTO schema_migration VALUES (9999, 'from the future', 'x', 0)")
            .await
            .expect("noted");
        assert!(place.store.read().ready().await.is_err());
        let (tasks, url) = place.stopped().await;
        let refused = open(
            &Settings::new(url, Arc::new(ManualClock::at(place::START))),
            &tasks,
        )
        .await;
        assert!(matches!(refused.map(|_| ()), Err(OpenError::NewerSchema(9999))));
        place.close().await;
    }
}
