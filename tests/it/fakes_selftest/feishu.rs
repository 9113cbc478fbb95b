//! The fake Feishu.

use std::time::Duration;

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Inbox, PATIENCE};
use crate::support::clock::Clock;
use crate::support::fake_feishu::{
    APP, APP_SECRET, Api, CHAT, ENCRYPT_KEY, FakeFeishu, Person, TENANT, VERIFICATION_TOKEN,
};
use crate::support::fault::Fault;
use crate::support::loopback;
use crate::support::platform_request::PlatformRequest;

const NOON: i64 = 1_795_953_600;
pub(super) const PERSON: &str = "ou_7d8a6e";

pub(super) async fn tenant() -> FakeFeishu {
    let feishu = FakeFeishu::with_clock(Clock::standing_at(NOON)).await;
    feishu.add_person(Person::new(PERSON, "dana@example.com"));
    feishu
}

async fn token(feishu: &FakeFeishu) -> String {
    let url = format!(
        "{}/open-apis/auth/v3/tenant_access_token/internal",
        feishu.base_url
    );
    let body = json!({"app_id": APP, "app_secret": APP_SECRET});
    let answer: Value = loopback::client()
        .post(url)
        .json(&body)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    answer["tenant_access_token"].as_str().unwrap().to_owned()
}

pub(super) async fn call(feishu: &FakeFeishu, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let token = token(feishu).await;
    call_as(feishu, &token, method, path, body).await
}

async fn call_as(feishu: &FakeFeishu, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}/open-apis/{path}", feishu.base_url);
    let request = loopback::client()
        .request(method.parse().unwrap(), url)
        .bearer_auth(token)
        .json(body);
    let answer = request.send().await.unwrap();
    assert!(answer.headers().contains_key("x-tt-logid"));
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn message(card: &Value) -> Value {
    json!({"receive_id": CHAT, "msg_type": "interactive", "content": card.to_string()})
}

async fn send(feishu: &FakeFeishu, card: &Value) -> (u16, Value) {
    call(
        feishu,
        "POST",
        "im/v1/messages?receive_id_type=chat_id",
        &message(card),
    )
    .await
}

fn plain(text: &str) -> Value {
    json!({"tag": "plain_text", "content": text})
}

fn button(decision: &str) -> Value {
    json!({
        "tag": "button", "text": plain(decision),
        "behaviors": [{"type": "callback", "value": {"decision": decision, "t": "opaque"}}],
    })
}

fn card_of(elements: impl Into<Value>) -> Value {
    let elements: Value = elements.into();
    json!({
        "schema": "2.0", "config": {"update_multi": true}, "header": {"title": plain("Payment"), "template": "orange"},
        "body": {"elements": elements},
    })
}

fn card() -> Value {
    let mut reject = button("reject");
    reject["name"] = json!("rej_1");
    reject["form_action_type"] = json!("submit");
    card_of(json!([
        {"tag": "div", "text": plain("amount: 5")},
        button("approve"),
        {"tag": "form", "name": "refusal", "elements": [
            {"tag": "input", "name": "reason", "max_length": 500, "placeholder": plain("why")}, reject,
        ]},
    ]))
}

#[tokio::test]
async fn a_token_lives_two_hours_and_is_renewed_in_the_last_half_hour() {
    let feishu = tenant().await;
    let first = token(&feishu).await;
    assert_eq!(token(&feishu).await, first);
    feishu.clock().advance(Duration::from_mins(91));
    let second = token(&feishu).await;
    assert_ne!(first, second);
    let info = |token: String| {
        let feishu = &feishu;
        async move { call_as(feishu, &token, "GET", "bot/v3/info", &json!({})).await }
    };
    assert_eq!(info(first.clone()).await.0, 200, "the old one still works");
    feishu.clock().advance(Duration::from_mins(30));
    assert_eq!(info(first).await.1["code"], 99_991_663);
    assert_eq!(info(second.clone()).await.1["code"], 0);
    feishu.expire_tokens();
    assert_eq!(info(second).await.1["code"], 99_991_663);
    assert_eq!(info("x-1".to_owned()).await.1["code"], 99_991_671);
    let url = format!(
        "{}/open-apis/auth/v3/tenant_access_token/internal",
        feishu.base_url
    );
    let wrong = loopback::client()
        .post(url)
        .json(&json!({"app_id": APP, "app_secret": "no"}));
    let wrong: Value = wrong.send().await.unwrap().json().await.unwrap();
    assert_eq!(wrong["code"], 10_014);
    let calls = feishu.calls(Api::BotInfo);
    assert_eq!((calls.len(), calls[0].token.is_some()), (5, true));
    assert_eq!(
        feishu.calls(Api::Token).last().unwrap().path,
        "auth/v3/tenant_access_token/internal"
    );
}

#[tokio::test]
async fn the_same_uuid_sends_once_within_an_hour() {
    let feishu = tenant().await;
    let mut body = message(&card());
    body["uuid"] = json!("req:card:1");
    let path = "im/v1/messages?receive_id_type=chat_id";
    let (_, first) = call(&feishu, "POST", path, &body).await;
    let (_, again) = call(&feishu, "POST", path, &body).await;
    assert_eq!(first["data"]["message_id"], again["data"]["message_id"]);
    assert_eq!(feishu.messages(CHAT).len(), 1);
    feishu.clock().advance(Duration::from_hours(1));
    call(&feishu, "POST", path, &body).await;
    assert_eq!(feishu.messages(CHAT).len(), 2);
    assert_eq!(feishu.calls(Api::Send)[0].body["uuid"], "req:card:1");
}

#[tokio::test]
async fn cards_that_break_a_rule_are_refused_with_the_sub_code() {
    let feishu = tenant().await;
    let text = |text: &str| json!({"tag": "markdown", "content": text});
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n";
    let mut nested = json!({"tag": "div", "text": plain("deep")});
    for _ in 0..5 {
        nested = json!({"tag": "collapsible_panel", "elements": [nested]});
    }
    let mut string_value = button("approve");
    string_value["behaviors"][0]["value"] = json!("approve");
    let mut top_level_value = button("approve");
    top_level_value["value"] = json!({"decision": "approve"});
    let form = |elements: Value| json!({"tag": "form", "name": "f", "elements": elements});
    let mut top = card();
    top["elements"] = json!([]);
    let mut old = card();
    old["schema"] = json!("1.0");
    let mut own = card();
    own["config"]["update_multi"] = json!(false);
    let cases = [
        (card_of(json!([{"tag": "note", "elements": []}])), "200861"),
        (
            card_of(json!([{"tag": "div", "text": plain("x"), "colour": "red"}])),
            "200621",
        ),
        (top, "unknown property: elements"),
        (old, "200830"),
        (own, "update_multi"),
        (card_of(json!([text("<at id=all></at>")])), "100290"),
        (card_of(json!([text("<at id=ou_stranger></at>")])), "ou_stranger"),
        (card_of(json!([text("![x](http://image)")])), "200570"),
        (
            card_of(json!([text(&table.repeat(3)), text(&table.repeat(3))])),
            "card table number over limit",
        ),
        (card_of(json!([text(&table.repeat(5))])), "11310"),
        (
            card_of(json!(vec![json!({"tag": "hr"}); 200])),
            "element number over limit",
        ),
        (card_of(json!([nested])), "nesting over limit"),
        (card_of(json!([string_value])), "bad behavior"),
        (card_of(json!([top_level_value])), "unknown property: value"),
        (card_of(json!([form(json!([button("reject")]))])), "200530"),
        (
            card_of(json!([form(json!([{"tag": "input", "name": "reason"}]))])),
            "no submit button",
        ),
        (
            card_of(json!([form(json!([{"tag": "input"}]))])),
            "the input has no name",
        ),
        (
            card_of(json!([{"tag": "collapsible_panel", "elements": [form(json!([]))]}])),
            "stands at the root",
        ),
        (
            card_of(json!([form(
                json!([{"tag": "input", "name": "a", "max_length": 5, "default_value": "123456"}])
            )])),
            "default_value is longer",
        ),
        (card_of(json!([{"tag": "hr", "element_id": "1st"}])), "element_id"),
    ];
    for (card, expected) in cases {
        let (status, answer) = send(&feishu, &card).await;
        assert_eq!(
            (status, &answer["code"]),
            (400, &json!(230_099)),
            "{expected}: {card}"
        );
        let text = answer["msg"].as_str().unwrap();
        assert!(
            text.starts_with("Failed to create card content, ext=ErrCode: "),
            "{text}"
        );
        assert!(text.contains(expected), "{text} lacks {expected}");
        assert!(answer["error"]["log_id"].is_string());
    }
    let big = card_of(json!([{"tag": "div", "text": plain(&"批".repeat(10_300))}]));
    assert_eq!(send(&feishu, &big).await.1["code"], 230_025);
    assert!(feishu.messages(CHAT).is_empty());
    let fenced = card_of(json!([
        text(&format!("```\n{}```", table.repeat(8))),
        text("<at id=ou_7d8a6e></at>")
    ]));
    assert_eq!(
        send(&feishu, &fenced).await.1["code"],
        0,
        "tables inside a code fence are text"
    );
}

#[tokio::test]
async fn a_card_is_patched_answered_and_recalled() {
    let feishu = tenant().await;
    let (_, sent) = send(&feishu, &card()).await;
    let id = sent["data"]["message_id"].as_str().unwrap().to_owned();
    let path = format!("im/v1/messages/{id}");
    let settled = card_of(json!([{"tag": "div", "text": plain("approved")}]));
    let edit = json!({"content": settled.to_string()});
    assert_eq!(call(&feishu, "PATCH", &path, &edit).await.1["code"], 0);
    let now = feishu
        .wait_for_message(CHAT, |message| message.history.len() == 2, PATIENCE)
        .await;
    assert_eq!(
        (now.visible_text().contains("approved"), now.decisions().len()),
        (true, 0)
    );
    let reply = json!({"msg_type": "text", "content": "{\"text\":\"note\"}"});
    assert_eq!(
        call(&feishu, "POST", &format!("{path}/reply"), &reply).await.1["code"],
        0
    );
    let answered = |feishu: &FakeFeishu| {
        feishu
            .messages(CHAT)
            .into_iter()
            .find(|message| message.parent_id.as_deref() == Some(id.as_str()))
    };
    assert_eq!(
        feishu.wait_for("a reply", PATIENCE, answered).await.msg_type,
        "text"
    );
    feishu.clock().advance(Duration::from_hours(15 * 24));
    assert_eq!(call(&feishu, "PATCH", &path, &edit).await.1["code"], 230_031);
    feishu.recall(&id);
    assert_eq!(call(&feishu, "PATCH", &path, &edit).await.1["code"], 230_011);
}

#[tokio::test]
async fn groups_people_and_limits() {
    let feishu = tenant().await;
    let look_up = json!({"emails": ["dana@example.com", "nobody@example.com"]});
    let (_, found) = call(
        &feishu,
        "POST",
        "contact/v3/users/batch_get_id?user_id_type=open_id",
        &look_up,
    )
    .await;
    assert_eq!(found["data"]["user_list"][0]["user_id"], PERSON);
    assert!(found["data"]["user_list"][1]["user_id"].is_null());
    let members = call(&feishu, "GET", &format!("im/v1/chats/{CHAT}/members"), &json!({}))
        .await
        .1;
    assert_eq!(members["data"]["items"][0]["member_id"], PERSON);
    let private = json!({"chat_id": CHAT, "open_id": PERSON, "msg_type": "interactive", "card": card()});
    assert_eq!(
        call(&feishu, "POST", "ephemeral/v1/send", &private).await.1["code"],
        0
    );
    assert_eq!(feishu.ephemerals()[0].1, PERSON);
    for _ in 0..5 {
        assert_eq!(send(&feishu, &card()).await.0, 200);
    }
    assert_eq!(send(&feishu, &card()).await.1["code"], 230_020);
    feishu.limit_rate(false);
    let sensitive = Fault::answer(400, &json!({"code": 230_022, "msg": "sensitive"}));
    feishu.fail_next(Api::Send, sensitive.header("x-tt-logid", "scripted"));
    assert_eq!(send(&feishu, &card()).await.1["code"], 230_022);
    assert_eq!(send(&feishu, &card()).await.0, 200);
    feishu.add_chat("oc_other");
    assert_eq!(
        call(&feishu, "GET", "im/v1/chats/oc_other", &json!({})).await.0,
        200
    );
    feishu.remove_bot(CHAT);
    assert_eq!(send(&feishu, &card()).await.1["code"], 230_002);
    assert_eq!(call(&feishu, "GET", "no/such/thing", &json!({})).await.0, 404);
}

/// The document of a sealed body; none when the app's key does not open it.
fn decrypted(body: &str) -> Option<Value> {
    let outer: Value = serde_json::from_str(body).unwrap();
    let sealed = STANDARD.decode(outer["encrypt"].as_str().unwrap()).unwrap();
    let key = Sha256::digest(ENCRYPT_KEY.as_bytes());
    let cipher = Decryptor::<Aes256>::new_from_slices(&key, &sealed[..16]).unwrap();
    let plain = cipher.decrypt_padded_vec::<Pkcs7>(&sealed[16..]).ok()?;
    serde_json::from_slice(&plain).ok()
}

fn opened(body: &str) -> Value {
    decrypted(body).expect("a body that the app's key opens")
}

#[tokio::test]
async fn a_click_is_sealed_and_its_answer_is_shown() {
    let feishu = tenant().await;
    send(&feishu, &card()).await;
    let message = feishu.messages(CHAT).remove(0);
    assert_eq!(message.decisions(), ["approve", "reject"]);
    let answer = r#"{"toast":{"type":"success","content":"approved"},"card":{"type":"raw","data":{"schema":"2.0",
        "config":{"update_multi":true},"body":{"elements":[{"tag":"div","text":{"tag":"plain_text","content":"done"}}]}}}}"#;
    let inbox = Inbox::answering(answer).await;
    let click = feishu
        .click(&message, "reject", PERSON)
        .with_input("reason", "too much");
    let clicked = click.post(&inbox.url()).await;
    let toast = clicked.toast.unwrap().unwrap();
    assert_eq!(
        (toast.kind.as_str(), toast.content.as_str(), clicked.card_replaced),
        ("success", "approved", true)
    );
    assert_eq!(clicked.answered.json()["toast"]["type"], "success");
    assert!(feishu.messages(CHAT)[0].visible_text().contains("done"));

    let document = opened(&inbox.body(0));
    assert_eq!(document["header"]["app_id"], APP);
    assert_eq!(document["header"]["token"], VERIFICATION_TOKEN);
    assert_eq!(document["event"]["operator"]["open_id"], PERSON);
    assert_eq!(document["event"]["operator"]["tenant_key"], TENANT);
    assert_eq!(
        document["event"]["action"]["form_value"],
        json!({"reason": "too much"})
    );
    assert_eq!(document["event"]["action"]["value"]["decision"], "reject");
    let mut digest = Sha256::new();
    for name in ["x-lark-request-timestamp", "x-lark-request-nonce"] {
        digest.update(inbox.header(0, name));
    }
    digest.update(ENCRYPT_KEY);
    digest.update(inbox.body(0));
    assert_eq!(
        inbox.header(0, "x-lark-signature"),
        hex::encode(digest.finalize())
    );

    let update = json!({"token": click.card_token(), "card": card()});
    for expected in [0, 0, 300_040] {
        assert_eq!(
            call(&feishu, "POST", "interactive/v1/card/update", &update)
                .await
                .1["code"],
            expected
        );
    }
    let unanswered = feishu.click(&message, "approve", PERSON);
    let update = json!({"token": unanswered.card_token(), "card": card()});
    assert_eq!(
        call(&feishu, "POST", "interactive/v1/card/update", &update)
            .await
            .1["code"],
        300_020
    );
}

#[tokio::test]
async fn the_variants_of_a_click_differ_where_they_say() {
    let feishu = tenant().await;
    send(&feishu, &card()).await;
    let message = feishu.messages(CHAT).remove(0);
    let inbox = Inbox::answering("{}").await;
    let click = || feishu.click(&message, "approve", PERSON);
    click()
        .for_app("cli_9")
        .by_tenant("t9")
        .in_chat("oc_9")
        .on_message("om_9")
        .post(&inbox.url())
        .await;
    let document = opened(&inbox.body(0)).to_string();
    for changed in ["cli_9", "t9", "oc_9", "om_9"] {
        assert!(document.contains(changed), "{changed}");
    }
    click()
        .with_value(&json!({"decision": "approve", "t": "guess"}))
        .post(&inbox.url())
        .await;
    assert_eq!(opened(&inbox.body(1))["event"]["action"]["value"]["t"], "guess");
    click().aged(Duration::from_secs(301)).post(&inbox.url()).await;
    assert_eq!(
        inbox.header(2, "x-lark-request-timestamp"),
        (NOON - 301).to_string()
    );
    click().in_clear().post(&inbox.url()).await;
    assert!(inbox.body(3).contains("card.action.trigger"));
    assert!(click().unsigned().request().headers.len() == 1);
    feishu.url_verification("quote\"me").post(&inbox.url()).await;
    assert_eq!(opened(&inbox.body(4))["challenge"], "quote\"me");
    let replay = feishu.click_revision(&message, 0, "approve", PERSON).request();
    replay.post(&inbox.url()).await;
    replay.post(&inbox.url()).await;
    assert_eq!(inbox.body(5), inbox.body(6));
    let signature = |request: &PlatformRequest| {
        let header = |wanted: &str| {
            request
                .headers
                .iter()
                .find(|(name, _)| name == wanted)
                .unwrap()
                .1
                .clone()
        };
        let (time, nonce) = (header("X-Lark-Request-Timestamp"), header("X-Lark-Request-Nonce"));
        let body = String::from_utf8(request.body.clone()).unwrap();
        let expected = hex::encode(Sha256::digest(format!("{time}{nonce}{ENCRYPT_KEY}{body}")));
        (header("X-Lark-Signature") == expected, decrypted(&body).is_some())
    };
    assert_eq!(signature(&click().request()), (true, true));
    assert_eq!(signature(&click().forged().request()), (false, true));
    assert_eq!(signature(&click().with_foreign_key().request()), (false, false));

    let unusable = Inbox::answering("<html>").await;
    assert_eq!(click().post(&unusable.url()).await.toast, Err(200_672));
    let old_card = Inbox::answering(r#"{"card":{"type":"raw","data":{"elements":[]}}}"#).await;
    assert_eq!(click().post(&old_card.url()).await.toast, Err(200_830));
}

#[tokio::test]
async fn a_card_is_locked_while_its_click_is_handled() {
    let feishu = tenant().await;
    let (_, sent) = send(&feishu, &card()).await;
    let id = sent["data"]["message_id"].as_str().unwrap().to_owned();
    let edit = json!({"content": card().to_string()});
    let message = feishu.messages(CHAT).remove(0);
    let patch_inside_callback = |locked: bool| {
        feishu.lock_during_clicks(locked);
        let (feishu, message, edit, path) = (&feishu, &message, &edit, format!("im/v1/messages/{id}"));
        async move {
            let (arrived, door) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let callback = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                arrived.notify_one();
                door.notified().await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                tokio::io::AsyncWriteExt::write_all(&mut stream, answer)
                    .await
                    .unwrap();
                // Held open until the client has read it all.
                stream
            };
            let meanwhile = async {
                arrived.notified().await;
                let code = call(feishu, "PATCH", &path, edit).await.1["code"].clone();
                door.notify_one();
                code
            };
            let click = feishu.click(message, "approve", PERSON);
            let (_stream, code, _clicked) = tokio::join!(callback, meanwhile, click.post(&url));
            code
        }
    };
    assert_eq!(patch_inside_callback(true).await, 230_099);
    assert_eq!(patch_inside_callback(false).await, 0);
}
