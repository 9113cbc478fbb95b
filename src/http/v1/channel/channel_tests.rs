//! Callbacks and channels as platforms and admins meet them, over a real store.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use futures_util::stream;
use serde_json::json;

use crate::http::body::BodyBudget;
use crate::http::fixture::{Bench, HOST};
use crate::http::guard::Crowd;

fn callback(name: &str) -> axum::http::request::Builder {
    Request::builder()
        .method("POST")
        .uri(format!("/api/channels/{name}/callback"))
        .header(header::HOST, HOST)
        .header("x-signature", "good")
}

#[tokio::test]
async fn callbacks_are_bounded_and_say_nothing_to_strangers() {
    let bench = Bench::new().await;
    let big = "x".repeat(1024 * 1024 + 1);
    let chunks = stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 1024 * 1024])));
    for (request, status) in [
        (
            callback("chat").body(Body::from(big)).unwrap(),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            callback("chat").body(Body::from_stream(chunks)).unwrap(),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            callback("chat")
                .header(header::CONTENT_ENCODING, "gzip")
                .body(Body::from("x"))
                .unwrap(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (
            callback("chat").body(Body::from("not json")).unwrap(),
            StatusCode::BAD_REQUEST,
        ),
        (
            callback("nobody").body(Body::from("{}")).unwrap(),
            StatusCode::NOT_FOUND,
        ),
    ] {
        assert_eq!(bench.raw(request).await.status, status);
    }
    let heard = bench.send("POST", "/api/channels/chat/callback", "", "{}").await;
    assert_eq!((heard.status.as_u16(), heard.text.as_str()), (401, ""));
    let shake = callback("chat").body(Body::from(r#"{"challenge":"c"}"#)).unwrap();
    assert_eq!(bench.raw(shake).await.json(), json!({ "challenge": "c" }));
    let slashed = Request::builder()
        .method("POST")
        .uri("/api/channels/chat/callback/")
        .header(header::HOST, HOST)
        .header("x-signature", "good")
        .body(Body::from(r#"{"challenge":"c"}"#))
        .unwrap();
    assert_eq!(bench.raw(slashed).await.status, 200, "no redirect");
}

#[tokio::test]
async fn a_dripping_body_is_given_up() {
    let bodies = BodyBudget::within(std::time::Duration::from_millis(20));
    let bench = Bench::with(Crowd::default(), bodies).await;
    let drip = stream::unfold(0_u8, |n| async move {
        if n > 0 {
            std::future::pending::<()>().await;
        }
        Some((Ok::<_, std::io::Error>(vec![b'{']), n + 1))
    });
    let request = callback("chat").body(Body::from_stream(drip)).unwrap();
    assert_eq!(bench.raw(request).await.code(), "body_timeout");
}

#[tokio::test]
async fn a_click_decides_and_a_repeat_gets_the_first_answer() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    bench.deliver().await;
    let press = bench.press(&id, "u-dana", "approve", "k1").await;
    let stranger = bench.press(&id, "u-nobody", "approve", "k2").await;
    let heard = bench
        .raw(callback("chat").body(Body::from(stranger.to_string())).unwrap())
        .await;
    assert_eq!(heard.status, 200);
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = callback("chat").body(Body::from(press.to_string())).unwrap();
        let heard = bench.raw(request).await;
        assert_eq!(heard.status, 200);
        answers.push(heard.text);
    }
    assert_eq!(answers[0], answers[1]);
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(shown["status"], "approved");
    assert_eq!(shown["votes"][0]["operator"], "dana");
    assert_eq!(shown["votes"][0]["channel"], "chat");
    let channels = bench.get("/api/channels", "admin").await.json();
    assert_eq!(
        channels,
        json!({ "items": [{
            "name": "chat", "kind": "fake", "healthy": true, "detail": "fine",
            "last_post_at": "2026-01-31T12:00:00.000Z", "last_click_at": "2026-01-31T12:00:00.000Z",
        }], "next_cursor": null })
    );
}

#[tokio::test]
async fn a_test_card_is_throttled_and_stays_in_its_organisation() {
    let bench = Bench::new().await;
    let heard = bench.send("POST", "/api/channels/chat/test", "admin", "").await;
    assert_eq!(
        heard.json(),
        json!({ "channel": "chat", "posted": true, "detail": "the card stands" })
    );
    let heard = bench.send("POST", "/api/channels/chat/test", "admin", "").await;
    assert_eq!(heard.code(), "throttled");
    assert_eq!(heard.headers[header::RETRY_AFTER], "11");
    let heard = bench
        .send("POST", "/api/channels/chat-globex/test", "admin", "")
        .await;
    assert_eq!(heard.code(), "not_found");
}
