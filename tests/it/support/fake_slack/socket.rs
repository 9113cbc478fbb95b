//! Socket Mode: `apps.connections.open` leads to [`Sockets`], and an interaction is an envelope that must be acknowledged.
//!
//! Facts: Slack, "Using Socket Mode".

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::super::sockets::{Manners, Sockets};
use super::click::Signed;
use super::{APP, FakeSlack};

/// The app-level token.
pub const APP_TOKEN: &str = "xapp-fake-app-token";

/// Socket Mode as it is.
pub const MANNERS: Manners = Manners {
    hello: |count| {
        Some(Message::text(
            json!({
                "type": "hello", "num_connections": count, "connection_info": {"app_id": APP},
                "debug_info": {"host": "applink-1", "approximate_connection_time": 18_060},
            })
            .to_string(),
        ))
    },
    reply: |_| None,
};

impl FakeSlack {
    /// From now on `apps.connections.open` gives this address and a ticket.
    pub fn open_sockets_at(&self, address: &str) {
        self.world(|world| world.socket_address = Some(address.to_owned()));
    }

    /// Delivers an interaction over one of the sockets and returns the acknowledgement.
    ///
    /// # Panics
    /// When the acknowledgement is not that of the envelope.
    pub async fn deliver(&self, sockets: &Sockets, interaction: Signed) -> Value {
        let envelope = self.world(|world| format!("envelope-{}", world.next()));
        let frame = json!({
            "type": interaction.envelope(), "envelope_id": envelope, "accepts_response_payload": true,
            "payload": interaction.into_document(),
        });
        let answered = sockets.push(Message::text(frame.to_string())).await;
        let answer: Value = serde_json::from_str(answered.to_text().expect("text")).expect("JSON");
        assert_eq!(answer["envelope_id"], envelope.as_str(), "{answer}");
        answer
    }
}
