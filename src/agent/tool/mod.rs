//! Tools: what an agent's calls are carried out by. [`http`] sends one request, [`command`] starts one child, [`mcp`] calls a
//! tool of a server; all take the canonical arguments as they are stored and the permit as the key that names the call.
//! [`shelf`] holds those that there are at one moment.
//!
//! Whatever goes wrong is an answer of a type, never a panic. The room of tools must not know jobs, requests or policy.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::config::agent::{ToolConfig, ToolHead};
use crate::gate::Arguments;
use crate::ids::PermitId;
use crate::lifecycle::Tasks;
use crate::mcp::Watcher;

pub mod command;
mod fit;
pub mod http;
pub mod mcp;
pub mod shelf;

pub use shelf::Shelf;

#[cfg(test)]
mod tool_tests;

/// The most characters of a result that the model is told.
pub const MAX_RESULT: usize = 8_000;

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether every call needs a person, whatever policy says.
    pub requires_confirmation: bool,
    /// Whether a call whose answer was lost may be sent again under the same permit.
    pub idempotent: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// The most bytes kept of what one call answers, before it is cut for the model.
    pub output_limit: usize,
    way: Way,
}

/// How a tool is called.
enum Way {
    Http(Box<http::HttpTool>),
    Command(command::CommandTool),
    Mcp(mcp::McpTool),
    /// Does what a test says.
    #[cfg(test)]
    Scripted(Scripted),
}

/// What a test says a tool does with arguments and permit.
#[cfg(test)]
pub(crate) type Scripted = Arc<dyn Fn(&str, &PermitId) -> Carried + Send + Sync>;

/// What came of sending a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// The tool answered that it did what was asked.
    Done(String),
    /// The tool answered that it failed, or the call never reached it.
    Failed(String),
    /// The call was sent and no answer came: it may have been carried out.
    Unknown(String),
}

/// All tools of the configuration, and the servers that bring more. Clones share them.
#[derive(Clone, Default)]
pub struct Toolbox {
    fixed: Arc<BTreeMap<String, Arc<Tool>>>,
    servers: Arc<Vec<mcp::McpTools>>,
}

/// The tools for somebody who only looks at them: it keeps no server from being let go.
pub struct OnLoan {
    fixed: Arc<BTreeMap<String, Arc<Tool>>>,
    servers: Weak<Vec<mcp::McpTools>>,
}

impl OnLoan {
    /// What there is of them now.
    pub fn toolbox(&self) -> Toolbox {
        Toolbox {
            fixed: Arc::clone(&self.fixed),
            servers: self.servers.upgrade().unwrap_or_default(),
        }
    }
}

impl Toolbox {
    /// For somebody who only looks at them.
    pub fn on_loan(&self) -> OnLoan {
        OnLoan {
            fixed: Arc::clone(&self.fixed),
            servers: Arc::downgrade(&self.servers),
        }
    }

    /// The tools of the configuration. `http` must follow no redirect. No server is started yet.
    pub fn new(tools: &[ToolConfig], http: &reqwest::Client) -> Self {
        let mut fixed = BTreeMap::new();
        let mut servers = Vec::new();
        for tool in tools {
            let (head, way) = match tool {
                ToolConfig::Http(head, to) => {
                    (head, Way::Http(Box::new(http::HttpTool::new(to, http.clone()))))
                }
                ToolConfig::Command(head, child) => {
                    (head, Way::Command(command::CommandTool::new(child.clone())))
                }
                ToolConfig::Mcp(server) => {
                    servers.push(mcp::McpTools::new(server, http));
                    continue;
                }
            };
            fixed.insert(head.name.clone(), Arc::new(Tool::new(head, way)));
        }
        Self {
            fixed: Arc::new(fixed),
            servers: Arc::new(servers),
        }
    }

    /// Starts the servers in the background; they end with the tasks.
    pub fn start(&self, tasks: &Tasks) {
        for server in &*self.servers {
            server.start(tasks);
        }
    }

    /// Has whoever watches told what happens to the servers. Before they are started.
    pub fn watched_by(&self, watcher: &Arc<dyn Watcher>) {
        for server in &*self.servers {
            server.server().watched_by(Arc::clone(watcher));
        }
    }

    /// The tools that there are at this moment.
    pub fn shelf(&self) -> Shelf {
        Shelf::of(&self.fixed, &self.servers)
    }

    /// Waits until every server that may bring one of these tools (names, or their beginning with `*` behind it) was tried.
    pub async fn settled(&self, patterns: &[String]) {
        for server in self.servers.iter().filter(|server| server.may_bring(patterns)) {
            server.settled().await;
        }
    }

    /// Asks the server of a tool what the tool is now; nothing for one that has no server.
    pub async fn refresh(&self, tool: &str) {
        if let Some(server) = self.server(tool) {
            server.refresh().await;
        }
    }

    /// Waits a while for the server of a tool, when it is not there.
    pub async fn present(&self, tool: &str) {
        if let Some(server) = self.server(tool) {
            server.present().await;
        }
    }

    fn server(&self, tool: &str) -> Option<&mcp::McpTools> {
        self.servers.iter().find(|server| server.brings(tool))
    }

    /// A box of scripted tools: name, whether it needs a person, whether it is idempotent, what it does.
    #[cfg(test)]
    pub(crate) fn scripted(tools: impl IntoIterator<Item = (&'static str, bool, bool, Scripted)>) -> Self {
        let tools = tools
            .into_iter()
            .map(|(name, requires_confirmation, idempotent, does)| {
                let tool = Tool {
                    name: name.to_owned(),
                    description: String::new(),
                    parameters: serde_json::json!({
                        "type": "object",
                        "properties": {"amount": {"type": "number"}}
                    }),
                    requires_confirmation,
                    idempotent,
                    timeout: Duration::from_secs(5),
                    output_limit: crate::config::agent::OUTPUT_LIMIT,
                    way: Way::Scripted(does),
                };
                (name.to_owned(), Arc::new(tool))
            });
        Self {
            fixed: Arc::new(tools.collect()),
            servers: Arc::default(),
        }
    }
}

impl Tool {
    fn new(head: &ToolHead, way: Way) -> Self {
        Self {
            name: head.name.clone(),
            description: head.description.clone(),
            parameters: Value::Object(head.parameters.clone()),
            requires_confirmation: head.requires_confirmation,
            idempotent: head.idempotent,
            timeout: head.timeout,
            output_limit: head.output_limit,
            way,
        }
    }

    /// Why the tool could not take these arguments, by its schema, in words that hold no value of theirs.
    pub(crate) fn misfit(&self, args: &Arguments) -> Option<String> {
        misfit(&self.parameters, args).or_else(|| match &self.way {
            Way::Http(tool) => tool.misfit(args.json()),
            Way::Command(_) | Way::Mcp(_) => None,
            #[cfg(test)]
            Way::Scripted(_) => None,
        })
    }

    /// By what a tool is known whose server may change it at any time; `None` for one that the configuration describes.
    pub fn fingerprint(&self) -> Option<&str> {
        match &self.way {
            Way::Mcp(tool) => Some(tool.fingerprint()),
            _ => None,
        }
    }

    /// Carries a call out: `args` is the canonical text of its arguments, sent as it is.
    pub async fn carry_out(&self, args: &str, permit: &PermitId) -> Carried {
        match &self.way {
            Way::Http(tool) => {
                tool.carry_out(args, permit, self.timeout, self.output_limit)
                    .await
            }
            Way::Command(tool) => tool.carry_out(args, self.timeout, self.output_limit).await,
            Way::Mcp(tool) => tool.carry_out(args, permit).await,
            #[cfg(test)]
            Way::Scripted(does) => does(args, permit),
        }
    }
}

/// Why arguments do not fit a JSON Schema, in words that hold no value of theirs; `None` when they do.
pub fn misfit(schema: &Value, args: &Arguments) -> Option<String> {
    fit::misfit(schema, args.json())
}

/// A result as the model is told it: at most [`MAX_RESULT`] characters, and when it was longer, saying so.
pub fn told(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_RESULT) else {
        return text.to_owned();
    };
    let whole = text.chars().count();
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}\n[cut: the first {MAX_RESULT} of {whole} characters]")
}

/// Bytes of a tool as text; `cut` is the limit that left some out.
fn as_text(bytes: &[u8], cut: Option<usize>) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\0', "\u{FFFD}");
    match cut {
        Some(limit) => format!("{text}\n[cut: only the first {limit} bytes were kept]"),
        None => text,
    }
}
