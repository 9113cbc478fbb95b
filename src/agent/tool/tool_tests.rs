//! Tools against real children and a real server on loopback.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use proptest::prelude::*;

use super::command::CommandTool;
use super::http::HttpTool;
use super::{Carried, MAX_RESULT, told};
use crate::config::Secret;
use crate::config::agent::{self, Body, OUTPUT_LIMIT, ToolMethod};
use crate::config::child::ChildConfig;
use crate::ids::{PermitId, SeededIds};
use crate::job::fixture::Folder;
use crate::lifecycle::Tasks;

fn permit() -> PermitId {
    PermitId::fresh(&SeededIds::default())
}

fn shell(script: &str, env: &[(&str, &str)]) -> CommandTool {
    CommandTool::new(ChildConfig {
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        dir: std::env::temp_dir(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::verbatim(value)))
            .collect(),
    })
}

async fn run(script: &str) -> Carried {
    shell(script, &[])
        .carry_out("{\"a\":1}", Duration::from_secs(20), OUTPUT_LIMIT)
        .await
}

#[tokio::test]
async fn a_command_gets_its_arguments_on_stdin_and_only_the_listed_environment() {
    assert_eq!(run("cat").await, Carried::Done("{\"a\":1}".to_owned()));
    let env = shell("/usr/bin/env", &[("LISTED", "yes")])
        .carry_out("{}", Duration::from_secs(20), OUTPUT_LIMIT)
        .await;
    let Carried::Done(env) = env else {
        panic!("{env:?}")
    };
    // What the shell sets by itself is not inherited.
    let foreign: Vec<&str> = env
        .lines()
        .filter(|line| {
            !["PWD=", "OLDPWD=", "SHLVL=", "_=", "LISTED="]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .collect();
    assert_eq!(foreign, [""; 0]);
    assert!(env.contains("LISTED=yes"));
}

#[tokio::test]
async fn every_way_to_fail_is_an_answer() {
    let failed = run("echo out; echo bad >&2; exit 3").await;
    assert_eq!(
        failed,
        Carried::Failed("the command ended with exit code 3\nout\n\n[stderr]\nbad\n".to_owned())
    );
    let Carried::Unknown(killed) = run("kill -9 $$").await else {
        panic!("it did not say how far it came")
    };
    assert!(killed.starts_with("the command was ended by signal 9"));
    let nowhere = CommandTool::new(ChildConfig {
        program: "/nowhere/at/all".to_owned(),
        args: Vec::new(),
        dir: std::path::PathBuf::new(),
        env: BTreeMap::new(),
    });
    let Carried::Failed(missing) = nowhere
        .carry_out("{}", Duration::from_secs(1), OUTPUT_LIMIT)
        .await
    else {
        panic!("failed")
    };
    assert!(missing.starts_with("the command could not be started"));
    // A child that reads nothing, however much there is.
    let unread = shell("exit 0", &[])
        .carry_out(&"x".repeat(1 << 20), Duration::from_secs(20), OUTPUT_LIMIT)
        .await;
    assert_eq!(unread, Carried::Done(String::new()));
}

#[tokio::test]
async fn a_flood_on_both_streams_neither_blocks_nor_fills_the_memory() {
    let flood =
        run("head -c 3000000 /dev/zero | tr '\\0' 'e' >&2; head -c 3000000 /dev/zero | tr '\\0' 'x'").await;
    let Carried::Done(text) = flood else {
        panic!("done")
    };
    assert!(text.len() < OUTPUT_LIMIT + 100);
    assert!(text.ends_with("bytes were kept]"));
}

/// Whether a process with this number is alive (and not only waiting to be reaped).
fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

async fn dies(pid: &str) {
    for _ in 0..400 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the process is alive");
}

#[tokio::test]
async fn a_time_out_ends_the_whole_tree_even_one_that_ignores_the_request() {
    let folder = Folder::new();
    let file = folder.0.join("pid");
    let script = format!(
        "trap '' TERM; (trap '' TERM; while true; do sleep 1; done) & echo $! > {}; while true; do sleep 1; done",
        file.display()
    );
    let began = Instant::now();
    let carried = shell(&script, &[])
        .carry_out("{}", Duration::from_millis(500), OUTPUT_LIMIT)
        .await;
    let Carried::Unknown(text) = carried else {
        panic!("it did not say how far it came")
    };
    assert!(text.starts_with("the command took longer than 500 ms"));
    assert!(began.elapsed() < Duration::from_secs(15));
    dies(&std::fs::read_to_string(&file).unwrap()).await;
}

#[tokio::test]
async fn a_descendant_that_holds_the_pipes_does_not_hold_the_call() {
    let folder = Folder::new();
    let file = folder.0.join("pid");
    let script = format!("sleep 600 & echo $! > {}; echo done", file.display());
    let began = Instant::now();
    let carried = shell(&script, &[])
        .carry_out("{}", Duration::from_mins(1), OUTPUT_LIMIT)
        .await;
    assert_eq!(carried, Carried::Done("done\n".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(20));
    dies(&std::fs::read_to_string(&file).unwrap()).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_children_along() {
    let folder = Folder::new();
    let file = folder.0.join("pid");
    let script = format!("echo $$ > {}; sleep 600", file.display());
    let tool = shell(&script, &[]);
    let called = tokio::time::timeout(
        Duration::from_millis(500),
        tool.carry_out("{}", Duration::from_mins(1), OUTPUT_LIMIT),
    );
    assert!(called.await.is_err());
    dies(&std::fs::read_to_string(&file).unwrap()).await;
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(String, HeaderMap, Bytes)>>,
}

async fn serve(State(seen): State<Arc<Seen>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let path = uri.path().to_owned();
    seen.requests.lock().unwrap().push((path.clone(), headers, body));
    match path.as_str() {
        "/fails" => (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response(),
        "/moved" => (StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")], "").into_response(),
        "/slow" => std::future::pending().await,
        "/flood" => "x".repeat(2 * OUTPUT_LIMIT).into_response(),
        status if status.starts_with("/status/") => {
            let code = status.trim_start_matches("/status/").parse().unwrap();
            (StatusCode::from_u16(code).unwrap(), "said").into_response()
        }
        _ => "{\"ok\":true}".into_response(),
    }
}

struct Place {
    seen: Arc<Seen>,
    base: String,
    tasks: Tasks,
    client: reqwest::Client,
    limit: usize,
}

impl Place {
    async fn open() -> Self {
        let seen = Arc::new(Seen::default());
        let router = Router::new().fallback(serve).with_state(Arc::clone(&seen));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .unwrap();
        Self {
            seen,
            base,
            tasks,
            client,
            limit: OUTPUT_LIMIT,
        }
    }

    async fn call(&self, path: &str, timeout: Duration) -> Carried {
        let config = agent::HttpTool {
            method: ToolMethod::Post,
            address: format!("{}{path}", self.base).parse().unwrap(),
            placed: Vec::new(),
            body: Body::Rest,
            headers: BTreeMap::from([("authorization".to_owned(), Secret::verbatim("Bearer of-the-tool"))]),
        };
        HttpTool::new(&config, self.client.clone())
            .carry_out(
                "{\"amount\":1E21,\"z\":\"\u{e9}\"}",
                &permit(),
                timeout,
                self.limit,
            )
            .await
    }
}

#[tokio::test]
async fn the_stored_bytes_and_the_permit_are_what_a_tool_sees() {
    let place = Place::open().await;
    let patience = Duration::from_secs(20);
    assert_eq!(
        place.call("/pay", patience).await,
        Carried::Done("{\"ok\":true}".to_owned())
    );
    let (_, headers, body) = place.seen.requests.lock().unwrap()[0].clone();
    assert_eq!(
        body,
        "{\"amount\":1E21,\"z\":\"\u{e9}\"}".as_bytes(),
        "byte for byte"
    );
    assert_eq!(headers["idempotency-key"], permit().as_str());
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["authorization"], "Bearer of-the-tool");
    let Carried::Failed(moved) = place.call("/moved", patience).await else {
        panic!("a redirect is a failure")
    };
    assert!(moved.starts_with("HTTP 307"));
    assert!(
        !place
            .seen
            .requests
            .lock()
            .unwrap()
            .iter()
            .any(|(path, _, _)| path == "/elsewhere"),
        "no redirect is followed"
    );
    assert_eq!(
        place.call("/fails", patience).await,
        Carried::Failed("HTTP 500\nbroken".to_owned())
    );
    let Carried::Done(flood) = place.call("/flood", patience).await else {
        panic!("done")
    };
    assert!(flood.len() < OUTPUT_LIMIT + 100);
    let small = Place {
        limit: 2_000,
        ..place
    };
    let Carried::Done(less) = small.call("/flood", patience).await else {
        panic!("done")
    };
    assert!(less.starts_with("xxx") && less.ends_with("[cut: only the first 2000 bytes were kept]"));
    assert!(less.len() < 2_100);
    small.tasks.ask_to_stop();
}

#[tokio::test]
async fn what_may_have_arrived_is_unknown_and_what_cannot_have_is_not() {
    let place = Place::open().await;
    let slow = place.call("/slow", Duration::from_millis(300)).await;
    assert!(matches!(slow, Carried::Unknown(_)), "{slow:?}");
    // One that ends its answer before the length that it announced.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let short = Place {
        base: format!("http://{}", listener.local_addr().unwrap()),
        ..Place::open().await
    };
    short.tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4096\r\n\r\n{\"ok\":";
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await;
        }
    });
    let broken_off = short.call("/", Duration::from_secs(20)).await;
    assert!(matches!(broken_off, Carried::Unknown(_)), "{broken_off:?}");
    // A server that takes the call and hangs up.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rude = Place {
        base: format!("http://{}", listener.local_addr().unwrap()),
        ..Place::open().await
    };
    rude.tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await;
        }
    });
    let hung_up = rude.call("/", Duration::from_secs(20)).await;
    assert!(matches!(hung_up, Carried::Unknown(_)), "{hung_up:?}");
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = Place {
        base: format!("http://{}", closed.local_addr().unwrap()),
        ..Place::open().await
    };
    drop(closed);
    let refused = nobody.call("/", Duration::from_secs(20)).await;
    assert!(matches!(refused, Carried::Failed(_)), "{refused:?}");
    let nameless = Place {
        base: "http://nowhere.invalid".to_owned(),
        client: reqwest::Client::builder()
            .no_proxy()
            .dns_resolver(Arc::new(NoNames))
            .build()
            .unwrap(),
        ..Place::open().await
    };
    let unnamed = nameless.call("/", Duration::from_secs(20)).await;
    assert!(matches!(unnamed, Carried::Failed(_)), "{unnamed:?}");
}

/// Knows nobody.
struct NoNames;

impl reqwest::dns::Resolve for NoNames {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async { Err("no such name".into()) })
    }
}

/// The finding: a gateway's 502, 503 or 504 was recorded as the tool's own failure.
#[tokio::test]
async fn each_status_says_what_can_be_known() {
    let place = Place::open().await;
    let patience = Duration::from_secs(20);
    for code in [200, 201, 202, 204, 206] {
        let carried = place.call(&format!("/status/{code}"), patience).await;
        assert!(matches!(carried, Carried::Done(_)), "{code}: {carried:?}");
    }
    for code in [
        302, 307, 400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 499, 500, 501, 505,
    ] {
        let carried = place.call(&format!("/status/{code}"), patience).await;
        let words = format!("HTTP {code}");
        assert!(
            matches!(&carried, Carried::Failed(text) if text.starts_with(&words)),
            "{code}: {carried:?}"
        );
    }
    // What was done is shown elsewhere: the next call would do it again.
    for code in [303, 502, 503, 504, 507, 508, 511, 520, 522, 524, 529, 599, 600] {
        let carried = place.call(&format!("/status/{code}"), patience).await;
        assert!(matches!(carried, Carried::Unknown(_)), "{code}: {carried:?}");
    }
    place.tasks.ask_to_stop();
}

proptest! {
    #[test]
    fn a_result_is_cut_between_characters_and_says_so(text in "(a|\u{e9}|\u{1F600}|\n){0,9000}") {
        let told = told(&text);
        let count = text.chars().count();
        if count <= MAX_RESULT {
            prop_assert_eq!(told, text);
        } else {
            let kept: String = text.chars().take(MAX_RESULT).collect();
            let note = format!("\n[cut: the first {MAX_RESULT} of {count} characters]");
            prop_assert_eq!(told, kept + &note);
        }
    }
}
