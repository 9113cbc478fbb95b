//! The fake of the long connection before the platform's own client, so that what the other tests show is more than our own
//! opinion.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::fake_socket::{Link, SECRET, Script, serve};
use crate::fixture;

#[tokio::test]
#[ignore = "needs the platform's official client: run scripts/prove-socket-fakes"]
#[expect(
    clippy::disallowed_methods,
    reason = "the script that runs this test says where the official client is"
)]
async fn the_official_client_takes_the_fake_for_the_platform() {
    let python = std::env::var("GATEPOST_SDK_PYTHON").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut client = tokio::process::Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../scripts/socket_clients.py"
        ))
        .args(["feishu", &base, fixture::APP, SECRET])
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (send, mut links) = mpsc::unbounded_channel::<Link>();
    let play = async {
        let mut link = links.recv().await.unwrap();
        link.pinged(None).await;
        for (number, parts) in [(1, 1), (2, 3)] {
            link.press(number, parts).await;
            let (message, answer) = link.answer().await;
            assert_eq!(
                (message, &answer["code"]),
                (format!("m-{number}"), &Value::from(200))
            );
            let said: Value =
                serde_json::from_slice(&STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()).unwrap();
            assert_eq!(said["toast"]["content"], format!("ev-{number} approve"));
        }
    };
    tokio::select! {
        () = play => {}
        () = serve(listener, Script::default(), send) => {}
        ended = client.wait() => panic!("the official client ended: {ended:?}"),
    }
}
