//! The fake of Socket Mode before Slack's own client, so that what the other tests show is more than our own opinion.

use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::fake_socket::{APP, APP_TOKEN, Link, serve};

#[tokio::test]
#[ignore = "needs Slack's official client: run scripts/prove-socket-fakes"]
#[expect(
    clippy::disallowed_methods,
    reason = "the script that runs this test says where the official client is"
)]
async fn the_official_client_takes_the_fake_for_slack() {
    let python = std::env::var("GATEPOST_SDK_PYTHON").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/api/", listener.local_addr().unwrap());
    let mut client = tokio::process::Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../scripts/socket_clients.py"
        ))
        .args(["slack", &base, APP_TOKEN])
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (send, mut links) = mpsc::unbounded_channel::<Link>();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let play = async {
        let mut first = links.recv().await.unwrap();
        first.greet(APP, 1).await;
        first.press(1).await;
        assert_eq!(first.acknowledged().await, "press-1");
        first.disconnect("warning").await;
        let mut second = links.recv().await.unwrap();
        second.greet(APP, 1).await;
        second.press(2).await;
        assert_eq!(second.acknowledged().await, "press-2");
    };
    tokio::select! {
        () = play => {}
        () = serve(listener, Arc::default(), Arc::clone(&asked), send) => {}
        ended = client.wait() => panic!("the official client ended: {ended:?}"),
    }
    let asked = asked.lock().unwrap();
    let first = asked[0].to_ascii_lowercase();
    assert!(first.starts_with("post /api/apps.connections.open "), "{first}");
    assert!(first.contains(&format!("authorization: bearer {APP_TOKEN}")));
}
