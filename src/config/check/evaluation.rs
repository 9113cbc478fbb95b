//! Evaluation runs: the tokens that ask nobody are tokens of agents.

use super::{Complaint, ProblemKind, View, did_you_mean, shown};
use crate::config::{AgentConfig, Role};

pub(super) fn check(view: &View<'_>, agent: &AgentConfig) {
    if !view.tokens_whole {
        return;
    }
    for name in &agent.evaluation.tokens {
        let token = view.tokens.iter().flatten().find(|token| token.name == *name);
        if token.is_some_and(|token| token.role == Role::Agent) {
            continue;
        }
        let agents: Vec<&str> = view
            .tokens
            .iter()
            .flatten()
            .filter(|token| token.role == Role::Agent)
            .map(|token| token.name.as_str())
            .collect();
        let name = shown(name);
        let message = match token {
            Some(_) => format!("the token `{name}` is not of the role agent and submits no job"),
            None => format!("there is no token `{name}`"),
        };
        view.complain(
            "agent.evaluation.tokens",
            Complaint::new(ProblemKind::UnknownName, message)
                .accepted("names of tokens of the role agent under auth.tokens")
                .remedy(
                    did_you_mean(&name, &agents)
                        .unwrap_or_else(|| "add the token, or remove the entry".to_owned()),
                ),
        );
    }
}
