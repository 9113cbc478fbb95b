//! The world of the stories: an organisation with a Slack channel, a Feishu group and a local channel, the people and
//! tokens around it, a second organisation beside it, and the server, in this process and on the clock of the fakes.
//!
//! [`World::start`] is the usual one; [`Plan`] changes what a story needs changed.

use std::path::Path;
use std::time::Duration;

use gatepost::app::{Outside, Server};
use gatepost::clock::{Clock as TellsTime, UtcMillis};
use gatepost::config::Config;
use gatepost::ids::SystemIds;
use gatepost::storage::open::ClockOffset;
use serde_json::{Value, json};

use super::clock::Clock;
use super::fake_feishu::{self, FakeFeishu, Person};
use super::fake_slack::{self, FakeSlack, User};
use super::people::{Operator, PEOPLE, RITA};
use super::program::{Api, Place};

/// How long something may take that should happen at once, on a busy machine.
pub const SOON: Duration = Duration::from_secs(15);

/// The Slack channel of the same app that only the rule `legal` names.
pub const LEGAL_CHANNEL: &str = "C0LEGAL";
/// The Slack channel of the second organisation, whose app signs with the secret of [`fake_slack::Signed::forged`].
pub const UMBRELLA_CHANNEL: &str = "C0UMBRELLA";

/// Where the rows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A file in the world's folder.
    Sqlite,
    /// A database of its own.
    Postgres,
}

/// What a story wants before the server starts.
pub struct Plan {
    storage: Storage,
    clock: Clock,
    operators: String,
    more: String,
    files: Vec<(String, String)>,
}

impl Plan {
    /// A world on this store, on the machine's clock plus what the story adds.
    pub fn on(storage: Storage) -> Self {
        Self {
            storage,
            clock: Clock::running(),
            operators: String::new(),
            more: String::new(),
            files: Vec::new(),
        }
    }

    /// Time stands still until the story moves it. SQLite only: PostgreSQL has a clock of its own.
    pub fn standing(mut self) -> Self {
        assert_eq!(self.storage, Storage::Sqlite, "PostgreSQL's clock runs");
        self.clock = Clock::standing_at(1_795_953_600);
        self
    }

    /// One more operator: a line of the list, without its indentation and dash.
    pub fn operator(mut self, entry: &str) -> Self {
        self.operators = format!("{}  - {entry}\n", self.operators);
        self
    }

    /// Sections at the end of the configuration.
    pub fn with(mut self, sections: &str) -> Self {
        self.more.push_str(sections);
        self
    }

    /// A file beside the configuration.
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Starts the fakes and the server.
    pub async fn start(self) -> World {
        let mut world = self.fakes().await;
        world.boot().await;
        world
    }

    /// Starts the fakes, and a server on a copy of the SQLite file of a world that was stopped; `edit` sees the copy before.
    pub async fn start_on_copy_of(self, other: &World, edit: impl AsyncFnOnce(&Path)) -> World {
        let mut world = self.fakes().await;
        // The write-ahead log is part of the database, and may be gone.
        let _ = std::fs::copy(
            other.place.file("gatepost.db-wal"),
            world.place.file("gatepost.db-wal"),
        );
        for name in ["gatepost.db", "gatepost.key"] {
            std::fs::copy(other.place.file(name), world.place.file(name)).expect("a copied file");
        }
        edit(&world.place.file("gatepost.db")).await;
        world.boot().await;
        world
    }

    /// Starts the fakes; the real program will be the server.
    pub async fn without_server(self) -> World {
        self.fakes().await
    }

    async fn fakes(self) -> World {
        let slack = FakeSlack::with_clock(self.clock.clone()).await;
        let feishu = FakeFeishu::with_clock(self.clock.clone()).await;
        slack.add_channel(LEGAL_CHANNEL);
        for person in PEOPLE {
            slack.add_user(User::new(person.slack, person.email));
            feishu.add_person(Person::new(person.feishu, person.email));
        }
        let place = Place::new();
        for (name, text) in &self.files {
            place.write(name, text);
        }
        let url = match self.storage {
            Storage::Sqlite => "sqlite://gatepost.db".to_owned(),
            Storage::Postgres => super::pg::fresh_database().await,
        };
        let config = configuration(&place, &url, &slack, &feishu, &self.operators) + &self.more;
        World {
            clock: self.clock,
            slack,
            feishu,
            place,
            store: url,
            config,
            offset: ClockOffset::default(),
            server: None,
        }
    }
}

/// A running server with everything around it.
pub struct World {
    /// The clock of all.
    pub clock: Clock,
    /// The workspace.
    pub slack: FakeSlack,
    /// The tenant.
    pub feishu: FakeFeishu,
    /// Folder and address.
    pub place: Place,
    /// The address of the store; a SQLite file lies in the folder.
    pub store: String,
    /// The configuration as text.
    pub config: String,
    offset: ClockOffset,
    server: Option<Server>,
}

impl TellsTime for Clock {
    fn now(&self) -> UtcMillis {
        UtcMillis(self.now_ms())
    }
}

impl World {
    /// The usual world.
    pub async fn start(storage: Storage) -> Self {
        Plan::on(storage).start().await
    }

    async fn boot(&mut self) {
        super::loopback::install_ring();
        let path = self.place.write("gatepost.yaml", &self.config);
        let loaded = Config::load(&path, &|_| None);
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
        let outside = Outside {
            clock: std::sync::Arc::new(self.clock.clone()),
            offset: self.offset.clone(),
            ids: std::sync::Arc::new(SystemIds),
            metrics: None,
        };
        let server = Server::start(&loaded, outside).await;
        self.server = Some(server.unwrap_or_else(|error| panic!("{error}")));
    }

    /// Stops the server in peace and starts it again on the same data.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.boot().await;
    }

    /// Stops the server in peace.
    pub async fn stop(&mut self) {
        let server = self.server.take().expect("a running server");
        assert!(server.stop().await, "the server stops in time");
    }

    /// Moves every clock.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        let millis = i64::try_from(by.as_millis()).expect("a short way");
        self.offset.set(self.offset.get() + millis);
    }

    /// The API with the token of this name.
    pub fn api(&self, token: &str) -> Api {
        self.place.api(&secret_of(token))
    }

    /// Where Slack calls the channel of this name.
    pub fn callback(&self, channel: &str) -> String {
        self.place.callback_url(channel)
    }

    /// Asks for a payment above the limit as `build-agent` and returns the id of the request.
    pub async fn ask(&self, amount: u64) -> String {
        self.ask_for(
            "oa__purchase_pay",
            json!({"amount": amount, "payee": "ACME GmbH"}),
        )
        .await
    }

    /// Asks for a call that needs a person as `build-agent` and returns the id of the request.
    pub async fn ask_for(&self, tool: &str, args: Value) -> String {
        let body = json!({"tool_name": tool, "tool_args": args});
        let (status, answer) = self.api("build-agent").post("/api/confirmations", &body).await;
        assert_eq!((status, &answer["verdict"]), (200, &json!("pending")), "{answer}");
        answer["confirmation_id"].as_str().expect("an id").to_owned()
    }

    /// The request as an auditor sees it now.
    pub async fn request(&self, id: &str) -> Value {
        let (status, request) = self.api("audit").get(&format!("/api/confirmations/{id}")).await;
        assert_eq!(status, 200, "{request}");
        request
    }

    /// The message of the request's card in the Slack channel, as soon as it stands.
    pub async fn slack_card(&self, id: &str) -> fake_slack::Message {
        self.until(&format!("the Slack card of {id}"), async || {
            let mut cards = self.slack.messages(fake_slack::CHANNEL).into_iter();
            cards.find(|card| card.history[0].visible_text().contains(id))
        })
        .await
    }

    /// The message of the request's card in the Feishu group, as soon as it stands.
    pub async fn feishu_card(&self, id: &str) -> fake_feishu::Message {
        self.until(&format!("the Feishu card of {id}"), async || {
            let mut cards = self.feishu.messages(fake_feishu::CHAT).into_iter();
            cards.find(|card| card.visible_text().contains(id))
        })
        .await
    }

    /// Both cards, once the server knows of both.
    pub async fn cards(&self, id: &str) -> (fake_slack::Message, fake_feishu::Message) {
        let cards = (self.slack_card(id).await, self.feishu_card(id).await);
        self.until_deliveries(id, &["posted", "posted"]).await;
        cards
    }

    /// Waits until the request's deliveries, in order of channel, are in these states.
    pub async fn until_deliveries(&self, id: &str, states: &[&str]) {
        self.until(&format!("deliveries {states:?} of {id}"), async || {
            let request = self.request(id).await;
            (delivery_states(&request) == states).then_some(())
        })
        .await;
    }

    /// Waits until both cards show the end: no button is left, and the text holds `words`.
    pub async fn both_settled(&self, id: &str, slack_says: &str, feishu_says: &str) {
        self.until("the settled Slack card", async || {
            let mut cards = self.slack.messages(fake_slack::CHANNEL).into_iter();
            let card = cards.find(|card| card.history[0].visible_text().contains(id))?;
            let now = card.current();
            (now.action_ids().is_empty() && now.visible_text().contains(slack_says)).then_some(())
        })
        .await;
        self.until("the settled Feishu card", async || {
            let mut cards = self.feishu.messages(fake_feishu::CHAT).into_iter();
            let card = cards.find(|card| card.visible_text().contains(id))?;
            (card.decisions().is_empty() && card.visible_text().contains(feishu_says)).then_some(())
        })
        .await;
        self.until_deliveries(id, &["settled", "settled"]).await;
    }

    /// The audit events of the organisation of these kinds, oldest first; all of them for `""`.
    pub async fn audit(&self, kinds: &str) -> Vec<Value> {
        let (status, page) = self
            .api("audit")
            .get(&format!("/api/audit?limit=1000&kind={kinds}"))
            .await;
        assert_eq!(status, 200, "{page}");
        let mut events = page["items"].as_array().cloned().expect("items");
        events.sort_by_key(|event| event["seq"].as_i64());
        events
    }

    /// Waits for a refused callback with this reason; events of callbacks may be written behind the answer.
    pub async fn until_refused(&self, reason: &str) -> Value {
        self.until(&format!("callback.refused {reason}"), async || {
            let mut events = self.audit("callback.refused").await.into_iter();
            events.find(|event| event["data"]["reason"] == reason)
        })
        .await
    }

    /// Asserts that the chains of both organisations hold.
    pub async fn verify(&self) {
        for auditor in ["audit", "umbrella-audit"] {
            let (status, verified) = self.api(auditor).get("/api/audit/verify").await;
            assert_eq!((status, &verified["ok"]), (200, &json!(true)), "{verified}");
        }
    }

    /// Moves every clock to a time of the API, short of it by `but`.
    pub fn advance_to(&self, text: &Value, but: Duration) {
        let at = gatepost::clock::parse_rfc3339(text.as_str().expect("a time")).expect("a time");
        self.advance(at.minus(but).since(UtcMillis(self.clock.now_ms())));
    }

    /// Asks again and again until there is something. Where time stands still, it moves by a little each time.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let search = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                // Polling is all there is: the state is an HTTP answer.
                tokio::time::sleep(Duration::from_millis(15)).await;
                if !self.clock.runs() {
                    self.advance(Duration::from_millis(50));
                }
            }
        };
        let found = tokio::time::timeout(SOON, search).await;
        found.unwrap_or_else(|_| panic!("{what}: not within {SOON:?}"))
    }
}

/// The states of a request's deliveries in order of channel.
pub fn delivery_states(request: &Value) -> Vec<&str> {
    let mut deliveries: Vec<_> = request["deliveries"]
        .as_array()
        .expect("deliveries")
        .iter()
        .map(|delivery| (delivery["channel"].as_str(), delivery["state"].as_str()))
        .collect();
    deliveries.sort();
    deliveries.into_iter().filter_map(|(_, state)| state).collect()
}

/// The secret of a token.
pub fn secret_of(token: &str) -> String {
    format!("{token}-secret-0123456789abcdef")
}

const TOKENS: [(&str, &str, &str); 12] = [
    ("build-agent", "acme", "role: agent"),
    ("second-agent", "acme", "role: agent"),
    ("rita-agent", "acme", "role: agent, owner: rita"),
    ("dana-cli", "acme", "role: operator, operator: dana"),
    ("noor-cli", "acme", "role: operator, operator: noor"),
    ("omar-cli", "acme", "role: operator, operator: omar"),
    ("rita-cli", "acme", "role: operator, operator: rita"),
    ("olga-cli", "acme", "role: operator, operator: olga"),
    ("audit", "acme", "role: auditor"),
    ("admin", "acme", "role: admin"),
    ("umbrella-agent", "umbrella", "role: agent"),
    ("umbrella-audit", "umbrella", "role: auditor"),
];

const POLICY: &str = r#"
policy:
  default: confirm
  confirm: { channels: [finance-feishu, ops-slack], approvers: { roles: [finance] }, timeout: 2h, permit_ttl: 1h }
  rules:
    - { name: umbrella, orgs: [umbrella], tools: ["*"], effect: confirm, channels: [umbrella-slack, umbrella-desk], approvers: { operators: [bob] } }
    - { name: small-payments, tools: [oa__purchase_pay], when: "args.amount < 50000", effect: allow }
    - { name: big-payments, tools: [oa__purchase_pay], effect: confirm, reason: Payments of 50k or more need a person }
    - { name: pairs, tools: ["pair__*"], effect: confirm, quorum: 2 }
    - { name: board, tools: ["board__*"], effect: confirm, quorum: 2, deny_threshold: 2 }
    - { name: legal, tools: ["legal__*"], effect: confirm, channels: [legal-slack] }
    - { name: slack-only, tools: ["slack__*"], effect: confirm, channels: [ops-slack] }
    - { name: desk, tools: ["desk__*"], effect: confirm, channels: [desk] }
    - { name: cards, tools: ["card__*"], effect: confirm, redact: [/card/number] }
    - { name: reasoned, tools: ["reasoned__*"], effect: confirm, require_reason: both, confirm_step: true }
    - { name: granted, tools: ["granted__*"], effect: confirm, grants: { scopes: [1h], arguments: any } }
    - { name: many, tools: ["many__*"], effect: confirm, collapse: { window: 1h, most: 4 } }
    - { name: coded, tools: ["coded__*"], effect: confirm, step_up: code }
    - { name: seconded, tools: ["seconded__*"], effect: confirm, step_up: second_person }
    - { name: vault, tools: ["vault__*"], effect: confirm, approvers: { roles: [vault] } }
    - { name: glass, tools: ["glass__*"], effect: confirm, quorum: 2, break_glass: { approvers: { operators: [olga] } }, redact: [/voucher] }
    - { name: never, tools: ["never__*"], effect: deny, reason: Nobody may do this }
"#;

fn configuration(place: &Place, url: &str, slack: &FakeSlack, feishu: &FakeFeishu, others: &str) -> String {
    let listen = place.listen();
    let token = |(name, org, rest): (&str, &str, &str)| {
        let secret = secret_of(name);
        format!("    - {{ name: {name}, secret: {secret}, org: {org}, {rest} }}\n")
    };
    let tokens = TOKENS.map(token).concat();
    let operators: String = PEOPLE.iter().map(Operator::yaml).collect();
    let operators = operators + others;
    let slack_channel = |name: &str, channel: &str| {
        format!(
            "  - {{ name: {name}, kind: slack, org: acme, mode: webhook, base_url: \"{}\", bot_token: {}, \
             signing_secret: {}, app_id: {}, teams: [{}], channel: {channel} }}\n",
            slack.base_url,
            fake_slack::BOT_TOKEN,
            fake_slack::SIGNING_SECRET,
            fake_slack::APP,
            fake_slack::TEAM,
        )
    };
    let channels = [
        slack_channel("ops-slack", fake_slack::CHANNEL),
        slack_channel("legal-slack", LEGAL_CHANNEL),
        format!(
            "  - {{ name: finance-feishu, kind: feishu, org: acme, mode: webhook, base_url: \"{}\", app_id: {}, \
             app_secret: {}, encrypt_key: {}, verification_token: {}, chat_id: {}, tenants: [{}], language: en }}\n",
            feishu.base_url,
            fake_feishu::APP,
            fake_feishu::APP_SECRET,
            fake_feishu::ENCRYPT_KEY,
            fake_feishu::VERIFICATION_TOKEN,
            fake_feishu::CHAT,
            fake_feishu::TENANT,
        ),
        format!(
            "  - {{ name: umbrella-slack, kind: slack, org: umbrella, mode: webhook, base_url: \"{}\", \
             bot_token: xoxb-umbrella-token, signing_secret: not-the-signing-secret, app_id: A0UMBRELLA, \
             channel: {UMBRELLA_CHANNEL} }}\n",
            slack.base_url,
        ),
        "  - { name: desk, kind: local, org: acme }\n  - { name: umbrella-desk, kind: local, org: umbrella }\n"
            .to_owned(),
    ]
    .concat();
    debug_assert_eq!(RITA.id, "rita", "the owner of rita-agent");
    format!(
        "server: {{ listen: \"{listen}\", key: {{ file: gatepost.key }} }}\nstorage: {{ url: \"{url}\" }}\n\
         auth:\n  tokens:\n{tokens}operators:\n{operators}channels:\n{channels}{POLICY}"
    )
}
