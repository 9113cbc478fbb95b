//! WebSockets that a fake platform hands out: each greets, answers keep-alives, and carries what the test pushes.
//!
//! What frames mean is the fake's affair.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// How long an answer to a frame may take: the platforms' own deadline with room for a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// How a platform behaves on a socket.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// What it says first, given how many sockets there are.
    pub hello: fn(usize) -> Option<Message>,
    /// What it answers to a frame that is none of an answer: keep-alives.
    pub reply: fn(&Message) -> Option<Message>,
}

struct Push {
    frame: Message,
    answer: oneshot::Sender<Message>,
}

type Links = Arc<Mutex<Vec<mpsc::Sender<Push>>>>;

/// The sockets; they end with the value.
#[derive(Debug)]
pub struct Sockets {
    /// Where they are opened.
    pub address: SocketAddr,
    links: Links,
    task: JoinHandle<()>,
}

impl Sockets {
    /// Opens every socket that is asked for.
    pub async fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        let links = Links::default();
        let task = tokio::spawn(accept(listener, manners, Arc::clone(&links)));
        Self { address, links, task }
    }

    /// How many sockets stand.
    pub fn count(&self) -> usize {
        let mut links = self.links.lock().unwrap();
        links.retain(|link| !link.is_closed());
        links.len()
    }

    /// Cuts all of them without a word.
    pub fn cut(&self) {
        self.links.lock().unwrap().clear();
    }

    /// Sends a frame over one of the sockets, as platforms do, and returns what is answered.
    ///
    /// # Panics
    /// When no socket stands, or nothing is answered in time.
    pub async fn push(&self, frame: Message) -> Message {
        let (answer, answered) = oneshot::channel();
        let link = self.links.lock().unwrap().last().cloned().expect("a socket");
        link.send(Push { frame, answer })
            .await
            .expect("a socket that stands");
        let answered = tokio::time::timeout(PATIENCE, answered).await;
        answered.expect("an answer in time").expect("an answer")
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, manners: Manners, links: Links) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let links = Arc::clone(&links);
        tokio::spawn(async move {
            let Ok(socket) = tokio_tungstenite::accept_async(stream).await else {
                return;
            };
            let (send, pushed) = mpsc::channel(8);
            let count = {
                let mut links = links.lock().unwrap();
                links.retain(|link: &mpsc::Sender<Push>| !link.is_closed());
                links.push(send);
                links.len()
            };
            carry(socket, manners, count, pushed).await;
        });
    }
}

async fn carry(
    mut socket: WebSocketStream<TcpStream>,
    manners: Manners,
    count: usize,
    mut pushed: mpsc::Receiver<Push>,
) {
    if let Some(hello) = (manners.hello)(count) {
        let _gone = socket.send(hello).await;
    }
    let mut waiting: Option<oneshot::Sender<Message>> = None;
    loop {
        tokio::select! {
            push = pushed.recv() => match push {
                Some(Push { frame, answer }) => {
                    waiting = Some(answer);
                    let _gone = socket.send(frame).await;
                }
                // Cut: the stream is dropped without a closing handshake.
                None => return,
            },
            frame = socket.next() => match frame {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(frame @ (Message::Text(_) | Message::Binary(_)))) => {
                    if let Some(reply) = (manners.reply)(&frame) {
                        let _gone = socket.send(reply).await;
                    } else if let Some(answer) = waiting.take() {
                        let _gone = answer.send(frame);
                    }
                }
                _ => return,
            },
        }
    }
}
