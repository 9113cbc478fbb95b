//! Short ways to post and edit against a script, for tests of calls.

use gatepost_channel::{Card, CardForm, Channel as _, Failure, MessageRef, PostKey, Posted, Tone};
use serde_json::json;

use crate::fake::{Answer, Fake, ok};
use crate::fixture::card;

pub(crate) fn key() -> PostKey {
    PostKey("cr-vector-0001".into())
}

pub(crate) fn pending() -> Card {
    card(Tone::Pending, "{\"amount\": 51000}", true)
}

pub(crate) fn posted_message() -> Answer {
    ok(&json!({"message_id": "om_demo_0602", "chat_id": "oc_vector_chat_1"}))
}

pub(crate) fn there() -> MessageRef {
    MessageRef {
        chat: "oc_vector_chat_1".into(),
        message: "om_vector_message_1".into(),
    }
}

pub(crate) async fn post(script: impl IntoIterator<Item = Answer>) -> (Posted, Fake) {
    let fake = Fake::start(script).await;
    let posted = fake.channel().post(&pending(), &key()).await;
    (posted, fake)
}

pub(crate) async fn edit(script: impl IntoIterator<Item = Answer>) -> (Result<CardForm, Failure>, Fake) {
    let fake = Fake::start(script).await;
    let edited = fake.channel().edit(&there(), &pending()).await;
    (edited, fake)
}

/// A short name for what came of a post.
pub(crate) fn name(posted: &Posted) -> &'static str {
    match posted {
        Posted::At(_) => "at",
        Posted::Minimal(_) => "minimal",
        Posted::Unknown { .. } => "unknown",
        Posted::NotSent(failure) => class(failure),
    }
}

pub(crate) fn class(failure: &Failure) -> &'static str {
    match failure {
        Failure::Retry { .. } => "retry",
        Failure::Target { .. } => "target",
        Failure::Setup { .. } => "setup",
        Failure::Content { .. } => "content",
        Failure::Gone { .. } => "gone",
    }
}
