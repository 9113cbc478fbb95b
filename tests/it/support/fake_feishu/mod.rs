//! A Feishu tenant on loopback: it keeps cards, enforces the platform's limits with its own codes, and clicks.
//!
//! Facts: the open platform's message, card and callback pages. What it must not know: anything of Gatepost.

mod card;
mod click;
mod contacts;
mod markdown;
mod methods;
pub mod say;
pub mod socket;
mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::Value;

pub use click::{Clicked, Toast};
pub use contacts::Status;
pub use world::{Message, Person};

use super::clock::Clock;
use super::fault::{Fault, Faults};
use super::loopback::Server;
use super::news::News;
use world::{Chat, World};

/// The group that exists from the start, with the bot in it.
pub const CHAT: &str = "oc_84983ff6516d731e5b5f68d4ea2e1da5";
/// The installed app.
pub const APP: &str = "cli_a1b2c3d4e5f60718";
/// The app's secret.
pub const APP_SECRET: &str = "fake-feishu-app-secret";
/// The key of callbacks.
pub const ENCRYPT_KEY: &str = "enc-key-Kestrel-42";
/// The token inside callbacks.
pub const VERIFICATION_TOKEN: &str = "vt-Heron-7731";
/// The tenant of the app.
pub const TENANT: &str = "tk_2ca1d211f64f6438";

/// The calls that the fake answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `POST auth/v3/tenant_access_token/internal`
    Token,
    /// `POST im/v1/messages`
    Send,
    /// `POST im/v1/messages/{id}/reply`
    Reply,
    /// `PATCH im/v1/messages/{id}`
    Patch,
    /// `POST interactive/v1/card/update`
    CardUpdate,
    /// `POST ephemeral/v1/send`
    Ephemeral,
    /// `GET bot/v3/info`
    BotInfo,
    /// `GET im/v1/chats/{id}`
    Chat,
    /// `GET im/v1/chats/{id}/members`
    Members,
    /// `POST contact/v3/users/batch_get_id`
    BatchGetId,
    /// `GET contact/v3/users/{id}`
    User,
    /// `GET contact/v3/group/{id}/member/simplelist`
    GroupMembers,
    /// `GET contact/v3/group/member_belong`
    GroupsOfUser,
    /// `GET application/v6/scopes`
    Scopes,
    /// `GET application/v6/applications/{id}`
    Application,
    /// `POST /callback/ws/endpoint`
    Endpoint,
    /// Anything else: 404.
    Unknown,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which.
    pub api: Api,
    /// The path after `/open-apis/`.
    pub path: String,
    /// The JSON body; null without one.
    pub body: Value,
    /// The bearer token.
    pub token: Option<String>,
}

struct Shared {
    clock: Clock,
    faults: Faults,
    news: News,
    world: Mutex<World>,
}

/// The running fake. It ends with the value.
pub struct FakeFeishu {
    /// What `base_url` of a channel is set to.
    pub base_url: String,
    shared: Arc<Shared>,
    _server: Server,
}

impl FakeFeishu {
    /// A tenant on the machine's clock.
    pub async fn start() -> Self {
        Self::with_clock(Clock::running()).await
    }

    /// A tenant on the test's clock.
    pub async fn with_clock(clock: Clock) -> Self {
        let shared = Arc::new(Shared {
            clock,
            faults: Faults::default(),
            news: News::default(),
            world: Mutex::new(World::new()),
        });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let server = Server::start(router).await;
        Self {
            base_url: server.url(""),
            shared,
            _server: server,
        }
    }

    fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        let answer = look(&mut self.shared.world.lock().unwrap());
        self.shared.news.ring();
        answer
    }

    /// The tenant's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// A further group with the bot in it.
    pub fn add_chat(&self, id: &str) {
        self.world(|world| world.chats.insert(id.to_owned(), Chat::with_bot()));
    }

    /// From now on the group answers 230002.
    pub fn remove_bot(&self, chat: &str) {
        self.world(|world| {
            world
                .chats
                .get_mut(chat)
                .expect("a group of this test")
                .bot_is_member = false;
        });
    }

    /// A person of the tenant who is in every group.
    pub fn add_person(&self, person: Person) {
        self.world(|world| world.people.insert(person.open_id.clone(), person));
    }

    /// Changes the app's own record, as in the developer console.
    pub fn change_app(&self, change: impl FnOnce(&mut Value)) {
        self.world(|world| change(&mut world.app));
    }

    /// All tokens issued so far stop working: 99991663.
    pub fn expire_tokens(&self) {
        self.world(|world| world.tokens.clear());
    }

    /// Switches the limit of 5 calls a second per group and per message. It is on at the start.
    pub fn limit_rate(&self, on: bool) {
        self.world(|world| world.rate_limited = on);
    }

    /// Switches the refusal of edits while a click on that card is being handled (sub-code 11310, "card action is
    /// lock"). It is on at the start.
    pub fn lock_during_clicks(&self, on: bool) {
        self.world(|world| world.locks = on);
    }

    /// Somebody recalls the message.
    pub fn recall(&self, message_id: &str) {
        self.world(|world| {
            world
                .message_mut(message_id)
                .expect("a message of this fake")
                .recalled = true;
        });
    }

    /// The next call of `api` meets this fault; several queue up.
    pub fn fail_next(&self, api: Api, fault: Fault) {
        self.shared.faults.push(&format!("{api:?}"), fault);
    }

    /// The messages of a group, oldest first.
    pub fn messages(&self, chat: &str) -> Vec<Message> {
        let world = self.shared.world.lock().unwrap();
        world
            .messages
            .iter()
            .filter(|message| message.chat_id == chat)
            .cloned()
            .collect()
    }

    /// The messages of the bot to one person, oldest first.
    pub fn messages_to(&self, open_id: &str) -> Vec<Message> {
        self.messages(&format!("oc_p2p_{open_id}"))
    }

    /// The ephemeral cards as `(chat, open_id, card)`.
    pub fn ephemerals(&self) -> Vec<(String, String, Value)> {
        self.shared.world.lock().unwrap().ephemerals.clone()
    }

    /// The calls of `api` so far, refused ones included.
    pub fn calls(&self, api: Api) -> Vec<Call> {
        let world = self.shared.world.lock().unwrap();
        world
            .calls
            .iter()
            .filter(|call| call.api == api)
            .cloned()
            .collect()
    }

    /// The first message of the group for which `wanted` holds.
    pub async fn wait_for_message(
        &self,
        chat: &str,
        mut wanted: impl FnMut(&Message) -> bool,
        patience: Duration,
    ) -> Message {
        let what = format!("a message in {chat}");
        let look = || self.messages(chat).into_iter().find(|message| wanted(message));
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
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let call = methods::read(&method, &uri, &headers, &body);
    shared.world.lock().unwrap().calls.push(call.clone());
    shared.news.ring();
    let on = format!("{:?}", call.api);
    let answer = shared.faults.around(&on, || {
        let mut world = shared.world.lock().unwrap();
        methods::answer(&mut world, &call, &uri, body.len(), shared.clock.now_ms())
    });
    let answer = answer.await;
    shared.news.ring();
    answer
}
