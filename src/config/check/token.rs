//! Tokens: one name, one secret, one organisation each; an operator's token speaks for an operator of it.

use std::collections::HashMap;

use super::{Complaint, ProblemKind, View, did_you_mean, one_of, shown};
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
                "no channel is of the organisation `{}`: calls that need a person are denied; give a channel this `org`, or the token another",
                token.org
            );
            view.warn(&format!("auth.tokens[{index}]"), message);
        }
    }
}

fn secrets_differ(view: &View<'_>) {
    let mut tokens: HashMap<&str, &str> = HashMap::new();
    let mut channels: HashMap<&str, &str> = HashMap::new();
    for channel in view.channels() {
        for secret in secrets_of(&channel.platform) {
            channels.insert(secret.expose(), &channel.name);
        }
    }
    for (index, token) in view.tokens.iter().enumerate() {
        let Some(token) = token else { continue };
        let key = format!("auth.tokens[{index}].secret");
        let secret = token.secret.expose();
        if let Some(other) = tokens.insert(secret, &token.name) {
            let message = format!("the tokens `{other}` and `{}` have one secret", token.name);
            view.complain(
                &key,
                Complaint::new(ProblemKind::Conflict, message).remedy("make a secret for each token"),
            );
        }
        if let Some(channel) = channels.get(secret) {
            let message = format!(
                "the token `{}` and the channel `{channel}` share a secret",
                token.name
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
            let message = format!(
                "there is no operator `{}`: whoever holds the token would speak for nobody and could decide nothing",
                shown(id)
            );
            let accepted = if known.is_empty() {
                "no operator is configured".to_owned()
            } else {
                one_of(&known)
            };
            let remedy = did_you_mean(id, &known).unwrap_or_else(|| {
                "add an entry of that `id` under `operators`, or name one that is there".to_owned()
            });
            view.complain(
                &key,
                Complaint::new(ProblemKind::UnknownName, message)
                    .accepted(accepted)
                    .remedy(remedy),
            );
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
        None if view.operators_whole => {
            let known: Vec<&str> = view.operators().map(|operator| operator.id.as_str()).collect();
            let meant = did_you_mean(owner, &known).map_or_else(String::new, |meant| format!("; {meant}"));
            view.warn(
                &key,
                format!("names no operator: if the owner is one under another name, self-approval is not noticed{meant}"),
            );
        }
        Some(operator) if !operator.orgs.is_empty() && !operator.is_of(org) => view.warn(
            &key,
            format!(
                "the operator `{}` is not of the token's organisation `{org}`: add it to `orgs` of the operator, or name another owner",
                operator.id
            ),
        ),
        None | Some(_) => {}
    }
}
