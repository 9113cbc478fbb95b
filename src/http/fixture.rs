//! A whole HTTP side over a real store in a fresh folder, for tests: two organisations, every role, a fake channel.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use gatepost_channel::{
    AppKey, ButtonValue, Card, CardForm, Channel, Click, Decision, Failure, Health, HttpAnswer, Inbound,
    MessageRef, Pace, PlatformUser, PostKey, Posted, RawRequest, Refusal, Reply, UtcMillis, Verifier,
    Webhook,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::body::BodyBudget;
use super::guard::Crowd;
use super::origin::Names;
use super::{Api, Parts, router};
use crate::callback::Intake;
use crate::clock::{ManualClock, Zone};
use crate::console::{Console, OneTime};
use crate::delivery::button::ServerKey;
use crate::delivery::card::{CardMaker, Voice};
use crate::delivery::phrase::Phrasebook;
use crate::delivery::registry::{Listed, Registry};
use crate::delivery::sender::Sender;
use crate::gate::authority::BreakGlass;
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::policy::{Approvers, ConfirmSource, Effect, Limits, Policy, PolicySource, RuleSource};
use crate::gate::{EditScope, RequireReason, Stage};
use crate::gatekeeper::council::Nobody;
use crate::gatekeeper::{Council, Gatekeeper, Journal};
use crate::ids::{ConfirmationId, Ids, Org, SeededIds};
use crate::lifecycle::Tasks;
use crate::storage::{Settings, open};

mod cast;

pub use cast::{TOKENS, secret};

/// Where every clock starts: 2026-01-31T12:00:00Z.
pub const START: UtcMillis = UtcMillis(1_769_860_800_000);
/// What the server calls itself.
pub const HOST: &str = "127.0.0.1:8460";

/// See the module.
pub struct Bench {
    pub router: Router,
    pub api: Api,
    pub clock: ManualClock,
    pub tasks: Tasks,
    pub once: String,
    pub feed: crate::job::progress::Feed,
    pub whispers: Whispers,
    folder: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.tasks.ask_to_stop();
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Heard {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Heard {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("JSON, not {}", self.text))
    }

    /// The code of a problem document that is one.
    pub fn code(&self) -> String {
        let json = self.json();
        assert_eq!(
            self.headers[header::CONTENT_TYPE],
            super::problem::MEDIA_TYPE,
            "{json}"
        );
        assert_eq!(json["status"], self.status.as_u16(), "{json}");
        assert!(json["title"].is_string() && json["type"].is_string(), "{json}");
        json["code"].as_str().expect("a code").to_owned()
    }
}

fn rule(name: &str, effect: Effect) -> RuleSource {
    RuleSource {
        name: name.into(),
        tools: vec![format!("{name}__*")],
        when: None,
        effect,
        reason: Some(format!("because of {name}")),
        orgs: None,
        redact: vec![],
        trust_asserted: false,
        verified_requester: false,
        confirm: ConfirmSource::default(),
    }
}

fn policy() -> Policy {
    let mut hidden = rule("card", Effect::Confirm);
    hidden.redact = vec!["/card/number".into()];
    let mut staged = rule("staged", Effect::Confirm);
    let only = |name: &str, operator: &str| Stage {
        name: name.into(),
        approvers: Approvers {
            operators: vec![operator.into()],
            ..Approvers::default()
        },
        quorum: 1,
    };
    staged.confirm = ConfirmSource {
        require_reason: Some(RequireReason::Both),
        confirm_step: Some(true),
        stages: Some(vec![only("first", "dana"), only("second", "mira")]),
        ..ConfirmSource::default()
    };
    let mut grants = rule("grants", Effect::Confirm);
    grants.confirm.grants = Some(GrantTerms {
        scopes: vec![GrantScope::Session, GrantScope::Span(3_600_000)],
        max_uses: Some(2),
        arguments: GrantArguments::At(vec!["/project".parse().expect("a pointer")]),
    });
    let mut edits = rule("edits", Effect::Confirm);
    edits.redact = vec!["/card/number".into()];
    let place = |written: &str| written.parse().expect("a pointer");
    edits.confirm.edits = Some(EditScope::At(vec![place("/amount"), place("/card")]));
    let mut edits_never = rule("edits", Effect::Deny);
    edits_never.name = "edits-never".into();
    edits_never.when = Some("args.amount > 100000".into());
    let mut edits_big = rule("edits", Effect::Confirm);
    edits_big.name = "edits-big".into();
    edits_big.when = Some("args.amount >= 60000 && !has(args.card) || args.amount > 65000".into());
    edits_big.confirm.quorum = Some(2);
    edits_big.confirm.edits = Some(EditScope::Any);
    let mut two = rule("two", Effect::Confirm);
    two.confirm.quorum = Some(2);
    let mut glass = rule("glass", Effect::Confirm);
    glass.confirm.break_glass = Some(BreakGlass {
        lists: vec![Approvers {
            roles: vec!["sales".into()],
            ..Approvers::default()
        }],
        uses: 1,
        per_ms: 86_400_000,
    });
    let mut nowhere = rule("nowhere", Effect::Confirm);
    nowhere.confirm.channels = Some(vec!["chat-globex".into()]);
    let source = PolicySource {
        default: Effect::Confirm,
        confirm: ConfirmSource {
            channels: Some(vec!["chat".into(), "chat-globex".into()]),
            approvers: Some(Approvers {
                roles: vec!["finance".into()],
                operators: vec![],
                ..Approvers::default()
            }),
            timeout: Some(Duration::from_mins(2)),
            ..ConfirmSource::default()
        },
        rules: vec![
            rule("free", Effect::Allow),
            rule("never", Effect::Deny),
            hidden,
            two,
            staged,
            grants,
            edits_never,
            edits_big,
            edits,
            glass,
            nowhere,
        ],
    };
    Policy::compile(&source, &Limits::default()).expect("a policy")
}

impl Bench {
    /// A fresh one.
    pub async fn new() -> Self {
        Self::with(Crowd::default(), BodyBudget::default()).await
    }

    /// A fresh one that answers at most so many at once, and waits so long for bodies.
    pub async fn with(crowd: Crowd, bodies: BodyBudget) -> Self {
        Self::heard_by(Arc::new(Nobody), crowd, bodies).await
    }

    /// A fresh one with a council.
    pub async fn heard_by(council: Arc<dyn Council>, crowd: Crowd, bodies: BodyBudget) -> Self {
        let folder = std::env::temp_dir().join(format!("gatepost-http-{}", crate::ids::SystemIds.fresh()));
        std::fs::create_dir(&folder).expect("a folder");
        let clock = ManualClock::at(START);
        let tasks = Tasks::new();
        let shared: Arc<dyn crate::clock::Clock> = Arc::new(clock.clone());
        let url = format!("sqlite://{}", folder.join("gatepost.db").display());
        let store = open(&Settings::new(url, Arc::clone(&shared)), &tasks)
            .await
            .expect("a store");
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::default());
        let (roll, people) = (cast::roll(), cast::people());
        let whispers = Whispers::default();
        let registry = Registry::new([
            channel("chat", "acme", &whispers),
            channel("chat-globex", "globex", &whispers),
        ]);
        let maker = CardMaker::new(
            Arc::new(Phrasebook::load().expect("phrases")),
            ServerKey::new([7; 32]),
            roll.clone(),
            None,
        );
        let (journal, scribe) = Journal::open();
        tasks.spawn(scribe.run(store.clone(), Arc::clone(&shared), tasks.clone()));
        let sender = Sender::new(
            store.clone(),
            registry.clone(),
            maker.clone(),
            Arc::clone(&shared),
            &ids,
        );
        let dana = super::auth::Operator {
            id: "dana".into(),
            org: Org::from("acme"),
        };
        let (one_time, once) = OneTime::new(dana, &*ids);
        let feed = crate::job::progress::Feed::new(&*ids);
        let gatekeeper = Gatekeeper::new(crate::gatekeeper::Parts {
            directories: crate::gatekeeper::Directories::none(),
            store,
            policy: Arc::new(policy()),
            roll,
            people: Arc::new(people),
            registry,
            maker,
            ids,
            journal,
            council,
            shapes: crate::gatekeeper::KnownShapes::default(),
        });
        let api = Api::new(Parts {
            intake: Intake::new(gatekeeper.clone(), Arc::clone(&shared), tasks.clone()),
            gatekeeper,
            sender,
            clock: shared,
            tokens: cast::tokens(),
            names: Names::new(&[HOST.parse().expect("an address")], None),
            public_url: None,
            zone: Zone::default(),
            desk: Some(Arc::new(super::v1::job::job_tests::OnePiece::with(feed.clone()))),
            console: Some(Console::new(Some(one_time)).expect("templates")),
            metrics: Some(
                crate::telemetry::metrics::recorder()
                    .expect("a recorder")
                    .handle(),
            ),
            tasks: tasks.clone(),
            crowd,
            bodies,
        });
        Self {
            router: router(api.clone()),
            api,
            clock,
            tasks,
            once,
            feed,
            whispers,
            folder,
        }
    }

    /// Sends a request as it is. Every answer in JSON must be what the description says.
    pub async fn raw(&self, request: Request<Body>) -> Heard {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let heard = self.unread(request).await;
        if let Ok(answer) = serde_json::from_str(&heard.text) {
            let document: Value = serde_json::from_str(super::OPENAPI).expect("JSON");
            let asked = (method.as_str(), path.as_str());
            let faults = super::described::faults(&document, asked, heard.status.as_u16(), &answer);
            assert_eq!(
                faults, [""; 0],
                "the description and the answer differ: {}",
                heard.text
            );
        }
        heard
    }

    async fn unread(&self, request: Request<Body>) -> Heard {
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 16 * 1024 * 1024).await.expect("a body");
        Heard {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).expect("text"),
        }
    }

    /// Sends a body as this token.
    pub async fn send(&self, method: &str, path: &str, token: &str, body: impl Into<Body>) -> Heard {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, HOST);
        if !token.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", secret(token)));
        }
        self.raw(request.body(body.into()).expect("a request")).await
    }

    pub async fn get(&self, path: &str, token: &str) -> Heard {
        self.send("GET", path, token, Body::empty()).await
    }

    /// Listens again, after the event of this id.
    pub async fn get_after(&self, path: &str, token: &str, id: &str) -> Heard {
        let request = Request::builder()
            .uri(path)
            .header(header::HOST, HOST)
            .header(header::AUTHORIZATION, format!("Bearer {}", secret(token)))
            .header("last-event-id", id)
            .body(Body::empty())
            .expect("a request");
        self.raw(request).await
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> Heard {
        self.send("POST", path, token, body.to_string()).await
    }

    /// Asks about a call as `agent` and gives the id of its request.
    pub async fn ask(&self, tool: &str) -> String {
        let body = json!({ "tool_name": tool, "tool_args": { "amount": 1 } });
        let heard = self.post("/api/confirmations", "agent", body).await;
        heard.json()["confirmation_id"]
            .as_str()
            .unwrap_or_else(|| panic!("a request, not {}", heard.text))
            .to_owned()
    }

    /// Answers a request.
    pub async fn respond(&self, id: &str, token: &str, decision: &str) -> Heard {
        let path = format!("/api/confirmations/{id}/respond");
        self.post(&path, token, json!({ "decision": decision })).await
    }

    /// The body of a press on the card of a request, as the fake platform sends it.
    pub async fn press(&self, id: &str, user: &str, decision: &str, key: &str) -> Value {
        let id = ConfirmationId::parse(id).expect("an id");
        let gatekeeper = self.api.gatekeeper();
        let dossier = gatekeeper
            .store()
            .read()
            .dossier(&id)
            .await
            .expect("a store")
            .expect("a request");
        let card = &dossier.deliveries[0];
        let button = ButtonValue::one(
            gatekeeper.maker().key().button(&card.id, &card.nonce),
            dossier.confirmation.revision,
        );
        let message = card
            .standing
            .first()
            .map_or("none", |standing| standing.at.message.as_str());
        json!({ "user": user, "message": message, "decision": decision, "button": button.to_string(), "key": key })
    }

    /// Sends what is in the outbox.
    pub async fn deliver(&self) {
        let claim = crate::delivery::claim::Claim {
            worker: crate::ids::WorkerId::fresh(&**self.api.gatekeeper().ids()),
            lease: Duration::from_secs(45),
            limit: 64,
            room: ["chat", "chat-globex"]
                .into_iter()
                .map(|name| (name.into(), (64, pace())))
                .collect(),
        };
        let claimed = self.api.gatekeeper().store().run(claim).await.expect("a claim");
        for item in claimed {
            self.api.sender().send(item).await;
        }
    }
}

fn pace() -> Pace {
    Pace {
        burst: 64,
        every: Duration::from_millis(1),
    }
}

/// Who was told what apart, in which answer, and with which card.
pub type Whispers = Arc<std::sync::Mutex<Vec<(gatepost_channel::Listener, Reply, PostKey)>>>;

fn channel(name: &str, org: &str, whispers: &Whispers) -> Listed {
    Listed {
        name: name.into(),
        org: org.into(),
        voice: Voice::default(),
        channel: Arc::new(FakeChannel {
            name: name.to_owned(),
            whispers: Arc::clone(whispers),
        }),
    }
}

/// A platform whose callbacks are authentic when they carry `x-signature: good`.
struct FakeChannel {
    name: String,
    whispers: Whispers,
}

#[async_trait]
impl Channel for FakeChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "fake"
    }

    fn app(&self) -> AppKey {
        AppKey {
            kind: "fake".into(),
            id: self.name.clone(),
        }
    }

    fn chat(&self) -> &str {
        &self.name
    }

    fn admits(&self, _: &PlatformUser) -> bool {
        true
    }

    fn shows_all(&self, card: &Card) -> bool {
        !card.arguments.as_str().contains("too long to be shown")
    }

    async fn post(&self, card: &Card, _: &PostKey) -> Posted {
        Posted::At(MessageRef {
            chat: self.name.clone(),
            message: format!("m-{}", card.request_id),
        })
    }

    async fn edit(&self, _: &MessageRef, _: &Card) -> Result<CardForm, Failure> {
        Ok(CardForm::LaidOut)
    }

    async fn check(&self) -> Health {
        Health {
            healthy: true,
            detail: "fine".into(),
        }
    }

    fn pace(&self) -> Pace {
        pace()
    }

    fn webhook(&self) -> Option<&dyn Webhook> {
        Some(self)
    }

    fn whisper(&self) -> Option<&dyn gatepost_channel::Whisper> {
        Some(self)
    }
}

#[async_trait]
impl gatepost_channel::Whisper for FakeChannel {
    async fn is_me(&self, mentioned: &[String]) -> Result<bool, Failure> {
        match mentioned.first().map(String::as_str) {
            Some("unknown") => Err(Failure::Retry {
                after: None,
                why: "busy".into(),
            }),
            _ => Ok(mentioned.iter().any(|one| one == "bot")),
        }
    }

    async fn whisper(
        &self,
        to: &gatepost_channel::Listener,
        reply: &Reply,
        _: &gatepost_channel::Inert,
        key: &PostKey,
    ) -> Result<(), Failure> {
        let mut whispers = self.whispers.lock().expect("whispers");
        whispers.push((to.clone(), reply.clone(), key.clone()));
        Ok(())
    }
}

impl Verifier for FakeChannel {
    fn verify(&self, request: &RawRequest, _: UtcMillis) -> Result<Inbound, Refusal> {
        if request.single("x-signature") != Some(b"good") {
            return Err(Refusal::inauthentic("signature_mismatch"));
        }
        let json: Value =
            serde_json::from_slice(&request.body).map_err(|_| Refusal::unreadable("not_json"))?;
        if let Some(challenge) = json.get("challenge") {
            return Ok(Inbound::Handshake(HttpAnswer::json(
                &json!({ "challenge": challenge }),
            )));
        }
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        Ok(Inbound::Click(Click {
            app: None,
            chat: self.name.clone(),
            message: text("message"),
            user: PlatformUser {
                ids: vec![text("user")],
                tenant: None,
                from_elsewhere: false,
            },
            decision: serde_json::from_value(json["decision"].clone()).unwrap_or(Decision::Reject),
            button: text("button").parse().ok(),
            reason: json["reason"].as_str().map(str::to_owned),
            grant: json["grant"].as_str().map(str::to_owned),
            edited: None,
            vantage: gatepost_channel::Vantage::Card,
            opener: None,
            replay_key: text("key"),
        }))
    }
}

impl Webhook for FakeChannel {
    fn answer(&self, _: &Click, reply: &Reply) -> HttpAnswer {
        HttpAnswer::json(&json!({ "toast": reply.text.as_str() }))
    }
}
