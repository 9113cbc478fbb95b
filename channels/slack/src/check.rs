//! Whether a card would go through now: the token, its scopes, and the bot in the conversation.

use gatepost_channel::{Failure, Health};
use serde_json::Value;

use crate::client::{Answer, Api, Arguments};
use crate::error::CallError;

/// What posting, editing and private notices need.
const NEEDED: &str = "chat:write";

/// Asks Slack about the token and the conversation `chat`.
pub(crate) async fn check(api: &Api, chat: &str) -> Health {
    let who = match api.call("auth.test", Arguments::Form(&[])).await {
        Ok(answer) => answer,
        Err(error) => return red(format!("auth.test: {}", advice(error))),
    };
    if let Some(scopes) = &who.scopes
        && !scopes.split(',').any(|scope| scope.trim() == NEEDED)
    {
        return red(format!(
            "the token lacks the scope {NEEDED}: add it under OAuth & Permissions and reinstall the app"
        ));
    }
    let team = who.id("team_id").unwrap_or("an unnamed workspace");
    match api
        .call("conversations.info", Arguments::Form(&[("channel", chat)]))
        .await
    {
        Ok(answer) => judge(&answer, team, chat),
        Err(CallError::Refused(Failure::Setup { why })) if why.starts_with("missing_scope") => Health {
            healthy: true,
            detail: format!(
                "connected to {team}; whether the bot is in {chat} cannot be seen without channels:read and groups:read"
            ),
        },
        // The token was taken a moment ago; what answers here does not know the question.
        Err(CallError::Refused(Failure::Setup { why }))
            if matches!(
                why.as_str(),
                "unknown_method" | "http_404" | "http_405" | "http_501"
            ) =>
        {
            Health {
                healthy: true,
                detail: format!(
                    "connected to {team}; whether the bot is in {chat} cannot be seen: conversations.info is not answered here ({why})"
                ),
            }
        }
        Err(error) => red(format!("conversations.info: {}", advice(error))),
    }
}

fn judge(answer: &Answer, team: &str, chat: &str) -> Health {
    let place = answer.body.get("channel").unwrap_or(&Value::Null);
    let says = |key: &str| place.get(key).and_then(Value::as_bool);
    if says("is_archived") == Some(true) {
        return red(format!(
            "{chat} is archived: unarchive it or configure another channel"
        ));
    }
    if says("is_member") == Some(false) {
        return red(format!(
            "the bot is not in {chat}: open the channel and type /invite with the bot's name"
        ));
    }
    Health {
        healthy: true,
        detail: format!("connected to {team}, the bot can post to {chat}"),
    }
}

/// The failure, and what an operator can do about it.
fn advice(error: CallError) -> String {
    let failure = error.of_edit();
    let todo = match &failure {
        Failure::Retry { .. } => {
            "Slack did not answer clearly; try again later or look at base_url and the network"
        }
        Failure::Target { .. } => {
            "check the channel's id; a private channel reads like this until the bot is there: type /invite with its name"
        }
        Failure::Setup { .. } => {
            "check bot_token, and reinstall the app under Install App if its token or scopes changed"
        }
        Failure::Content { .. } | Failure::Gone { .. } => "this is a fault of ours; please report it",
    };
    format!("{failure}: {todo}")
}

fn red(detail: String) -> Health {
    Health {
        healthy: false,
        detail,
    }
}
