//! From authentic bytes to a click: form, then JSON, then the few facts that count. Reads no text of the message.
//!
//! Reading is loose where Slack may add things (unknown fields, kinds, containers) and strict where a guess could decide
//! something: one payload, one person, one message, ids that are plain words.

use gatepost_channel::{
    Answered, Ask, Click, Decision, Field, HttpAnswer, Inbound, Opener, PlatformUser, RawRequest, Refusal,
    Reply, Vantage, Wants,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::card::{APPROVE_FOR, REJECT_WITH_REASON, SHOW_EVERYTHING};
use crate::command;
use crate::edit;
use crate::modal::{self, ANSWER, WHY};
use crate::set::{APPROVE_ALL, REJECT_ALL};
use crate::submission;

/// Longest reason that is taken, in characters; the field of a card holds 1,000.
const LONGEST_REASON: usize = 2_000;
/// Longest scope that is passed on, in bytes; ours are far shorter.
const LONGEST_SCOPE: usize = 64;
/// Longest `trigger_id`, in bytes.
const LONGEST_TRIGGER: usize = 512;

/// How a click is tied to its app.
pub(crate) enum AppId {
    /// The operator wrote the id down, so the click's own claim is passed on to be compared.
    Named,
    /// Nobody wrote it down; the signing secret, which no other app has, proves it. This is the app's key.
    Proven(String),
}

impl AppId {
    /// The app of a payload that claims to be of this one.
    pub(crate) fn of(&self, claimed: Option<&str>) -> Result<Option<String>, Refusal> {
        match self {
            Self::Named => claimed
                .map(|claimed| Some(claimed.to_owned()))
                .ok_or(Refusal::unreadable("payload_incomplete")),
            Self::Proven(key) => Ok(Some(key.clone())),
        }
    }
}

/// The two forms in which Slack sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// `application/x-www-form-urlencoded`: interactions and slash commands.
    Form,
    /// `application/json`: events.
    Json,
}

/// The media type without its parameters; `None` for a missing, doubled or foreign one.
pub(crate) fn media_type(request: &RawRequest) -> Option<MediaType> {
    let value = std::str::from_utf8(request.single("content-type")?).ok()?;
    let essence = value.split(';').next()?.trim();
    if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        Some(MediaType::Form)
    } else if essence.eq_ignore_ascii_case("application/json") {
        Some(MediaType::Json)
    } else {
        None
    }
}

/// Reads a request whose signature was good.
pub(crate) fn read(request: &RawRequest, app: &AppId) -> Result<Inbound, Refusal> {
    match decode(request)? {
        Decoded::Probe => Ok(Inbound::Handshake(HttpAnswer::empty())),
        Decoded::Command(fields) => {
            let signed_at = request.single("x-slack-request-timestamp").unwrap_or_default();
            command::read(&fields, app, &String::from_utf8_lossy(signed_at), Answered::There)
        }
        Decoded::Event(event) => read_event(&event),
        Decoded::Interaction(payload) => read_interaction(&payload, app),
    }
}

/// What an authentic body holds.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// `ssl_check=1` and no payload.
    Probe,
    /// A slash command: its fields.
    Command(Vec<(String, String)>),
    /// The JSON of the one `payload` field.
    Interaction(Value),
    /// A JSON body.
    Event(Value),
}

/// Undoes form and JSON. The depth of JSON is bounded by the parser (128 levels).
pub(crate) fn decode(request: &RawRequest) -> Result<Decoded, Refusal> {
    let media_type = media_type(request).ok_or(Refusal::unreadable("content_type"))?;
    let body = std::str::from_utf8(&request.body).map_err(|_| Refusal::unreadable("not_utf8"))?;
    match media_type {
        MediaType::Json => parse(body).map(Decoded::Event),
        MediaType::Form => {
            let fields = fields(body);
            let mut payloads = fields.iter().filter(|(key, _)| key == "payload");
            let probe = fields.iter().any(|(key, _)| key == "ssl_check");
            match (payloads.next(), payloads.next()) {
                (Some(_), Some(_)) => Err(Refusal::unreadable("payload_duplicated")),
                (Some(_), None) if probe => Err(Refusal::unreadable("payload_beside_ssl_check")),
                (Some((_, payload)), None) => parse(payload).map(Decoded::Interaction),
                (None, _)
                    if fields
                        .iter()
                        .any(|(key, value)| key == "ssl_check" && value == "1") =>
                {
                    Ok(Decoded::Probe)
                }
                (None, _) if fields.iter().any(|(key, _)| key == "command") => Ok(Decoded::Command(fields)),
                (None, _) => Err(Refusal::unreadable("payload_missing")),
            }
        }
    }
}

/// The fields of a form, in order, with duplicates kept.
pub(crate) fn fields(body: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

fn parse(text: &str) -> Result<Value, Refusal> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(Refusal::unreadable("payload_not_json")),
    }
}

/// Events prove the address once; nothing else of them is of use here.
fn read_event(event: &Value) -> Result<Inbound, Refusal> {
    if event.get("type").and_then(Value::as_str) != Some("url_verification") {
        return Ok(ignored("event"));
    }
    match event.get("challenge").and_then(Value::as_str) {
        Some(challenge) => Ok(Inbound::Handshake(HttpAnswer::json(
            &json!({ "challenge": challenge }),
        ))),
        None => Err(Refusal::unreadable("challenge_missing")),
    }
}

/// A press on a button of a card becomes a click or an ask, what is sent from a modal a click; all other interactions are
/// acknowledged and dropped.
pub(crate) fn read_interaction(payload: &Value, app: &AppId) -> Result<Inbound, Refusal> {
    let kind = payload.get("type").and_then(Value::as_str);
    match kind.ok_or(Refusal::unreadable("payload_incomplete"))? {
        "block_actions" => read_press(payload, app),
        "view_submission" => submission::read(payload, app),
        "view_closed" => Ok(ignored("view_closed")),
        "shortcut" | "message_action" => Ok(ignored("shortcut")),
        _ => Ok(ignored("unknown_interaction")),
    }
}

fn read_press(payload: &Value, app: &AppId) -> Result<Inbound, Refusal> {
    let incomplete = Refusal::unreadable("payload_incomplete");
    let user = id(payload, "/user/id")?.ok_or(incomplete)?;
    let actions = payload
        .get("actions")
        .and_then(Value::as_array)
        .ok_or(incomplete)?;
    let action = match actions.as_slice() {
        [] => return Err(incomplete),
        [action] => action,
        // Slack sends one; of several, choosing would be guessing.
        _ => return Err(Refusal::unreadable("actions_ambiguous")),
    };
    let action_id = action
        .get("action_id")
        .and_then(Value::as_str)
        .ok_or(incomplete)?;
    payload
        .get("container")
        .filter(|container| container.is_object())
        .ok_or(incomplete)?;

    let pressed = match action_id {
        SHOW_EVERYTHING => Pressed::Opens(Wants::Everything),
        REJECT_WITH_REASON => Pressed::Opens(Wants::Reason(Decision::Reject)),
        _ => match answer_of(action_id) {
            Some((decision, grant)) => Pressed::Answers(decision, grant),
            None => return Ok(ignored("other_action")),
        },
    };
    let claimed = id(payload, "/api_app_id")?;
    let message = first(payload, &["/container/message_ts", "/message/ts"])?;
    let chat = first(payload, &["/container/channel_id", "/channel/id"])?;
    let (Some(message), Some(chat)) = (message, chat) else {
        return Ok(ignored("not_on_a_message"));
    };
    let value = action.get("value").and_then(Value::as_str).unwrap_or_default();
    let app = app.of(claimed)?;
    let user_of = person(payload, user, &["/user/team_id", "/team/id", "/enterprise/id"])?;
    let opener = payload
        .get("trigger_id")
        .and_then(Value::as_str)
        .filter(|text| (1..=LONGEST_TRIGGER).contains(&text.len()))
        .map(Opener::new);
    let replay_key = replay_key(payload, user, message, action_id, value)?;
    Ok(match pressed {
        Pressed::Answers(decision, grant) => Inbound::Click(Click {
            app,
            chat: chat.to_owned(),
            message: message.to_owned(),
            user: user_of,
            decision,
            button: value.parse().ok(),
            // Words are typed into a modal that the press opens, never on the card.
            reason: None,
            grant,
            edited: None,
            vantage: Vantage::Card,
            opener,
            replay_key,
        }),
        Pressed::Opens(wants) => Inbound::Ask(Ask {
            app,
            chat: chat.to_owned(),
            message: message.to_owned(),
            user: user_of,
            button: value.parse().ok(),
            wants,
            opener,
            replay_key,
        }),
    })
}

/// The person, of the first of these workspaces that is named. In a shared conversation `team` is where the app lives and
/// `user.team_id` where the person comes from; within an Enterprise Grid the two may differ.
pub(crate) fn person(payload: &Value, id: &str, tenants: &[&str]) -> Result<PlatformUser, Refusal> {
    let tenant = first(payload, tenants)?;
    let (theirs, apps) = (
        first(payload, &["/user/team_id"])?,
        first(payload, &["/team/id"])?,
    );
    let grid = first(payload, &["/enterprise/id"])?.is_some();
    Ok(PlatformUser {
        ids: vec![id.to_owned()],
        tenant: tenant.map(str::to_owned),
        from_elsewhere: !grid && theirs.zip(apps).is_some_and(|(theirs, apps)| theirs != apps),
    })
}

/// What an answer from a modal that did not count is answered with: the words stand at one of its fields.
pub(crate) fn stays_open(vantage: Vantage, reply: &Reply) -> Option<Value> {
    let Vantage::Alone { seen } = vantage else {
        return None;
    };
    let field = match (seen, reply.field) {
        (None, _) | (Some(_), Field::Reason) => WHY,
        (Some(_), Field::Answer) => ANSWER,
        (Some(_), Field::Arguments) => edit::ARGUMENTS,
    };
    reply
        .refused
        .then(|| json!({ "response_action": "errors", "errors": { field: modal::words(&reply.text) } }))
}

/// What a press on a card is.
enum Pressed {
    Answers(Decision, Option<String>),
    Opens(Wants),
}

/// The answer that an `action_id` or a choice stands for, and the scope for later calls that goes with it.
pub(crate) fn answer_of(word: &str) -> Option<(Decision, Option<String>)> {
    match (word, word.strip_prefix(APPROVE_FOR)) {
        ("approve" | APPROVE_ALL, _) => Some((Decision::Approve, None)),
        ("reject" | REJECT_ALL, _) => Some((Decision::Reject, None)),
        (_, Some(scope)) if scope.len() <= LONGEST_SCOPE => Some((Decision::Approve, Some(scope.to_owned()))),
        _ => None,
    }
}

/// What was typed into a field for a reason; blank is none.
pub(crate) fn typed(value: Option<&Value>) -> Option<String> {
    let typed = value?.as_str()?.trim();
    (!typed.is_empty()).then(|| typed.chars().take(LONGEST_REASON).collect())
}

/// Equal for an exact repeat of this press, different for a second one: Slack stamps each press with its own `action_ts`.
/// The message comes first, so that presses on cards of one time stand side by side in the store.
fn replay_key(
    payload: &Value,
    user: &str,
    message: &str,
    action_id: &str,
    value: &str,
) -> Result<String, Refusal> {
    let team = first(payload, &["/team/id", "/user/team_id", "/enterprise/id"])?.unwrap_or_default();
    let pressed_at = id(payload, "/actions/0/action_ts")?.unwrap_or_default();
    let named = [team, user, message, action_id, pressed_at, value].join("|");
    Ok(format!("{message}|{}", hex::encode(Sha256::digest(named))))
}

/// The first of several places that holds an id.
pub(crate) fn first<'a>(payload: &'a Value, places: &[&str]) -> Result<Option<&'a str>, Refusal> {
    for place in places {
        if let Some(found) = id(payload, place)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// An opaque id or timestamp of Slack's. Absent and null are `None`; what is neither that nor a plain word is refused, so
/// that nothing odd reaches the store.
pub(crate) fn id<'a>(payload: &'a Value, place: &str) -> Result<Option<&'a str>, Refusal> {
    match payload.pointer(place) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => id_of(text).map(Some),
        Some(_) => Err(Refusal::unreadable("id_malformed")),
    }
}

/// The text, when it is a plain word of a fitting length.
pub(crate) fn id_of(text: &str) -> Result<&str, Refusal> {
    if (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text)
    } else {
        Err(Refusal::unreadable("id_malformed"))
    }
}

pub(crate) const fn ignored(why: &'static str) -> Inbound {
    Inbound::Ignored {
        answer: HttpAnswer::empty(),
        why,
    }
}
