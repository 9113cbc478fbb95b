//! A platform of two parts on loopback, for tests of the long connection: the endpoint that gives addresses, and the sockets
//! behind them, which the test itself plays. With it the intake that the test watches, and a clock that only the test moves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{SinkExt as _, StreamExt as _};
use gatepost_channel::{
    Answer, AppKey, Ask, Click, Command, Connection as _, Inert, Intake, Means, Refusal, Reply, ReplyTone,
    UtcMillis, Verified,
};
use prost::Message as _;
use reqwest::redirect;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::client::FeishuApp;
use crate::config::FeishuAppConfig;
use crate::connection::FeishuConnection;
use crate::fixture::{self, secret};
use crate::frame::{CONTROL, DATA, Frame, Header};

pub(crate) const SECRET: &str = "canary-app-secret";
pub(crate) const SERVICE: i32 = 33_554_678;

/// Time stands still until the test moves it: a blocking task keeps the paused clock from running ahead of the sockets.
pub(crate) struct Still(
    #[expect(dead_code, reason = "dropping it ends the blocking task")] std::sync::mpsc::Sender<()>,
);

pub(crate) fn still() -> Still {
    let (keep, end) = std::sync::mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || {
        let _ = end.recv();
    });
    Still(keep)
}

async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Moves the clock in steps, so that periodic work happens as often as it would.
pub(crate) async fn pass(seconds: u64) {
    for _ in 0..seconds {
        tokio::time::advance(Duration::from_secs(1)).await;
        settle().await;
    }
    // Timers fire at the next whole millisecond.
    tokio::time::advance(Duration::from_millis(2)).await;
    settle().await;
}

/// An intake that keeps what it is given and answers with a toast.
pub(crate) struct Desk {
    pub(crate) clicks: Mutex<Vec<Click>>,
    pub(crate) commands: Mutex<Vec<Command>>,
    pub(crate) asks: Mutex<Vec<Ask>>,
    pub(crate) refused: Mutex<Vec<&'static str>>,
    /// A click is answered when a permit is there.
    pub(crate) gate: Semaphore,
}

#[async_trait]
impl Intake for Desk {
    async fn click(&self, app: &AppKey, click: Verified<Click>) -> Answer {
        assert_eq!((app.kind.as_str(), app.id.as_str()), ("feishu", fixture::APP));
        let permit = self.gate.acquire().await.unwrap();
        drop(permit);
        self.clicks.lock().unwrap().push(click.get().clone());
        Answer {
            reply: Reply {
                tone: ReplyTone::Success,
                text: Inert::new(&format!("counted {}", click.get().replay_key)),
                refused: false,
                field: gatepost_channel::Field::Answer,
                card: None,
            },
            stored: true,
        }
    }

    async fn ask(&self, _app: &AppKey, ask: Verified<Ask>) -> Answer {
        self.asks.lock().unwrap().push(ask.get().clone());
        Answer {
            reply: Reply {
                tone: ReplyTone::Info,
                text: Inert::new("opens"),
                refused: false,
                field: gatepost_channel::Field::Answer,
                card: None,
            },
            stored: true,
        }
    }

    async fn command(&self, _app: &AppKey, command: Verified<Command>) -> Answer {
        self.commands.lock().unwrap().push(command.get().clone());
        Answer {
            reply: Reply {
                refused: false,
                field: gatepost_channel::Field::Answer,
                tone: ReplyTone::Info,
                text: Inert::new("a secret answer"),
                card: None,
            },
            // A test's message says whether it could be stored.
            stored: command.get().words != "fail",
        }
    }

    fn refused(&self, _app: &AppKey, refusal: &Refusal) {
        self.refused.lock().unwrap().push(refusal.reason);
    }
}

/// The fake, the intake and the connection under test.
pub(crate) struct World {
    script: Script,
    links: mpsc::UnboundedReceiver<Link>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) connection: Arc<FeishuConnection>,
    stop: Option<oneshot::Sender<()>>,
}

/// What calls and handshakes get, and what they were.
#[derive(Clone, Default)]
pub(crate) struct Script {
    endpoint: Arc<Mutex<VecDeque<(u16, Value)>>>,
    handshakes: Arc<Mutex<VecDeque<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
    tickets: Arc<Mutex<Vec<String>>>,
}

/// The platform's end of one connection.
pub(crate) struct Link(pub(crate) WebSocketStream<TcpStream>);

pub(crate) fn config(ping: u64) -> Value {
    json!({ "ReconnectCount": -1, "ReconnectInterval": 90, "ReconnectNonce": 25, "PingInterval": ping })
}

/// Runs the connection of an app while `test` plays the platform.
pub(crate) async fn with_platform(
    endpoint: Vec<(u16, Value)>,
    handshakes: Vec<String>,
    test: impl AsyncFnOnce(World),
) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let http = reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let now: Arc<dyn Fn() -> UtcMillis + Send + Sync> = Arc::new(fixture::now);
    let app = FeishuAppConfig {
        base_url: format!("http://{address}"),
        app_id: fixture::APP.into(),
        app_secret: secret(SECRET),
    };
    let app = FeishuApp::new(http.clone(), Arc::clone(&now), app).unwrap();
    let means = Means {
        http,
        now,
        chance: Arc::new(|bytes| bytes.fill(0)),
    };
    let connection = FeishuConnection::new(app, Some(secret(fixture::TOKEN)), means);
    let (send, links) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let script = Script::default();
    script.endpoint.lock().unwrap().extend(endpoint);
    script.handshakes.lock().unwrap().extend(handshakes);
    let world = World {
        script: script.clone(),
        links,
        desk: Arc::new(Desk {
            clicks: Mutex::default(),
            commands: Mutex::default(),
            asks: Mutex::default(),
            refused: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        }),
        connection: Arc::clone(&connection),
        stop: Some(stop),
    };
    let intake = Arc::clone(&world.desk) as Arc<dyn Intake>;
    let run = async {
        let stop = async move {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        connection.run(intake, Box::pin(stop)).await;
        std::future::pending::<()>().await;
    };
    let serve = serve(listener, script, send);
    tokio::select! {
        () = test(world) => {}
        () = run => {}
        () = serve => {}
    }
}

/// The fake itself, for ever.
pub(crate) async fn serve(listener: TcpListener, script: Script, links: mpsc::UnboundedSender<Link>) {
    let address = listener.local_addr().unwrap();
    let mut served = futures_util::stream::FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                served.push(answer(stream, address.to_string(), script.clone(), links.clone()));
            }
            Some(()) = served.next(), if !served.is_empty() => {}
        }
    }
}

async fn answer(mut stream: TcpStream, address: String, script: Script, links: mpsc::UnboundedSender<Link>) {
    let mut first = [0_u8; 3];
    while stream.peek(&mut first).await.unwrap_or(0) == 1 {}
    let handshake = &first == b"GET";
    if handshake && script.handshakes.lock().unwrap().is_empty() {
        #[expect(clippy::result_large_err, reason = "the callback's type is tungstenite's")]
        let note = |request: &tokio_tungstenite::tungstenite::handshake::server::Request, response| {
            script.tickets.lock().unwrap().push(request.uri().to_string());
            Ok(response)
        };
        let socket = tokio_tungstenite::accept_hdr_async(stream, note).await.unwrap();
        let _ = links.send(Link(socket));
        return;
    }
    let mut bytes = Vec::new();
    let length = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            break at + 4 + length.unwrap_or(0);
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    while bytes.len() < length && stream.read_buf(&mut bytes).await.unwrap_or(0) > 0 {}
    if handshake {
        let scripted = script.handshakes.lock().unwrap().pop_front().unwrap();
        let _ = stream.write_all(scripted.as_bytes()).await;
        return;
    }
    let number = {
        let mut asked = script.asked.lock().unwrap();
        asked.push(String::from_utf8(bytes).unwrap());
        asked.len()
    };
    let scripted = script.endpoint.lock().unwrap().pop_front();
    let (status, body) = scripted.unwrap_or_else(|| {
        let url = format!("ws://{address}/ws?device_id=d1&service_id={SERVICE}&ticket=canary-{number}");
        (
            200,
            json!({ "code": 0, "msg": "ok", "data": { "URL": url, "ClientConfig": config(120) } }),
        )
    });
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status} -\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}

impl World {
    /// How often an address was asked for.
    pub(crate) fn opened(&self) -> usize {
        self.script.asked.lock().unwrap().len()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.script.asked.lock().unwrap().clone()
    }

    /// The addresses that were opened.
    pub(crate) fn tickets(&self) -> Vec<String> {
        self.script.tickets.lock().unwrap().clone()
    }

    /// The next connection that comes in, whose first ping was answered.
    pub(crate) async fn link(&mut self) -> Link {
        let mut link = self.links.recv().await.unwrap();
        link.pinged(None).await;
        link
    }

    /// The next connection that comes in, untouched.
    pub(crate) async fn mute_link(&mut self) -> Link {
        self.links.recv().await.unwrap()
    }

    pub(crate) fn script(&self, endpoint: impl IntoIterator<Item = (u16, Value)>) {
        self.script.endpoint.lock().unwrap().extend(endpoint);
    }

    /// Lets things happen at this instant until `what` is so.
    pub(crate) async fn until(&self, what: impl Fn(&Self) -> bool) {
        while !what(self) {
            settle().await;
        }
    }

    pub(crate) fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

impl Link {
    pub(crate) async fn send(&mut self, frame: &Frame) {
        self.0.send(Message::binary(frame.encode_to_vec())).await.unwrap();
    }

    /// The next frame; `None` when the connection closed.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Binary(bytes))) => return Some(Frame::decode(bytes).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    /// Waits for a ping and answers it.
    pub(crate) async fn pinged(&mut self, config: Option<&Value>) {
        assert_eq!(self.next().await.unwrap(), Frame::ping(SERVICE));
        let pong = Frame {
            service: SERVICE,
            method: CONTROL,
            headers: vec![header("type", "pong")],
            payload: config.map(|config| config.to_string().into_bytes()),
            ..Frame::default()
        };
        self.send(&pong).await;
    }

    /// A press on Approve, in `parts` frames.
    pub(crate) async fn press(&mut self, number: usize, parts: usize) {
        let mut event = fixture::press(&json!({ "decision": "approve", "note": "批准🚀".repeat(20) }));
        event["header"]["event_id"] = json!(format!("ev-{number}"));
        self.event(number, parts, &event).await;
    }

    /// An event, in `parts` frames.
    pub(crate) async fn event(&mut self, number: usize, parts: usize, event: &Value) {
        let bytes = event.to_string().into_bytes();
        for (seq, part) in bytes.chunks(bytes.len().div_ceil(parts)).enumerate() {
            self.send(&Frame {
                seq_id: number as u64,
                service: SERVICE,
                method: DATA,
                headers: vec![
                    header("type", "event"),
                    header("message_id", &format!("m-{number}")),
                    header("sum", &parts.to_string()),
                    header("seq", &seq.to_string()),
                    // The official client does not take an event without it.
                    header("trace_id", "trace-1"),
                ],
                payload: Some(part.to_vec()),
                ..Frame::default()
            })
            .await;
        }
    }

    /// The next answer: the message that it belongs to, and its payload.
    pub(crate) async fn answer(&mut self) -> (String, Value) {
        let frame = self.next().await.unwrap();
        let payload = serde_json::from_slice(frame.payload.as_ref().unwrap()).unwrap();
        (frame.single("message_id").unwrap().to_owned(), payload)
    }
}

fn header(key: &str, value: &str) -> Header {
    Header {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}
