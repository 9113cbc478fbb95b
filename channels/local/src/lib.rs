//! A channel that needs no account: the console inbox and the terminal. Posting always works, because the card is the row
//! itself; nothing is sent anywhere. It has no callback: only a logged-in operator decides here.

use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::{
    AppKey, Card, CardForm, Channel, Failure, Health, MessageRef, Pace, PlatformUser, PostKey, Posted,
};

/// The kind, as the configuration spells it.
pub const KIND: &str = "local";

/// The console inbox of an organisation.
#[derive(Debug, Clone)]
pub struct LocalChannel {
    name: String,
}

impl LocalChannel {
    /// An inbox of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

#[async_trait]
impl Channel for LocalChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn app(&self) -> AppKey {
        AppKey {
            kind: KIND.to_owned(),
            id: self.name.clone(),
        }
    }

    fn chat(&self) -> &str {
        &self.name
    }

    fn admits(&self, _user: &PlatformUser) -> bool {
        false
    }

    fn shows_all(&self, _card: &Card) -> bool {
        true
    }

    async fn post(&self, _card: &Card, key: &PostKey) -> Posted {
        Posted::At(MessageRef {
            chat: self.name.clone(),
            message: key.0.clone(),
        })
    }

    async fn edit(&self, _at: &MessageRef, _card: &Card) -> Result<CardForm, Failure> {
        Ok(CardForm::LaidOut)
    }

    async fn check(&self) -> Health {
        Health {
            healthy: true,
            detail: "the console shows its requests".to_owned(),
        }
    }

    fn pace(&self) -> Pace {
        Pace {
            burst: 10_000,
            every: Duration::from_millis(1),
        }
    }
}
