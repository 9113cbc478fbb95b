//! What can only be judged with the whole configuration in view: names that must stand for something, things that must
//! differ, persons who must be able to decide.
//!
//! A check that needs every channel or operator is left out while one of them could not be read: its answer would be a
//! second complaint about the same mistake.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
};

use crate::gate::policy::Policy;

use super::{
    ChannelConfig, Config, Draft, Operator, OperatorGroup, SourceMap, TokenConfig,
    auth::DEFAULT_ORG,
    context::{Complaint, Context},
    node::{did_you_mean, one_of},
    on_call::OnCall,
    policy::PolicyDraft,
    problem::ProblemKind,
    shown::shown,
};

mod after;
mod channel;
mod code;
mod collapse;
mod compile;
mod duty;
mod evaluation;
mod operator;
mod operator_group;
mod policy;
mod token;

/// What the checks share: the sections, `None` in the place of what could not be read, and where to complain.
struct View<'a> {
    cx: &'a Context<'a>,
    source: &'a SourceMap,
    tokens: Vec<Option<&'a TokenConfig>>,
    operators: Vec<Option<&'a Operator>>,
    /// Nothing while the section as a whole could not be read.
    on_call: Option<Vec<Option<&'a OnCall>>>,
    groups: Vec<Option<&'a OperatorGroup>>,
    channels: Vec<Option<&'a ChannelConfig>>,
    /// Whether all tokens, operators (groups included) and channels could be read.
    tokens_whole: bool,
    operators_whole: bool,
    channels_whole: bool,
}

/// Checks the draft as a whole. A configuration comes out if every section could be read; whether it may be used is for
/// the caller to tell from what was complained about.
pub(super) fn whole(cx: &Context<'_>, source: &SourceMap, draft: Draft) -> Option<(Config, Arc<Policy>)> {
    let Draft {
        server,
        storage,
        tokens,
        operators,
        on_call,
        operator_groups,
        channels,
        policy,
        job,
        hooks,
        agent,
    } = draft;
    let channels_whole = is_whole(channels.as_deref());
    let channels = channels.unwrap_or_default();
    let tokens_whole = is_whole(tokens.as_deref());
    let tokens = tokens.unwrap_or_default();
    let groups_whole = is_whole(operator_groups.as_deref());
    let groups = operator_groups.unwrap_or_default();
    let operators_whole = is_whole(operators.as_deref()) && groups_whole;
    let drafts = operators.unwrap_or_default();
    let policy_source = policy.as_ref().and_then(PolicyDraft::source);
    let operators = operator::settle(
        cx,
        source,
        drafts,
        &tokens,
        &channels,
        tokens_whole && channels_whole,
    );
    let compiled = {
        let view = View {
            cx,
            source,
            tokens: tokens.iter().map(Option::as_ref).collect(),
            operators: operators.iter().map(Option::as_ref).collect(),
            on_call: on_call
                .as_ref()
                .map(|lists| lists.iter().map(Option::as_ref).collect()),
            groups: groups.iter().map(Option::as_ref).collect(),
            channels: channels.iter().map(Option::as_ref).collect(),
            tokens_whole,
            operators_whole,
            channels_whole,
        };
        channel::check(&view);
        if server.as_ref().is_some_and(|server| server.public_url.is_none()) {
            channel::nobody_knows_the_way(&view);
        }
        operator::check(&view);
        duty::check(&view);
        operator_group::check(&view);
        token::check(&view);
        if let Some(agent) = &agent {
            evaluation::check(&view, agent);
        }
        if let Some(policy) = &policy {
            policy::check(&view, policy);
            warn_of_tools(&view, policy, agent.as_ref());
        }
        policy_source
            .as_ref()
            .and_then(|policy| compile::check(&view, policy))
    };
    let config = Config {
        server: server?,
        storage: storage?,
        tokens: tokens.into_iter().collect::<Option<_>>()?,
        operators: operators.into_iter().collect::<Option<_>>()?,
        on_call: on_call?.into_iter().collect::<Option<_>>()?,
        operator_groups: groups.into_iter().collect::<Option<_>>()?,
        channels: channels.into_iter().collect::<Option<_>>()?,
        policy: policy_source?,
        job: job?,
        hooks: hooks?,
        agent: agent?,
        source: source.clone(),
    };
    Some((config, Arc::new(compiled?)))
}

/// A tool that always needs a person is never run while `policy.confirm` names nobody and no rule does.
fn warn_of_tools(view: &View<'_>, policy: &PolicyDraft, agent: Option<&super::AgentConfig>) {
    use super::agent::ToolConfig;
    let settled = |confirm: &crate::gate::policy::ConfirmSource| {
        confirm.channels.is_some() && confirm.approvers.is_some()
    };
    let Some(agent) = agent else { return };
    if policy.confirm.as_ref().is_none_or(settled) {
        return;
    }
    for (index, tool) in agent.tools.iter().enumerate() {
        let asks = match tool {
            ToolConfig::Http(head, _) | ToolConfig::Command(head, _) => head.requires_confirmation,
            ToolConfig::Mcp(server) => server.may_ask(),
        };
        if asks {
            view.warn(
                &format!("agent.tools[{index}].requires_confirmation"),
                "a call that no rule matches is denied, since `policy.confirm` names no channels and approvers",
            );
        }
    }
}

/// The organisations, sorted; `default` when none is named.
pub(super) fn orgs_of<'a>(
    tokens: impl Iterator<Item = &'a str>,
    channels: impl Iterator<Item = &'a str>,
    operators: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut orgs: BTreeSet<&str> = tokens.chain(channels).chain(operators).collect();
    if orgs.is_empty() {
        orgs.insert(DEFAULT_ORG);
    }
    orgs.into_iter().collect()
}

impl View<'_> {
    fn complain(&self, key: &str, complaint: Complaint) {
        self.cx.complain(self.source.locate(key), key, complaint);
    }

    fn warn(&self, key: &str, message: impl Into<String>) {
        self.cx.warn(self.source.locate(key), key, message);
    }

    /// A name at `key` that stands for nothing.
    fn unknown(&self, key: &str, what: &str, name: &str, known: &[&str]) {
        let mut complaint = Complaint::new(
            ProblemKind::UnknownName,
            format!("there is no {what} `{}`", shown(name)),
        );
        complaint = if known.is_empty() {
            complaint.accepted(format!("no {what} is configured"))
        } else {
            complaint.accepted(one_of(known))
        };
        let remedy =
            did_you_mean(name, known).unwrap_or_else(|| format!("configure the {what}, or name another"));
        self.complain(key, complaint.remedy(remedy));
    }

    /// A second use of a name at `key` that must be unique.
    fn twice(&self, key: &str, what: &str, name: &str, first: &str) {
        let line = self.source.locate(first).map_or(0, |at| at.line);
        let message = format!("a second {what} `{}`; the first is on line {line}", shown(name));
        self.complain(
            key,
            Complaint::new(ProblemKind::Conflict, message).remedy(format!("give each {what} its own name")),
        );
    }

    /// Names that must be unique within `list`, where `key` is the key of the name.
    fn unique<'n>(&self, list: &str, key: &str, what: &str, names: impl Iterator<Item = Option<&'n str>>) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (index, name) in names.enumerate() {
            let Some(name) = name else { continue };
            match seen.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(index);
                }
                Entry::Occupied(first) => self.twice(
                    &format!("{list}[{index}].{key}"),
                    what,
                    name,
                    &format!("{list}[{}].{key}", first.get()),
                ),
            }
        }
    }

    fn operators(&self) -> impl Iterator<Item = &Operator> {
        self.operators.iter().copied().flatten()
    }

    fn lists(&self) -> impl Iterator<Item = &OnCall> {
        self.on_call.iter().flatten().copied().flatten()
    }

    fn groups(&self) -> impl Iterator<Item = &OperatorGroup> {
        self.groups.iter().copied().flatten()
    }

    fn channels(&self) -> impl Iterator<Item = &ChannelConfig> {
        self.channels.iter().copied().flatten()
    }

    fn orgs(&self) -> Vec<&str> {
        orgs_of(
            self.tokens
                .iter()
                .copied()
                .flatten()
                .map(|token| token.org.as_str()),
            self.channels().map(|channel| channel.org.as_str()),
            self.operators()
                .flat_map(|operator| operator.orgs.iter().map(String::as_str)),
        )
    }

    fn on_call_whole(&self) -> bool {
        is_whole(self.on_call.as_deref())
    }

    fn whole(&self) -> bool {
        self.tokens_whole && self.operators_whole && self.on_call_whole() && self.channels_whole
    }
}

fn is_whole<T>(list: Option<&[Option<T>]>) -> bool {
    list.is_some_and(|list| list.iter().all(Option::is_some))
}
