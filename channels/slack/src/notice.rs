//! Telling one person something that the group does not see: an ephemeral message. Slack does not promise that it is seen.

use async_trait::async_trait;
use gatepost_channel::{Failure, Inert, PrivateNotice};
use serde::Serialize;

use crate::blocks::{self, Block};
use crate::channel::SlackChannel;
use crate::client::{Arguments, Literally};
use crate::error::CallError;

/// A notice is a sentence or two.
const NOTICE: usize = 3_000;

/// The arguments of `chat.postEphemeral`.
#[derive(Serialize)]
struct Notice<'a> {
    channel: &'a str,
    user: &'a str,
    text: String,
    blocks: [Block; 1],
    #[serde(flatten)]
    literally: Literally,
}

#[async_trait]
impl PrivateNotice for SlackChannel {
    async fn tell(&self, user: &str, chat: &str, text: &Inert) -> Result<(), Failure> {
        let notice = Notice {
            channel: chat,
            user,
            text: blocks::escape(blocks::start(text.as_str(), NOTICE)),
            blocks: [Block::line(text.as_str(), NOTICE)],
            literally: Literally::default(),
        };
        let arguments = Arguments::json(&notice).map_err(CallError::of_edit)?;
        self.app
            .api
            .call("chat.postEphemeral", arguments)
            .await
            .map(drop)
            .map_err(CallError::of_edit)
    }
}
