//! The `agent` section: the model, the tools that jobs may call, and the folder of pieces.
//!
//! Pieces themselves are read by the agent room.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use url::Url;

use super::{
    address::is_loopback,
    child::{ChildConfig, decode_timeout},
    context::Complaint,
    mcp::McpServer,
    node::{MapReader, Reader},
    problem::ProblemKind,
    secret::Secret,
};

/// The `agent` section.
#[derive(Debug, Clone, Default)]
pub struct AgentConfig {
    /// The model; without it no job can run.
    pub model: Option<ModelConfig>,
    /// The folder of pieces.
    pub pieces: Option<PathBuf>,
    /// The tools, in the order of the file, names unique.
    pub tools: Vec<ToolConfig>,
}

/// An endpoint that speaks the OpenAI-compatible chat API.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// The address below which `/chat/completions` stands.
    pub base_url: Url,
    /// The model's name.
    pub model: String,
    /// The bearer key, for endpoints that want one.
    pub api_key: Option<Secret>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// Whether answers are asked for as a stream.
    pub stream: bool,
    /// About how many tokens of conversation are sent at most; more of it is compacted.
    pub context: u32,
}

/// A tool, or a server of tools.
#[derive(Debug, Clone)]
pub enum ToolConfig {
    /// One HTTP request a call.
    Http(ToolHead, HttpTool),
    /// One child process a call, the arguments as JSON on its standard input.
    Command(ToolHead, ChildConfig),
    /// A server whose tools appear as `mcp__SERVER__TOOL`.
    Mcp(McpServer),
}

/// What every tool has.
#[derive(Debug, Clone)]
pub struct ToolHead {
    /// The name as the model sees it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Whether every call needs a person, whatever the policy says.
    pub requires_confirmation: bool,
    /// Whether a call with an unknown outcome may be sent again.
    pub idempotent: bool,
    /// How long one call may take.
    pub timeout: Duration,
}

/// Where a call is sent.
#[derive(Debug, Clone)]
pub struct HttpTool {
    /// The method.
    pub method: ToolMethod,
    /// The address.
    pub url: Url,
    /// Headers beside ours, such as the tool's own authorisation.
    pub headers: BTreeMap<String, Secret>,
}

/// The methods that carry a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolMethod {
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

impl ToolMethod {
    /// The method as it stands in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

const METHODS: [(&str, ToolMethod); 4] = [
    ("POST", ToolMethod::Post),
    ("PUT", ToolMethod::Put),
    ("PATCH", ToolMethod::Patch),
    ("DELETE", ToolMethod::Delete),
];
const CONTROL_FLOW: [&str; 6] = [
    "complete",
    "transition",
    "spawn_subtask",
    "wait_subtasks",
    "request_tool",
    "browser_login",
];
/// How long one call of a tool may take where its entry does not say.
pub(super) const TOOL_TIMEOUT: Duration = Duration::from_mins(1);
const CONTEXT: u32 = 100_000;
const MODEL_TIMEOUT: Duration = Duration::from_mins(5);

impl AgentConfig {
    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let before = reader.context().count();
        let mut map = reader.map()?;
        let model = map
            .optional("model")
            .and_then(|model| ModelConfig::decode(&model));
        let pieces = map.optional("pieces").and_then(|pieces| pieces.path_value());
        let tools = map.optional("tools").and_then(|tools| decode_tools(&tools));
        map.finish();
        (reader.context().count() == before).then(|| Self {
            model,
            pieces,
            tools: tools.unwrap_or_default(),
        })
    }
}

impl ModelConfig {
    fn decode(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let base_url = map.required("base_url").and_then(|url| url.url(false));
        let model = map.required("model").and_then(|model| model.line(256));
        let api_key = map
            .optional("api_key")
            .map_or(Some(None), |key| key.header_secret().map(Some));
        let timeout = map
            .optional("timeout")
            .map_or(Some(MODEL_TIMEOUT), |timeout| decode_timeout(&timeout));
        let stream = decode_flag(&mut map, "stream");
        let context = map
            .optional("context_tokens")
            .map_or(Some(CONTEXT), |number| number.integer(1_000, 10_000_000));
        map.finish();
        Some(Self {
            base_url: base_url?,
            model: model?,
            api_key: api_key?,
            timeout: timeout?,
            stream: stream?,
            context: context?,
        })
    }
}

impl ToolConfig {
    /// The name under which it is unique: the tool's, or `mcp__SERVER`.
    pub fn name(&self) -> String {
        match self {
            Self::Http(head, _) | Self::Command(head, _) => head.name.clone(),
            Self::Mcp(server) => format!("mcp__{}", server.name),
        }
    }
}

fn decode_tools(reader: &Reader<'_>) -> Option<Vec<ToolConfig>> {
    let mut tools: Vec<ToolConfig> = Vec::new();
    for item in reader.list()? {
        let Some(tool) = decode_tool(&item) else { continue };
        let name = tool.name();
        if tools.iter().any(|other| other.name() == name) {
            item.complain(
                Complaint::new(ProblemKind::Conflict, format!("a second tool named `{name}`"))
                    .remedy("give each tool its own name"),
            );
        }
        tools.push(tool);
    }
    Some(tools)
}

fn decode_tool(reader: &Reader<'_>) -> Option<ToolConfig> {
    let mut map = reader.map()?;
    if map.has("mcp") {
        let server = McpServer::decode(&mut map);
        map.finish();
        return server.map(ToolConfig::Mcp);
    }
    if map.has("http") == map.has("command") {
        reader.complain(
            Complaint::new(
                ProblemKind::MissingKey,
                "the tool has not exactly one of `http`, `command` and `mcp`",
            )
            .remedy("say how the tool is called, in one way"),
        );
        return None;
    }
    let head = decode_head(&mut map);
    let tool = if map.has("http") {
        let http = map.required("http").and_then(|http| decode_http(&http));
        head.zip(http).map(|(head, http)| ToolConfig::Http(head, http))
    } else {
        let child = ChildConfig::decode(&mut map);
        head.zip(child)
            .map(|(head, child)| ToolConfig::Command(head, child))
    };
    map.finish();
    tool
}

fn decode_head(map: &mut MapReader<'_>) -> Option<ToolHead> {
    let name = map.required("name").and_then(|name| decode_tool_name(&name));
    let description = map
        .optional("description")
        .map_or_else(|| Some(String::new()), |text| text.prose());
    let parameters = map.optional("parameters").map_or_else(
        || {
            Some(serde_json::Map::from_iter([(
                "type".to_owned(),
                serde_json::Value::from("object"),
            )]))
        },
        |parameters| parameters.json_object(),
    );
    let requires_confirmation = decode_flag(map, "requires_confirmation");
    let idempotent = decode_flag(map, "idempotent");
    let timeout = decode_tool_timeout(map);
    Some(ToolHead {
        name: name?,
        description: description?,
        parameters: parameters?,
        requires_confirmation: requires_confirmation?,
        idempotent: idempotent?,
        timeout: timeout?,
    })
}

fn decode_tool_name(reader: &Reader<'_>) -> Option<String> {
    let name = reader.name()?;
    if name.contains('.') {
        reader.warn("holds a dot, which several model endpoints refuse in the name of a tool");
    }
    if CONTROL_FLOW.contains(&name.as_str()) || name.starts_with("mcp__") {
        reader.complain(
            Complaint::new(
                ProblemKind::Conflict,
                format!("the name `{name}` is kept for control flow and MCP servers"),
            )
            .remedy("choose another name"),
        );
        return None;
    }
    Some(name)
}

fn decode_http(reader: &Reader<'_>) -> Option<HttpTool> {
    let mut map = reader.map()?;
    let method = map
        .optional("method")
        .map_or(Some(ToolMethod::Post), |method| method.choice(&METHODS));
    let url_reader = map.required("url");
    let url = url_reader.as_ref().and_then(|url| url.url(true));
    let headers = map
        .optional("headers")
        .map_or_else(|| Some(BTreeMap::new()), |headers| decode_headers(&headers));
    map.finish();
    if let (Some(reader), Some(url)) = (&url_reader, &url)
        && url.scheme() == "http"
        && !is_loopback(url)
    {
        reader.warn(
            "plain http to another machine: the approved arguments could be read or changed on the way",
        );
    }
    Some(HttpTool {
        method: method?,
        url: url?,
        headers: headers?,
    })
}

pub(super) fn decode_headers(reader: &Reader<'_>) -> Option<BTreeMap<String, Secret>> {
    const OURS: [&str; 5] = [
        "idempotency-key",
        "content-type",
        "content-length",
        "host",
        "transfer-encoding",
    ];
    let mut headers = BTreeMap::new();
    for (name, value) in reader.names()? {
        let lower = name.to_ascii_lowercase();
        let token = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !token || OURS.contains(&lower.as_str()) {
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

fn decode_flag(map: &mut MapReader<'_>, key: &'static str) -> Option<bool> {
    map.optional(key).map_or(Some(false), |flag| flag.boolean())
}

fn decode_tool_timeout(map: &mut MapReader<'_>) -> Option<Duration> {
    map.optional("timeout")
        .map_or(Some(TOOL_TIMEOUT), |timeout| decode_timeout(&timeout))
}
