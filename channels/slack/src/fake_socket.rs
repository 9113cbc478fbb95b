//! A Slack of two parts on loopback, for tests of Socket Mode: `apps.connections.open`, and the sockets that its addresses
//! lead to, which the test itself plays. With it the intake that the test watches, and a clock that only the test moves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{SinkExt as _, StreamExt as _};
use gatepost_channel::{
    Answer, AppKey, Ask, Channel as _, Click, Command, Connection, ConnectionStatus, Inert, Intake, Refusal,
    Reply, ReplyTone, Secret, Verified,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::SlackChannel;
use crate::config::{Mode, SlackConfig};
use crate::fixture;

pub(crate) const APP_TOKEN: &str = "xapp-canary-socket-31f0";
pub(crate) const APP: &str = "A0DEMO0001";

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

/// Lets everything that can happen at this instant happen.
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

/// An intake that keeps what it is given.
pub(crate) struct Desk {
    pub(crate) clicks: Mutex<Vec<Click>>,
    pub(crate) commands: Mutex<Vec<Command>>,
    pub(crate) asks: Mutex<Vec<Ask>>,
    pub(crate) refused: Mutex<Vec<&'static str>>,
    pub(crate) stores: AtomicBool,
    /// A click is answered when a permit is there.
    pub(crate) gate: Semaphore,
}

impl Desk {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clicks: Mutex::default(),
            commands: Mutex::default(),
            asks: Mutex::default(),
            refused: Mutex::default(),
            stores: AtomicBool::new(true),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    pub(crate) fn taken(&self) -> usize {
        self.clicks.lock().unwrap().len()
    }

    /// From now on clicks wait for [`Desk::open`].
    pub(crate) fn shut(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1_000);
    }
}

#[async_trait]
impl Intake for Desk {
    async fn click(&self, app: &AppKey, click: Verified<Click>) -> Answer {
        assert_eq!(app.kind, "slack");
        let permit = self.gate.acquire().await.unwrap();
        drop(permit);
        self.clicks.lock().unwrap().push(click.get().clone());
        Answer {
            reply: Reply {
                tone: ReplyTone::Success,
                text: Inert::new("counted"),
                refused: false,
                field: gatepost_channel::Field::Answer,
                card: None,
            },
            stored: self.stores.load(Ordering::SeqCst),
        }
    }

    async fn command(&self, app: &AppKey, command: Verified<Command>) -> Answer {
        assert_eq!(app.kind, "slack");
        let words = command.get().words.clone();
        self.commands.lock().unwrap().push(command.get().clone());
        Answer {
            reply: Reply {
                tone: ReplyTone::Info,
                text: Inert::new(&format!("heard {words}")),
                refused: false,
                field: gatepost_channel::Field::Answer,
                card: None,
            },
            stored: self.stores.load(Ordering::SeqCst),
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

    fn refused(&self, _app: &AppKey, refusal: &Refusal) {
        self.refused.lock().unwrap().push(refusal.reason);
    }
}

/// The fake, the intake and the connections under test.
pub(crate) struct World {
    opens: Arc<Mutex<VecDeque<(u16, Value)>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    links: mpsc::UnboundedReceiver<Link>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) channel: SlackChannel,
    stop: Option<oneshot::Sender<()>>,
}

/// Slack's end of one connection.
pub(crate) struct Link(pub(crate) WebSocketStream<TcpStream>);

/// Runs the connections of an app against a fake Slack while `test` plays it; the test must end first unless it stops them.
pub(crate) async fn with_slack(opens: Vec<(u16, Value)>, test: impl AsyncFnOnce(World)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = SlackConfig {
        mode: Mode::Socket {
            app_token: Secret::new(APP_TOKEN).unwrap(),
        },
        ..fixture::config(&format!("http://{address}/api"))
    };
    let channel = SlackChannel::new(&config, fixture::http(), &fixture::means()).unwrap();
    let connection = channel.connection().unwrap();
    let (send, links) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let world = World {
        opens: Arc::new(Mutex::new(opens.into())),
        asked: Arc::default(),
        links,
        desk: Desk::new(),
        channel,
        stop: Some(stop),
    };
    let intake = Arc::clone(&world.desk) as Arc<dyn Intake>;
    let run = connection.run(
        intake,
        Box::pin(async move {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        }),
    );
    let serve = serve(listener, Arc::clone(&world.opens), Arc::clone(&world.asked), send);
    let run = async {
        run.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = test(world) => {}
        () = run => {}
        () = serve => {}
    }
}

/// The fake itself, for ever: calls for an address are scripted or answered, connections are handed to `links`.
pub(crate) async fn serve(
    listener: TcpListener,
    opens: Arc<Mutex<VecDeque<(u16, Value)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    links: mpsc::UnboundedSender<Link>,
) {
    let address = listener.local_addr().unwrap();
    let mut served = futures_util::stream::FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                served.push(answer(stream, address.to_string(), Arc::clone(&opens), Arc::clone(&asked), links.clone()));
            }
            Some(()) = served.next(), if !served.is_empty() => {}
        }
    }
}

async fn answer(
    mut stream: TcpStream,
    address: String,
    opens: Arc<Mutex<VecDeque<(u16, Value)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    links: mpsc::UnboundedSender<Link>,
) {
    let mut first = [0_u8; 3];
    while stream.peek(&mut first).await.unwrap_or(0) == 1 {}
    if &first == b"GET" {
        let socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let _ = links.send(Link(socket));
        return;
    }
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let number = {
        let mut asked = asked.lock().unwrap();
        asked.push(String::from_utf8(head).unwrap());
        asked.len()
    };
    let (status, body) = opens.lock().unwrap().pop_front().unwrap_or_else(|| {
        let url = format!("ws://{address}/link/?ticket=canary-ticket-{number}");
        (200, json!({ "ok": true, "url": url }))
    });
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status} -\r\nconnection: close\r\nretry-after: 7\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}

impl World {
    pub(crate) fn connection(&self) -> Arc<dyn Connection> {
        self.channel.connection().unwrap()
    }

    pub(crate) fn status(&self) -> ConnectionStatus {
        self.connection().status()
    }

    /// How often an address was asked for.
    pub(crate) fn opened(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Scripts what the next calls for an address get.
    pub(crate) fn script(&self, opens: impl IntoIterator<Item = (u16, Value)>) {
        self.opens.lock().unwrap().extend(opens);
    }

    /// The next connection that comes in, not greeted.
    pub(crate) async fn link(&mut self) -> Link {
        self.links.recv().await.unwrap()
    }

    /// The next connection that comes in, greeted, and known to be live.
    pub(crate) async fn greeted(&mut self, counted: u32) -> Link {
        let mut link = self.link().await;
        link.greet(APP, counted).await;
        // An envelope behind the greeting is acknowledged only once the greeting was read.
        link.send(&json!({ "type": "events_api", "envelope_id": "after-hello" }))
            .await;
        assert_eq!(link.acknowledged().await, "after-hello");
        link
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
    pub(crate) async fn greet(&mut self, app: &str, counted: u32) {
        self.send(&json!({
            "type": "hello",
            "num_connections": counted,
            "connection_info": { "app_id": app },
            "debug_info": { "host": "applink-1", "approximate_connection_time": 18_060 },
        }))
        .await;
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    pub(crate) async fn disconnect(&mut self, reason: &str) {
        self.send(&json!({ "type": "disconnect", "reason": reason, "debug_info": { "host": "applink-1" } }))
            .await;
    }

    /// A press on Approve; `number` names the press.
    pub(crate) async fn press(&mut self, number: usize) {
        let mut payload = fixture::press();
        payload["actions"][0]["action_ts"] = json!(format!("1795953600.{number:06}"));
        self.send(&json!({
            "type": "interactive",
            "envelope_id": format!("press-{number}"),
            "accepts_response_payload": false,
            "payload": payload,
        }))
        .await;
    }

    /// The next message that is no ping; `None` when the connection closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(text.as_str()).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other @ Message::Binary(_))) => panic!("a binary frame: {other:?}"),
                _ => return None,
            }
        }
    }

    /// The id of the next acknowledgement.
    pub(crate) async fn acknowledged(&mut self) -> String {
        let frame = self.next().await.unwrap();
        assert_eq!(
            frame.as_object().unwrap().len(),
            1,
            "an empty acknowledgement: {frame}"
        );
        frame["envelope_id"].as_str().unwrap().to_owned()
    }
}
