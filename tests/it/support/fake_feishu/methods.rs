//! The open API: reading a call, checking the token, answering with the platform's codes.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::card::{self, Refused};
use super::contacts;
use super::world::{Message, World};
use super::{APP, APP_SECRET, Api, Call};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// A card's request body may have 30 KB, a text's 150 KB.
const CARD_BODY: usize = 30 * 1024;
const TEXT_BODY: usize = 150 * 1024;

/// A business error.
pub(super) struct Failure {
    status: u16,
    code: u32,
    text: String,
}

impl Failure {
    pub fn new(code: u32, text: &str) -> Self {
        let status = match code {
            10_014 => 200,
            404 => 404,
            _ => 400,
        };
        Self::with_status(status, code, text)
    }

    pub fn with_status(status: u16, code: u32, text: &str) -> Self {
        Self {
            status,
            code,
            text: text.to_owned(),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(230_099, &refused.text())
    }
}

pub(super) type Outcome = Result<Value, Failure>;

/// Reads a call.
pub(super) fn read(method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Call {
    let path = uri
        .path()
        .strip_prefix("/open-apis/")
        .unwrap_or_else(|| uri.path().trim_start_matches('/'))
        .to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    let api = match (method.as_str(), parts.as_slice()) {
        ("POST", ["auth", "v3", "tenant_access_token", "internal"]) => Api::Token,
        ("POST", ["im", "v1", "messages"]) => Api::Send,
        ("POST", ["im", "v1", "messages", _, "reply"]) => Api::Reply,
        ("PATCH", ["im", "v1", "messages", _]) => Api::Patch,
        ("POST", ["interactive", "v1", "card", "update"]) => Api::CardUpdate,
        ("POST", ["ephemeral", "v1", "send"]) => Api::Ephemeral,
        ("GET", ["bot", "v3", "info"]) => Api::BotInfo,
        ("GET", ["im", "v1", "chats", _]) => Api::Chat,
        ("GET", ["im", "v1", "chats", _, "members"]) => Api::Members,
        ("POST", ["contact", "v3", "users", "batch_get_id"]) => Api::BatchGetId,
        ("GET", ["contact", "v3", "users", _]) => Api::User,
        ("GET", ["contact", "v3", "group", _, "member", "simplelist"]) => Api::GroupMembers,
        ("GET", ["contact", "v3", "group", "member_belong"]) => Api::GroupsOfUser,
        ("POST", ["callback", "ws", "endpoint"]) => Api::Endpoint,
        ("GET", ["application", "v6", "scopes"]) => Api::Scopes,
        ("GET", ["application", "v6", "applications", APP]) => Api::Application,
        _ => Api::Unknown,
    };
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = bearer
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::to_owned);
    let body = serde_json::from_slice(body).unwrap_or_default();
    Call {
        api,
        path,
        body,
        token,
    }
}

/// Answers a call and changes the tenant. `size` is the length of the body as sent.
pub(super) fn answer(world: &mut World, call: &Call, uri: &Uri, size: usize, now_ms: i64) -> Response {
    let log_id = world.id("202611291200");
    let mut answer = Response::builder()
        .header("content-type", "application/json; charset=utf-8")
        .header("x-tt-logid", &log_id);
    let body = match authorise(world, call, now_ms).and_then(|()| carry_out(world, call, uri, size, now_ms)) {
        Ok(body) => body,
        Err(Failure { status, code, text }) => {
            answer = answer.status(status);
            json!({"code": code, "msg": text, "error": {"log_id": log_id}})
        }
    };
    answer
        .body(Body::from(body.to_string()))
        .expect("a plain response")
}

fn authorise(world: &World, call: &Call, now_ms: i64) -> Result<(), Failure> {
    // Both prove the app by its secret.
    if matches!(call.api, Api::Token | Api::Endpoint) {
        return Ok(());
    }
    let Some(given) = &call.token else {
        return Err(Failure::new(
            99_991_661,
            "Missing access token for authorization.",
        ));
    };
    if !given.starts_with("t-") {
        return Err(Failure::new(
            99_991_671,
            "Invalid access token, must start with t- or u-.",
        ));
    }
    if world
        .tokens
        .iter()
        .any(|(token, ends)| token == given && now_ms < *ends)
    {
        return Ok(());
    }
    Err(Failure::new(
        99_991_663,
        "Invalid access token for authorization.",
    ))
}

pub(super) fn done(data: &Value) -> Value {
    json!({"code": 0, "msg": "success", "data": data})
}

fn carry_out(world: &mut World, call: &Call, uri: &Uri, size: usize, now_ms: i64) -> Outcome {
    let id = call.path.split('/').nth(3).unwrap_or_default();
    match call.api {
        Api::Token => token(world, &call.body, now_ms),
        Api::Send => send(world, call, uri, size, now_ms),
        Api::Reply => reply(world, call, id, size, now_ms),
        Api::Patch => patch(world, call, id, size, now_ms),
        Api::CardUpdate => card_update(world, &call.body, now_ms),
        Api::Ephemeral => ephemeral(world, &call.body, size),
        Api::Endpoint => endpoint(world, &call.body),
        Api::Scopes => Ok(contacts::granted(world)),
        Api::Application => Ok(done(&json!({"app": world.app}))),
        Api::BotInfo => Ok(json!({"code": 0, "msg": "ok", "bot": {
            "activate_status": 2, "app_name": "Gatepost", "avatar_url": "", "ip_white_list": [],
            "open_id": "ou_fake_bot",
        }})),
        Api::Chat => {
            member_chat(world, id)?;
            Ok(done(
                &json!({"name": "Approvals", "chat_mode": "group", "chat_status": "normal"}),
            ))
        }
        Api::Members => contacts::in_chat(world, id, uri),
        Api::BatchGetId => contacts::by_address(world, &call.body, uri, now_ms),
        Api::User => contacts::account(world, id, uri, now_ms),
        Api::GroupMembers => contacts::in_group(world, id, uri, now_ms),
        Api::GroupsOfUser => contacts::groups_of(world, uri, now_ms),
        Api::Unknown => Err(Failure::new(404, "404 page not found")),
    }
}

fn token(world: &mut World, body: &Value, now_ms: i64) -> Outcome {
    if body["app_id"] != APP || body["app_secret"] != APP_SECRET {
        return Err(Failure::new(10_014, "app secret invalid"));
    }
    let life = 120 * MINUTE_MS;
    // With half an hour or more left the same token is answered; below that a new one, and both work.
    let fresh = world
        .tokens
        .last()
        .filter(|(_, ends)| ends - now_ms >= 30 * MINUTE_MS)
        .cloned();
    let (token, ends) = fresh.unwrap_or_else(|| {
        let made = (world.id("t-"), now_ms + life);
        world.tokens.push(made.clone());
        made
    });
    Ok(json!({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": (ends - now_ms) / 1000}))
}

fn member_chat(world: &World, id: &str) -> Result<(), Failure> {
    let chat = world
        .chats
        .get(id)
        .ok_or_else(|| Failure::new(230_034, "The receive_id is invalid."))?;
    if chat.bot_is_member {
        return Ok(());
    }
    Err(Failure::new(230_002, "The bot can not be outside the group."))
}

fn limited(world: &mut World, key: &str, now_ms: i64) -> Result<(), Failure> {
    if world.rate_limited && world.limiter.take(key, now_ms).is_err() {
        return Err(Failure::new(
            230_020,
            "This operation triggers the frequency limit.",
        ));
    }
    Ok(())
}

/// Reads and checks `content`, the JSON text inside the body.
fn content(world: &World, body: &Value, kind: &str, size: usize) -> Outcome {
    let most = if kind == "interactive" {
        CARD_BODY
    } else {
        TEXT_BODY
    };
    if size > most {
        return Err(Failure::new(
            230_025,
            "The length of the message content reaches its limit.",
        ));
    }
    let text = body["content"]
        .as_str()
        .ok_or_else(|| Failure::new(230_001, "content is not a string"))?;
    let content: Value =
        serde_json::from_str(text).map_err(|_| Refused::new(200_621, "parse card json err", "content"))?;
    match kind {
        "interactive" => card::check(&content, world)?,
        "text" if content["text"].is_string() => {}
        _ => return Err(Failure::new(230_001, "ext=invalid msg_type")),
    }
    Ok(content)
}

fn send(world: &mut World, call: &Call, uri: &Uri, size: usize, now_ms: i64) -> Outcome {
    let query = uri.query().unwrap_or_default();
    let kind = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "receive_id_type");
    let receiver = call.body["receive_id"].as_str().unwrap_or_default();
    let chat = match kind.as_ref().map(|(_, kind)| kind.as_ref()) {
        Some("chat_id") => {
            member_chat(world, receiver)?;
            receiver.to_owned()
        }
        Some("open_id") if world.people.contains_key(receiver) => format!("oc_p2p_{receiver}"),
        Some("open_id") => return Err(Failure::new(230_013, "Bot has NO availability to this user.")),
        _ => return Err(Failure::new(99_992_402, "field validation failed")),
    };
    post(world, call, &chat, None, size, now_ms)
}

fn reply(world: &mut World, call: &Call, parent: &str, size: usize, now_ms: i64) -> Outcome {
    let message = own(world, parent)?;
    let chat = message.chat_id.clone();
    post(world, call, &chat, Some(parent.to_owned()), size, now_ms)
}

fn post(
    world: &mut World,
    call: &Call,
    chat: &str,
    parent_id: Option<String>,
    size: usize,
    now_ms: i64,
) -> Outcome {
    let uuid = call.body["uuid"].as_str().unwrap_or_default().to_owned();
    if uuid.chars().count() > 50 {
        return Err(Failure::new(99_992_402, "field validation failed"));
    }
    if let Some((at, id)) = world.uuids.get(&uuid)
        && now_ms - at < 60 * MINUTE_MS
    {
        let message = world.messages.iter().find(|message| message.id == *id);
        return Ok(done(&shown(message.expect("a message that was made"))));
    }
    let msg_type = call.body["msg_type"].as_str().unwrap_or_default().to_owned();
    let content = content(world, &call.body, &msg_type, size)?;
    limited(world, chat, now_ms)?;
    let message_id = world.id("om_");
    let message = Message {
        id: message_id.clone(),
        chat_id: chat.to_owned(),
        parent_id,
        msg_type,
        history: vec![content],
        recalled: false,
        created_ms: now_ms,
    };
    let data = shown(&message);
    world.messages.push(message);
    if !uuid.is_empty() {
        world.uuids.insert(uuid, (now_ms, message_id));
    }
    Ok(done(&data))
}

fn shown(message: &Message) -> Value {
    json!({
        "message_id": message.id, "chat_id": message.chat_id, "msg_type": message.msg_type,
        "create_time": message.created_ms.to_string(), "parent_id": message.parent_id, "deleted": false,
        "sender": {"id": APP, "id_type": "app_id", "sender_type": "app"},
    })
}

fn own<'a>(world: &'a mut World, id: &str) -> Result<&'a mut Message, Failure> {
    let unknown = || Failure::new(230_001, "ext=invalid message_id");
    let message = world.message_mut(id).ok_or_else(unknown)?;
    if message.recalled {
        return Err(Failure::new(230_011, "The message was withdrawn."));
    }
    Ok(message)
}

fn patch(world: &mut World, call: &Call, id: &str, size: usize, now_ms: i64) -> Outcome {
    let message = own(world, id)?;
    if message.msg_type != "interactive" {
        return Err(Failure::new(230_001, "ext=this message is not a card"));
    }
    if now_ms - message.created_ms > 14 * DAY_MS {
        return Err(Failure::new(230_031, "The message exceeds the updatable time."));
    }
    let shared = |card: &Value| card["config"]["update_multi"] == true;
    let was_shared = shared(message.current());
    limited(world, id, now_ms)?;
    let card = content(world, &call.body, "interactive", size)?;
    if !was_shared || !shared(&card) {
        return Err(Failure::new(
            230_001,
            "ext=update_multi must be true in both cards",
        ));
    }
    if world.locks && world.in_click.contains(id) {
        return Err(Refused::new(11_310, "card action is lock", id).into());
    }
    own(world, id)?.history.push(card);
    Ok(done(&json!({})))
}

fn card_update(world: &mut World, body: &Value, now_ms: i64) -> Outcome {
    card::check(&body["card"], world)?;
    let token = world
        .card_tokens
        .get_mut(body["token"].as_str().unwrap_or_default());
    let token = token.ok_or_else(|| Failure::new(300_020, "the token is malformed"))?;
    if !token.answered {
        return Err(Failure::new(300_020, "the callback has not been answered yet"));
    }
    if now_ms - token.issued_ms > 30 * MINUTE_MS {
        return Err(Failure::new(300_030, "the token has expired"));
    }
    if token.uses == 2 {
        return Err(Failure::new(300_040, "the token is used up"));
    }
    token.uses += 1;
    let id = token.message_id.clone();
    own(world, &id)?.history.push(body["card"].clone());
    Ok(json!({"code": 0, "msg": "ok"}))
}

fn ephemeral(world: &mut World, body: &Value, size: usize) -> Outcome {
    let chat = body["chat_id"].as_str().unwrap_or_default().to_owned();
    member_chat(world, &chat)?;
    let person = body["open_id"].as_str().unwrap_or_default().to_owned();
    if !world.people.contains_key(&person) {
        return Err(Failure::new(230_013, "Bot has NO availability to this user."));
    }
    if size > CARD_BODY {
        return Err(Failure::new(
            230_025,
            "The length of the message content reaches its limit.",
        ));
    }
    card::check(&body["card"], world)?;
    world.ephemerals.push((chat, person, body["card"].clone()));
    let message_id = world.id("om_");
    Ok(done(&json!({"message_id": message_id})))
}

fn endpoint(world: &mut World, body: &Value) -> Outcome {
    if body["AppID"] != APP || body["AppSecret"] != APP_SECRET {
        return Err(Failure::new(1_000_040_344, "no credential"));
    }
    let Some(address) = world.socket_address.clone() else {
        return Err(Failure::new(1_000_040_343, "internal"));
    };
    let ticket = world.id("ticket-");
    Ok(done(&json!({
        "URL": format!("{address}&ticket={ticket}"),
        "ClientConfig": {"ReconnectCount": -1, "ReconnectInterval": 1, "ReconnectNonce": 0, "PingInterval": 120},
    })))
}
