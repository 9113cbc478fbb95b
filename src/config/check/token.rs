//! Tokens: one name, one secret, one organisation each; an operator's token speaks for an operator of it.

use super::{Complaint, ProblemKind, View};
use crate::config::{FeishuMode, Platform, Role, Secret, SlackMode};

pub(super) fn check(view: &View<'_>) {
    view.unique(
        "auth.tokens",
        "name",
        "token",
        view.tokens.iter().map(|token| token.map(|t| t.name.as_str())),
    );
    secrets_differ(view);
    for (index, token) in view.tokens.iter().enumerate() {
        let Some(token) = token else { continue };
        if let Role::Operator { operator } = &token.role {
            speaks_for(view, index, operator, &token.org);
        }
        if let Some(owner) = &token.owner {
            owner_is_known(view, index, owner, &token.org);
        }
        if token.role == Role::Agent
            && view.channels_whole
            && view.channels().next().is_some()
            && !view.channels().any(|channel| channel.org == token.org)
        {
            let message = format!(
                "no channel is of the organisation `{}`: calls that need a person are denied",
                token.org
            );
            view.warn(&format!("auth.tokens[{index}]"), message);
        }
    }
}

fn secrets_differ(view: &View<'_>) {
    for (index, token) in view.tokens.iter().enumerate() {
        let Some(token) = token else { continue };
        let key = format!("auth.tokens[{index}].secret");
        let earlier = view
            .tokens
            .iter()
            .take(index)
            .flatten()
            .find(|other| other.secret.same_as(&token.secret));
        if let Some(other) = earlier {
            let message = format!("the tokens `{}` and `{}` have one secret", other.name, token.name);
            view.complain(
                &key,
                Complaint::new(ProblemKind::Conflict, message).remedy("make a secret for each token"),
            );
        }
        let shared = view.channels().find(|channel| {
            secrets_of(&channel.platform)
                .into_iter()
                .any(|secret| secret.same_as(&token.secret))
        });
        if let Some(channel) = shared {
            let message = format!(
                "the token `{}` and the channel `{}` share a secret",
                token.name, channel.name
            );
            view.complain(
                &key,
                Complaint::new(ProblemKind::Unsafe, message).remedy("make a secret for the token"),
            );
        }
    }
}

/// Every secret of a platform's settings.
fn secrets_of(platform: &Platform) -> Vec<&Secret> {
    match platform {
        Platform::Feishu(feishu) => match &feishu.mode {
            FeishuMode::Webhook {
                encrypt_key,
                verification_token,
            } => {
                vec![&feishu.app_secret, encrypt_key, verification_token]
            }
            FeishuMode::LongConnection { verification_token } => {
                let mut secrets = vec![&feishu.app_secret];
                secrets.extend(verification_token);
                secrets
            }
        },
        Platform::Slack(slack) => {
            let mut secrets = vec![&slack.bot_token];
            match &slack.mode {
                SlackMode::Webhook { signing_secrets } => secrets.extend(signing_secrets),
                SlackMode::Socket { app_token } => secrets.push(app_token),
            }
            secrets
        }
        Platform::Local => Vec::new(),
    }
}

fn speaks_for(view: &View<'_>, index: usize, id: &str, org: &str) {
    let key = format!("auth.tokens[{index}].operator");
    match view.operators().find(|operator| operator.id == id) {
        None if view.operators_whole => {
            let known: Vec<&str> = view.operators().map(|operator| operator.id.as_str()).collect();
            view.unknown(&key, "operator", id, &known);
        }
        Some(operator) if !operator.orgs.is_empty() && !operator.is_of(org) => {
            let message = format!("the operator `{id}` is not of the token's organisation `{org}`");
            let accepted = format!("an operator of {org}; `{id}` is of {}", operator.orgs.join(", "));
            view.complain(
                &key,
                Complaint::new(ProblemKind::Conflict, message)
                    .accepted(accepted)
                    .remedy("set the token's `org`, or add the organisation to the operator's `orgs`"),
            );
        }
        None | Some(_) => {}
    }
}

/// An owner who is nobody's handle is never found to be the voter: self-approval by that person would go unnoticed.
fn owner_is_known(view: &View<'_>, index: usize, owner: &str, org: &str) {
    let key = format!("auth.tokens[{index}].owner");
    match view.operators().find(|operator| operator.is_called(owner)) {
        None if view.operators_whole => view.warn(
            &key,
            "names no operator: if the owner is one under another name, self-approval is not noticed",
        ),
        Some(operator) if !operator.orgs.is_empty() && !operator.is_of(org) => view.warn(
            &key,
            format!(
                "the operator `{}` is not of the token's organisation `{org}`",
                operator.id
            ),
        ),
        None | Some(_) => {}
    }
}
