//! Pieces and the model client: what is read from files and endpoints that nobody here wrote. (The engine itself is driven by
//! `runner_tests` and `crash_tests`; here only what a run cannot reach.)

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::engine::{Effect, Event, Setting, step};
use super::limits::Limits;
use super::memory::{Entry, Memory, Past, hear};
use super::model::client::{ModelClient, Patience};
use super::model::{Listener, Model as _, ModelError, Progress, Question, RawCall, Reply, ToolOffer, Usage};
use super::piece::{Piece, Pieces};
use super::scene::{House, Scene};
use crate::config::Secret;
use crate::config::agent::ModelConfig;
use crate::job::answer::{NotHeard, Reply as Answer};
use crate::job::fixture::Folder;
use crate::lifecycle::Tasks;

const PIECE: &str = "\
name: pay
description: Pays what is due
initial_movement: plan
max_movements: 5
movements:
  - name: plan
    instruction: Find out what is due.
    persona: You are careful.
    allowed_tools: [disk_usage, mcp__files__*, oa__*]
    rules:
      - { condition: all is known, next: act }
      - { condition: helpers are at work, next: WAIT_SUBTASKS }
    default_next: act
  - name: act
    instruction: Pay.
    default_next: COMPLETE
";

fn tools() -> BTreeSet<String> {
    BTreeSet::from(["disk_usage".to_owned(), "oa__purchase_pay".to_owned()])
}

fn problems(text: &str) -> String {
    Piece::parse(text, "pay.yaml", &tools())
        .expect_err("it has problems")
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_piece_is_read_whole() {
    let piece = Piece::parse(PIECE, "pay.yaml", &tools()).unwrap();
    assert_eq!((piece.name.as_str(), piece.max_movements), ("pay", 5));
    let plan = piece.movement(&piece.initial_movement).unwrap();
    assert!(plan.allows("disk_usage") && plan.allows("oa__purchase_pay") && plan.allows("mcp__files__read"));
    assert!(!plan.allows("disk_usage_2") && !plan.allows("mcp__other__read"));
    let act = piece.movement("act").unwrap();
    assert!(!act.allows("disk_usage"), "nothing named, nothing allowed");
    assert_eq!(plan.rules[1].next, "WAIT_SUBTASKS");
}

#[test]
fn a_problem_of_a_piece_names_its_place() {
    let table = [
        (
            "initial_movement: plan",
            "initial_movement: plam",
            "pay.yaml:3:1: initial_movement: ",
        ),
        (
            "[disk_usage,",
            "[disk_usages,",
            "pay.yaml:9:21: movements[0].allowed_tools[0]: there is no tool",
        ),
        (
            "oa__*]",
            "o*a]",
            "movements[0].allowed_tools[2]: there is no tool",
        ),
        (
            "oa__*]",
            "'oa__[']",
            "movements[0].allowed_tools[2]: the glob does not compile",
        ),
        ("max_movements: 5", "max_iterations: 0", "max_iterations: "),
        ("max_movements: 5", "ask_limit: many", "ask_limit: "),
        (
            "next: act }",
            "next: COMPLETE }",
            "pay.yaml:11:36: movements[0].rules[0].next: `COMPLETE` is the engine's own",
        ),
        (
            "next: act }",
            "next: ABORT }",
            "movements[0].rules[0].next: `ABORT`",
        ),
        ("next: act }", "next: ASK }", "movements[0].rules[0].next: `ASK`"),
        ("next: act }", "next: away }", "movements[0].rules[0].next: "),
        ("name: act", "name: plan", "pay.yaml:14:"),
        ("name: act", "name: COMPLETE", "movements[1].name: "),
        (
            "next: act }",
            "next: WAITING_HUMAN_BROWSER }",
            "movements[0].rules[0].next: `WAITING_HUMAN_BROWSER`",
        ),
        ("max_movements: 5", "pieces: pay", "pieces: "),
        ("max_movements: 5", "max_movements: 0", "max_movements: "),
        (
            "description:",
            "descripton:",
            "pay.yaml:2:1: descripton: the key `descripton` is not known here",
        ),
        (
            "    instruction: Pay.\n",
            "",
            "movements[1].instruction: the key `instruction` is missing",
        ),
    ];
    for (from, to, expected) in table {
        let text = PIECE.replacen(from, to, 1);
        assert_ne!(text, PIECE, "{from}");
        let found = problems(&text);
        assert!(found.contains(expected), "{to}\n{found}");
    }
    for text in ["", "- a", "name: [", "name: pay\nname: pay"] {
        assert!(!problems(text).is_empty(), "{text}");
    }
}

#[test]
fn the_linter_tells_what_cannot_be_meant() {
    let lost = format!("{PIECE}  - name: lost\n    instruction: Nobody comes here.\n");
    let (_, warnings) = Piece::read(&lost, "pay.yaml", &tools()).unwrap();
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("pay.yaml:17:") && told[0].contains("`lost`"),
        "{told:?}"
    );
    let ends = PIECE.replacen("default_next: act", "default_next: COMPLETE", 1);
    let (_, warnings) = Piece::read(&ends, "pay.yaml", &tools()).unwrap();
    assert!(warnings[0].message.contains("WAIT_SUBTASKS"), "{warnings:?}");
    let (_, warnings) = Piece::read(PIECE, "pay.yaml", &tools()).unwrap();
    assert_eq!(warnings, []);

    let folder = Folder::new();
    let stranger = PIECE.replacen("max_movements: 5", "pieces: [pay, pai]", 1);
    std::fs::write(folder.0.join("a.yaml"), stranger).unwrap();
    let found = Pieces::load(&folder.0, &tools()).unwrap_err();
    assert!(
        found[0].to_string().contains("there is no piece `pai`"),
        "{found:?}"
    );
}

#[test]
fn a_folder_of_pieces_tells_every_problem_of_every_file() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    write("a.yaml", PIECE);
    write("notes.txt", "no piece");
    assert_eq!(Pieces::load(&folder.0, &tools()).unwrap().all().count(), 1);
    write("b.yml", PIECE);
    write("c.yaml", "name: c");
    std::fs::write(folder.0.join("d.yaml"), [0xff, 0xfe]).unwrap();
    let found = Pieces::load(&folder.0, &tools()).unwrap_err();
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    let all = text.join("\n");
    assert!(
        all.contains("b.yml:1:1: name: a second piece named `pay`"),
        "{all}"
    );
    assert!(all.contains("c.yaml") && all.contains("d.yaml"), "{all}");
    assert!(Pieces::load(&folder.0.join("nowhere"), &tools()).is_err());
}

proptest! {
    #[test]
    fn no_text_of_a_piece_panics(text in "[a-z:_\\-\\[\\]{}\n \"*]{0,200}") {
        let _ = Piece::parse(&text, "x.yaml", &tools());
    }

    #[test]
    fn no_text_of_a_memory_panics(text in any::<String>()) {
        let _ = Memory::read(&text, "in");
        prop_assert_eq!(hear(&text, &Answer::Words("x".to_owned()), None), Err(NotHeard::NoQuestion));
    }

    /// Whatever a model answers, a memory that was stepped can be written and read, and an effect comes of it.
    #[test]
    fn no_reply_panics(
        text in prop::option::of(any::<String>()),
        calls in prop::collection::vec((prop::option::of("[a-c]{0,2}"), prop::option::of(".{0,80}"), prop::option::of(".{0,40}")), 0..6),
        complete in any::<bool>(),
    ) {
        let piece = Piece::parse(PIECE, "pay.yaml", &tools()).unwrap();
        let toolbox = super::tool::Shelf::default();
        let pieces = Pieces::default();
        let house = House { toolbox: &toolbox, pieces: &pieces, submits: None, limits: Limits::default() };
        let mut scene = Scene::set(house, &piece, &piece.movements[0], &Memory::fresh("in"));
        scene.tools.insert("t", false);
        let setting = Setting { limits: Limits::default(), scene: &scene };
        let calls = calls.into_iter().map(|(id, name, arguments)| RawCall { id, name, arguments, fault: None }).collect();
        let reply = Reply { text, calls, complete, usage: Usage::default() };
        let (memory, effect) = step(Memory::fresh("in"), Event::Replied(reply), &setting);
        let read = Memory::read(&memory.write(), "").unwrap();
        prop_assert_eq!(&read, &memory);
        let is_sane = matches!(effect, Effect::AskModel | Effect::Judge { .. } | Effect::Finish(_));
        prop_assert!(is_sane, "{:?}", effect);
    }
}

#[test]
fn a_memory_of_another_version_is_refused_and_an_empty_one_begins() {
    assert_eq!(Memory::read("{}", "go").unwrap(), Memory::fresh("go"));
    assert!(Memory::read("{\"version\":2}", "go").is_err());
    assert!(Memory::read("{\"version\":1}", "go").is_err());
}

#[derive(Default)]
struct Endpoint {
    answers: Mutex<VecDeque<(u16, String)>>,
    requests: Mutex<Vec<(HeaderMap, Value)>>,
}

async fn serve(
    State(endpoint): State<Arc<Endpoint>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1], String) {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let streams = asked["stream"] == true;
    endpoint.requests.lock().unwrap().push((headers, asked));
    let (status, body) = endpoint
        .answers
        .lock()
        .unwrap()
        .pop_front()
        .unwrap_or((500, String::new()));
    let kind = if streams && body.contains("[DONE]") {
        "text/event-stream"
    } else {
        "text/plain"
    };
    (
        StatusCode::from_u16(status).unwrap(),
        [("content-type", kind)],
        body,
    )
}

async fn endpoint(answers: &[(u16, &str)]) -> (Arc<Endpoint>, ModelClient) {
    endpoint_of(answers, false).await
}

async fn endpoint_of(answers: &[(u16, &str)], stream: bool) -> (Arc<Endpoint>, ModelClient) {
    let endpoint = Arc::new(Endpoint::default());
    endpoint
        .answers
        .lock()
        .unwrap()
        .extend(answers.iter().map(|(status, body)| (*status, (*body).to_owned())));
    let router = Router::new()
        .route("/v1/chat/completions", axum::routing::post(serve))
        .with_state(Arc::clone(&endpoint));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    Tasks::new().spawn(async move {
        let _ = axum::serve(listener, router).await;
    });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ModelConfig {
        base_url: base_url.parse().unwrap(),
        model: "any".to_owned(),
        api_key: Some(Secret::verbatim("sk-test")),
        timeout: Duration::from_secs(20),
        stream,
        context: 100_000,
        retries: 2,
    };
    let patience = Patience {
        pauses: vec![Duration::ZERO; 2],
    };
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = ModelClient::new(&config, client, patience).unwrap();
    (endpoint, client)
}

/// A status and a body.
type Said = (u16, &'static str);

const SAID: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

fn asks(history: &[Entry]) -> Question<'_> {
    Question {
        system: "be good".to_owned(),
        history,
        tools: vec![ToolOffer {
            name: "t".to_owned(),
            description: "does".to_owned(),
            parameters: json!({"type": "object"}),
        }],
        listener: Listener::default(),
    }
}

#[tokio::test]
async fn the_model_is_asked_in_its_own_form() {
    let (endpoint, client) = endpoint(&[(200, SAID)]).await;
    let history = [
        Entry::User("go".to_owned()),
        Entry::Model {
            text: None,
            calls: vec![Past {
                id: "t0000c000".to_owned(),
                tool: "t".to_owned(),
                args: "{\"a\":1}".to_owned(),
                result: "ok".to_owned(),
            }],
        },
    ];
    let reply = client.ask(asks(&history)).await.unwrap();
    assert_eq!((reply.text.as_deref(), reply.complete), (Some("hi"), true));
    let (headers, body) = endpoint.requests.lock().unwrap().remove(0);
    assert_eq!(headers["authorization"], "Bearer sk-test");
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls":
                [{"id": "t0000c000", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "t0000c000", "content": "ok"}
        ])
    );
    assert_eq!(body["tools"][0]["function"]["name"], "t");
    assert_eq!((&body["stream"], &body["model"]), (&json!(false), &json!("any")));
}

const STREAMED: &str = "\
data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\"}}]}\r\n\r\n\
: a comment\r\n\r\n\
data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"i\"},\"finish_reason\":\"stop\"}]}\r\n\r\n\
data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"cost\":0.00025}}\r\n\r\n\
data: [DONE]\r\n\r\n";

#[tokio::test]
async fn a_stream_is_understood_asked_for_or_not() {
    for stream in [false, true] {
        let (endpoint, client) = endpoint_of(&[(200, STREAMED)], stream).await;
        let heard = Mutex::new(Vec::new());
        let hear = |progress| heard.lock().unwrap().push(progress);
        let question = Question {
            listener: Listener::new(&hear),
            ..asks(&[])
        };
        let reply = client.ask(question).await.unwrap();
        assert_eq!(heard.lock().unwrap().is_empty(), !stream);
        assert!(
            heard
                .lock()
                .unwrap()
                .iter()
                .all(|told| matches!(told, Progress::Heard { bytes: 1.. }))
        );
        assert_eq!((reply.text.as_deref(), reply.complete), (Some("hi"), true));
        let usage = (
            reply.usage.input_tokens,
            reply.usage.output_tokens,
            reply.usage.cost_micros,
        );
        assert_eq!(usage, (7, 3, 250));
        let (_, body) = endpoint.requests.lock().unwrap().remove(0);
        assert_eq!(body["stream"], json!(stream));
        assert_eq!(body.get("stream_options").is_some(), stream);
    }
    // A whole answer to a question for a stream is one too.
    let (_, client) = endpoint_of(&[(200, SAID)], true).await;
    assert!(client.ask(asks(&[])).await.unwrap().complete);
}

#[tokio::test]
async fn an_endpoint_that_cannot_stream_is_asked_for_whole_answers() {
    let (endpoint, client) = endpoint_of(&[(400, ""), (200, SAID), (200, SAID)], true).await;
    for _ in 0..2 {
        assert!(client.ask(asks(&[])).await.unwrap().complete);
    }
    let asked: Vec<_> = endpoint
        .requests
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| body["stream"].clone())
        .collect();
    assert_eq!(asked, [json!(true), json!(false), json!(false)]);
}

#[tokio::test]
async fn passing_faults_are_repeated_and_lasting_ones_are_not() {
    let table: [(&[Said], usize, Option<ModelError>); 6] = [
        (&[(429, ""), (503, ""), (200, SAID)], 3, None),
        (&[(200, "not json"), (200, SAID)], 2, None),
        (&[(200, r#"{"choices":[]}"#), (200, SAID)], 2, None),
        (
            &[(500, ""), (502, ""), (500, "secret")],
            3,
            Some(ModelError::Unavailable("status 500".to_owned())),
        ),
        (
            &[(401, "secret")],
            1,
            Some(ModelError::Refused("status 401".to_owned())),
        ),
        (
            &[(400, "secret")],
            1,
            Some(ModelError::Refused("status 400".to_owned())),
        ),
    ];
    for (answers, asked, error) in table {
        let (endpoint, client) = endpoint(answers).await;
        let heard = Mutex::new(Vec::new());
        let hear = |progress| heard.lock().unwrap().push(progress);
        let question = Question {
            listener: Listener::new(&hear),
            ..asks(&[])
        };
        let reply = client.ask(question).await;
        let again: Vec<_> = (2..=asked).map(|tries| Progress::AskedAgain { tries }).collect();
        assert_eq!(*heard.lock().unwrap(), again);
        assert_eq!(reply.err(), error);
        assert_eq!(endpoint.requests.lock().unwrap().len(), asked);
    }
}

#[tokio::test]
async fn an_answer_is_taken_apart_strictly() {
    let call = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"message":{{"content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"t"{arguments}}}}}]}},"finish_reason":"tool_calls"}}]}}"#
        )
    };
    let table = [
        ("", None),
        (r#","arguments":null"#, None),
        (r#","arguments":"""#, Some("")),
        (r#","arguments":"{\"a\":1}""#, Some(r#"{"a":1}"#)),
        // An object in place of its text keeps its spelling, numbers included.
        (r#","arguments":{"a":1.10,"a":2}"#, Some(r#"{"a":1.10,"a":2}"#)),
        (r#","arguments":"\ud800""#, Some(r#""\ud800""#)),
    ];
    for (arguments, expected) in table {
        let body = call(arguments);
        let (_, client) = endpoint(&[(200, &body)]).await;
        let reply = client.ask(asks(&[])).await.unwrap();
        assert_eq!(reply.calls[0].arguments.as_deref(), expected, "{arguments}");
    }
    for reason in [r#""length""#, r#""content_filter""#, "null", r#""else""#] {
        let body = call("").replace(r#""tool_calls"}"#, &format!("{reason}}}"));
        let (_, client) = endpoint(&[(200, &body)]).await;
        let reply = client.ask(asks(&[])).await.unwrap();
        assert!(!reply.complete, "{reason}");
    }
    let huge = format!(
        r#"{{"choices":[{{"message":{{"content":"{}"}},"finish_reason":"stop"}}]}}"#,
        "x".repeat(5 << 20)
    );
    let (_, client) = endpoint(&[(200, &huge)]).await;
    assert!(matches!(
        client.ask(asks(&[])).await,
        Err(ModelError::Unreadable(_))
    ));
}
