//! What policy may know of a call, and whose word each fact is.

use crate::gate::{arguments::ToolName, json::Json};

/// The facts of one call, as the gate established them.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The tool.
    pub tool: &'a ToolName,
    /// Its arguments, an object.
    pub args: &'a Json,
    /// The name of the token that asked: authenticated.
    pub token: &'a str,
    /// The agent, as it names itself: asserted.
    pub agent: Option<&'a str>,
    /// For whom it asks: asserted.
    pub requester: Option<&'a str>,
    /// The organisation of the token: authenticated.
    pub org: &'a str,
    /// What else was sent along: asserted.
    pub metadata: Option<&'a Json>,
    /// Whether the named requester, the owner of the token or the requester of a job up the lineage is a known person.
    pub known_person: bool,
}
