//! Bodies from outside: bounded in size, time and memory, and JSON with one meaning.
//!
//! A JSON body is split into its members first, without looking into them, so that `tool_args` is read from its own bytes:
//! exact numbers, its own depth, its own error. Duplicate and unknown members are refused by name.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Api;
use super::problem::{Code, Problem};
use crate::gate::json::ReadLimits;
use crate::gate::{Arguments, Json};

/// The largest body of any request, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// A body that takes longer than this as a whole is given up.
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// Memory for all bodies of known callers that are being read, in KiB.
const BUDGET: usize = 64 * 1024;
/// Memory for all bodies of callers who have shown no token (callbacks before they are verified, log-ins), in KiB. Apart,
/// so that a stranger's drip keeps no known caller out.
const STRANGERS: usize = 16 * 1024;
/// The longest value of a member that names something (an id, a session, a requester), in characters.
pub const MAX_NAME: usize = 512;
/// The most members that an object of ours is read with; far more than any request has.
const MAX_MEMBERS: usize = 64;

/// Memory that bodies may take together. A drip holds only what it has sent. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    memory: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    within: Duration,
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self::within(BODY_WITHIN)
    }
}

impl BodyBudget {
    /// The usual memory; a body that takes longer than this as a whole is given up.
    pub fn within(within: Duration) -> Self {
        Self {
            memory: Arc::new(Semaphore::new(BUDGET)),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
            within,
        }
    }

    /// What is left to those who have shown no token.
    #[must_use]
    pub fn of_strangers(&self) -> Self {
        Self {
            memory: Arc::clone(&self.strangers),
            ..self.clone()
        }
    }
}

/// A body and the share of the budget that it holds.
#[derive(Debug)]
pub struct Held {
    bytes: Vec<u8>,
    shares: Vec<OwnedSemaphorePermit>,
}

impl Held {
    /// The bytes as they came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, given away; their share is free again.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads a body whole, as it came. A compressed one is refused: nothing here inflates.
pub async fn read(
    budget: &BodyBudget,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Held, Problem> {
    let plain = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if !plain {
        return Err(
            Problem::new(Code::UnsupportedBody).because("a body with a Content-Encoding is not accepted")
        );
    }
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    timeout(budget.within, collect(budget, body, limit))
        .await
        .unwrap_or_else(|_| Err(Problem::new(Code::BodyTimeout)))
}

async fn collect(budget: &BodyBudget, body: Body, limit: usize) -> Result<Held, Problem> {
    let mut stream = body.into_data_stream();
    let mut held = Held {
        bytes: Vec::new(),
        shares: Vec::new(),
    };
    let mut taken = 0;
    while let Some(chunk) = stream.next().await {
        let chunk: Bytes = chunk.map_err(|_| Problem::invalid("the body broke off"))?;
        if held.bytes.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        held.bytes.extend_from_slice(&chunk);
        let needed = held.bytes.len().div_ceil(1024);
        if needed > taken {
            let more = u32::try_from(needed - taken).unwrap_or(u32::MAX);
            let share = Arc::clone(&budget.memory)
                .try_acquire_many_owned(more)
                .map_err(|_| Problem::new(Code::Overloaded).retry_after(1))?;
            held.shares.push(share);
            taken = needed;
        }
    }
    Ok(held)
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Code::BodyTooLarge).because(format!("the limit is {limit} bytes"))
}

/// The members of a JSON object, to be taken one by one; what is left over is refused.
#[derive(Debug)]
pub struct Members {
    left: Vec<(String, Box<RawValue>)>,
    /// What was asked for so far: what is accepted.
    asked: Vec<&'static str>,
}

impl FromRequest<Api> for Members {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_none_or(|kind| is_json(kind.as_bytes()));
        if !json {
            return Err(Problem::new(Code::UnsupportedBody).because("the body must be application/json"));
        }
        let held = read(api.budget(), &parts.headers, body, MAX_BODY).await?;
        Self::of(held.bytes())
    }
}

fn is_json(kind: &[u8]) -> bool {
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    let kind = kind.trim_ascii().to_ascii_lowercase();
    kind == b"application/json" || (kind.starts_with(b"application/") && kind.ends_with(b"+json"))
}

impl Members {
    /// Splits an object; an empty body is an object without members.
    pub fn of(body: &[u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self {
                left: Vec::new(),
                asked: Vec::new(),
            });
        }
        let text = std::str::from_utf8(body).map_err(|_| Problem::invalid("the body is not UTF-8"))?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let members = reader
            .deserialize_map(Object)
            .and_then(|members| reader.end().map(|()| members))
            .map_err(|error| {
                // The library's message may repeat what was sent; the place does not.
                Problem::invalid(if error.is_data() {
                    "the body must be a JSON object of few members".to_owned()
                } else {
                    format!(
                        "the body is not JSON (line {}, column {})",
                        error.line(),
                        error.column()
                    )
                })
            })?;
        for (at, (name, _)) in members.iter().enumerate() {
            if members[..at].iter().any(|(before, _)| before == name) {
                return Err(Problem::invalid(format!(
                    "the member {} stands more than once",
                    shown(name)
                )));
            }
        }
        Ok(Self {
            left: members,
            asked: Vec::new(),
        })
    }

    fn take(&mut self, name: &'static str) -> Option<Box<RawValue>> {
        self.asked.push(name);
        let at = self.left.iter().position(|(member, _)| member == name)?;
        let (_, raw) = self.left.swap_remove(at);
        (raw.get().trim_ascii() != "null").then_some(raw)
    }

    fn json(&mut self, name: &'static str) -> Result<Option<Json>, Problem> {
        self.take(name)
            .map(|raw| {
                Json::read(raw.get().as_bytes(), ReadLimits::bytes(MAX_BODY))
                    .map_err(|error| Problem::invalid(format!("the member {name} is refused: {error}")))
            })
            .transpose()
    }

    /// Any JSON value.
    pub fn value(&mut self, name: &'static str) -> Result<Option<Json>, Problem> {
        self.json(name)
    }

    /// A JSON object.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Json>, Problem> {
        match self.json(name)? {
            Some(json) if json.as_object().is_none() => Err(wrong(name, "an object")),
            json => Ok(json),
        }
    }

    /// The arguments of a call, read from their own bytes.
    pub fn arguments(&mut self, name: &'static str) -> Result<Arguments, Problem> {
        let raw = self.take(name).ok_or_else(|| missing(name))?;
        Ok(Arguments::read(
            raw.get().as_bytes(),
            ReadLimits::bytes(MAX_BODY),
        )?)
    }

    /// The arguments of a call, where they are given.
    pub fn maybe_arguments(&mut self, name: &'static str) -> Result<Option<Arguments>, Problem> {
        self.take(name)
            .map(|raw| Arguments::read(raw.get().as_bytes(), ReadLimits::bytes(MAX_BODY)))
            .transpose()
            .map_err(Problem::from)
    }

    /// True or false.
    pub fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Problem> {
        match self.json(name)? {
            None => Ok(None),
            Some(Json::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    /// A text of any length within the body; NUL is refused, because not every store keeps it.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        match self.json(name)? {
            None => Ok(None),
            Some(Json::String(text)) if !text.contains('\0') => Ok(Some(text)),
            Some(_) => Err(wrong(name, "a text without NUL")),
        }
    }

    /// A text that names something: 1 to [`MAX_NAME`] characters. An empty one is none.
    pub fn name(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        match self.text(name)? {
            Some(text) if text.chars().nth(MAX_NAME).is_some() => {
                Err(wrong(name, "a text of at most 512 characters"))
            }
            text => Ok(text.filter(|text| !text.is_empty())),
        }
    }

    /// A text that must be there.
    pub fn required(&mut self, name: &'static str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    /// A time to wait, in seconds from 0 to 60.
    pub fn wait(&mut self, name: &'static str) -> Result<Option<Duration>, Problem> {
        let Some(json) = self.json(name)? else {
            return Ok(None);
        };
        let seconds = match &json {
            Json::Number(number) => number.as_held_f64(),
            _ => None,
        };
        seconds
            .and_then(patience)
            .map(Some)
            .ok_or_else(|| wrong(name, "a number of seconds from 0 to 60"))
    }

    /// A whole number within bounds.
    pub fn whole(&mut self, name: &'static str, least: i32, most: i32) -> Result<Option<i32>, Problem> {
        let Some(json) = self.json(name)? else {
            return Ok(None);
        };
        let number = match &json {
            Json::Number(_) => json.canonical().parse::<i32>().ok(),
            _ => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .map(Some)
            .ok_or_else(|| wrong(name, &format!("a whole number from {least} to {most}")))
    }

    /// Refuses what nobody took.
    pub fn finish(self) -> Result<(), Problem> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        let accepted = if self.asked.is_empty() {
            "nothing".to_owned()
        } else {
            format!("`{}`", self.asked.join("`, `"))
        };
        Err(Problem::invalid(format!(
            "the member {} is not known here; accepted are {accepted}",
            shown(name)
        )))
    }
}

/// The longest wait for people.
const MAX_WAIT: f64 = 60.0;

/// A wait within its bounds.
pub fn patience(seconds: f64) -> Option<Duration> {
    (0.0..=MAX_WAIT)
        .contains(&seconds)
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

/// A member that should not be: named only when it looks like a name, since it may be anything.
fn shown(name: &str) -> String {
    let plain = name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if plain {
        format!("`{name}`")
    } else {
        "of an odd name".to_owned()
    }
}

/// A member that should be there.
pub fn missing(name: &str) -> Problem {
    Problem::invalid(format!("the member `{name}` is missing"))
}

/// A member of another kind.
pub fn wrong(name: &str, accepted: &str) -> Problem {
    Problem::invalid(format!("the member `{name}` must be {accepted}"))
}

/// Reads an object into its raw members, in order, duplicates kept.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Vec<(String, Box<RawValue>)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            if members.len() == MAX_MEMBERS {
                return Err(serde::de::Error::custom("too many members"));
            }
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn detail(body: &str) -> String {
        let read = Members::of(body.as_bytes()).and_then(|mut members| {
            members.name("agent_id")?;
            members.wait("wait")?;
            members.object("metadata")?;
            members.finish()
        });
        format!("{:?}", read.expect_err(body))
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_is_repeated() {
        for (body, word) in [
            ("[1]", "object"),
            ("7", "object"),
            (r#"{"a":1"#, "not JSON"),
            (r#"{"a":1} x"#, "not JSON"),
            (r#"{"agent_id":"a","agent_id":"b"}"#, "`agent_id` stands more"),
            (
                r#"{"agent_id":"a","\u0061gent_id":"b"}"#,
                "`agent_id` stands more",
            ),
            (r#"{"agent":"a"}"#, "`agent` is not known"),
            (r#"{"se cret":"a"}"#, "odd name"),
            (r#"{"agent_id":7}"#, "`agent_id` must be"),
            (r#"{"agent_id":"\u0000"}"#, "NUL"),
            (r#"{"agent_id":"\ud800"}"#, "lone surrogate"),
            (r#"{"wait":61}"#, "`wait` must be"),
            (r#"{"wait":-1}"#, "`wait` must be"),
            (r#"{"wait":"5"}"#, "`wait` must be"),
            (r#"{"wait":1e400}"#, "40 digits"),
            (r#"{"metadata":[]}"#, "`metadata` must be"),
            (r#"{"metadata":{"a":1,"a":2}}"#, "same key twice"),
        ] {
            let said = detail(body);
            assert!(said.contains(word), "{body}: {said}");
            assert!(!said.contains("se cret"), "{said}");
        }
    }

    #[test]
    fn arguments_have_their_own_depth_and_their_own_code() {
        let nested = |depth: usize| {
            let body = format!(
                r#"{{"tool_args":{}{}}}"#,
                r#"{"a":"#.repeat(depth),
                "1".to_owned() + &"}".repeat(depth)
            );
            Members::of(body.as_bytes()).unwrap().arguments("tool_args")
        };
        assert!(nested(128).is_ok());
        assert_eq!(nested(129).unwrap_err().code(), Code::InvalidArguments);
        assert_eq!(nested(5000).unwrap_err().code(), Code::InvalidArguments);
    }

    #[test]
    fn null_and_blank_are_nothing() {
        let mut members = Members::of(br#"{"agent_id":null,"session_id":""}"#).unwrap();
        assert_eq!(members.name("agent_id").unwrap(), None);
        assert_eq!(members.name("session_id").unwrap(), None);
        assert!(members.finish().is_ok());
        assert!(Members::of(b" ").unwrap().finish().is_ok());
    }

    #[tokio::test]
    async fn a_strangers_drip_keeps_no_known_caller_out() {
        let budget = BodyBudget::default();
        let drips = || {
            let sent =
                futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b' '; MAX_BODY]))]);
            Body::from_stream(sent.chain(futures_util::stream::pending()))
        };
        let (headers, strangers) = (HeaderMap::new(), budget.of_strangers());
        let mut all: Vec<_> = (0..64)
            .map(|_| Box::pin(read(&strangers, &headers, drips(), MAX_BODY)))
            .collect();
        let mut refused = 0;
        for drip in &mut all {
            refused += usize::from(futures_util::poll!(drip).is_ready());
        }
        assert!(refused > 0, "strangers share a budget of their own");
        let known = read(&budget, &headers, Body::from(vec![b' '; MAX_BODY]), MAX_BODY).await;
        assert_eq!(known.unwrap().bytes().len(), MAX_BODY);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(mut members) = Members::of(&body) {
                let _ = members.arguments("a");
                let _ = members.finish();
            }
        }
    }
}
