//! `browser_login`: an operator is asked to log in somewhere (WAITING_HUMAN_BROWSER). Their answer is the result of the call.

use serde_json::{Value, json};
use url::Url;

use super::{Steer, Steers, text};
use crate::agent::scene::Scene;
use crate::gate::Arguments;
use crate::job::WaitReason;

pub(super) struct BrowserLogin;

impl Steers for BrowserLogin {
    fn offer(&self, _: &Scene<'_>) -> Option<(String, Value)> {
        let description = "Ask an operator to log in to a site for you. The job waits until they say that it is done; what \
                           they say is the result of this call. Never ask for a password. Make this call alone.";
        let parameters = json!({
            "type": "object",
            "required": ["url", "reason"],
            "additionalProperties": false,
            "properties": {
                "url": { "type": "string", "description": "Where: an http or https address." },
                "reason": { "type": "string", "description": "What you need the login for." }
            }
        });
        Some((description.to_owned(), parameters))
    }

    fn steer(&self, args: &Arguments, _: &Scene<'_>) -> Result<Steer, String> {
        let (url, reason) = (text(args, "url")?, text(args, "reason")?);
        let url = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .filter(|url| url.username().is_empty() && url.password().is_none())
            .ok_or_else(|| "`url` must be an http or https address without a user in it".to_owned())?;
        Ok(Steer::Ask {
            wait: WaitReason::BrowserLogin,
            question: format!("Log in at {url} and say when it is done. Why: {reason}"),
        })
    }
}
