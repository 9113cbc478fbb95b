//! Tools of MCP servers: what a server offers becomes tools under the terms of the configuration. Whether a call needs a person
//! and whether it may be sent twice is the operator's to say; what the server says of that counts for nothing.

use std::sync::{Arc, Mutex, PoisonError};

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::Value;

use super::{Carried, Tool, Way};
use crate::config::agent::OUTPUT_LIMIT;
use crate::config::mcp::{McpServer, McpTerms};
use crate::ids::PermitId;
use crate::lifecycle::Tasks;
use crate::mcp::offer::{Offer, full_name};
use crate::mcp::{Called, Definition, Fingerprint, Limits, Server};

/// The tools of one server.
pub struct McpTools {
    server: Arc<Server>,
    terms: Terms,
    /// What was made of the last offer, so that it is made once.
    made: Mutex<Option<Made>>,
}

/// An offer, and the tools that were made of it.
struct Made {
    of: Arc<Offer>,
    tools: Arc<Vec<Arc<Tool>>>,
}

/// One tool of a server.
pub struct McpTool {
    server: Arc<Server>,
    name: String,
    fingerprint: Fingerprint,
}

impl McpTools {
    /// The tools that this server will offer. It is not started yet.
    pub fn new(config: &McpServer, http: &reqwest::Client) -> Self {
        Self::within(config, http, Limits::default())
    }

    /// The same with other limits.
    pub fn within(config: &McpServer, http: &reqwest::Client, limits: Limits) -> Self {
        Self {
            server: Arc::new(Server::new(config.clone(), http.clone(), limits)),
            terms: Terms::new(&config.terms),
            made: Mutex::default(),
        }
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn start(&self, tasks: &Tasks) {
        tasks.spawn(Arc::clone(&self.server).keep(tasks.clone()));
    }

    pub(super) fn name(&self) -> &str {
        self.server.name()
    }

    /// What it offers; `None` while it is not there.
    pub(super) fn tools(&self) -> Option<Arc<Vec<Arc<Tool>>>> {
        let offer = self.server.offer()?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.as_ref().filter(|made| Arc::ptr_eq(&made.of, &offer)) {
            return Some(Arc::clone(&made.tools));
        }
        let tools: Vec<Arc<Tool>> = offer
            .tools
            .values()
            .map(|tool| Arc::new(self.tool(tool)))
            .collect();
        let tools = Arc::new(tools);
        *made = Some(Made {
            of: offer,
            tools: Arc::clone(&tools),
        });
        Some(tools)
    }

    fn tool(&self, definition: &Definition) -> Tool {
        Tool {
            name: full_name(self.name(), &definition.name),
            description: definition.description.clone(),
            parameters: Value::Object(definition.schema.clone()),
            requires_confirmation: self.terms.must_confirm(&definition.name),
            idempotent: self.terms.idempotent.is_match(&definition.name),
            timeout: self.server.config().timeout,
            // The connection has a bound of its own.
            output_limit: OUTPUT_LIMIT,
            way: Way::Mcp(McpTool {
                server: Arc::clone(&self.server),
                name: definition.name.clone(),
                fingerprint: definition.fingerprint.clone(),
            }),
        }
    }

    /// Whether the tool is one of this server, whether it offers it or not.
    pub(super) fn brings(&self, tool: &str) -> bool {
        tool.starts_with(&full_name(self.name(), ""))
    }

    /// Whether one of the patterns may mean a tool of this server.
    pub(super) fn may_bring(&self, patterns: &[String]) -> bool {
        may_mean(patterns, self.name())
    }

    pub(super) async fn settled(&self) {
        self.server.settled().await;
    }

    pub(super) async fn refresh(&self) {
        self.server.refresh().await;
    }

    pub(super) async fn present(&self) {
        self.server.present().await;
    }
}

impl Drop for McpTools {
    /// The runs that could call the server have ended.
    fn drop(&mut self) {
        self.server.release();
    }
}

/// Whether one of the patterns (names and globs) may mean a tool of this server, as far as their beginning tells.
pub fn may_mean(patterns: &[String], server: &str) -> bool {
    let of_server = full_name(server, "");
    patterns
        .iter()
        .any(|pattern| match pattern.find(['*', '?', '[', '{', '\\']) {
            Some(end) => {
                let head = pattern.get(..end).unwrap_or_default();
                head.starts_with(&of_server) || of_server.starts_with(head)
            }
            None => pattern.starts_with(&of_server),
        })
}

impl McpTool {
    pub(super) fn fingerprint(&self) -> &str {
        self.fingerprint.as_str()
    }

    pub(super) async fn carry_out(&self, args: &str, permit: &PermitId) -> Carried {
        match self
            .server
            .call(&self.name, &self.fingerprint, args, permit.as_str())
            .await
        {
            Called::Done(text) => Carried::Done(text),
            Called::Failed(why) | Called::NotMade(why) => Carried::Failed(why),
            Called::Changed => Carried::Failed(CHANGED.to_owned()),
            Called::Unknown(why) => Carried::Unknown(why),
        }
    }
}

/// What the model is told when a tool changed between the question and the call.
pub const CHANGED: &str =
    "the server changed the tool after people were asked about the call; the call was not made";

/// The terms of a server, compiled. A glob that does not compile, which the configuration rules out, matches nothing where that
/// is the strict reading, and everything where it is not.
struct Terms {
    requires_confirmation: bool,
    confirm: GlobSet,
    allow: GlobSet,
    idempotent: GlobSet,
}

impl Terms {
    fn new(terms: &McpTerms) -> Self {
        let confirm = compiled(&terms.confirm);
        Self {
            requires_confirmation: terms.requires_confirmation || confirm.is_none(),
            confirm: confirm.unwrap_or_default(),
            allow: compiled(&terms.allow).unwrap_or_default(),
            idempotent: compiled(&terms.idempotent).unwrap_or_default(),
        }
    }

    fn must_confirm(&self, tool: &str) -> bool {
        self.confirm.is_match(tool) || (self.requires_confirmation && !self.allow.is_match(tool))
    }
}

fn compiled(globs: &[String]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob).ok()?);
    }
    set.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(requires_confirmation: bool, confirm: &[&str], allow: &[&str]) -> Terms {
        let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        Terms::new(&McpTerms {
            requires_confirmation,
            confirm: owned(confirm),
            allow: owned(allow),
            idempotent: Vec::new(),
        })
    }

    #[test]
    fn a_call_needs_a_person_unless_the_operator_says_otherwise() {
        assert!(terms(true, &[], &[]).must_confirm("read_file"));
        assert!(!terms(true, &[], &["read_*"]).must_confirm("read_file"));
        assert!(terms(true, &[], &["read_*"]).must_confirm("write_file"));
        assert!(
            terms(true, &["*_file"], &["read_*"]).must_confirm("read_file"),
            "the stricter list wins"
        );
        assert!(!terms(false, &["write_*"], &[]).must_confirm("read_file"));
        assert!(terms(false, &["write_*"], &[]).must_confirm("write_file"));
        assert!(
            terms(false, &["[", "x"], &[]).must_confirm("read_file"),
            "nothing unclear loosens"
        );
    }

    #[test]
    fn patterns_lead_to_the_servers_that_may_bring_their_tools() {
        let may = |pattern: &str| may_mean(&[pattern.to_owned()], "files");
        for pattern in [
            "*",
            "mcp__*",
            "mcp__files__*",
            "mcp__files__read",
            "mcp__files__re*",
            "mcp__fi*",
            "mcp__{files,mail}__*",
            "*__read",
        ] {
            assert!(may(pattern), "{pattern}");
        }
        for pattern in [
            "mcp__file__read",
            "mcp__files_2__*",
            "look",
            "mcp__other__*",
            "mcp__files",
        ] {
            assert!(!may(pattern), "{pattern}");
        }
    }
}
