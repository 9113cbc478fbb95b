//! The page for the decision before the real server: what it shows, whom it admits, what a press does.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::{StatusCode, redirect};
use serde_json::{Value, json};

use super::desk::Desk;
use super::play::Cards;
use super::stage::{self, Stage};
use super::{host, model};
use crate::app::{Outside, Server};
use crate::cli::api::{Api, ServerArgs};
use crate::ids::ConfirmationId;
use crate::lifecycle::Tasks;

const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

struct Scene {
    _stage: Stage,
    _server: Server,
    desk: Arc<Desk>,
    agent: Api,
    http: reqwest::Client,
}

impl Scene {
    async fn set(args: Value) -> Self {
        let _already = rustls::crypto::ring::default_provider().install_default();
        let stage = Stage::set(None).unwrap();
        let server = Server::start(&stage.load(NOWHERE, NOWHERE).unwrap(), Outside::default())
            .await
            .unwrap();
        let api = |token: &str| {
            let url = format!("http://{}", server.addresses()[0]);
            Api::new(&ServerArgs {
                url,
                token: token.to_owned(),
            })
            .unwrap()
        };
        let agent = api(&stage.agent);
        let asked = agent
            .post(
                "/api/confirmations",
                &json!({"tool_name": stage::TOOL, "tool_args": args}),
            )
            .await
            .unwrap();
        let request = ConfirmationId::parse(asked.value["confirmation_id"].as_str().unwrap()).unwrap();
        let (person, cards) = (api(&stage.operator), Cards(server.gatekeeper().clone()));
        let mut desk = None;
        host(&Tasks::new(), |at| {
            let opened = Arc::new(Desk {
                secret: stage::draw(),
                at,
                request,
                cards,
                person,
            });
            desk = Some(Arc::clone(&opened));
            opened.router()
        })
        .await
        .unwrap();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            _stage: stage,
            _server: server,
            desk: desk.unwrap(),
            agent,
            http,
        }
    }

    async fn page(&self) -> String {
        let page = self.http.get(self.desk.address()).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK);
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"));
        page.text().await.unwrap()
    }

    async fn press(&self, decision: &str, reason: &str) -> String {
        let form = [("decision", decision), ("reason", reason)];
        self.http
            .post(self.desk.address())
            .form(&form)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    }

    async fn request(&self) -> Value {
        self.agent
            .get(&format!("/api/confirmations/{}", self.desk.request))
            .await
            .unwrap()
            .value
    }
}

#[tokio::test]
async fn a_press_is_the_persons_own_vote_and_the_page_then_offers_none() {
    let scene = Scene::set(model::payment()).await;
    assert!(scene.page().await.contains("value=\"approve\""));
    assert_eq!(
        scene.request().await["status"],
        "pending",
        "looking decides nothing"
    );
    assert!(scene.press("reject", "  ").await.contains("Say why"));
    assert_eq!(scene.request().await["status"], "pending");
    let after = scene.press("reject", "wrong account").await;
    assert!(!after.contains("value=\"approve\""));
    let request = scene.request().await;
    assert_eq!(
        (&request["status"], &request["votes"][0]["operator"]),
        (&json!("rejected"), &json!("dana"))
    );
    assert_eq!(request["votes"][0]["reason"], "wrong account");
    assert!(
        scene.press("approve", "").await.contains("settled"),
        "the address is worth one decision"
    );
    assert_eq!(scene.request().await["status"], "rejected");
}

#[tokio::test]
async fn another_address_or_host_is_nothing() {
    let scene = Scene::set(model::payment()).await;
    let guessed = format!("http://{}/decide/{}", scene.desk.at, "0".repeat(32));
    let form = [("decision", "approve")];
    for request in [
        scene.http.get(&guessed),
        scene.http.post(&guessed).form(&form),
        scene
            .http
            .post(scene.desk.address())
            .header("host", "attacker.example")
            .form(&form),
    ] {
        assert_eq!(request.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(scene.request().await["status"], "pending");
}

#[tokio::test]
async fn what_an_agent_wrote_is_shown_as_text() {
    let mut args = model::payment();
    args["payee"] = json!("</pre><script>alert(1)</script>\u{202e}");
    let page = Scene::set(args).await.page().await;
    assert!(!page.contains("<script>") && !page.contains('\u{202e}'), "{page}");
    assert!(
        page.contains("&lt;script&gt;") && page.contains("\\u{202E}"),
        "{page}"
    );
}
