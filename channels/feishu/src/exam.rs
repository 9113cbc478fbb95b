//! The close look of `gatepost doctor`: granted scopes, the published version, and the subscription to clicks.
//!
//! Facts: the platform's references of `application/v6/scopes` and `application/v6/applications/{app_id}`. The second one needs
//! a scope that nothing else of ours needs, so where it is not granted the places in the console are named instead.

use gatepost_channel::{Finding, Needs};
use reqwest::Method;
use serde_json::Value;

use crate::client::{Call, FeishuApp};
use crate::document::{Object, text};
use crate::error::{CallError, Class};

/// The callback that Gatepost takes clicks from.
const CLICK: &str = "card.action.trigger";
/// The legacy one, refused: nothing in it can be verified well enough.
const LEGACY: &str = "card.action.trigger_v1";
/// `grant_status` of a scope that the tenant has granted.
const GRANTED: i64 = 1;
/// Where the subscription is made.
const CALLBACKS_PAGE: &str =
    "Events & callbacks, Callback configuration; then create a version and publish it";
/// Nobody knows how the platform reaches us.
const NO_ADDRESS: &str = "mode is webhook and server.public_url is not set, so the platform has no address to call: set it, or use mode: long_connection";
/// Where scopes are added.
const SCOPES_PAGE: &str = "Permissions & scopes; then create a version and publish it";

/// Scopes of which one is enough, and what they are good for.
struct Scopes {
    any_of: &'static [&'static str],
    for_what: &'static str,
    needed: fn(&Needs) -> bool,
}

const SCOPES: [Scopes; 6] = [
    Scopes {
        any_of: &["im:message:send_as_bot", "im:message", "im:message:send"],
        for_what: "cards",
        needed: |_| true,
    },
    Scopes {
        any_of: &["contact:user.id:readonly"],
        for_what: "operators by e-mail",
        needed: |needs| needs.emails,
    },
    Scopes {
        any_of: &["contact:group:readonly"],
        for_what: "operators by user group",
        needed: |needs| needs.groups,
    },
    Scopes {
        any_of: &["contact:contact.base:readonly", "contact:contact:readonly_as_app"],
        for_what: "to see whether an approver has resigned or is frozen",
        needed: |_| false,
    },
    Scopes {
        any_of: &["im:chat:readonly", "im:chat"],
        for_what: "to see whether the bot is in the group",
        needed: |_| false,
    },
    Scopes {
        any_of: &["im:message.p2p_msg:readonly", "im:message.p2p_msg"],
        for_what: "commands by message to the bot",
        needed: |_| false,
    },
];

/// How clicks come in, as the app's record words it (`callback_info.callback_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The platform calls us.
    Webhook,
    /// A connection of ours.
    Connection,
}

impl Way {
    const fn word(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Connection => "websocket",
        }
    }
}

/// Looks closely at the app.
pub(crate) async fn examine(app: &FeishuApp, way: Way, needs: &Needs) -> Vec<Finding> {
    // The check has said already why there is no token.
    if app.token().await.is_err() {
        return Vec::new();
    }
    let mut found = vec![scopes(app, needs).await];
    match record(app).await {
        Ok(record) => {
            found.push(version(&record));
            found.push(callbacks(&record, way, needs));
        }
        Err(why) => found.push(Finding::note(
            "callbacks",
            format!(
                "whether {CLICK} is subscribed and a version is published cannot be told ({why}): grant admin:app.info:readonly, or \
                 look under {CALLBACKS_PAGE}{}",
                match (way, &needs.callback) {
                    (Way::Connection, _) => String::new(),
                    (Way::Webhook, Some(ours)) => format!("; the request URL must be {ours}"),
                    (Way::Webhook, None) => format!("; {NO_ADDRESS}"),
                }
            ),
        )),
    }
    found
}

async fn scopes(app: &FeishuApp, needs: &Needs) -> Finding {
    let listed = get(
        app,
        "application.scopes",
        &["open-apis", "application", "v6", "scopes"],
    )
    .await;
    let granted: Option<Vec<String>> = listed.ok().and_then(|answer| {
        let scopes = answer.get("data")?.get("scopes")?.as_array()?;
        let granted = scopes
            .iter()
            .filter(|scope| scope.get("grant_status").and_then(Value::as_i64) == Some(GRANTED));
        Some(
            granted
                .filter_map(|scope| Some(scope.get("scope_name")?.as_str()?.to_owned()))
                .collect(),
        )
    });
    let Some(granted) = granted else {
        return Finding::note("scopes", "the platform did not say which scopes are granted");
    };
    let lacking = |needed: bool| -> Vec<String> {
        SCOPES
            .iter()
            .filter(|scopes| {
                (scopes.needed)(needs) == needed
                    && !scopes
                        .any_of
                        .iter()
                        .any(|name| granted.iter().any(|has| has == name))
            })
            .map(|scopes| format!("{} ({})", scopes.any_of.first().unwrap_or(&""), scopes.for_what))
            .collect()
    };
    let (needed, wanted) = (lacking(true), lacking(false));
    if !needed.is_empty() {
        return Finding::ill(
            "scopes",
            format!("not granted: {}: add them under {SCOPES_PAGE}", needed.join(", ")),
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

/// The app's own record.
async fn record(app: &FeishuApp) -> Result<Object, String> {
    let call = Call {
        name: "application.get",
        method: Method::GET,
        path: &["open-apis", "application", "v6", "applications", app.app_id()],
        query: &[("lang", "en_us")],
        body: None,
    };
    let answer = match app.call(&call).await {
        Ok(answer) => answer,
        Err(CallError::Refused(refused)) if refused.class() == Class::Setup => return Err(refused.why()),
        Err(error) => return Err(error.failure().to_string()),
    };
    answer
        .get("data")
        .and_then(|data| data.get("app"))
        .and_then(Value::as_object)
        .cloned()
        .ok_or_else(|| "the answer holds no app".to_owned())
}

fn version(record: &Object) -> Finding {
    let says = |key| text(record, &[key]).is_some_and(|version| !version.is_empty());
    match (says("online_version_id"), says("unaudit_version_id")) {
        (false, true) => Finding::ill(
            "version",
            "no version is published, one waits for the tenant's admin: Admin console, App review",
        ),
        (false, false) => Finding::ill(
            "version",
            "no version is published: Version management & release, create a version, publish it",
        ),
        (true, true) => Finding::note(
            "version",
            "one is published, a newer one waits for the tenant's admin: what it changes does not hold yet",
        ),
        (true, false) => Finding::fine("version", "published"),
    }
}

fn callbacks(record: &Object, way: Way, needs: &Needs) -> Finding {
    let info = record.get("callback_info").and_then(Value::as_object);
    let subscribed: Vec<&str> = info
        .and_then(|info| info.get("subscribed_callbacks")?.as_array())
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if !subscribed.contains(&CLICK) {
        return Finding::ill(
            "callbacks",
            format!(
                "{CLICK} is not subscribed, so every button answers 200340: add it under {CALLBACKS_PAGE}"
            ),
        );
    }
    let set = info.and_then(|info| text(info, &["callback_type"]));
    if let Some(set) = set
        && set != way.word()
    {
        return Finding::ill(
            "callbacks",
            format!(
                "the app sends clicks by {}, the configuration waits for them by {}: change mode, or the choice under {CALLBACKS_PAGE}",
                if set == Way::Webhook.word() {
                    "HTTP"
                } else {
                    "long connection"
                },
                if way == Way::Webhook {
                    "HTTP"
                } else {
                    "long connection"
                },
            ),
        );
    }
    if way == Way::Webhook && needs.callback.is_none() {
        return Finding::ill("callbacks", NO_ADDRESS);
    }
    if let (Way::Webhook, Some(ours), Some(set)) = (
        way,
        &needs.callback,
        info.and_then(|info| text(info, &["request_url"])),
    ) && set.trim_end_matches('/') != ours
    {
        return Finding::ill(
            "callbacks",
            format!("the request URL is not {ours}: set it under {CALLBACKS_PAGE}"),
        );
    }
    if subscribed.contains(&LEGACY) {
        return Finding::note(
            "callbacks",
            format!(
                "the legacy {LEGACY} is subscribed too, each click comes twice and the legacy one is refused: remove it under {CALLBACKS_PAGE}"
            ),
        );
    }
    Finding::fine(
        "callbacks",
        match (way, &needs.callback) {
            (Way::Webhook, Some(ours)) => format!("{CLICK} is subscribed, request URL {ours}"),
            (Way::Webhook, None) | (Way::Connection, _) => format!("{CLICK} is subscribed"),
        },
    )
}

async fn get(app: &FeishuApp, name: &'static str, path: &[&str]) -> Result<Object, CallError> {
    app.call(&Call {
        name,
        method: Method::GET,
        path,
        query: &[],
        body: None,
    })
    .await
}
