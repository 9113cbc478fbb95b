//! A real server for tests: `tests/fixtures/mcp/server.py`, which writes down what it is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::call::Called;
use super::server::{Health, Limits, Server};
use crate::config::Secret;
use crate::config::child::ChildConfig;
use crate::config::mcp::{McpReach, McpServer, McpTerms};
use crate::job::fixture::Folder;
use crate::lifecycle::Tasks;

/// The permit of every call.
pub(super) const PERMIT: &str = "the-permit";

/// Limits for tests on a busy machine: what must not run out is long, what must is short.
pub(crate) fn limits() -> Limits {
    Limits {
        handshake: Duration::from_secs(20),
        list: Duration::from_secs(5),
        grace: Duration::from_millis(200),
        first_pause: Duration::from_millis(20),
        longest_pause: Duration::from_millis(100),
        breath: Duration::ZERO,
        ..Limits::default()
    }
}

/// An entry of the configuration for a server that is reached so.
pub(crate) fn entry(reach: McpReach, timeout: Duration) -> McpServer {
    McpServer {
        name: "till".to_owned(),
        reach,
        terms: McpTerms {
            requires_confirmation: true,
            confirm: Vec::new(),
            allow: vec!["echo".to_owned()],
            idempotent: Vec::new(),
        },
        timeout,
    }
}

/// The child process that plays the server in this mode and writes its log there.
pub(crate) fn child(log: &Path, mode: &str) -> McpReach {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mcp/server.py");
    let words = [script.as_os_str(), log.as_os_str(), mode.as_ref()];
    McpReach::Child(ChildConfig {
        program: "/usr/bin/env".to_owned(),
        args: ["python3".to_owned()]
            .into_iter()
            .chain(words.map(|word| word.to_str().unwrap().to_owned()))
            .collect(),
        dir: PathBuf::new(),
        env: BTreeMap::from([
            (
                "PATH".to_owned(),
                Secret::verbatim("/usr/local/bin:/usr/bin:/bin"),
            ),
            ("TILL_TOKEN".to_owned(), Secret::verbatim("hunter2-canary")),
        ]),
    })
}

pub(super) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    client.no_proxy().build().unwrap()
}

/// A server that is kept.
pub(super) struct Kept {
    pub(super) server: Arc<Server>,
    pub(super) tasks: Tasks,
    folder: Folder,
}

impl Kept {
    /// A child in this mode, whose calls may take this long.
    pub(super) fn child(mode: &str, timeout: Duration, limits: Limits) -> Self {
        let folder = Folder::new();
        let reach = child(&folder.0.join("log"), mode);
        Self::of(entry(reach, timeout), folder, limits)
    }

    pub(super) fn of(entry: McpServer, folder: Folder, limits: Limits) -> Self {
        let (tasks, server) = (Tasks::new(), Arc::new(Server::new(entry, client(), limits)));
        tasks.spawn(Arc::clone(&server).keep(tasks.clone()));
        Self {
            server,
            tasks,
            folder,
        }
    }

    /// The same, once it is there.
    pub(super) async fn ready(mode: &str, timeout: Duration) -> Self {
        let kept = Self::child(mode, timeout, limits());
        kept.server.settled().await;
        let health = kept.server.health();
        assert!(matches!(health, Health::Ready { .. }), "{health:?}");
        kept
    }

    pub(super) async fn call(&self, tool: &str, args: &str) -> Called {
        let offer = self.until_there().await;
        let known = offer.tools[tool].fingerprint.clone();
        self.server.call(tool, &known, args, PERMIT).await
    }

    pub(super) async fn until_there(&self) -> Arc<super::offer::Offer> {
        for _ in 0..1_000 {
            if let Some(offer) = self.server.offer() {
                return offer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server is not there: {:?}", self.server.health());
    }

    /// The calls as they arrived.
    pub(super) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.0.join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.server.release();
        self.tasks.ask_to_stop();
    }
}
