//! Asking the platform whether a channel works, and saying what to do when it does not.

use gatepost_channel::Health;
use reqwest::Method;

use crate::client::{Call, FeishuApp};
use crate::document::{Object, text};
use crate::error::{CallError, Class};

/// An app in this state is enabled in the tenant; every other state is waiting for somebody.
const ENABLED: i64 = 2;

/// Asks for the token, the bot and the group, in this order; the first trouble ends it.
pub(crate) async fn check(app: &FeishuApp, chat: &str) -> Health {
    let (healthy, detail) = match ask(app, chat).await {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    Health { healthy, detail }
}

async fn ask(app: &FeishuApp, chat: &str) -> Result<String, String> {
    let says = |what: &str, error: CallError| format!("{what}: {}", error.failure());
    let bot = match get(app, "bot.info", &["open-apis", "bot", "v3", "info"]).await {
        Ok(bot) => Some(bot),
        Err(error) if error.knows_no_such_call() => None,
        Err(error) => return Err(says("bot", error)),
    };
    let known = if bot.is_some() {
        "token and bot are"
    } else {
        "token is"
    };
    let status = bot.and_then(|bot| bot.get("bot")?.get("activate_status")?.as_i64());
    if status.is_some_and(|status| status != ENABLED) {
        return Err("bot: the app is not enabled in the tenant; publish a version and enable it".to_owned());
    }
    match in_group(app, chat).await {
        Ok(true) => Ok(format!("{known} fine, and the group")),
        Ok(false) => {
            Err("group: the bot is not in it, or it was dissolved; add the bot to the group".to_owned())
        }
        // Reading a group needs a scope that posting does not.
        Err(CallError::Refused(refused)) if refused.class() == Class::Setup => Ok(format!(
            "{known} fine; whether the bot is in the group cannot be told ({})",
            refused.why()
        )),
        Err(error) if error.knows_no_such_call() => Ok(format!(
            "{known} fine; whether the bot is in the group cannot be told: the platform's answer cannot be read"
        )),
        Err(error) => Err(says("group", error)),
    }
}

/// Whether the bot is in the group: asked plainly, or told from what the group shows to it.
async fn in_group(app: &FeishuApp, chat: &str) -> Result<bool, CallError> {
    let group = ["open-apis", "im", "v1", "chats", chat];
    let asked = get(
        app,
        "im.chat.is_in_chat",
        &[&group[..], &["members", "is_in_chat"]].concat(),
    )
    .await;
    let told = asked
        .ok()
        .and_then(|answer| answer.get("data")?.get("is_in_chat")?.as_bool());
    if let Some(told) = told {
        return Ok(told);
    }
    let shown = get(app, "im.chat.get", &group).await?;
    Ok(!text(&shown, &["data", "chat_status"]).is_some_and(|status| status.starts_with("dissolved")))
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
