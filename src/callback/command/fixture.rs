//! People who speak to the bot, over a real store.

use gatepost_channel::{Answer, Answered, Command, Place, PlatformUser, Reply};
use serde_json::{Value, json};

use super::find;
use crate::delivery::phrase::{Language, Phrasebook};
use crate::http::fixture::Bench;
use crate::ids::ConfirmationId;

/// Says something to the bot, each time anew.
pub(super) struct Mouth {
    pub(super) bench: Bench,
    said: std::cell::Cell<u32>,
}

impl Mouth {
    pub(super) async fn new() -> Self {
        Self {
            bench: Bench::new().await,
            said: std::cell::Cell::new(0),
        }
    }

    /// A command as an adapter hands it in: from the chat of the channel, to be answered there.
    pub(super) fn command(&self, user: &str, words: &str) -> Command {
        self.said.set(self.said.get() + 1);
        Command {
            app: None,
            place: Place::Private { chat: "chat".into() },
            user: PlatformUser {
                ids: vec![format!("u-{user}")],
                tenant: None,
                from_elsewhere: false,
            },
            called: "/gatepost".into(),
            words: words.into(),
            said_at: None,
            answered: Answered::There,
            replay_key: format!("command|{}", self.said.get()),
        }
    }

    pub(super) async fn obey(&self, command: &Command) -> Answer {
        let registry = self.bench.api.gatekeeper().registry();
        self.bench
            .api
            .intake()
            .obey(registry.get("chat").unwrap(), command)
            .await
    }

    pub(super) async fn hear(&self, user: &str, words: &str) -> Reply {
        let answer = self.obey(&self.command(user, words)).await;
        assert!(answer.stored);
        answer.reply
    }

    pub(super) async fn say(&self, user: &str, words: &str) -> String {
        self.hear(user, words).await.text.to_string()
    }

    pub(super) async fn request(&self, id: &str) -> Value {
        self.bench
            .get(&format!("/api/confirmations/{id}"), "auditor")
            .await
            .json()
    }

    /// The code that cards show.
    pub(super) async fn code(&self, id: &str) -> String {
        let gatekeeper = self.bench.api.gatekeeper();
        let id = ConfirmationId::parse(id).unwrap();
        let dossier = gatekeeper.store().read().dossier(&id).await.unwrap().unwrap();
        find::code_of(gatekeeper, &dossier).0
    }

    pub(super) async fn ask(&self, token: &str, tool: &str, args: Value) -> String {
        let body = json!({ "tool_name": tool, "tool_args": args });
        let heard = self.bench.post("/api/confirmations", token, body).await;
        heard.json()["confirmation_id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn events(&self, kind: &str) -> Vec<Value> {
        let page = self
            .bench
            .get(&format!("/api/audit?kind={kind}"), "auditor")
            .await
            .json();
        page["items"].as_array().unwrap().clone()
    }

    pub(super) async fn event(&self, kind: &str, reason: &str) -> Value {
        self.until(kind, |event| event["data"]["reason"] == reason).await
    }

    /// Waits for an event that is written behind the answer.
    pub(super) async fn until(&self, kind: &str, is: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..10_000 {
            if let Some(event) = self.events(kind).await.into_iter().find(&is) {
                return event;
            }
            tokio::task::yield_now().await;
        }
        panic!("no such {kind}");
    }

    pub(super) fn phrase(key: &str) -> String {
        let book = Phrasebook::load().unwrap();
        book.of(Language::En).reply(key).to_owned()
    }
}

pub(super) async fn votes(mouth: &Mouth, id: &str) -> usize {
    mouth.request(id).await["votes"].as_array().unwrap().len()
}
