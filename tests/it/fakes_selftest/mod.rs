//! The fakes themselves: each refuses what its platform refuses, and signs as its platform signs.

mod contacts;
mod feishu;
mod model_and_tool;
mod program_and_pg;
mod slack;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;

use crate::support::fake_feishu::FakeFeishu;
use crate::support::fake_slack::FakeSlack;
use crate::support::loopback::Server;

/// The real time at which both platforms start for the real program.
#[tokio::test]
async fn the_platforms_start_on_the_machines_clock() {
    let (slack, feishu) = (FakeSlack::start().await, FakeFeishu::start().await);
    assert!((slack.clock().now_ms() - feishu.clock().now_ms()).abs() < 60_000);
    assert!(slack.clock().now_seconds() > 1_700_000_000);
}

const PATIENCE: Duration = Duration::from_secs(5);

/// A callback address that answers everything with one text and keeps what it got.
struct Inbox {
    server: Server,
    seen: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

impl Inbox {
    async fn answering(body: &'static str) -> Self {
        let seen = Seen::default();
        let serve = move |State(seen): State<Seen>, headers: HeaderMap, bytes: Bytes| async move {
            seen.lock().unwrap().push((headers, bytes));
            body
        };
        let router = Router::new()
            .route("/", post(serve))
            .with_state(Arc::clone(&seen));
        Self {
            server: Server::start(router).await,
            seen,
        }
    }

    fn url(&self) -> String {
        self.server.url("/")
    }

    fn header(&self, index: usize, name: &str) -> String {
        self.seen.lock().unwrap()[index].0[name]
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn body(&self, index: usize) -> String {
        String::from_utf8(self.seen.lock().unwrap()[index].1.to_vec()).unwrap()
    }
}
