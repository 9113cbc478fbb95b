//! The configuration: YAML read with line and column, decoded by hand, checked as a whole before anything starts.
//!
//! Read [`Config`] for what there is, `check` for what is refused. The room reads files and the environment and nothing
//! else: it opens no socket and asks no platform, and whether the policy compiles it asks the gate.
//! Every problem of a file is told in one go, each with file, line, key and remedy; none of them repeats a secret.
//!
//! A section's file holds its types and its decoder. [`node`] is the reader they share (its typed questions in
//! `scalar` and `secret_source`, what it writes down in [`context`]), [`yaml`] the tree under it.

use std::{io::Read as _, path::Path, sync::Arc};

use crate::gate::policy::{Policy, PolicySource};

pub mod address;
mod after;
pub mod agent;
pub mod auth;
mod authority;
pub mod channel;
mod check;
pub mod child;
pub mod context;
pub mod duration;
pub mod evaluation;
pub mod hook;
pub mod http_tool;
pub mod job;
pub mod limits;
pub mod mcp;
pub mod nearest;
pub mod node;
pub mod on_call;
pub mod openapi;
pub mod operator;
pub mod operator_group;
mod policy;
pub mod problem;
mod scalar;
pub mod schema;
pub mod secret;
mod secret_source;
pub mod server;
pub mod server_key;
pub mod shown;
pub mod source;
pub mod storage;
pub mod template;
pub mod yaml;

#[cfg(test)]
mod tests;

pub use agent::AgentConfig;
pub use auth::{Role, TokenConfig};
pub use channel::{
    ChannelConfig, FeishuConfig, FeishuMode, Kind, Language, Platform, SlackConfig, SlackMode,
};
pub use hook::HooksConfig;
pub use job::JobConfig;
pub use on_call::OnCall;
pub use operator::{Identity, IdentityScope, Operator, PlatformId};
pub use operator_group::{GroupOf, OperatorGroup};
pub use problem::{Location, Problem, ProblemKind, Problems, Warning};
pub use secret::Secret;
pub use server::{KeySource, ServerConfig};
pub use source::SourceMap;
pub use storage::{Backend, StorageConfig};

use context::{Complaint, Context, Env};
use node::Reader;
use operator::OperatorDraft;
use policy::PolicyDraft;
use yaml::Node;

/// A configuration in which everything that is named is there.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the server listens, how it is named, its key.
    pub server: ServerConfig,
    /// The database.
    pub storage: StorageConfig,
    /// The bearer tokens of the API.
    pub tokens: Vec<TokenConfig>,
    /// The persons who may decide.
    pub operators: Vec<Operator>,
    /// Lists of people on call.
    pub on_call: Vec<OnCall>,
    /// Groups of platforms whose members may decide.
    pub operator_groups: Vec<OperatorGroup>,
    /// The groups in which cards stand.
    pub channels: Vec<ChannelConfig>,
    /// The policy, as the gate compiles it.
    pub policy: PolicySource,
    /// The workers of jobs.
    pub job: JobConfig,
    /// Hooks for every agent.
    pub hooks: HooksConfig,
    /// Model, tools and pieces; empty when left out.
    pub agent: AgentConfig,
    /// Where each key stands, for problems that show later.
    pub source: SourceMap,
}

/// A configuration that may be started, and what is odd about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Its policy, compiled.
    pub policy: Arc<Policy>,
    /// What works, but probably not as it was meant.
    pub warnings: Vec<Warning>,
}

impl Config {
    /// Reads and checks a file. `env` looks environment variables up.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(path: &Path, env: Env<'_>) -> Result<Loaded, Problems> {
        let label = shown::shown_path(path);
        let unreadable = |message: String, remedy: &str| {
            Problems::from(
                Complaint::new(ProblemKind::Unreadable, message)
                    .remedy(remedy)
                    .at(&label, None, ""),
            )
        };
        let text = read_text(path, yaml::MAX_BYTES).map_err(|fault| {
            let remedy = match fault.kind() {
                std::io::ErrorKind::NotFound => {
                    "name the file with --config FILE; examples/gatepost.yaml is one to start from"
                }
                std::io::ErrorKind::InvalidData => "save the file as UTF-8",
                _ => "name a readable file with --config FILE",
            };
            unreadable(format!("cannot be read: {fault}"), remedy)
        })?;
        Self::parse(&text, &label, path.parent().unwrap_or(Path::new("")), env)
    }

    /// Reads and checks a text. `file` is how it is named in messages; paths in it start at the folder `base`.
    ///
    /// # Errors
    /// Every problem of the text.
    pub fn parse(text: &str, file: &str, base: &Path, env: Env<'_>) -> Result<Loaded, Problems> {
        let cx = Context::new(file, base, env);
        let (tree, faults) = yaml::read(text);
        for fault in faults {
            cx.complain(
                Some(fault.at),
                &fault.key,
                Complaint::new(fault.kind, fault.message).remedy(fault.remedy),
            );
        }
        let config = tree.and_then(|tree| read_tree(&cx, &tree));
        let (problems, warnings) = cx.into_found();
        match (Problems::new(problems), config) {
            (None, Some((config, policy))) => Ok(Loaded {
                config,
                policy,
                warnings,
            }),
            (Some(problems), _) => Err(problems),
            // No part may fail without saying why; should one do so all the same, nothing starts.
            (None, None) => Err(Complaint::new(
                ProblemKind::Unreadable,
                "the configuration could not be read",
            )
            .at(file, None, "")
            .into()),
        }
    }

    /// Every organisation that a token, channel or operator names, sorted; `default` when there is none.
    pub fn orgs(&self) -> Vec<&str> {
        check::orgs_of(
            self.tokens.iter().map(|token| token.org.as_str()),
            self.channels.iter().map(|channel| channel.org.as_str()),
            self.operators
                .iter()
                .flat_map(|operator| operator.orgs.iter().map(String::as_str)),
        )
    }

    /// The operators of an organisation.
    pub fn operators_of<'a, 'o>(&'a self, org: &'o str) -> impl Iterator<Item = &'a Operator> + use<'a, 'o> {
        self.operators.iter().filter(move |operator| operator.is_of(org))
    }

    /// The channels of an organisation.
    pub fn channels_of<'a, 'o>(
        &'a self,
        org: &'o str,
    ) -> impl Iterator<Item = &'a ChannelConfig> + use<'a, 'o> {
        self.channels.iter().filter(move |channel| channel.org == org)
    }

    /// The channel of a name.
    pub fn channel(&self, name: &str) -> Option<&ChannelConfig> {
        self.channels.iter().find(|channel| channel.name == name)
    }

    /// The operator of an id.
    pub fn operator(&self, id: &str) -> Option<&Operator> {
        self.operators.iter().find(|operator| operator.id == id)
    }

    /// The operator behind the ids that a verified click on a channel proves. `None` if the organisation has nobody of
    /// these ids, or if they belong to different persons.
    pub fn operator_by_identity(&self, channel: &ChannelConfig, proven: &[PlatformId]) -> Option<&Operator> {
        let mut found = self.operators_of(&channel.org).filter(|operator| {
            operator
                .identities_on(channel.kind(), &channel.name)
                .any(|identity| proven.contains(identity))
        });
        let operator = found.next()?;
        found.next().is_none().then_some(operator)
    }

    /// The operator whom a requester or owner names: by id, e-mail (in any case) or the text of an identity.
    pub fn operator_by_handle(&self, org: &str, handle: &str) -> Option<&Operator> {
        let mut found = self
            .operators
            .iter()
            .filter(|operator| operator.is_of(org) && operator.is_called(handle));
        let operator = found.next()?;
        found.next().is_none().then_some(operator)
    }
}

/// The sections as they were read; what could not be read is `None`, in its place.
struct Draft {
    server: Option<ServerConfig>,
    storage: Option<StorageConfig>,
    tokens: Option<Vec<Option<TokenConfig>>>,
    operators: Option<Vec<Option<OperatorDraft>>>,
    on_call: Option<Vec<Option<OnCall>>>,
    operator_groups: Option<Vec<Option<OperatorGroup>>>,
    channels: Option<Vec<Option<ChannelConfig>>>,
    policy: Option<PolicyDraft>,
    job: Option<JobConfig>,
    hooks: Option<HooksConfig>,
    agent: Option<AgentConfig>,
}

fn read_tree(cx: &Context<'_>, tree: &Node) -> Option<(Config, Arc<Policy>)> {
    let source = SourceMap::of(cx.file(), tree);
    let draft = Draft::decode(&cx.root(tree))?;
    check::whole(cx, &source, draft)
}

impl Draft {
    fn decode(root: &Reader<'_>) -> Option<Self> {
        let cx = root.context();
        let mut map = root.map()?;
        let draft = Self {
            server: map
                .optional("server")
                .map_or_else(|| Some(ServerConfig::absent(cx)), |r| ServerConfig::decode(&r)),
            storage: map
                .optional("storage")
                .map_or_else(|| Some(StorageConfig::absent(cx)), |r| StorageConfig::decode(&r)),
            tokens: map
                .optional("auth")
                .map_or_else(|| Some(Vec::new()), |r| auth::decode(&r)),
            operators: map
                .optional("operators")
                .map_or_else(|| Some(Vec::new()), |r| operator::decode(&r)),
            on_call: map
                .optional("on_call")
                .map_or_else(|| Some(Vec::new()), |r| on_call::decode(&r)),
            operator_groups: map
                .optional("operator_groups")
                .map_or_else(|| Some(Vec::new()), |r| operator_group::decode(&r)),
            channels: map
                .optional("channels")
                .map_or_else(|| Some(Vec::new()), |r| channel::decode(&r)),
            policy: map
                .optional("policy")
                .map_or_else(|| Some(PolicyDraft::absent()), |r| PolicyDraft::decode(&r)),
            job: map
                .optional("job")
                .map_or_else(|| Some(JobConfig::default()), |r| JobConfig::decode(&r)),
            hooks: map
                .optional("hooks")
                .map_or_else(|| Some(HooksConfig::default()), |r| HooksConfig::decode(&r)),
            agent: map
                .optional("agent")
                .map_or_else(|| Some(AgentConfig::default()), |r| AgentConfig::decode(&r)),
        };
        map.finish();
        Some(draft)
    }
}

/// Reads a regular file of UTF-8 text. One byte over the bound is enough to be refused as too large later.
fn read_text(path: &Path, most: usize) -> std::io::Result<String> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(8);
    if std::fs::metadata(path)?.is_dir() {
        return Err(std::io::Error::other("it is a folder"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    // A cut in the middle of a character must not hide that the file is too large.
    if bytes.len() > most {
        return Err(std::io::Error::other(format!("it has more than {most} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}
