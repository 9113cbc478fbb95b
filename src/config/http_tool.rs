//! Tools behind HTTP as the configuration names them: method, address, and where each argument goes. It sends nothing.

use std::{collections::BTreeMap, str::FromStr as _};

use super::{
    address::is_loopback,
    context::Complaint,
    node::Reader,
    problem::ProblemKind,
    secret::Secret,
    template::{Template, TemplateError},
    yaml::Value,
};

/// Where a call is sent, and where its arguments go.
#[derive(Debug, Clone)]
pub struct HttpTool {
    /// The method.
    pub method: ToolMethod,
    /// The address.
    pub address: Template,
    /// Headers beside ours, such as the tool's own authorisation.
    pub headers: BTreeMap<String, Secret>,
    /// The arguments that go elsewhere than into the body, by place; those of the query in the order in which they are sent.
    pub placed: Vec<Placed>,
    /// What the body is.
    pub body: Body,
}

/// The methods of RFC 9110 section 9 that a tool may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolMethod {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// OPTIONS.
    Options,
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// One argument, and the place of the request where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where.
    pub place: Place,
    /// The name there.
    pub name: String,
    /// Which argument.
    pub arg: ArgPath,
}

/// A place of a request that an argument can go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A slot of the path.
    Path,
    /// A parameter of the query, in the style `form`, exploded.
    Query,
    /// A header, in the style `simple`.
    Header,
}

/// What the body of a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    Nothing,
    /// The arguments that go nowhere else, as one JSON object. Where none goes elsewhere, the stored bytes themselves.
    Rest,
    /// One argument, as JSON; without it there is no body.
    Member(ArgPath),
}

/// The way to an argument: one key of the arguments, or a key and one below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArgPath {
    /// The key.
    pub first: String,
    /// The key below it.
    pub second: Option<String>,
}

/// Why a header cannot be one that a tool sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHeader {
    /// It is no name of a header.
    Name,
    /// Gatepost or the connection sets it.
    Ours,
}

impl ToolMethod {
    /// The method as it stands in a request.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether it asks for nothing to change (RFC 9110 section 9.2.1).
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options)
    }
}

impl ArgPath {
    /// A key of the arguments.
    pub fn top(key: impl Into<String>) -> Self {
        Self {
            first: key.into(),
            second: None,
        }
    }

    /// A key below another.
    pub fn below(first: impl Into<String>, second: impl Into<String>) -> Self {
        Self {
            first: first.into(),
            second: Some(second.into()),
        }
    }

    /// The JSON pointer of the argument (RFC 6901).
    pub fn pointer(&self) -> String {
        let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
        let mut pointer = format!("/{}", escape(&self.first));
        if let Some(second) = &self.second {
            pointer.push('/');
            pointer.push_str(&escape(second));
        }
        pointer
    }

    fn read(pointer: &str) -> Option<Self> {
        crate::gate::json::Pointer::from_str(pointer).ok()?;
        let unescape = |key: &str| key.replace("~1", "/").replace("~0", "~");
        let mut keys = pointer.strip_prefix('/')?.split('/').map(unescape);
        let read = Self {
            first: keys.next()?,
            second: keys.next(),
        };
        keys.next().is_none().then_some(read)
    }
}

const METHODS: [(&str, ToolMethod); 7] = [
    ("GET", ToolMethod::Get),
    ("HEAD", ToolMethod::Head),
    ("OPTIONS", ToolMethod::Options),
    ("POST", ToolMethod::Post),
    ("PUT", ToolMethod::Put),
    ("PATCH", ToolMethod::Patch),
    ("DELETE", ToolMethod::Delete),
];
/// Headers of a tool that Gatepost itself sets.
const OURS: [&str; 5] = [
    "idempotency-key",
    "content-type",
    "content-length",
    "host",
    "transfer-encoding",
];
/// Headers that steer the connection, the way to the server or who asks: no argument may set them.
const NOT_OF_ARGUMENTS: [&str; 15] = [
    "accept-encoding",
    "authorization",
    "connection",
    "cookie",
    "expect",
    "forwarded",
    "keep-alive",
    "origin",
    "te",
    "trailer",
    "upgrade",
    "via",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// Whether a header may be set from an argument.
///
/// # Errors
/// Why not.
pub fn argument_header(name: &str) -> Result<(), BadHeader> {
    let lower = name.to_ascii_lowercase();
    if !is_header_name(name) {
        return Err(BadHeader::Name);
    }
    let steers = ["proxy-", "sec-", "x-forwarded-", "x-original-", "x-rewrite-"];
    if OURS.contains(&lower.as_str())
        || NOT_OF_ARGUMENTS.contains(&lower.as_str())
        || steers.iter().any(|head| lower.starts_with(head))
    {
        return Err(BadHeader::Ours);
    }
    Ok(())
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

impl HttpTool {
    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let before = reader.context().count();
        let mut map = reader.map()?;
        let method = map
            .optional("method")
            .map_or(Some(ToolMethod::Post), |method| method.choice(&METHODS));
        let url = map.required("url");
        let address = url.as_ref().and_then(|url| read_template(url, true));
        let headers = map
            .optional("headers")
            .map_or_else(|| Some(BTreeMap::new()), |headers| decode_headers(&headers));
        let mut placed = Vec::new();
        for (key, place) in [
            ("path", Place::Path),
            ("query", Place::Query),
            ("header_args", Place::Header),
        ] {
            if let Some(list) = map.optional(key) {
                decode_placed(&list, place, &mut placed)?;
            }
        }
        let body = map.optional("body").map(|body| decode_body(&body));
        map.finish();
        let (method, address, headers) = (method?, address?, headers?);
        let body = match body {
            Some(body) => body?,
            None if method.is_safe() => Body::Nothing,
            None => Body::Rest,
        };
        let tool = Self {
            method,
            address,
            headers,
            placed,
            body,
        };
        let tool = tool.completed(reader);
        (reader.context().count() == before).then_some(tool)
    }

    /// Slots that are not named take the argument of their name; what contradicts itself is told.
    fn completed(mut self, reader: &Reader<'_>) -> Self {
        let conflict = |message: String, remedy: &str| {
            reader.complain(Complaint::new(ProblemKind::Conflict, message).remedy(remedy));
        };
        let named = |place: Place, name: &str, placed: &[Placed]| {
            placed.iter().any(|one| one.place == place && one.name == name)
        };
        let slots: Vec<String> = self.address.slots().map(str::to_owned).collect();
        for slot in &slots {
            if !named(Place::Path, slot, &self.placed) {
                self.placed.push(Placed {
                    place: Place::Path,
                    name: slot.clone(),
                    arg: ArgPath::top(slot.as_str()),
                });
            }
        }
        self.placed.sort_by_key(|one| one.place);
        for (at, one) in self.placed.iter().enumerate() {
            if one.place == Place::Path && !slots.contains(&one.name) {
                conflict(
                    "a name under `path` is no slot of the address".to_owned(),
                    "write the slot as {name} into url",
                );
            }
            let same = |other: &Placed| {
                let place = other.place == one.place && same_name(one.place, &other.name, &one.name);
                place || other.arg == one.arg
            };
            if self.placed.iter().skip(at + 1).any(same) {
                conflict(
                    format!(
                        "the argument {} or its place is named twice",
                        super::shown::shown(&one.arg.pointer())
                    ),
                    "give each argument one place",
                );
            }
            if one.place == Place::Header && self.headers.contains_key(&one.name.to_ascii_lowercase()) {
                conflict(
                    "a header has a value under `headers` and an argument under `header_args`".to_owned(),
                    "keep one of the two",
                );
            }
        }
        if self.body == Body::Rest && self.placed.iter().any(|one| one.arg.second.is_some()) {
            conflict(
                "the body is the rest of the arguments, and an argument further down goes elsewhere"
                    .to_owned(),
                "name the argument that is the body, as in `body: /body`",
            );
        }
        if self.method.is_safe() && self.body != Body::Nothing {
            conflict(
                format!("{} takes no body", self.method.as_str()),
                "remove `body`, and name every argument under `query` or in the address",
            );
        }
        self
    }
}

fn same_name(place: Place, one: &str, other: &str) -> bool {
    if place == Place::Header {
        one.eq_ignore_ascii_case(other)
    } else {
        one == other
    }
}

/// Reads an address with slots; plain http to another machine is refused, or only warned of.
pub(super) fn read_template(reader: &Reader<'_>, plain_allowed: bool) -> Option<Template> {
    let Value::Text(text) = reader.value() else {
        reader.complain(
            Complaint::new(ProblemKind::WrongType, "found something other than text")
                .accepted("an address such as https://host/items/{id}")
                .remedy("put the address in quotes"),
        );
        return None;
    };
    let template = match text.parse::<Template>() {
        Ok(template) => template,
        Err(why) => {
            let kind = match why {
                TemplateError::Credentials => ProblemKind::Unsafe,
                _ => ProblemKind::BadValue,
            };
            // The text is never repeated: it may hold a secret.
            reader.complain(
                Complaint::new(kind, why.to_string())
                    .accepted("an address such as https://host/items/{id}")
                    .remedy("mend the address; what follows ? belongs under `query`"),
            );
            return None;
        }
    };
    if template.origin().scheme() == "http" && !is_loopback(template.origin()) {
        if !plain_allowed {
            reader.complain(
                Complaint::new(
                    ProblemKind::Unsafe,
                    "plain http to another machine: the approved arguments could be read or changed on the way",
                )
                .remedy("use https; plain http is accepted on loopback only"),
            );
            return None;
        }
        reader.warn(
            "plain http to another machine: the approved arguments could be read or changed on the way",
        );
    }
    Some(template)
}

fn decode_placed(list: &Reader<'_>, place: Place, placed: &mut Vec<Placed>) -> Option<()> {
    for item in list.list()? {
        let (name, arg) = if matches!(item.value(), Value::Map(_)) {
            let mut map = item.map()?;
            let name = map.required("name").and_then(|name| name.line(128));
            let arg = map.required("arg").and_then(|arg| decode_arg(&arg));
            map.finish();
            (name?, arg?)
        } else {
            let name = item.line(128)?;
            let arg = ArgPath::top(name.as_str());
            (name, arg)
        };
        if place == Place::Header
            && let Err(why) = argument_header(&name)
        {
            let found = match why {
                BadHeader::Name => "found what cannot be the name of a header",
                BadHeader::Ours => "found a header that no argument may set",
            };
            item.complain(
                Complaint::new(ProblemKind::Unsafe, found)
                    .accepted("a header of the tool's own, such as X-Trace")
                    .remedy("remove it; a value of yours belongs under `headers`"),
            );
            continue;
        }
        placed.push(Placed { place, name, arg });
    }
    Some(())
}

fn decode_arg(reader: &Reader<'_>) -> Option<ArgPath> {
    let text = reader.text()?;
    let read = ArgPath::read(&text);
    if read.is_none() {
        reader.bad_value(
            "a JSON pointer of one or two keys, such as /id or /query/id",
            "name an argument of the tool",
        );
    }
    read
}

fn decode_body(reader: &Reader<'_>) -> Option<Body> {
    match reader.value() {
        Value::Text(text) if text == "none" => Some(Body::Nothing),
        Value::Text(text) if text == "rest" => Some(Body::Rest),
        Value::Text(text) if text.starts_with('/') => decode_arg(reader).map(Body::Member),
        _ => {
            reader.bad_value(
                "none, rest, or the JSON pointer of one argument such as /body",
                "choose one of these",
            );
            None
        }
    }
}

pub(super) fn decode_headers(reader: &Reader<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut headers = BTreeMap::new();
    for (name, value) in reader.names()? {
        let lower = name.to_ascii_lowercase();
        if !is_header_name(name) || OURS.contains(&lower.as_str()) {
            value.complain(
                Complaint::new(ProblemKind::BadValue, "found what cannot be a header of a tool")
                    .accepted("a header's name other than those that Gatepost sets itself")
                    .remedy(format!("remove it; Gatepost sets {}", OURS.join(", "))),
            );
            continue;
        }
        let secret = value.secret()?;
        if !secret
            .expose()
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        {
            value.complain(
                Complaint::new(ProblemKind::BadSecret, "the value cannot be sent in a header")
                    .remedy("use visible ASCII characters"),
            );
            continue;
        }
        if headers.insert(lower, secret).is_some() {
            value.complain(
                Complaint::new(
                    ProblemKind::Conflict,
                    "a header that differs only in case from another",
                )
                .remedy("keep one of the two"),
            );
        }
    }
    Some(headers)
}
