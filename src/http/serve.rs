//! Serving connections until the server stops: no more than there is room for, slow heads and idle connections are cut, what is
//! being answered is finished.
//!
//! Whoever finds no room is not left without an answer, since a host takes a connection that ends for consent: a few more
//! connections are taken to say so, and beyond those, connections wait with the system.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;
use tracing::{debug, warn};

use super::hooks;
use super::problem::{Code, Problem};
use crate::host::MAX_BODY;
use crate::lifecycle::Tasks;

/// How long a client may take to send the head of a request, and how long an idle connection is kept.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// How long a connection without room may take to be told so.
const REFUSE_WITHIN: Duration = Duration::from_secs(5);
/// Connections that are told at the same time that there is no room.
const LOBBY: usize = 64;
/// How long answers that are under way may take once the server stops; waits for people end by themselves.
const FINISH_WITHIN: Duration = Duration::from_secs(8);
/// The pause after the system refused to hand over a connection (no file descriptors).
const PAUSE: Duration = Duration::from_millis(50);
/// Open connections when the configuration does not say, where the system has files for them.
const MOST: usize = 10_000;
/// Files that are left for everything else: databases, platforms, tools.
const OTHER_FILES: usize = 256;
/// Open connections at least, however few files there are.
const LEAST: usize = 64;

/// How many connections may be open. Clones share it.
#[derive(Debug, Clone)]
pub struct Doors {
    rooms: Arc<Semaphore>,
    lobby: Arc<Semaphore>,
}

impl Doors {
    /// Room for so many connections.
    pub fn of(connections: usize) -> Self {
        Self {
            rooms: Arc::new(Semaphore::new(connections)),
            lobby: Arc::new(Semaphore::new(LOBBY)),
        }
    }

    /// A place for the next connection; where all are taken, one in the lobby, as soon as there is one.
    async fn open(&self) -> Option<Place> {
        tokio::select! {
            biased;
            room = Arc::clone(&self.rooms).acquire_owned() => room.ok().map(Place::Room),
            lobby = Arc::clone(&self.lobby).acquire_owned() => lobby.ok().map(Place::Lobby),
        }
    }
}

/// Where a connection is, for as long as this is held.
enum Place {
    /// It is served.
    Room(OwnedSemaphorePermit),
    /// It is told that there is no room.
    Lobby(OwnedSemaphorePermit),
}

/// How many connections a process may have by its limit on open files, with room left for everything else.
pub fn usual_connections() -> usize {
    let files = getrlimit(Resource::RLIMIT_NOFILE)
        .map_or(1_024, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX));
    files.saturating_sub(OTHER_FILES).clamp(LEAST, MOST)
}

/// Counts a connection while it is open.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!("gatepost_http_connections_open").increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!("gatepost_http_connections_open").decrement(1.0);
    }
}

/// Serves a listener. Ends when the server stops and what was accepted is answered.
pub async fn serve(listener: TcpListener, router: Router, doors: Doors, tasks: Tasks) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(64 * 1024);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = tasks.stopping() => break,
        };
        let Some((stream, peer)) = accepted else { continue };
        let place = tokio::select! {
            place = doors.open() => place,
            () = tasks.stopping() => break,
        };
        match place {
            None => break,
            Some(Place::Lobby(place)) => {
                tasks.spawn(async move {
                    let counted = Counted::new();
                    turn_away(stream).await;
                    drop((place, counted));
                });
            }
            Some(Place::Room(place)) => {
                let service = router.clone().map_request(move |request: Request<Incoming>| {
                    let mut request = request.map(Body::new);
                    request.extensions_mut().insert(ConnectInfo(peer));
                    request
                });
                let service = TowerToHyperService::new(service);
                let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
                tasks.spawn(async move {
                    let counted = Counted::new();
                    if let Err(error) = connection.await {
                        debug!(%error, "a connection ended early");
                    }
                    drop((place, counted));
                });
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(FINISH_WITHIN, graceful.shutdown())
        .await
        .is_err()
    {
        warn!("connections were still open when the patience ended");
    }
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok((stream, peer)) => match stream.set_nodelay(true) {
            Ok(()) => Some((stream, peer)),
            Err(error) => {
                debug!(%error, "a connection is already gone");
                None
            }
        },
        Err(error) => {
            warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Reads one request and says that there is no room; a host hears it as its own denial.
async fn turn_away(stream: TcpStream) {
    metrics::counter!("gatepost_http_connections_refused_total").increment(1);
    let service = hyper::service::service_fn(|request: Request<Incoming>| async move {
        let host = hooks::host_of(request.uri().path()).map(str::to_owned);
        // An answer to a body that was not read can get lost with the connection.
        let mut body = request.map(Body::new).into_body().into_data_stream();
        let mut read = 0;
        while let Some(Ok(chunk)) = body.next().await {
            read += chunk.len();
            if read > MAX_BODY {
                break;
            }
        }
        let full = Problem::new(Code::Overloaded)
            .because("too many connections are open")
            .retry_after(1)
            .into_response();
        let response: Response = match host {
            Some(host) => hooks::in_its_own_words(&host, full),
            None => full,
        };
        Ok::<_, Infallible>(response)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(REFUSE_WITHIN)
        .keep_alive(false);
    let refusing = builder.serve_connection(TokioIo::new(stream), service);
    if !matches!(tokio::time::timeout(REFUSE_WITHIN, refusing).await, Ok(Ok(()))) {
        debug!("a connection that found no room ended without an answer");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn say(stream: &mut TcpStream, path: &str) {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}");
        stream.write_all(head.as_bytes()).await.unwrap();
    }

    async fn heard(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn whoever_finds_no_room_is_told_so_and_a_host_hears_its_denial() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = Tasks::new();
        let router = Router::new().fallback(|| async { "served" });
        tasks.spawn(serve(listener, router, Doors::of(1), tasks.clone()));

        let mut first = TcpStream::connect(address).await.unwrap();
        say(&mut first, "/api/jobs").await;
        let mut begun = [0; 12];
        first.read_exact(&mut begun).await.unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200");

        let mut second = TcpStream::connect(address).await.unwrap();
        say(&mut second, "/api/jobs").await;
        let told = heard(&mut second).await;
        assert!(
            told.starts_with("HTTP/1.1 503") && told.contains("retry-after: 1"),
            "{told}"
        );
        let mut host = TcpStream::connect(address).await.unwrap();
        say(&mut host, "/api/hooks/claude-code").await;
        let told = heard(&mut host).await;
        assert!(
            told.starts_with("HTTP/1.1 200") && told.contains("\"deny\""),
            "{told}"
        );

        // A connection that ends makes room.
        drop(first);
        loop {
            let mut next = TcpStream::connect(address).await.unwrap();
            next.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .await
                .unwrap();
            if heard(&mut next).await.starts_with("HTTP/1.1 200") {
                break;
            }
        }
        tasks.ask_to_stop();
        assert!(tasks.drain(Duration::from_secs(20)).await);
    }

    #[test]
    fn the_usual_number_of_connections_leaves_files_for_the_rest() {
        let usual = usual_connections();
        assert!((LEAST..=MOST).contains(&usual), "{usual}");
    }
}
