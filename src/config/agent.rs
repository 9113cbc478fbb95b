//! The `agent` section: the model, the tools that jobs may call, and the folder of pieces.
//!
//! Pieces themselves are read by the agent room.

use std::{path::PathBuf, time::Duration};

use url::Url;

pub use super::http_tool::{ArgPath, Body, HttpTool, Place, Placed, ToolMethod};

use super::{
    child::{ChildConfig, decode_timeout},
    context::Complaint,
    evaluation::EvaluationConfig,
    limits::LimitsConfig,
    mcp::McpServer,
    node::{MapReader, Reader},
    openapi,
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
    /// What one run may spend.
    pub limits: LimitsConfig,
    /// Whose jobs ask nobody.
    pub evaluation: EvaluationConfig,
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
    /// How often a question is repeated that got no answer, or one that may be better another time.
    pub retries: u32,
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
    /// The most bytes kept of what one call answers.
    pub output_limit: usize,
}

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
/// The bytes kept of an answer unless a tool says otherwise, and the most that it can say.
pub const OUTPUT_LIMIT: usize = 256 * 1024;
const MOST_OUTPUT: i64 = 16 * 1024 * 1024;
const CONTEXT: u32 = 100_000;
const RETRIES: u32 = 3;
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
        let limits = LimitsConfig::decode(&mut map);
        let evaluation = map.optional("evaluation").map_or_else(
            || Some(EvaluationConfig::default()),
            |evaluation| EvaluationConfig::decode(&evaluation),
        );
        map.finish();
        (reader.context().count() == before).then(|| Self {
            model,
            pieces,
            tools: tools.unwrap_or_default(),
            limits,
            evaluation: evaluation.unwrap_or_default(),
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
        let retries = map
            .optional("retries")
            .map_or(Some(RETRIES), |number| number.integer(0, 10));
        map.finish();
        Some(Self {
            base_url: base_url?,
            model: model?,
            api_key: api_key?,
            timeout: timeout?,
            stream: stream?,
            context: context?,
            retries: retries?,
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
        for tool in decode_item(&item) {
            let name = tool.name();
            if tools.iter().any(|other| other.name() == name) {
                item.complain(
                    Complaint::new(ProblemKind::Conflict, format!("a second tool named `{name}`"))
                        .remedy("give each tool its own name"),
                );
            }
            tools.push(tool);
        }
    }
    Some(tools)
}

/// An item is one tool, one server of tools, or a document whose operations are tools.
fn decode_item(item: &Reader<'_>) -> Vec<ToolConfig> {
    let Some(mut map) = item.map() else {
        return Vec::new();
    };
    if map.has("openapi") {
        let entry = map.required("openapi");
        map.finish();
        let tools = entry.and_then(|entry| openapi::entry::decode(&entry));
        return tools.unwrap_or_default();
    }
    decode_tool(item, map).into_iter().collect()
}

fn decode_tool(reader: &Reader<'_>, mut map: MapReader<'_>) -> Option<ToolConfig> {
    if map.has("mcp") {
        let server = McpServer::decode(&mut map);
        map.finish();
        return server.map(ToolConfig::Mcp);
    }
    if map.has("http") == map.has("command") {
        reader.complain(
            Complaint::new(
                ProblemKind::MissingKey,
                "the tool has not exactly one of `http`, `command`, `mcp` and `openapi`",
            )
            .remedy("say how the tool is called, in one way"),
        );
        return None;
    }
    let head = decode_head(&mut map);
    let tool = if map.has("http") {
        let http = map.required("http").and_then(|http| HttpTool::decode(&http));
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
    let output_limit = decode_output_limit(map);
    Some(ToolHead {
        name: name?,
        description: description?,
        parameters: parameters?,
        requires_confirmation: requires_confirmation?,
        idempotent: idempotent?,
        timeout: timeout?,
        output_limit: output_limit?,
    })
}

fn decode_tool_name(reader: &Reader<'_>) -> Option<String> {
    let name = reader.name()?;
    if name.contains('.') {
        reader.warn(
            "holds a dot, which several model endpoints refuse in the name of a tool: write _ in its place",
        );
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

fn decode_flag(map: &mut MapReader<'_>, key: &'static str) -> Option<bool> {
    map.optional(key).map_or(Some(false), |flag| flag.boolean())
}

pub(super) fn decode_tool_timeout(map: &mut MapReader<'_>) -> Option<Duration> {
    map.optional("timeout")
        .map_or(Some(TOOL_TIMEOUT), |timeout| decode_timeout(&timeout))
}

/// How many bytes are kept of what a tool answers: a number of bytes.
pub(super) fn decode_output_limit(map: &mut MapReader<'_>) -> Option<usize> {
    let limit = map
        .optional("output_limit")
        .map_or(Some(None), |limit| limit.integer(1_024, MOST_OUTPUT).map(Some))?;
    Some(
        limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(OUTPUT_LIMIT),
    )
}
