//! A callback as a platform sends it: fixed headers, exact bytes; posting it twice is an exact replay.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::loopback;

/// Headers and bytes of one callback. Posting does not change it.
#[derive(Clone, Debug)]
pub struct PlatformRequest {
    /// All headers, the signature's among them.
    pub headers: Vec<(String, String)>,
    /// The exact bytes.
    pub body: Vec<u8>,
}

impl PlatformRequest {
    /// Sends it, following no redirect, as the platforms do.
    pub async fn post(&self, url: &str) -> Answered {
        let mut request = loopback::client().post(url).body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let start = Instant::now();
        let response = request.send().await.expect("the callback address answers");
        let status = response.status().as_u16();
        let body = response.text().await.expect("an answer in UTF-8");
        Answered {
            status,
            body,
            took: start.elapsed(),
        }
    }
}

/// What the callback address answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// HTTP status.
    pub status: u16,
    /// The body as text.
    pub body: String,
    /// From the first byte sent to the last byte read.
    pub took: Duration,
}

impl Answered {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    /// Whether it came within the three seconds that Slack and Feishu wait.
    pub fn in_time(&self) -> bool {
        self.took < Duration::from_secs(3)
    }
}
