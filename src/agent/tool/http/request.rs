//! What a call sends, as a pure function of its arguments: nothing else goes into it, so what a person approved is what goes
//! out. No argument reaches the method or the host, adds to the path, or ends a header.
//!
//! It must not know how a request is sent. Errors name arguments, never values.

use std::collections::BTreeSet;

use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use crate::config::http_tool::{ArgPath, Body, HttpTool, Place, Placed};
use crate::config::template::{FillError, Template, escaped};
use crate::gate::Json;
use crate::gate::json::Object;

/// The most parameters of one query.
const MOST_PAIRS: usize = 500;
/// The longest value of a header from an argument, in bytes.
const LONGEST_HEADER: usize = 4_096;

/// Where the arguments of a tool go.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    address: Template,
    placed: Vec<Placed>,
    body: Body,
}

/// A request without what is the same for every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) url: Url,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON.
    pub(super) body: Option<String>,
}

/// Arguments that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misplaced {
    #[error("the arguments are no JSON object")]
    NotAnObject,
    #[error("`{0}` is no argument of this tool")]
    Unplaced(String),
    #[error("`{0}` cannot be a part of the address: {1}")]
    Path(String, FillError),
    #[error("the address cannot be made: {0}")]
    Address(FillError),
    #[error("`{0}` must be text, a number or true or false to be sent where it goes")]
    NotScalar(String),
    #[error("`{0}` holds the name of another parameter")]
    Shadows(String),
    #[error("the query would have more than {MOST_PAIRS} parameters")]
    ManyPairs,
    #[error(
        "`{0}` cannot be sent in a header: 1 to {LONGEST_HEADER} visible ASCII characters can, with blanks between them"
    )]
    Header(String),
}

impl Plan {
    pub(super) fn of(tool: &HttpTool) -> Self {
        Self {
            address: tool.address.clone(),
            placed: tool.placed.clone(),
            body: tool.body.clone(),
        }
    }

    /// The request. `text` is the spelling of `args` that is stored; where no argument goes elsewhere it is the body, byte for
    /// byte.
    pub(super) fn request(&self, args: &Json, text: &str) -> Result<Outgoing, Misplaced> {
        let object = args.as_object().ok_or(Misplaced::NotAnObject)?;
        if self.body != Body::Rest {
            self.nothing_is_left(object)?;
        }
        let query = self.query(object)?;
        let mut slots = Vec::new();
        for one in self.at(Place::Path) {
            if let Some(value) = find(object, &one.arg).filter(|value| **value != Json::Null) {
                let value = scalar(value).ok_or_else(|| Misplaced::NotScalar(one.arg.pointer()))?;
                slots.push((one, value));
            }
        }
        let filled = |name: &str| {
            let slot = slots.iter().find(|(one, _)| one.name == name);
            slot.map(|(_, value)| value.as_str())
        };
        let url = self.address.fill(filled, &query).map_err(|(slot, why)| {
            match self.at(Place::Path).find(|one| one.name == slot) {
                Some(one) => Misplaced::Path(one.arg.pointer(), why),
                None => Misplaced::Address(why),
            }
        })?;
        Ok(Outgoing {
            url,
            headers: self.headers(object)?,
            body: self.body(object, text),
        })
    }

    fn at(&self, place: Place) -> impl Iterator<Item = &Placed> {
        self.placed.iter().filter(move |one| one.place == place)
    }

    /// Style `form`, exploded (OpenAPI 3.1 section 4.8.12.3): an item or a member is a parameter of its own.
    fn query(&self, object: &Object) -> Result<String, Misplaced> {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for one in self.at(Place::Query) {
            let not_scalar = || Misplaced::NotScalar(one.arg.pointer());
            match find(object, &one.arg) {
                None | Some(Json::Null) => {}
                Some(Json::Array(items)) => {
                    for item in items {
                        pairs.push((&one.name, scalar(item).ok_or_else(not_scalar)?));
                    }
                }
                Some(Json::Object(members)) => {
                    for (name, value) in members.iter() {
                        if self.at(Place::Query).any(|other| other.name == name) {
                            return Err(Misplaced::Shadows(one.arg.pointer()));
                        }
                        pairs.push((name, scalar(value).ok_or_else(not_scalar)?));
                    }
                }
                Some(value) => pairs.push((&one.name, scalar(value).ok_or_else(not_scalar)?)),
            }
        }
        if pairs.len() > MOST_PAIRS {
            return Err(Misplaced::ManyPairs);
        }
        let pairs = pairs
            .iter()
            .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
        Ok(pairs.collect::<Vec<_>>().join("&"))
    }

    fn headers(&self, object: &Object) -> Result<Vec<(HeaderName, HeaderValue)>, Misplaced> {
        let mut headers = Vec::new();
        for one in self.at(Place::Header) {
            let Some(value) = find(object, &one.arg).filter(|value| **value != Json::Null) else {
                continue;
            };
            let refused = || Misplaced::Header(one.arg.pointer());
            let text = scalar(value).ok_or_else(|| Misplaced::NotScalar(one.arg.pointer()))?;
            let visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            if !visible || text.is_empty() || text.trim() != text || text.len() > LONGEST_HEADER {
                return Err(refused());
            }
            let name = HeaderName::try_from(one.name.as_str()).map_err(|_| refused())?;
            let value = HeaderValue::from_str(&text).map_err(|_| refused())?;
            headers.push((name, value));
        }
        Ok(headers)
    }

    fn body(&self, object: &Object, text: &str) -> Option<String> {
        match &self.body {
            Body::Nothing => None,
            Body::Rest if self.placed.is_empty() => Some(text.to_owned()),
            Body::Rest => {
                let elsewhere: BTreeSet<&str> =
                    self.placed.iter().map(|one| one.arg.first.as_str()).collect();
                let rest = object.iter().filter(|(key, _)| !elsewhere.contains(key));
                Some(Json::object(rest.map(|(key, value)| (key, value.clone()))).canonical())
            }
            Body::Member(arg) => find(object, arg).map(Json::canonical),
        }
    }

    /// An argument that goes nowhere would be approved and not sent.
    fn nothing_is_left(&self, object: &Object) -> Result<(), Misplaced> {
        let body = match &self.body {
            Body::Member(arg) => Some(arg),
            Body::Nothing | Body::Rest => None,
        };
        let ways: Vec<&ArgPath> = self.placed.iter().map(|one| &one.arg).chain(body).collect();
        for (key, value) in object.iter() {
            let mut ways = ways.iter().filter(|way| way.first == key).peekable();
            if ways.peek().is_none() {
                return Err(Misplaced::Unplaced(ArgPath::top(key).pointer()));
            }
            let below: Vec<&str> = ways.filter_map(|way| way.second.as_deref()).collect();
            if below.is_empty() {
                continue;
            }
            let members = value
                .as_object()
                .ok_or_else(|| Misplaced::Unplaced(ArgPath::top(key).pointer()))?;
            if let Some((member, _)) = members.iter().find(|(member, _)| !below.contains(member)) {
                return Err(Misplaced::Unplaced(ArgPath::below(key, member).pointer()));
            }
        }
        Ok(())
    }
}

fn find<'a>(object: &'a Object, arg: &ArgPath) -> Option<&'a Json> {
    let value = object.get(&arg.first)?;
    match &arg.second {
        None => Some(value),
        Some(second) => value.get(second),
    }
}

/// How a value is spelt outside of JSON; nothing for null, lists and objects.
fn scalar(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.as_str().to_owned()),
        Json::Bool(value) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
