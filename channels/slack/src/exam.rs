//! The close look of `gatepost doctor`: the token's scopes, whose app it is, and what must be set in the app's pages.
//!
//! Slack tells of no app whether its Request URL is right; only a press shows that, so its place is named instead.

use gatepost_channel::{Finding, Needs};

use crate::client::{Answer, Api, Arguments};

/// Where scopes are added.
const SCOPES_PAGE: &str = "OAuth & Permissions, Bot Token Scopes; then reinstall the app under Install App";

/// A scope that is good for something.
struct Scope {
    name: &'static str,
    for_what: &'static str,
    needed: fn(&Needs) -> bool,
}

/// Slack, scopes of the methods that are called: `chat.*`, `conversations.info`, `conversations.members`, `users.info`,
/// `users.lookupByEmail`, `usergroups.users.list`, and slash commands.
const SCOPES: [Scope; 7] = [
    Scope {
        name: "chat:write",
        for_what: "cards",
        needed: |_| true,
    },
    Scope {
        name: "users:read",
        for_what: "to see whether an approver's account is deactivated, a guest or a bot",
        needed: |needs| needs.emails || needs.groups,
    },
    Scope {
        name: "users:read.email",
        for_what: "operators by e-mail",
        needed: |needs| needs.emails,
    },
    Scope {
        name: "usergroups:read",
        for_what: "operators by user group",
        needed: |needs| needs.groups,
    },
    Scope {
        name: "commands",
        for_what: "/gatepost",
        needed: |_| false,
    },
    Scope {
        name: "channels:read",
        for_what: "to see whether the bot is in a public channel, and its members",
        needed: |_| false,
    },
    Scope {
        name: "groups:read",
        for_what: "the same of a private channel",
        needed: |_| false,
    },
];

/// Looks closely at the app behind `api`. `app_id` is the configured one.
pub(crate) async fn examine(api: &Api, app_id: Option<&str>, webhook: bool, needs: &Needs) -> Vec<Finding> {
    // The check has said already why the token is not taken.
    let Ok(who) = api.call("auth.test", Arguments::Form(&[])).await else {
        return Vec::new();
    };
    let mut found = vec![scopes(&who, needs)];
    found.extend(app(api, &who, app_id).await);
    if webhook {
        found.push(callback(needs));
    }
    found
}

fn scopes(who: &Answer, needs: &Needs) -> Finding {
    let Some(given) = &who.scopes else {
        return Finding::note("scopes", "Slack did not say which scopes the token has");
    };
    let given: Vec<_> = given.split(',').map(str::trim).collect();
    let lacking = |needed: bool| -> Vec<String> {
        SCOPES
            .iter()
            .filter(|scope| (scope.needed)(needs) == needed && !given.contains(&scope.name))
            .map(|scope| format!("{} ({})", scope.name, scope.for_what))
            .collect()
    };
    let (needed, wanted) = (lacking(true), lacking(false));
    if !needed.is_empty() {
        return Finding::ill(
            "scopes",
            format!(
                "the token lacks {}: add them under {SCOPES_PAGE}",
                needed.join(", ")
            ),
        );
    }
    if !wanted.is_empty() {
        return Finding::note(
            "scopes",
            format!(
                "enough for what is configured; without: {}. Add them under {SCOPES_PAGE}",
                wanted.join(", ")
            ),
        );
    }
    Finding::fine("scopes", "all that Gatepost can use")
}

/// Whose app the token is, asked of the bot's own record (`bots.info`, scope `users:read`); nothing when it may not be asked.
async fn app(api: &Api, who: &Answer, configured: Option<&str>) -> Option<Finding> {
    let bot = who.id("bot_id")?;
    let answer = api
        .call("bots.info", Arguments::Form(&[("bot", bot)]))
        .await
        .ok()?;
    let own = answer.body.get("bot")?.get("app_id")?.as_str()?;
    if !crate::error::is_short_word(own) {
        return None;
    }
    Some(match configured {
        Some(app_id) if app_id == own => Finding::fine("app", format!("bot_token belongs to {own}")),
        Some(app_id) => Finding::ill(
            "app",
            format!(
                "bot_token belongs to {own}, app_id says {app_id}: every click would be refused; set one of them right"
            ),
        ),
        None => Finding::note(
            "app",
            format!("set app_id: {own}, so that no other app's click is taken"),
        ),
    })
}

fn callback(needs: &Needs) -> Finding {
    match &needs.callback {
        Some(address) => Finding::note(
            "callbacks",
            format!(
                "Slack does not tell what is set: Interactivity & Shortcuts, Request URL must be {address}, and so must the URL of \
                 the command /gatepost under Slash Commands; Socket Mode must be off"
            ),
        ),
        None => Finding::ill(
            "callbacks",
            "mode is webhook and server.public_url is not set, so Slack has no address to call: set it, or use mode: socket",
        ),
    }
}
