//! The tools that there are at one moment: those of the configuration, and what the servers that are there offer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Tool;
use super::mcp::McpTools;
use crate::gate::Arguments;

/// See the module. Clones share the tools.
#[derive(Clone, Default)]
pub struct Shelf {
    tools: Arc<BTreeMap<String, Arc<Tool>>>,
    absent: Vec<String>,
}

impl Shelf {
    pub(super) fn of(fixed: &Arc<BTreeMap<String, Arc<Tool>>>, servers: &[McpTools]) -> Self {
        if servers.is_empty() {
            return Self {
                tools: Arc::clone(fixed),
                absent: Vec::new(),
            };
        }
        let mut tools = (**fixed).clone();
        let mut absent = Vec::new();
        for server in servers {
            match server.tools() {
                Some(offered) => {
                    tools.extend(offered.iter().map(|tool| (tool.name.clone(), Arc::clone(tool))));
                }
                None => absent.push(server.name().to_owned()),
            }
        }
        Self {
            tools: Arc::new(tools),
            absent,
        }
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Why the tool of that name could not take these arguments, in words that hold no value of theirs.
    pub fn misfit(&self, name: &str, args: &Arguments) -> Option<String> {
        match self.get(name) {
            Some(tool) => tool.misfit(args),
            None => Some("the tool is not there now, so nobody can tell what it takes".to_owned()),
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values().map(|tool| &**tool)
    }

    /// The servers that are not there.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }
}
