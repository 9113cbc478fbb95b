//! A Slack workspace on loopback: it keeps messages, enforces Slack's own limits with Slack's own errors, and clicks.
//!
//! Facts: Slack's Web API and Block Kit references. What it must not know: anything of Gatepost.

mod block_kit;
mod click;
mod methods;
mod people;
pub mod socket;
mod view;
mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::any;
use serde_json::Value;

pub use click::Signed;
pub use people::Standing;
pub use world::{Message, User, View};

use super::clock::Clock;
use super::fault::{Fault, Faults};
use super::loopback::Server;
use super::news::News;
use world::{Channel, World};

/// The channel that exists from the start, with the bot in it.
pub const CHANNEL: &str = "C0123456789";
/// The team of the workspace.
pub const TEAM: &str = "T0GATEPOST";
/// The installed app.
pub const APP: &str = "A0GATEPOST";
/// The bot's token.
pub const BOT_TOKEN: &str = "xoxb-fake-bot-token";
/// The app's signing secret.
pub const SIGNING_SECRET: &str = "d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e";

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Call {
    /// For example `chat.postMessage`.
    pub method: String,
    /// The arguments, from a form or a JSON body; JSON texts in a form are decoded.
    pub args: Value,
    /// The media type of the body as sent.
    pub content_type: String,
}

struct Shared {
    clock: Clock,
    faults: Faults,
    news: News,
    world: Mutex<World>,
}

/// The running fake. It ends with the value.
pub struct FakeSlack {
    /// What `base_url` of a channel is set to.
    pub base_url: String,
    shared: Arc<Shared>,
    _server: Server,
}

impl FakeSlack {
    /// A workspace on the machine's clock.
    pub async fn start() -> Self {
        Self::with_clock(Clock::running()).await
    }

    /// A workspace on the test's clock.
    pub async fn with_clock(clock: Clock) -> Self {
        let shared = Arc::new(Shared {
            clock,
            faults: Faults::default(),
            news: News::default(),
            world: Mutex::new(World::new()),
        });
        let router = Router::new()
            .route("/api/{method}", any(serve))
            .with_state(Arc::clone(&shared));
        let server = Server::start(router).await;
        Self {
            base_url: server.url("/api"),
            shared,
            _server: server,
        }
    }

    fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        let answer = look(&mut self.shared.world.lock().unwrap());
        self.shared.news.ring();
        answer
    }

    /// The workspace's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// A further channel with the bot in it.
    pub fn add_channel(&self, id: &str) {
        self.world(|world| world.channels.insert(id.to_owned(), Channel::with_bot()));
    }

    /// From now on the channel answers `is_archived`.
    pub fn archive(&self, channel: &str) {
        self.world(|world| world.channel_mut(channel).archived = true);
    }

    /// Somebody deletes the message: it cannot be edited or answered any more.
    pub fn delete(&self, channel: &str, ts: &str) {
        self.world(|world| {
            let before = world.messages.len();
            world
                .messages
                .retain(|message| message.channel != channel || message.ts != ts);
            assert_eq!(world.messages.len() + 1, before, "a message of this fake");
        });
    }

    /// From now on the channel answers `not_in_channel`.
    pub fn remove_bot(&self, channel: &str) {
        self.world(|world| world.channel_mut(channel).bot_is_member = false);
    }

    /// A person of the workspace who is in every channel.
    pub fn add_user(&self, user: User) {
        self.world(|world| world.users.insert(user.id.clone(), user));
    }

    /// The person leaves the channel: no ephemeral message reaches them there.
    pub fn remove_member(&self, channel: &str, user: &str) {
        self.world(|world| world.channel_mut(channel).absent.insert(user.to_owned()));
    }

    /// All calls with the bot's token are refused with this error (`account_inactive`, `token_revoked`, …).
    pub fn refuse_token(&self, error: &str) {
        self.world(|world| world.token_error = Some(error.to_owned()));
    }

    /// Takes a granted scope away.
    pub fn revoke_scope(&self, scope: &str) {
        self.world(|world| world.scopes.retain(|granted| granted != scope));
    }

    /// Gives a scope.
    pub fn grant_scope(&self, scope: &str) {
        self.world(|world| world.scopes.push(scope.to_owned()));
    }

    /// Switches the limit of one message a second and channel (burst 5). It is on at the start.
    pub fn limit_rate(&self, on: bool) {
        self.world(|world| world.rate_limited = on);
    }

    /// Somebody deletes the message in their client.
    pub fn delete_message(&self, channel: &str, ts: &str) {
        self.world(|world| {
            world
                .messages
                .retain(|message| message.channel != channel || message.ts != ts);
        });
    }

    /// The next call of `method` meets this fault; several queue up.
    pub fn fail_next(&self, method: &str, fault: Fault) {
        self.shared.faults.push(method, fault);
    }

    /// The messages of a channel, oldest first.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        let world = self.shared.world.lock().unwrap();
        world
            .messages
            .iter()
            .filter(|message| message.channel == channel)
            .cloned()
            .collect()
    }

    /// The ephemeral messages as `(channel, user, text and blocks)`.
    pub fn ephemerals(&self) -> Vec<(String, String, Value)> {
        self.shared.world.lock().unwrap().ephemerals.clone()
    }

    /// The modals that were opened.
    pub fn views(&self) -> Vec<View> {
        self.shared.world.lock().unwrap().views.clone()
    }

    /// The calls of `method` so far, refused ones included.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        let world = self.shared.world.lock().unwrap();
        world
            .calls
            .iter()
            .filter(|call| call.method == method)
            .cloned()
            .collect()
    }

    /// The first message of the channel for which `wanted` holds.
    pub async fn wait_for_message(
        &self,
        channel: &str,
        mut wanted: impl FnMut(&Message) -> bool,
        patience: Duration,
    ) -> Message {
        let what = format!("a message in {channel}");
        let look = || self.messages(channel).into_iter().find(|message| wanted(message));
        self.shared.news.until(&what, patience, look).await
    }

    /// Waits for anything else that `look` finds in this fake.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&Self) -> Option<T>,
    ) -> T {
        self.shared.news.until(what, patience, || look(self)).await
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let call = methods::read(&method, query.as_deref(), &headers, &body);
    shared.world.lock().unwrap().calls.push(call.clone());
    shared.news.ring();
    let answer = shared.faults.around(&method, || {
        let mut world = shared.world.lock().unwrap();
        methods::answer(&mut world, &call, &headers, shared.clock.now_ms())
    });
    let answer = answer.await;
    shared.news.ring();
    answer
}
