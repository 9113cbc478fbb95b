//! No public address: clicks come in over connections that the server opens, through the whole server, in the clear and
//! over TLS.

use std::time::Duration;

use serde_json::json;

use crate::support::fake_feishu::{self, FakeFeishu, Person};
use crate::support::fake_slack::{self, FakeSlack, User};
use crate::support::people::DANA;
use crate::support::program::{Api, Place, Program};
use crate::support::sockets::Sockets;
use crate::support::tls::Authority;
use crate::support::world::{SOON, secret_of};

/// Both platforms with their sockets.
pub(super) struct Platforms {
    pub(super) slack: FakeSlack,
    pub(super) slack_sockets: Sockets,
    pub(super) feishu: FakeFeishu,
    pub(super) feishu_sockets: Sockets,
}

impl Platforms {
    pub(super) async fn start() -> Self {
        let platforms = Self {
            slack: FakeSlack::start().await,
            slack_sockets: Sockets::start(fake_slack::socket::MANNERS).await,
            feishu: FakeFeishu::start().await,
            feishu_sockets: Sockets::start(fake_feishu::socket::MANNERS).await,
        };
        platforms.slack.add_user(User::new(DANA.slack, DANA.email));
        platforms.feishu.add_person(Person::new(DANA.feishu, DANA.email));
        let slack = format!("ws://{}/link/", platforms.slack_sockets.address);
        let feishu = format!("ws://{}/ws", platforms.feishu_sockets.address);
        platforms.open_at(&slack, &feishu);
        platforms
    }

    fn open_at(&self, slack: &str, feishu: &str) {
        self.slack.open_sockets_at(slack);
        self.feishu.open_sockets_at(feishu);
    }

    /// Waits until the server holds its connections.
    pub(super) async fn connected(&self) {
        until("the connections", || {
            self.slack_sockets.count() >= 2 && self.feishu_sockets.count() >= 1
        })
        .await;
    }
}

/// The configuration of a server with a connection to each platform.
pub(super) fn config(place: &Place, slack: &str, feishu: &str) -> String {
    let (agent, audit) = (secret_of("build-agent"), secret_of("audit"));
    format!(
            "server: {{listen: '{}'}}
storage: {{url: 'sqlite://gatepost.db'}}
auth:
  tokens: [{{name: build-agent, secret: {agent}, role: agent}}, {{name: audit, secret: {audit}, role: auditor}}]
operators:
  - {{id: dana, name: Dana Kim, roles: [finance], identities: {{slack: {}, feishu: {}}}}}
channels:
  - {{name: ops-slack, kind: slack, mode: socket, base_url: '{slack}', bot_token: {}, app_token: {}, app_id: {}, channel: {}}}
  - {{name: finance-feishu, kind: feishu, mode: long_connection, base_url: '{feishu}', app_id: {}, app_secret: {}, chat_id: {}}}
policy:
  confirm: {{channels: [ops-slack, finance-feishu], approvers: {{roles: [finance]}}, timeout: 2h}}
",
            place.listen(),
            DANA.slack,
            DANA.feishu,
            fake_slack::BOT_TOKEN,
            fake_slack::socket::APP_TOKEN,
            fake_slack::APP,
            fake_slack::CHANNEL,
            fake_feishu::APP,
            fake_feishu::APP_SECRET,
            fake_feishu::CHAT,
        )
}

/// Looks again and again until it is so.
async fn until(what: &str, so: impl Fn() -> bool) {
    let search = async {
        while !so() {
            // Polling is all there is: the program on the other side says nothing.
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    };
    let found = tokio::time::timeout(SOON, search).await;
    found.unwrap_or_else(|_| panic!("{what}: not within {SOON:?}"));
}

/// Asks for a call of its own session.
async fn ask(agent: &Api, session: &str, call: &str) -> String {
    let question =
        json!({"tool_name": "pay", "tool_args": {"amount": 1}, "session_id": session, "tool_call_id": call});
    let (_, asked) = agent.post("/api/confirmations", &question).await;
    asked["confirmation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{asked}"))
        .to_owned()
}

/// What became of it.
async fn status(agent: &Api, id: &str) -> String {
    let (_, shown) = agent.get(&format!("/api/confirmations/{id}?wait=15")).await;
    shown["status"].as_str().expect("a status").to_owned()
}

/// Asks, decides by a press on Slack and then on Feishu, and looks at what became of it.
async fn decide_on_both(platforms: &Platforms, program: &Program) {
    let agent = program.place.api(&secret_of("build-agent"));
    let ask = async |call: &str| ask(&agent, "s", call).await;
    let status = async |id: &str| status(&agent, id).await;

    let first = ask("1").await;
    let card = platforms
        .slack
        .wait_for_message(
            fake_slack::CHANNEL,
            |message| message.current().visible_text().contains(&first),
            SOON,
        )
        .await;
    let press = platforms.slack.click(&card, "approve", DANA.slack);
    let acknowledged = platforms.slack.deliver(&platforms.slack_sockets, press).await;
    assert_eq!(
        acknowledged.as_object().map(serde_json::Map::len),
        Some(1),
        "an empty acknowledgement"
    );
    assert_eq!(status(&first).await, "approved");

    let second = ask("2").await;
    let card = platforms
        .feishu
        .wait_for_message(
            fake_feishu::CHAT,
            |message| message.visible_text().contains(&second),
            SOON,
        )
        .await;
    let press = platforms.feishu.click(&card, "reject", DANA.feishu);
    let answer = platforms.feishu.deliver(&platforms.feishu_sockets, press).await;
    assert!(
        answer["toast"]["content"].is_string() && answer["card"]["data"].is_object(),
        "{answer}"
    );
    assert_eq!(status(&second).await, "rejected");
}

/// Asks, and decides by words on Slack and then on Feishu.
async fn decide_in_words(platforms: &Platforms, program: &Program) {
    let agent = program.place.api(&secret_of("build-agent"));
    let ask = async |call: &str| ask(&agent, "w", call).await;
    let status = async |id: &str| status(&agent, id).await;
    let first = ask("1").await;
    let words = platforms
        .slack
        .slash_command("/gatepost", &format!("approve {first}"), DANA.slack);
    let answer = platforms.slack.deliver(&platforms.slack_sockets, words).await;
    assert_eq!(answer["payload"]["response_type"], "ephemeral", "{answer}");
    assert!(
        answer["payload"]["text"]
            .as_str()
            .unwrap()
            .starts_with("Approved."),
        "{answer}"
    );
    assert_eq!(status(&first).await, "approved");

    let second = ask("2").await;
    let words = platforms
        .feishu
        .write(DANA.feishu, &format!("reject {second} not today"));
    platforms.feishu.tell(&platforms.feishu_sockets, words).await;
    assert_eq!(status(&second).await, "rejected");
    let alone = format!("oc_p2p_{}", DANA.feishu);
    platforms
        .feishu
        .wait_for_message(
            &alone,
            |message| {
                message
                    .visible_text()
                    .contains("Rejected. The call will not run.")
            },
            SOON,
        )
        .await;
}

#[tokio::test]
async fn clicks_decide_over_connections_and_over_new_ones_after_a_loss() {
    let platforms = Platforms::start().await;
    let place = Place::new();
    let text = config(&place, &platforms.slack.base_url, &platforms.feishu.base_url);
    let program = Program::start(place.clone(), &text, &[]).await;
    platforms.connected().await;
    decide_on_both(&platforms, &program).await;
    decide_in_words(&platforms, &program).await;

    // A channel with a connection has no callback route: the same press, well signed, is refused.
    let waiting = place.api(&secret_of("build-agent"));
    let question = json!({"tool_name": "pay", "tool_args": {"amount": 2}});
    let (_, asked) = waiting.post("/api/confirmations", &question).await;
    let id = asked["confirmation_id"].as_str().expect("a request").to_owned();
    let card = platforms
        .slack
        .wait_for_message(
            fake_slack::CHANNEL,
            |message| message.current().visible_text().contains(&id),
            SOON,
        )
        .await;
    let press = platforms.slack.click(&card, "approve", DANA.slack);
    assert_eq!(press.post(&place.callback_url("ops-slack")).await.status, 401);

    // The platforms drop every socket without a word; the press goes over a new one.
    platforms.slack_sockets.cut();
    platforms.feishu_sockets.cut();
    platforms.connected().await;
    let press = platforms.slack.click(&card, "approve", DANA.slack);
    platforms.slack.deliver(&platforms.slack_sockets, press).await;
    let (_, shown) = waiting.get(&format!("/api/confirmations/{id}?wait=15")).await;
    assert_eq!(shown["status"], "approved", "{shown}");
}

#[tokio::test]
async fn calls_and_connections_hold_over_tls_and_only_with_a_certificate_that_holds() {
    let platforms = Platforms::start().await;
    let (trusted, stranger) = (Authority::new(), Authority::new());
    let address = |url: &str| -> std::net::SocketAddr {
        let host = url
            .trim_start_matches("http://")
            .split('/')
            .next()
            .expect("a host");
        host.parse().expect("an address")
    };
    let fronts = [
        trusted.front(address(&platforms.slack.base_url)).await,
        trusted.front(address(&platforms.feishu.base_url)).await,
        trusted.front(platforms.slack_sockets.address).await,
        trusted.front(platforms.feishu_sockets.address).await,
    ];
    let [slack, feishu, slack_sockets, feishu_sockets] = fronts.each_ref().map(|front| front.port);
    platforms.open_at(
        &format!("wss://localhost:{slack_sockets}/link/"),
        &format!("wss://localhost:{feishu_sockets}/ws"),
    );
    let urls = (
        format!("https://localhost:{slack}/api"),
        format!("https://localhost:{feishu}"),
    );

    let place = Place::new();
    let text = config(&place, &urls.0, &urls.1);
    let authorities = place.write("authorities.pem", &trusted.pem);
    let authorities = authorities.to_str().expect("a path");
    let program = Program::start(place, &text, &[("SSL_CERT_FILE", authorities)]).await;
    platforms.connected().await;
    decide_on_both(&platforms, &program).await;
    drop(program);

    // Another authority signed what this program trusts: nothing of a call leaves.
    let (slack_calls, feishu_calls) = (
        calls(&platforms),
        platforms.feishu.messages(fake_feishu::CHAT).len(),
    );
    let place = Place::new();
    let text = config(&place, &urls.0, &urls.1);
    let authorities = place.write("authorities.pem", &stranger.pem);
    let authorities = authorities.to_str().expect("a path");
    let program = Program::start(place, &text, &[("SSL_CERT_FILE", authorities)]).await;
    let agent = program.place.api(&secret_of("build-agent"));
    let (_, asked) = agent
        .post(
            "/api/confirmations",
            &json!({"tool_name": "pay", "tool_args": {"amount": 3}}),
        )
        .await;
    assert_eq!(asked["verdict"], "pending", "{asked}");
    until("a refused post", || {
        program.output().contains("a card was not posted")
    })
    .await;
    assert_eq!(
        (
            calls(&platforms),
            platforms.feishu.messages(fake_feishu::CHAT).len()
        ),
        (slack_calls, feishu_calls)
    );
}

fn calls(platforms: &Platforms) -> usize {
    platforms.slack.calls("chat.postMessage").len()
}
