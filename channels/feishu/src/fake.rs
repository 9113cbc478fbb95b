//! A scripted server on loopback, for tests of calls: it answers what it is told, in order, and keeps what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatepost_channel::UtcMillis;
use reqwest::redirect;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{FeishuApp, Now};
use crate::config::{FeishuAppConfig, FeishuConfig, Mode};
use crate::fixture::{secret, secrets};
use crate::{FeishuChannel, KIND};

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// This status, these headers, this body.
    Http(u16, Vec<(&'static str, String)>, String),
    /// The connection is closed without a word.
    Drop,
    /// Nothing, for ever.
    Hang,
}

/// A request that came in.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    pub(crate) size: usize,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The card inside `content`.
    pub(crate) fn card(&self) -> Value {
        serde_json::from_str(self.body["content"].as_str().unwrap()).unwrap()
    }
}

/// The platform, as far as a test scripts it. The token endpoint answers by itself while nothing else is scripted for it.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) address: String,
    script: Arc<Mutex<VecDeque<Answer>>>,
    tokens: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub(crate) fn ok(data: &Value) -> Answer {
    coded(200, &json!({"code": 0, "msg": "success", "data": data}))
}

pub(crate) fn refusal(status: u16, code: i64) -> Answer {
    coded(status, &json!({"code": code, "msg": "refused, canary-message"}))
}

pub(crate) fn coded(status: u16, body: &Value) -> Answer {
    Answer::Http(status, Vec::new(), body.to_string())
}

pub(crate) fn token(text: &str) -> Answer {
    coded(
        200,
        &json!({"code": 0, "msg": "ok", "tenant_access_token": text, "expire": 7200}),
    )
}

impl Fake {
    /// Starts a server with this script for everything but tokens.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server of a test ends with the test's runtime"
    )]
    pub(crate) async fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            tokens: Arc::default(),
            asked: Arc::default(),
        };
        let server = fake.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(server.clone().serve(stream));
            }
        });
        fake
    }

    /// Scripts the token endpoint.
    pub(crate) fn tokens(self, script: impl IntoIterator<Item = Answer>) -> Self {
        self.tokens.lock().unwrap().extend(script);
        self
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// What was asked beside tokens.
    pub(crate) fn calls(&self) -> Vec<Asked> {
        self.asked()
            .into_iter()
            .filter(|asked| !is_token(&asked.path))
            .collect()
    }

    /// A channel on this server.
    pub(crate) fn channel(&self) -> FeishuChannel {
        channel(&self.address)
    }

    async fn serve(self, mut stream: TcpStream) {
        let Some(asked) = request(&mut stream).await else {
            return;
        };
        let answer = if is_token(&asked.path) {
            self.tokens
                .lock()
                .unwrap()
                .pop_front()
                .unwrap_or_else(|| token("t-first"))
        } else {
            self.script
                .lock()
                .unwrap()
                .pop_front()
                .expect("a scripted answer")
        };
        self.asked.lock().unwrap().push(asked);
        match answer {
            Answer::Drop => {}
            Answer::Hang => {
                std::future::pending::<()>().await;
            }
            Answer::Http(status, headers, body) => {
                let mut head = format!(
                    "HTTP/1.1 {status} -\r\nconnection: close\r\ncontent-length: {}\r\n",
                    body.len()
                );
                for (name, value) in headers {
                    head = format!("{head}{name}: {value}\r\n");
                }
                let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
            }
        }
    }
}

fn is_token(path: &str) -> bool {
    path.ends_with("/tenant_access_token/internal")
}

/// A channel of the vectors' app at this address.
pub(crate) fn channel(address: &str) -> FeishuChannel {
    impatient_channel(address, Duration::from_secs(10))
}

/// The same, giving up after `patience`.
pub(crate) fn impatient_channel(address: &str, patience: Duration) -> FeishuChannel {
    // Another test of the process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let now: Now = Arc::new(|| UtcMillis::from_secs(1_795_953_600));
    let app = FeishuAppConfig {
        base_url: address.to_owned(),
        app_id: "cli_a1b2c3d4e5f60718".into(),
        app_secret: secret("secret-vector"),
    };
    let config = FeishuConfig {
        name: format!("finance-{KIND}"),
        chat_id: "oc_vector_chat_1".into(),
        tenants: vec!["tk_demo_0001".into()],
        mode: Mode::Webhook(secrets()),
    };
    let app = FeishuApp::new(http, now, app).unwrap().with_patience(patience);
    FeishuChannel::new(app, config).unwrap()
}

async fn request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Asked {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: serde_json::from_slice(&bytes[head + 4..]).unwrap_or_default(),
        size: length,
    })
}
