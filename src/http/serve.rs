//! Serving connections until the server stops: slow headers and idle connections are cut, what is being answered is finished.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use tracing::{debug, warn};

use crate::lifecycle::Tasks;

/// How long a client may take to send the head of a request, and how long an idle connection is kept.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// How long answers that are under way may take once the server stops; waits for people end by themselves.
const FINISH_WITHIN: Duration = Duration::from_secs(8);
/// The pause after the system refused to hand over a connection (no file descriptors).
const PAUSE: Duration = Duration::from_millis(50);

/// Serves a listener. Ends when the server stops and what was accepted is answered.
pub async fn serve(listener: TcpListener, router: Router, tasks: Tasks) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(64 * 1024);
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
            () = tasks.stopping() => break,
        };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "a connection is already gone");
            continue;
        }
        let service = router.clone().map_request(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(FINISH_WITHIN, graceful.shutdown())
        .await
        .is_err()
    {
        warn!("connections were still open when the patience ended");
    }
}
