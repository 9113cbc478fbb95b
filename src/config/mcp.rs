//! Servers of tools that speak MCP, as the configuration names them. It starts and asks none.

use std::{collections::BTreeMap, time::Duration};

use url::Url;

use super::{
    agent::TOOL_TIMEOUT,
    child::{ChildConfig, decode_timeout},
    context::Complaint,
    hook::decode_globs,
    http_tool::decode_headers,
    node::{MapReader, Reader},
    problem::ProblemKind,
    secret::Secret,
};

/// A server whose tools appear as `mcp__NAME__TOOL`.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Its name: at most 32 letters, digits, `-` and single `_`, none of these at the end. So no two servers can give one
    /// name to a tool.
    pub name: String,
    /// How it is reached.
    pub reach: McpReach,
    /// What the operator trusts its tools with.
    pub terms: McpTerms,
    /// How long one call may take.
    pub timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum McpReach {
    /// Over the standard streams of a child process.
    Child(ChildConfig),
    /// Over streamable HTTP.
    Http {
        /// The one address of the server.
        url: Url,
        /// Headers beside those of the protocol, such as an authorisation.
        headers: BTreeMap<String, Secret>,
    },
}

/// What the operator trusts the tools of a server with. What the server says of its own tools counts for nothing here.
#[derive(Debug, Clone)]
pub struct McpTerms {
    /// Whether a call needs a person where neither list below says otherwise.
    pub requires_confirmation: bool,
    /// Globs of tools of which every call needs a person.
    pub confirm: Vec<String>,
    /// Globs of tools that policy alone judges; `confirm` is stronger.
    pub allow: Vec<String>,
    /// Globs of tools of which a call with an unknown outcome may be sent again.
    pub idempotent: Vec<String>,
}

impl McpServer {
    /// Whether some of its calls need a person whatever policy says.
    pub fn may_ask(&self) -> bool {
        self.terms.requires_confirmation || !self.terms.confirm.is_empty()
    }

    /// Reads the entry: `mcp`, and beside it the keys that every kind of tool has.
    pub(super) fn decode(map: &mut MapReader<'_>) -> Option<Self> {
        let mcp = map.required("mcp")?;
        let (outer_asks, outer_timeout) = (map.optional("requires_confirmation"), map.optional("timeout"));
        let mut inner = mcp.map()?;
        let name = inner.required("name").and_then(|name| decode_name(&name));
        let reach = decode_reach(&mcp, &mut inner);
        let asks = one_of(outer_asks, inner.optional("requires_confirmation"));
        let requires_confirmation = asks.map_or(None, |asks| asks.map_or(Some(true), |asks| asks.boolean()));
        let timeout = one_of(outer_timeout, inner.optional("timeout"));
        let timeout = timeout.map_or(None, |timeout| {
            timeout.map_or(Some(TOOL_TIMEOUT), |timeout| decode_timeout(&timeout))
        });
        let mut globs = |key| {
            inner
                .optional(key)
                .map_or(Some(Vec::new()), |globs| decode_globs(&globs))
        };
        let (confirm, allow, idempotent) = (globs("confirm"), globs("allow"), globs("idempotent"));
        inner.finish();
        Some(Self {
            name: name?,
            reach: reach?,
            terms: McpTerms {
                requires_confirmation: requires_confirmation?,
                confirm: confirm?,
                allow: allow?,
                idempotent: idempotent?,
            },
            timeout: timeout?,
        })
    }
}

/// A key stands both beside `mcp` and in it; it is written down.
struct Twice;

/// The key from beside or from inside `mcp`.
fn one_of<'a>(outer: Option<Reader<'a>>, inner: Option<Reader<'a>>) -> Result<Option<Reader<'a>>, Twice> {
    match (outer, inner) {
        (Some(_), Some(inner)) => {
            inner.complain(
                Complaint::new(ProblemKind::Conflict, "the key stands beside `mcp` too")
                    .remedy("keep one of the two"),
            );
            Err(Twice)
        }
        (one, None) | (None, one) => Ok(one),
    }
}

fn decode_name(reader: &Reader<'_>) -> Option<String> {
    let text = reader.name()?;
    if text.contains('.') || text.contains("__") || text.ends_with('_') || text.len() > 32 {
        reader.bad_value(
            "at most 32 letters, digits, - and single _, not at the end",
            "choose another name",
        );
        return None;
    }
    Some(text)
}

fn decode_reach(mcp: &Reader<'_>, inner: &mut MapReader<'_>) -> Option<McpReach> {
    let url_reader = inner.optional("url");
    let headers_reader = inner.optional("headers");
    if inner.has("url") == inner.has("command") {
        inner.optional("command");
        mcp.complain(
            Complaint::new(
                ProblemKind::MissingKey,
                "the server has not exactly one of `command` and `url`",
            )
            .remedy("say how the server is reached, in one way"),
        );
        return None;
    }
    let Some(reader) = url_reader else {
        let child = ChildConfig::decode(inner);
        if let Some(headers) = headers_reader {
            headers.complain(
                Complaint::new(ProblemKind::Conflict, "only a server with a `url` takes headers")
                    .remedy("remove them, or put what they hold into `env`"),
            );
            return None;
        }
        return child.map(McpReach::Child);
    };
    let headers = headers_reader.map_or_else(|| Some(BTreeMap::new()), |headers| decode_headers(&headers));
    let url = reader.url(false)?;
    Some(McpReach::Http {
        url,
        headers: headers?,
    })
}
