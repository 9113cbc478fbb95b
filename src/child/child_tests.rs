use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Ended, How, Keep, NotStarted, Overflow, Request, run};
use crate::config::child::ChildConfig;

fn shell(script: &str) -> ChildConfig {
    ChildConfig {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        dir: PathBuf::new(),
        env: BTreeMap::new(),
    }
}

const REQUEST: Request<'static> = Request {
    input: b"in",
    limit: Duration::from_secs(20),
    grace: Duration::from_millis(200),
    out: Keep::Head(1024),
    err: Keep::Tail(16),
    overflow: Overflow::Drop,
};

async fn ended(script: &str, request: Request<'_>) -> Ended {
    run(&shell(script), request).await.unwrap()
}

#[tokio::test]
async fn input_goes_in_and_both_outputs_come_out() {
    let ended = ended("cat; echo wrong >&2; exit 7", REQUEST).await;
    assert_eq!(ended.how, How::Exited(7));
    assert_eq!(
        (ended.out.bytes(), ended.err.bytes()),
        (&b"in"[..], &b"wrong\n"[..])
    );
}

#[tokio::test]
async fn the_environment_is_empty() {
    let ended = ended("env", REQUEST).await;
    let text = String::from_utf8_lossy(ended.out.bytes()).into_owned();
    // A shell sets these itself.
    let foreign = text
        .lines()
        .find(|line| !line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("SHLVL="));
    assert_eq!(foreign, None);
}

#[tokio::test]
async fn a_child_that_cannot_be_started_or_dies_by_a_signal_says_so() {
    let mut config = shell("");
    config.program = "./no_such_file.sh".to_owned();
    assert_eq!(run(&config, REQUEST).await.unwrap_err(), NotStarted::NotFound);
    assert_eq!(ended("kill -SEGV $$", REQUEST).await.how, How::Signalled(11));
}

#[tokio::test]
async fn an_input_that_nobody_reads_is_no_error() {
    let input = vec![b'A'; 2_000_000];
    for script in [
        "echo done",
        "exec 0<&-; echo done",
        "head -c 10 >/dev/null; echo done",
    ] {
        let request = Request {
            input: &input,
            ..REQUEST
        };
        let ended = ended(script, request).await;
        assert_eq!(ended.how, How::Exited(0), "{script}");
        assert_eq!(ended.out.bytes(), b"done\n", "{script}");
    }
}

#[tokio::test]
async fn outputs_are_bounded_and_a_flood_is_ended_when_nobody_wants_it() {
    let dropped = ended(
        "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo end >&2",
        REQUEST,
    )
    .await;
    assert_eq!(dropped.how, How::Exited(0));
    assert_eq!((dropped.out.bytes().len(), dropped.out.is_cut()), (1024, true));
    assert!(dropped.err.bytes().ends_with(b"end\n") && dropped.err.bytes().len() == 16);
    let request = Request {
        overflow: Overflow::End,
        ..REQUEST
    };
    assert_eq!(
        ended("head -c 200000000 /dev/zero", request).await.how,
        How::TooMuch
    );
    assert_eq!(ended("head -c 1025 /dev/zero", request).await.how, How::TooMuch);
}

/// A grandchild in a session of its own, one in the group, and all of them hold the pipes.
#[tokio::test]
async fn a_time_out_ends_the_whole_family() {
    let marker = format!("7{:06}", std::process::id());
    let request = Request {
        limit: Duration::from_millis(300),
        ..REQUEST
    };
    let script = format!("(sleep {marker}1) & setsid sleep {marker}2 & sleep {marker}3");
    let began = Instant::now();
    assert_eq!(ended(&script, request).await.how, How::TimedOut(request.limit));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(living(&marker), 0);
}

#[tokio::test]
async fn a_child_that_ignores_term_is_killed_after_the_grace() {
    let request = Request {
        limit: Duration::from_millis(300),
        ..REQUEST
    };
    let began = Instant::now();
    let how = ended("trap '' TERM; while :; do sleep 0.05; done", request)
        .await
        .how;
    assert_eq!(how, How::TimedOut(request.limit));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_stray_process_that_holds_the_pipe_holds_up_nobody() {
    let marker = format!("8{:06}", std::process::id());
    let began = Instant::now();
    let ended = ended(&format!("sleep {marker} & echo said"), REQUEST).await;
    assert_eq!((ended.how, ended.out.bytes()), (How::Exited(0), &b"said\n"[..]));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(living(&marker), 0, "what it left in its group is ended with it");
}

#[tokio::test]
async fn whoever_stops_waiting_leaves_nothing_behind() {
    let marker = format!("9{:06}", std::process::id());
    let config = shell(&format!("setsid sleep {marker}1 & sleep {marker}2"));
    let waited = tokio::time::timeout(Duration::from_millis(300), run(&config, REQUEST)).await;
    assert!(waited.is_err());
    assert_eq!(living(&marker), 0);
}

/// 200 rounds of time-outs leave no process and no open file.
#[tokio::test]
async fn two_hundred_time_outs_leave_nothing_behind() {
    let marker = format!("6{:06}", std::process::id());
    let config = shell(&format!(
        "sleep {marker}1 & setsid sleep {marker}2 & sleep {marker}3"
    ));
    let request = Request {
        limit: Duration::from_millis(20),
        grace: Duration::from_millis(20),
        ..REQUEST
    };
    let mut open = 0;
    for round in 0..200 {
        let ended = run(&config, request).await.unwrap();
        assert_eq!(ended.how, How::TimedOut(request.limit));
        if round == 9 {
            open = open_files();
        }
    }
    assert_eq!(living(&marker), 0);
    assert!(
        open_files() <= open,
        "{} open files, {open} after ten rounds",
        open_files()
    );
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Processes whose command line holds the marker. One that was killed is gone from the list a moment later.
fn living(marker: &str) -> usize {
    let mut left = 0;
    for _ in 0..200 {
        left = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
            .filter(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(line).contains(marker))
            .count();
        if left == 0 {
            return 0;
        }
        std::thread::yield_now();
    }
    left
}
