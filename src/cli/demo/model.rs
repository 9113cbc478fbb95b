//! The agent's model in the demo: an OpenAI-compatible endpoint that plays a script. It pays once, then says what became of it.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::stage::TOOL;

/// The call that the agent makes.
pub fn payment() -> Value {
    json!({"invoice": "INV-4711", "payee": "Northwind Paper Ltd.", "amount": 84_250, "currency": "EUR"})
}

/// The endpoint.
pub fn router() -> Router {
    Router::new().route("/v1/chat/completions", post(serve))
}

async fn serve(body: Bytes) -> (StatusCode, Json<Value>) {
    match serde_json::from_slice(&body) {
        Ok(request) => (StatusCode::OK, Json(reply(&request))),
        Err(_) => (
            StatusCode::BAD_REQUEST,
            Json(json!({"error": {"message": "not JSON"}})),
        ),
    }
}

/// What the model says next. It remembers nothing: the conversation tells how far the job is.
fn reply(request: &Value) -> Value {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let turn = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .map(|message| text(&message["content"]));
    let (name, arguments) = match result {
        None => (TOOL, payment()),
        Some(result) => ("complete", ending(&result)),
    };
    json!({
        "id": format!("demo-{turn}"), "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant", "content": null,
                "tool_calls": [{
                    "id": format!("call_{turn}"), "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()},
                }],
            },
        }],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    })
}

fn text(content: &Value) -> String {
    content
        .as_str()
        .map_or_else(|| content.to_string(), str::to_owned)
}

fn ending(result: &str) -> Value {
    let receipt = serde_json::from_str::<Value>(result)
        .ok()
        .and_then(|paid| Some(paid["receipt"].as_str()?.to_owned()));
    match receipt {
        Some(receipt) => {
            json!({"status": "success", "result": format!("Invoice INV-4711 is paid, receipt {receipt}.")})
        }
        None => {
            json!({"status": "aborted", "result": format!("Invoice INV-4711 was not paid: {}", result.lines().next().unwrap_or_default())})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(reply: &Value) -> (String, Value) {
        let function = &reply["choices"][0]["message"]["tool_calls"][0]["function"];
        let arguments = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        (function["name"].as_str().unwrap().to_owned(), arguments)
    }

    #[test]
    fn it_pays_once_and_then_tells_what_became_of_it() {
        let user = json!({"role": "user", "content": "Pay invoice INV-4711"});
        assert_eq!(
            call(&reply(&json!({"messages": [user]}))),
            (TOOL.to_owned(), payment())
        );
        let asked = json!({"role": "assistant", "content": null, "tool_calls": []});
        for (result, status) in [
            (r#"{"status":"paid","receipt":"R-1"}"#, "success"),
            ("denied: rejected_by_operator", "aborted"),
        ] {
            let answered = json!({"role": "tool", "tool_call_id": "call_0", "content": result});
            let (name, arguments) = call(&reply(&json!({"messages": [user, asked, answered]})));
            assert_eq!(
                (name.as_str(), &arguments["status"]),
                ("complete", &json!(status))
            );
        }
    }
}
