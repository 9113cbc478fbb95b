//! Servers over stdio: real child processes that behave, and that do not.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::call::Called;
use super::fixture::{Kept, PERMIT, limits};
use super::server::{Health, Limits};
use super::watcher::{Moment, Watcher};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(400);

fn done(text: &str) -> Called {
    Called::Done(text.to_owned())
}

#[tokio::test]
async fn a_call_arrives_once_and_exactly_as_it_is_stored() {
    let kept = Kept::ready("plain", LONG).await;
    let Health::Ready {
        server,
        tools,
        left_out,
    } = kept.server.health()
    else {
        panic!("ready")
    };
    assert_eq!(server, "till 1.0, MCP 2025-11-25");
    assert_eq!((tools.len(), left_out.len()), (16, 0), "all pages: {tools:?}");
    let args = r#"{"amount":123456789012345678901.05,"payee":"é \" \\ \u0007"}"#;
    assert_eq!(kept.call("pay", args).await, done("paid"));
    let log = kept.log();
    assert_eq!(log.len(), 1);
    assert!(log[0].contains(&format!("\"arguments\":{args}")), "{}", log[0]);
    assert!(
        log[0].contains(&format!("\"gatepost/permit\":\"{PERMIT}\"")),
        "{}",
        log[0]
    );
    assert_eq!(kept.call("environment", "{}").await, done("PATH TILL_TOKEN"));
    assert_eq!(kept.call("echo", r#"{"a":[1]}"#).await, done(r#"{"a": [1]}"#));
}

#[tokio::test]
async fn calls_side_by_side_get_their_own_answers() {
    let kept = Kept::ready("plain", LONG).await;
    let texts: Vec<String> = (0..20).map(|n| format!("{{\"n\": {n}}}")).collect();
    let calls = texts.iter().map(|text| kept.call("echo", text));
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!(answers, texts.iter().map(|text| done(text)).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_no_message_is_passed_over() {
    let kept = Kept::ready("noise", LONG).await;
    for _ in 0..3 {
        assert_eq!(kept.call("pay", "{}").await, done("paid"));
    }
}

#[tokio::test]
async fn a_failure_is_told_and_nonsense_is_unknown() {
    let kept = Kept::ready("plain", LONG).await;
    assert_eq!(
        kept.call("fail", "{}").await,
        Called::Failed("the account is closed".to_owned())
    );
    let refused = "the server refused the call (-32602): no such account";
    assert_eq!(
        kept.call("refuse", "{}").await,
        Called::Failed(refused.to_owned())
    );
    assert!(matches!(kept.call("garbage", "{}").await, Called::Unknown(_)));
    assert!(matches!(kept.call("task", "{}").await, Called::Unknown(_)));
    let input = kept.call("input", "{}").await;
    assert!(
        matches!(&input, Called::Failed(why) if why.contains("wants input")),
        "{input:?}"
    );
    assert_eq!(kept.log().len(), 5, "nothing is sent twice");
}

#[tokio::test]
async fn a_server_gets_nothing_that_it_asks_for_but_a_ping() {
    let kept = Kept::ready("plain", LONG).await;
    assert_eq!(
        kept.call("ask", "{}").await,
        done(r#"["refused", "refused", "decline", "answered"]"#)
    );
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_it_unknown_and_comes_back() {
    let kept = Kept::ready("plain", LONG).await;
    let before = kept.call("pid", "{}").await;
    let died = kept.call("die", "{}").await;
    assert!(
        matches!(&died, Called::Unknown(why) if why.contains("may have been carried out")),
        "{died:?}"
    );
    let after = kept.call("pid", "{}").await;
    assert!(matches!(after, Called::Done(_)) && after != before, "{after:?}");
    assert_eq!(
        kept.log().iter().filter(|line| line.contains("\"die\"")).count(),
        1,
        "not sent again"
    );
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Watcher for Heard {
    fn told(&self, server: &str, moment: Moment<'_>) {
        self.0.lock().unwrap().push(format!("{server} {moment:?}"));
    }
}

impl Heard {
    fn count(&self, of: &str) -> usize {
        let heard = self.0.lock().unwrap();
        heard.iter().filter(|line| line.starts_with(of)).count()
    }
}

#[tokio::test]
async fn whoever_watches_hears_of_each_connection_and_its_tools() {
    let kept = Kept::child("plain", LONG, limits());
    let heard = Arc::new(Heard::default());
    kept.server.watched_by(Arc::clone(&heard) as Arc<dyn Watcher>);
    let tools = kept.until_there().await.tools.len();
    assert_eq!(heard.count("till Discovered"), tools);
    kept.call("die", "{}").await;
    assert!(matches!(kept.call("pid", "{}").await, Called::Done(_)));
    for (what, times) in [
        ("till Connecting", 2),
        ("till Connected", 2),
        ("till Failed", 1),
        ("till Discovered { tool: \"pid\" }", 2),
    ] {
        assert_eq!(heard.count(what), times, "{what}: {:?}", heard.0.lock().unwrap());
    }
}

#[tokio::test]
async fn a_call_that_hangs_is_given_up_and_the_server_replaced() {
    let limits = Limits {
        list: Duration::from_secs(2),
        ..limits()
    };
    let kept = Kept::child("plain", Duration::from_secs(2), limits);
    kept.until_there().await;
    let began = Instant::now();
    let hung = kept.call("hang", "{}").await;
    assert!(
        matches!(&hung, Called::Unknown(why) if why.starts_with("no answer came in time")),
        "{hung:?}"
    );
    assert!(began.elapsed() < LONG);
    // It answers no ping either, so another one takes its place.
    let mut answered = kept.call("pay", "{}").await;
    for _ in 0..10 {
        if answered == done("paid") {
            break;
        }
        answered = kept.call("pay", "{}").await;
    }
    assert_eq!(answered, done("paid"));
}

#[tokio::test]
async fn a_late_answer_is_nobody_elses() {
    let kept = Kept::ready("plain", SHORT).await;
    assert!(matches!(kept.call("late", "{}").await, Called::Unknown(_)));
    let next = kept.call("echo", r#"{"a": 1}"#).await;
    assert_eq!(next, done(r#"{"a": 1}"#));
}

#[tokio::test]
async fn an_answer_beyond_the_bound_ends_the_connection() {
    let kept = Kept::ready("plain", LONG).await;
    let vast = kept.call("vast", "{}").await;
    assert!(
        matches!(&vast, Called::Unknown(why) if why.contains("more than 4194304 bytes")),
        "{vast:?}"
    );
    assert_eq!(
        kept.call("pay", "{}").await,
        done("paid"),
        "and the next one works"
    );
}

/// The pipe to a server that reads nothing fills up: a call in it may arrive some day, one behind it never does.
#[tokio::test]
async fn a_deaf_server_holds_nobody_up() {
    let kept = Kept::ready("deaf", Duration::from_secs(1)).await;
    let vast = format!("{{\"a\":\"{}\"}}", "x".repeat(300_000));
    let (in_the_pipe, behind) = tokio::join!(kept.call("pay", &vast), async {
        tokio::task::yield_now().await;
        kept.call("pay", "{}").await
    });
    assert!(matches!(in_the_pipe, Called::Unknown(_)), "{in_the_pipe:?}");
    assert!(matches!(behind, Called::NotMade(_)), "{behind:?}");
}

#[tokio::test]
async fn a_tool_that_changed_is_not_called() {
    let kept = Kept::ready("plain", LONG).await;
    for change in ["change", "change_silently"] {
        let known = kept.until_there().await.tools["pay"].fingerprint.clone();
        assert_eq!(kept.call(change, "{}").await, done("changed"));
        if change == "change_silently" {
            kept.server.refresh().await;
        }
        for _ in 0..500 {
            if kept.until_there().await.tools["pay"].fingerprint != known {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let before = kept.log().len();
        assert_eq!(
            kept.server.call("pay", &known, "{}", PERMIT).await,
            Called::Changed,
            "{change}"
        );
        assert_eq!(kept.log().len(), before, "nothing left");
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_down_and_says_why() {
    let exits = Kept::child("exits", LONG, limits());
    exits.server.settled().await;
    let Health::Down(why) = exits.server.health() else {
        panic!("down")
    };
    assert!(
        why.contains("exit code 3") && why.contains("cannot start"),
        "{why}"
    );
    assert!(!why.contains("hunter2"), "no secret: {why}");
    let mute = Kept::child(
        "mute",
        LONG,
        Limits {
            handshake: SHORT,
            ..limits()
        },
    );
    mute.server.settled().await;
    assert_eq!(
        mute.server.health(),
        Health::Down("it did not answer within 400 ms".to_owned())
    );
}

#[tokio::test]
async fn only_the_sound_tools_of_a_list_are_offered() {
    let kept = Kept::ready("odd_list", LONG).await;
    let Health::Ready { tools, left_out, .. } = kept.server.health() else {
        panic!("ready")
    };
    assert_eq!(tools, ["good"]);
    assert_eq!(left_out.len(), 4, "{left_out:?}");
}

#[tokio::test]
async fn the_revision_without_a_handshake_is_spoken_where_the_other_is_refused() {
    let kept = Kept::ready("modern_only", LONG).await;
    let Health::Ready { server, .. } = kept.server.health() else {
        panic!("ready")
    };
    assert_eq!(server, "till 2.0, MCP 2026-07-28");
    assert_eq!(kept.call("pay", "{}").await, done("paid"));
}

#[tokio::test]
async fn a_stop_ends_the_process() {
    let kept = Kept::ready("plain", LONG).await;
    let Called::Done(pid) = kept.call("pid", "{}").await else {
        panic!("a pid")
    };
    let began = Instant::now();
    kept.tasks.ask_to_stop();
    assert_eq!(
        kept.call("pay", "{}").await,
        done("paid"),
        "a run that has not ended may still call"
    );
    kept.server.release();
    assert!(kept.tasks.drain(LONG).await);
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "nobody waits for a call that nobody makes"
    );
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
