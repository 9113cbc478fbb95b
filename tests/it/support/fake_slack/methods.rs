//! The Web API methods: reading a call, checking the token and scope, answering.

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::block_kit::{self, Refusal};
use super::people;
use super::socket::APP_TOKEN;
use super::view;
use super::world::{Message, Revision, World};
use super::{APP, BOT_TOKEN, CHANNEL, Call, TEAM};

/// Arguments that a form carries as JSON text.
const JSON_ARGUMENTS: [&str; 4] = ["blocks", "metadata", "attachments", "view"];

/// A refusal: Slack's error word and what stands beside it.
pub(super) struct Failure {
    pub error: String,
    pub beside: Value,
    pub retry_after: Option<i64>,
}

impl From<&str> for Failure {
    fn from(error: &str) -> Self {
        Self {
            error: error.to_owned(),
            beside: json!({}),
            retry_after: None,
        }
    }
}

pub(super) type Outcome = Result<Value, Failure>;

/// Reads a call from query, form or JSON.
pub(super) fn read(method: &str, query: Option<&str>, headers: &HeaderMap, body: &Bytes) -> Call {
    let content_type = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut args = Map::new();
    let mut form = |bytes: &[u8]| {
        for (name, value) in form_urlencoded::parse(bytes) {
            args.insert(name.into_owned(), Value::String(value.into_owned()));
        }
    };
    form(query.unwrap_or_default().as_bytes());
    if content_type.starts_with("application/x-www-form-urlencoded") {
        form(body);
    } else if content_type.starts_with("application/json")
        && let Ok(Value::Object(fields)) = serde_json::from_slice(body)
    {
        args.extend(fields);
    }
    for name in JSON_ARGUMENTS {
        if let Some(Value::String(text)) = args.get(name)
            && let Ok(decoded) = serde_json::from_str::<Value>(text)
        {
            args.insert(name.to_owned(), decoded);
        }
    }
    Call {
        method: method.to_owned(),
        args: Value::Object(args),
        content_type: content_type.to_owned(),
    }
}

/// Answers a call and changes the workspace.
pub(super) fn answer(world: &mut World, call: &Call, headers: &HeaderMap, now_ms: i64) -> Response {
    let outcome = authorise(world, call, headers).and_then(|()| carry_out(world, call, now_ms));
    let mut answer = Response::builder()
        .header("content-type", "application/json; charset=utf-8")
        .header("x-oauth-scopes", world.scopes.join(","));
    let body = match outcome {
        Ok(mut body) => {
            body["ok"] = json!(true);
            body
        }
        Err(failure) => {
            if let Some(seconds) = failure.retry_after {
                answer = answer.status(429).header("retry-after", seconds.to_string());
            }
            let mut body = failure.beside;
            body["ok"] = json!(false);
            body["error"] = json!(failure.error);
            body
        }
    };
    answer
        .body(Body::from(body.to_string()))
        .expect("a plain response")
}

fn authorise(world: &World, call: &Call, headers: &HeaderMap) -> Result<(), Failure> {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = bearer
        .and_then(|value| value.strip_prefix("Bearer "))
        .or(call.args["token"].as_str());
    match token {
        None => return Err("not_authed".into()),
        Some(token) if call.method == "apps.connections.open" => {
            return if token == APP_TOKEN {
                Ok(())
            } else {
                Err("not_allowed_token_type".into())
            };
        }
        Some(token) if token != BOT_TOKEN => return Err("invalid_auth".into()),
        Some(_) => {}
    }
    if let Some(error) = &world.token_error {
        return Err(error.as_str().into());
    }
    let needed = match call.method.as_str() {
        "chat.postMessage" | "chat.update" | "chat.postEphemeral" | "chat.delete" => "chat:write",
        "conversations.info" | "conversations.members" => "channels:read",
        "users.info" => "users:read",
        "users.lookupByEmail" => "users:read.email",
        "usergroups.list" | "usergroups.users.list" => "usergroups:read",
        _ => return Ok(()),
    };
    if world.scopes.iter().any(|scope| scope == needed) {
        return Ok(());
    }
    let beside = json!({"needed": needed, "provided": world.scopes.join(",")});
    Err(Failure {
        beside,
        ..Failure::from("missing_scope")
    })
}

fn carry_out(world: &mut World, call: &Call, now_ms: i64) -> Outcome {
    let args = &call.args;
    people::limit(world, &call.method, now_ms)?;
    match call.method.as_str() {
        "auth.test" => Ok(json!({
            "url": "https://gatepost-test.slack.com/", "team": "Gatepost test", "user": "gatepost",
            "team_id": TEAM, "user_id": "U0GATEBOT", "bot_id": "B0GATEBOT", "is_enterprise_install": false,
        })),
        "apps.connections.open" => {
            let address = world.socket_address.clone().ok_or("missing_args")?;
            Ok(json!({"url": format!("{address}?ticket={}&app_id={APP}", world.next())}))
        }
        "chat.postMessage" => post_message(world, args, now_ms),
        "chat.update" => update(world, args),
        "chat.postEphemeral" => post_ephemeral(world, args, now_ms),
        "conversations.info" => {
            let channel = known_channel(world, args)?;
            let state = &world.channels[&channel];
            Ok(json!({"channel": {
                "id": channel, "name": channel.to_lowercase(), "is_channel": true, "is_private": false,
                "is_archived": state.archived, "is_member": state.bot_is_member,
            }}))
        }
        "conversations.members" => {
            known_channel(world, args)?;
            people::in_channel(world, args)
        }
        "users.info" => people::info(world, args),
        "users.lookupByEmail" => people::by_email(world, args),
        "usergroups.list" => people::groups(world, args),
        "usergroups.users.list" => people::in_group(world, args),
        "views.open" => view::open(world, args, now_ms),
        "views.update" => view::update(world, args),
        _ => Err("unknown_method".into()),
    }
}

pub(super) fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args[name].as_str().unwrap_or_default()
}

fn known_channel(world: &World, args: &Value) -> Result<String, Failure> {
    let id = text(args, "channel");
    if world.channels.contains_key(id) {
        Ok(id.to_owned())
    } else {
        Err("channel_not_found".into())
    }
}

fn open_channel(world: &World, args: &Value) -> Result<String, Failure> {
    let id = known_channel(world, args)?;
    let channel = &world.channels[&id];
    if !channel.bot_is_member {
        return Err("not_in_channel".into());
    }
    if channel.archived {
        return Err("is_archived".into());
    }
    Ok(id)
}

/// Checks text and blocks and gives each block its id.
fn revision(world: &mut World, args: &Value, longest_text: usize) -> Result<Revision, Failure> {
    let text = text(args, "text").to_owned();
    if block_kit::units(&text) > longest_text {
        return Err("msg_too_long".into());
    }
    let mut blocks = match &args["blocks"] {
        Value::Null => json!([]),
        Value::String(_) => return Err("invalid_blocks_format".into()),
        given => given.clone(),
    };
    block_kit::check(&blocks, 50).map_err(refused)?;
    if text.is_empty() && blocks.as_array().is_none_or(Vec::is_empty) {
        return Err("no_text".into());
    }
    name_blocks(world, &mut blocks);
    Ok(Revision {
        text,
        blocks,
        metadata: args["metadata"].clone(),
    })
}

/// The answer to refused blocks.
pub(super) fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::TooLong => "msg_blocks_too_long".into(),
        Refusal::Invalid(messages) => {
            let bare = |line: &String| line.trim_start_matches("[ERROR] ").to_owned();
            let errors: Vec<_> = messages.iter().map(bare).collect();
            let beside = json!({"errors": errors, "response_metadata": {"messages": messages}});
            Failure {
                beside,
                ..Failure::from("invalid_blocks")
            }
        }
    }
}

/// Gives an id to each block that has none, as Slack does.
pub(super) fn name_blocks(world: &mut World, blocks: &mut Value) {
    for block in blocks.as_array_mut().into_iter().flatten() {
        if block["block_id"].is_null() {
            block["block_id"] = json!(format!("b{:04}", world.next()));
        }
    }
}

fn post_message(world: &mut World, args: &Value, now_ms: i64) -> Outcome {
    let channel = open_channel(world, args)?;
    let revision = revision(world, args, 40_000)?;
    let mut mentioned = Vec::new();
    super::world::collect_users(&revision.blocks, &mut mentioned);
    if let Some(nobody) = mentioned.into_iter().find(|id| !world.users.contains_key(id)) {
        return Err(refused(Refusal::Invalid(vec![format!(
            "[ERROR] invalid user: {nobody} [json-pointer:/blocks]"
        )])));
    }
    if world.rate_limited
        && let Err(wait_ms) = world.limiter.take(&channel, now_ms)
    {
        let seconds = (wait_ms + 999) / 1000;
        return Err(Failure {
            retry_after: Some(seconds),
            ..Failure::from("ratelimited")
        });
    }
    let thread_ts = args["thread_ts"].as_str().map(str::to_owned);
    if let Some(parent) = &thread_ts
        && !world
            .messages
            .iter()
            .any(|message| message.channel == channel && message.ts == *parent)
    {
        return Err("thread_not_found".into());
    }
    let ts = world.next_ts(now_ms);
    let message = Message {
        channel: channel.clone(),
        ts: ts.clone(),
        thread_ts,
        history: vec![revision],
    };
    let shown = message.shown();
    world.messages.push(message);
    Ok(json!({"channel": channel, "ts": ts, "message": shown}))
}

fn update(world: &mut World, args: &Value) -> Outcome {
    let channel = open_channel(world, args)?;
    let ts = text(args, "ts").to_owned();
    let found = world
        .messages
        .iter()
        .position(|message| message.channel == channel && message.ts == ts);
    let Some(index) = found else {
        return Err("message_not_found".into());
    };
    let mut revision = revision(world, args, 4_000)?;
    let message = &mut world.messages[index];
    let has_rich_text = |blocks: &Value| {
        blocks
            .as_array()
            .into_iter()
            .flatten()
            .any(|block| block["type"] == "rich_text")
    };
    let new_has_blocks = revision.blocks.as_array().is_some_and(|list| !list.is_empty());
    if has_rich_text(&message.current().blocks) && new_has_blocks && !has_rich_text(&revision.blocks) {
        return Err("block_mismatch".into());
    }
    if revision.metadata.is_null() {
        revision.metadata = message.current().metadata.clone();
    }
    message.history.push(revision);
    let shown = message.shown();
    Ok(json!({"channel": channel, "ts": ts, "text": shown["text"], "message": shown}))
}

fn post_ephemeral(world: &mut World, args: &Value, now_ms: i64) -> Outcome {
    let channel = open_channel(world, args)?;
    let user = text(args, "user").to_owned();
    if !world.users.contains_key(&user) || world.channels[&channel].absent.contains(&user) {
        return Err("user_not_in_channel".into());
    }
    let revision = revision(world, args, 40_000)?;
    let shown = json!({"text": revision.text, "blocks": revision.blocks});
    world.ephemerals.push((channel, user, shown));
    Ok(json!({"message_ts": world.next_ts(now_ms)}))
}

/// The channel in which slash commands are typed unless the test says otherwise.
pub(super) const COMMAND_CHANNEL: &str = CHANNEL;
