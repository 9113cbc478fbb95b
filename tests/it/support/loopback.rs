//! Serving and calling on 127.0.0.1.

use std::net::SocketAddr;
use std::sync::Once;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server of this test; it ends with the value.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves `router` on a free loopback port.
    pub async fn start(router: Router) -> Self {
        let port = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(port).await.expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serving on loopback");
        });
        Self { address, task }
    }

    /// `http://127.0.0.1:PORT` + `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client that follows no redirect, uses no proxy and gives up after 20 seconds.
pub fn client() -> reqwest::Client {
    install_ring();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(Duration::from_secs(20))
        .build()
        .expect("a client")
}

/// The one TLS provider, as the program's `main` installs it.
pub fn install_ring() {
    static RING: Once = Once::new();
    RING.call_once(|| {
        // Somebody else in this process may have been first; then there is nothing to do.
        let _already = rustls::crypto::ring::default_provider().install_default();
    });
}
