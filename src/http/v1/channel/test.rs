//! `POST /api/channels/{name}/test`: posts a card that decides nothing, so that an admin sees whether cards arrive.
//!
//! The admin waits for the platform's answer, so this card is posted at once and not through the outbox: nothing depends on
//! it, and no transaction is open.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use gatepost_channel::{Actions, Card, Fact, Inert, PostKey, Posted, Tone};
use serde_json::{Value, json};

use crate::audit::{Actor, Draft};
use crate::clock::rfc3339;
use crate::delivery::registry::Listed;
use crate::http::Api;
use crate::http::auth::Admin;
use crate::http::body::Members;
use crate::http::problem::{Code, Problem};

/// One test card for each channel in this time.
const EVERY: Duration = Duration::from_secs(10);

/// Posts it.
pub async fn handle(
    State(api): State<Api>,
    admin: Admin,
    Path(name): Path<String>,
    members: Members,
) -> Result<Json<Value>, Problem> {
    members.finish()?;
    let gatekeeper = api.gatekeeper();
    let listed = gatekeeper
        .registry()
        .get(&name)
        .filter(|listed| listed.org == admin.org)
        .ok_or_else(Problem::not_found)?;
    let now = api.clock().now();
    api.tests().take(&name, EVERY, now).map_err(|wait| {
        let seconds = u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX);
        Problem::new(Code::Throttled).retry_after(seconds)
    })?;
    let draft = Draft::new(&listed.org, "channel.tested", Actor::Token(admin.token.0.clone()));
    gatekeeper.journal().write(draft.on(listed.name.as_str()));
    let key = PostKey(format!("test-{}", gatekeeper.ids().fresh()));
    let posted = listed
        .channel
        .post(&card(&api, listed, &rfc3339(now)), &key)
        .await;
    api.sender().fared(listed, &posted).await;
    let (posted, detail) = match posted {
        Posted::At(_) => (true, "the card stands".to_owned()),
        Posted::Minimal(_) => (
            true,
            "the platform refused the card's content; its minimal form stands".to_owned(),
        ),
        Posted::NotSent(failure) => (false, failure.to_string()),
        Posted::Unknown { why } => (false, format!("no clear answer came: {why}")),
    };
    Ok(Json(
        json!({ "channel": listed.name.as_str(), "posted": posted, "detail": detail }),
    ))
}

fn card(api: &Api, listed: &Listed, at: &str) -> Card {
    let words = api.gatekeeper().maker().phrases(listed.voice.language).words();
    Card {
        request_id: "test".to_owned(),
        tone: Tone::Closed,
        risk: None,
        title: "Gatepost: test card".to_owned(),
        preview: "Gatepost: test card".to_owned(),
        tool: Inert::new("gatepost test"),
        facts: vec![Fact {
            label: "UTC".to_owned(),
            value: Inert::new(at),
        }],
        arguments: Inert::new("{}").into(),
        actions: Actions::None,
        words,
        set: None,
    }
}
