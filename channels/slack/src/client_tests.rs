//! The transport: answers that Slack does not give, lost connections, silence, and secrets that stay inside.

use gatepost_channel::{Channel, Failure, Posted};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fake_api::{edit, key, open_card, post, retry, says};
use crate::fixture;

#[tokio::test]
async fn answers_that_slack_does_not_give_leave_a_post_open() {
    for answer in [
        says(503, "upstream"),
        says(500, json!({ "ok": true })),
        says(200, "<html>"),
        says(200, json!({ "fine": 1 })),
    ] {
        let why = format!("http_{}", answer.status);
        assert_eq!(
            post(vec![answer.clone()]).await.0,
            Posted::Unknown { why: why.clone() }
        );
        assert_eq!(edit(vec![answer], &open_card()).await.0, Err(retry(None, &why)));
    }
    for status in [302, 403, 404] {
        let (outcome, _) = post(vec![says(status, "no")]).await;
        assert_eq!(
            outcome,
            Posted::NotSent(Failure::Setup {
                why: format!("http_{status}")
            })
        );
    }
    let endless = says(200, "x".repeat(600 * 1024));
    assert_eq!(
        post(vec![endless]).await.0,
        Posted::Unknown {
            why: "answer_too_large".into()
        }
    );
}

#[tokio::test]
async fn a_closed_port_means_not_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let outcome = fixture::channel(&base).post(&open_card(), &key()).await;
    assert_eq!(outcome, Posted::NotSent(retry(None, "connect_failed")));
}

/// Posts to a server that reads the request and then answers with these bytes and closes, or stays silent.
async fn post_to_raw(answer: Option<&[u8]>) -> Posted {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = fixture::channel(&format!("http://{}", listener.local_addr().unwrap()));
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await.unwrap();
        if let Some(bytes) = answer {
            stream.write_all(bytes).await.unwrap();
            drop(stream);
        }
        std::future::pending::<()>().await;
    };
    let card = open_card();
    let key = key();
    tokio::select! {
        () = server => panic!("it never ends by itself"),
        outcome = channel.post(&card, &key) => outcome,
    }
}

#[tokio::test]
async fn a_connection_lost_after_the_request_leaves_it_open() {
    for bytes in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"ok\""] {
        let outcome = post_to_raw(Some(bytes)).await;
        assert_eq!(
            outcome,
            Posted::Unknown {
                why: "connection_lost".into()
            }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn silence_ends_in_a_timeout_that_leaves_it_open() {
    assert_eq!(
        post_to_raw(None).await,
        Posted::Unknown {
            why: "timeout".into()
        }
    );
}

#[tokio::test]
async fn rh_604_no_answer_carries_a_secret_into_an_error() {
    for answer in [
        says(401, "Bearer xoxb-canary-slack-77aa"),
        says(200, json!({ "ok": false, "error": "xoxb-canary-slack-77aa" })),
        says(
            200,
            json!({ "ok": false, "error": "missing_scope", "needed": "xoxb-canary-slack-77aa" }),
        ),
    ] {
        let (outcome, _) = post(vec![answer]).await;
        assert!(!format!("{outcome:?}").contains("canary"), "{outcome:?}");
    }
    let config = fixture::config("http://127.0.0.1:9");
    assert!(!format!("{config:?}").contains("canary"));
    let closed = fixture::channel("http://127.0.0.1:1/canary-path").check().await;
    assert!(
        !closed.healthy && !closed.detail.contains("canary"),
        "{}",
        closed.detail
    );
}
