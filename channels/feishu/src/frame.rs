//! The frames of the long connection: protobuf (proto2, package `pbbp2`), whose numbers are required and so are written even
//! when they are zero. Facts: the platform's official SDKs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde_json::json;

/// Ping, pong.
pub(crate) const CONTROL: i32 = 0;
/// Events, callbacks and their answers.
pub(crate) const DATA: i32 = 1;

/// One frame.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Frame {
    #[prost(uint64, required, tag = "1")]
    pub(crate) seq_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) log_id: u64,
    /// The service that the address names; pings carry it.
    #[prost(int32, required, tag = "3")]
    pub(crate) service: i32,
    #[prost(int32, required, tag = "4")]
    pub(crate) method: i32,
    #[prost(message, repeated, tag = "5")]
    pub(crate) headers: Vec<Header>,
    #[prost(string, optional, tag = "6")]
    pub(crate) payload_encoding: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(crate) payload_type: Option<String>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(crate) payload: Option<Vec<u8>>,
    #[prost(string, optional, tag = "9")]
    pub(crate) log_id_new: Option<String>,
}

/// One header of a frame.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Header {
    #[prost(string, required, tag = "1")]
    pub(crate) key: String,
    #[prost(string, required, tag = "2")]
    pub(crate) value: String,
}

impl Frame {
    /// The keep-alive of a connection to this service.
    pub(crate) fn ping(service: i32) -> Self {
        Self {
            service,
            method: CONTROL,
            headers: vec![header("type", "ping")],
            ..Self::default()
        }
    }

    /// The value of a header that stands exactly once.
    pub(crate) fn single(&self, key: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|header| header.key == key);
        let first = values.next()?;
        values.next().is_none().then_some(first.value.as_str())
    }

    /// The answer to this frame: taken, with the JSON that the platform hands to the clicker, after `took` milliseconds.
    pub(crate) fn taken(mut self, answer: Option<&[u8]>, took: u128) -> Self {
        self.headers.push(header("biz_rt", &took.to_string()));
        let payload = match answer {
            Some(answer) => json!({ "code": 200, "data": STANDARD.encode(answer) }),
            None => json!({ "code": 200 }),
        };
        self.with(&payload)
    }

    /// The answer to this frame: not taken. The clicker sees a failure.
    pub(crate) fn failed(self) -> Self {
        self.with(&json!({ "code": 500 }))
    }

    fn with(mut self, payload: &serde_json::Value) -> Self {
        self.payload = Some(payload.to_string().into_bytes());
        self
    }
}

fn header(key: &str, value: &str) -> Header {
    Header {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}
