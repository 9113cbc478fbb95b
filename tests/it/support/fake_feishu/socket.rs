//! The long connection: the endpoint leads to [`Sockets`], and a callback is a protobuf frame that must be answered.
//!
//! Facts: the frames of the platform's official SDKs (package `pbbp2`), written here once more so that the fake does not lean
//! on what it tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::super::sockets::{Manners, Sockets};
use super::FakeFeishu;
use super::click::{Callback, Click};

const SERVICE: i32 = 33_554_678;

#[derive(Clone, PartialEq, prost::Message)]
struct Frame {
    #[prost(uint64, required, tag = "1")]
    seq: u64,
    #[prost(uint64, required, tag = "2")]
    log: u64,
    #[prost(int32, required, tag = "3")]
    service: i32,
    #[prost(int32, required, tag = "4")]
    method: i32,
    #[prost(message, repeated, tag = "5")]
    headers: Vec<Header>,
    #[prost(bytes = "vec", optional, tag = "8")]
    payload: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Header {
    #[prost(string, required, tag = "1")]
    key: String,
    #[prost(string, required, tag = "2")]
    value: String,
}

impl Frame {
    fn header(&self, key: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|header| header.key == key)
            .map(|header| header.value.as_str())
    }
}

fn frame(method: i32, headers: &[(&str, &str)], payload: Option<Vec<u8>>) -> Message {
    let headers = headers.iter().map(|(key, value)| Header {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    let frame = Frame {
        seq: 1,
        log: 1,
        service: SERVICE,
        method,
        headers: headers.collect(),
        payload,
    };
    Message::binary(frame.encode_to_vec())
}

/// The long connection as it is: silent until pinged.
pub const MANNERS: Manners = Manners {
    hello: |_| None,
    reply: |message| {
        let read = Frame::decode(message.clone().into_data()).ok()?;
        (read.header("type") == Some("ping")).then(|| frame(0, &[("type", "pong")], None))
    },
};

impl FakeFeishu {
    /// From now on the endpoint gives this address and a ticket.
    pub fn open_sockets_at(&self, address: &str) {
        self.world(|world| {
            world.socket_address = Some(format!("{address}?device_id=d1&service_id={SERVICE}"));
        });
    }

    /// Delivers a click over one of the sockets and returns the answer for the client.
    ///
    /// # Panics
    /// When the frame is not answered with 200 and an answer.
    pub async fn deliver(&self, sockets: &Sockets, click: Click<'_>) -> Value {
        let payload = self.carry(sockets, &click.into_document()).await;
        let data = STANDARD
            .decode(payload["data"].as_str().expect("data"))
            .expect("base64");
        serde_json::from_slice(&data).expect("JSON")
    }

    /// Sends an event that is answered with nothing.
    ///
    /// # Panics
    /// When the frame is not answered with 200 alone.
    pub async fn tell(&self, sockets: &Sockets, event: Callback) {
        let payload = self.carry(sockets, &event.into_document()).await;
        assert_eq!(payload, json!({"code": 200}));
    }

    async fn carry(&self, sockets: &Sockets, document: &Value) -> Value {
        let number = self.world(|world| world.id("msg-"));
        let headers = [
            ("type", "event"),
            ("message_id", number.as_str()),
            ("sum", "1"),
            ("seq", "0"),
            ("trace_id", number.as_str()),
        ];
        let document = document.to_string().into_bytes();
        let answered = sockets.push(frame(1, &headers, Some(document))).await;
        let answered = Frame::decode(answered.into_data()).expect("a frame");
        assert_eq!(answered.header("message_id"), Some(number.as_str()));
        assert!(answered.header("biz_rt").is_some(), "the time it took");
        let payload: Value = serde_json::from_slice(&answered.payload.expect("a payload")).expect("JSON");
        assert_eq!(payload["code"], 200, "{payload}");
        payload
    }
}
