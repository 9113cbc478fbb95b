use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::dialect::{Decoded as _, Dialect, Question};
use super::envelope::{self, Incoming};
use crate::child::Sampler;
use crate::config::child::ChildConfig;
use crate::gate::Json;
use crate::gate::json::ReadLimits;
use crate::hook::fixture::{args, context};
use crate::hook::registry::Unchangeable;
use crate::hook::{Decision, ModelReply, ToolCall, ToolOutput, WantedCall};

#[derive(Deserialize)]
struct Row<'a> {
    dialect: &'a str,
    name: &'a str,
    ok: bool,
    #[serde(borrow)]
    msg: &'a RawValue,
}

fn sampler() -> Sampler {
    Sampler::new(&ChildConfig {
        program: String::new(),
        args: Vec::new(),
        dir: std::path::PathBuf::new(),
        env: std::collections::BTreeMap::new(),
    })
}

fn json(text: &str) -> Json {
    Json::read(text.as_bytes(), ReadLimits::bytes(1 << 20)).unwrap()
}

fn shell() -> ToolCall {
    ToolCall {
        tool: "shell_run".parse().unwrap(),
        args: args(r#"{"command":"ls"}"#),
    }
}

/// RH-407: the right answer changes the arguments, every near miss is an error, in both dialects.
#[test]
fn a_near_miss_is_no_answer() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bugs/RH-407/answers.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let (context, call) = (context(), shell());
    let question = Question::BeforeTool(&context, &call);
    let mut rows = 0;
    for line in text.lines() {
        let row: Row<'_> = serde_json::from_str(line).unwrap();
        let dialect = if row.dialect == "code" {
            Dialect::Code
        } else {
            Dialect::Page
        };
        let incoming = envelope::read(row.msg.get().as_bytes(), &sampler());
        // An answer to another question is dropped; an error in good form is one.
        let answer = match incoming {
            Ok(Incoming::Result(1, result)) => ToolCall::decode(dialect, &result, &question).ok(),
            Ok(_) | Err(_) => None,
        };
        assert_eq!(
            answer.is_some(),
            row.ok,
            "{} {}: {answer:?}",
            row.dialect,
            row.name
        );
        if row.name == "correct" {
            assert_eq!(
                answer.unwrap().modified_args(),
                Some(&args(r#"{"command":"ls -1"}"#))
            );
        }
        rows += 1;
    }
    assert_eq!(rows, 44);
}

#[test]
fn the_greeting_selects_the_dialect() {
    let selected = |text| Dialect::selected(&json(text)).ok();
    assert_eq!(selected(r#"{"ok":true,"name":"x"}"#), Some(Dialect::Code));
    assert_eq!(selected("{}"), Some(Dialect::Code));
    assert_eq!(
        selected(r#"{"name":"x","protocol_version":1}"#),
        Some(Dialect::Page)
    );
    for refused in [
        r#"{"protocol_version":2}"#,
        r#"{"protocol_version":"1"}"#,
        r#"{"protocol_version":null}"#,
        "[]",
        "null",
    ] {
        assert_eq!(selected(refused), None, "{refused}");
    }
}

/// An approval is exactly `true` under the dialect's own key.
#[test]
fn only_true_approves() {
    let (context, call) = (context(), shell());
    let question = Question::ApproveTool(&context, &call);
    for (dialect, key, other) in [
        (Dialect::Code, "approved", "allow"),
        (Dialect::Page, "allow", "approved"),
    ] {
        let decided =
            |text: &str| Unchangeable::decode(dialect, &json(text), &question).map(|answer| answer.decision);
        assert_eq!(decided(&format!(r#"{{"{key}":true}}"#)), Ok(Decision::Continue));
        let no = decided(&format!(r#"{{"{key}":false,"reason":"frozen"}}"#));
        assert_eq!(
            no,
            Ok(Decision::Deny {
                reason: Some("frozen".to_owned())
            })
        );
        for near in [
            "{}".to_owned(),
            format!(r#"{{"{other}":true}}"#),
            format!(r#"{{"{key}":true,"{other}":true}}"#),
            format!(r#"{{"{key}":"true"}}"#),
            format!(r#"{{"{key}":1}}"#),
            r#"{"decision":{"action":"continue"}}"#.to_owned(),
            r#"{"action":"continue"}"#.to_owned(),
        ] {
            assert!(decided(&near).is_err(), "{dialect:?} {near}");
        }
        assert_eq!(
            decided(&format!(r#"{{"{key}":null}}"#)),
            Ok(Decision::Deny { reason: None })
        );
    }
}

#[test]
fn arguments_reach_a_hook_with_their_exact_numbers() {
    let context = context();
    let call = ToolCall {
        tool: "pay".parse().unwrap(),
        args: args(r#"{"amount":12345678901234567890123.5}"#),
    };
    for dialect in [Dialect::Code, Dialect::Page] {
        let (method, params) = dialect.question(&Question::BeforeTool(&context, &call)).unwrap();
        assert_eq!(method, "hook.before_tool");
        assert!(params.get().contains(call.args.canonical()), "{}", params.get());
    }
}

#[test]
fn a_result_may_be_rewritten_but_not_put_off() {
    let (context, call, output) = (context(), shell(), ToolOutput::done("x"));
    let question = Question::AfterTool(&context, &call, &output);
    let page = |text: &str| ToolOutput::decode(Dialect::Page, &json(text), &question);
    let code = |text: &str| ToolOutput::decode(Dialect::Code, &json(text), &question);
    let changed =
        page(r#"{"decision":{"action":"modify"},"result":{"for_llm":"y","is_error":true}}"#).unwrap();
    assert_eq!(
        changed.modified_result(),
        Some(&ToolOutput {
            text: "y".to_owned(),
            is_error: true
        })
    );
    assert!(page(r#"{"decision":{"action":"modify"},"result":{"for_llm":"y","async":true}}"#).is_err());
    assert!(page(r#"{"decision":{"action":"modify"},"result":"y"}"#).is_err());
    assert!(code(r#"{"action":"modify","result":{"tool":"shell_run","result":{"for_llm":"y"}}}"#).is_ok());
    assert!(code(r#"{"action":"modify","result":{"for_llm":"y"}}"#).is_err());
}

#[test]
fn a_reply_keeps_whether_it_was_cut_off() {
    let context = context();
    let reply = ModelReply {
        text: Some("hi".to_owned()),
        calls: vec![WantedCall::default()],
        complete: false,
    };
    let question = Question::AfterModel(&context, &reply);
    let answer = r#"{"decision":{"action":"modify"},"response":{"content":"ho","finish_reason":"stop"}}"#;
    let changed = ModelReply::decode(Dialect::Page, &json(answer), &question).unwrap();
    let expected = ModelReply {
        text: Some("ho".to_owned()),
        calls: Vec::new(),
        complete: false,
    };
    assert_eq!(changed.decision, Decision::Modify(expected));
}
