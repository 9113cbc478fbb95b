//! How the platform wants to be connected to: its `ClientConfig`, read within bounds, so that neither zeros nor huge numbers
//! make a client hammer or fall asleep.

use std::time::Duration;

use serde_json::Value;

/// The platform's wishes. What it did not say keeps the value of the official clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Whether the platform said anything yet.
    pub(crate) given: bool,
    /// From one ping to the next.
    pub(crate) ping: Duration,
    /// Between two tries to connect.
    pub(crate) interval: Duration,
    /// The first try after a loss is spread over this.
    pub(crate) nonce: Duration,
}

impl Default for Advice {
    fn default() -> Self {
        Self {
            given: false,
            ping: Duration::from_mins(2),
            interval: Duration::from_mins(2),
            nonce: Duration::from_secs(30),
        }
    }
}

impl Advice {
    /// Takes over what `config` says, in seconds. `ReconnectCount` is not heeded: a gate that gave up would be deaf.
    pub(crate) fn update(&mut self, config: &Value) {
        self.given |= config.is_object();
        let seconds = |key: &str, least, most| {
            let given = config.get(key)?.as_u64()?;
            Some(Duration::from_secs(given.clamp(least, most)))
        };
        self.ping = seconds("PingInterval", 5, 600).unwrap_or(self.ping);
        self.interval = seconds("ReconnectInterval", 1, 300).unwrap_or(self.interval);
        self.nonce = seconds("ReconnectNonce", 0, 120).unwrap_or(self.nonce);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wishes_are_taken_within_bounds() {
        let mut advice = Advice::default();
        advice.update(&json!({ "ReconnectCount": -1, "ReconnectInterval": 90, "ReconnectNonce": 25, "PingInterval": 60 }));
        let expected = Advice {
            given: true,
            ping: Duration::from_mins(1),
            interval: Duration::from_secs(90),
            nonce: Duration::from_secs(25),
        };
        assert_eq!(advice, expected);
        for odd in [
            json!({}),
            json!([]),
            json!({ "PingInterval": "60", "ReconnectNonce": -1 }),
            json!({ "PingInterval": 1.5 }),
        ] {
            advice.update(&odd);
            assert_eq!(advice, expected, "{odd}");
        }
        advice
            .update(&json!({ "PingInterval": 0, "ReconnectInterval": u64::MAX, "ReconnectNonce": u64::MAX }));
        assert_eq!(advice.ping, Duration::from_secs(5));
        assert_eq!(
            (advice.interval, advice.nonce),
            (Duration::from_mins(5), Duration::from_mins(2))
        );
    }
}
