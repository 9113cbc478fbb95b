//! Intake of clicks that came in over connections of ours: the same decision and the same reply as for callbacks over HTTP.

use async_trait::async_trait;
use gatepost_channel::{
    Answer, AppKey, Ask, Click, Command, Field, Inert, Refusal, Reply, ReplyTone, Verified,
};
use tracing::warn;

use super::Intake;
use crate::delivery::registry::Listed;

impl Intake {
    /// Any channel of the app whose clicks come in over its connection. An app lies in one organisation, so each of them
    /// vouches for the same.
    fn of_app(&self, app: &AppKey) -> Option<&Listed> {
        self.gatekeeper.registry().all().find(|listed| {
            listed
                .channel
                .connection()
                .is_some_and(|connection| connection.key() == *app)
        })
    }
}

#[async_trait]
impl gatepost_channel::Intake for Intake {
    async fn click(&self, app: &AppKey, click: Verified<Click>) -> Answer {
        match self.of_app(app) {
            Some(listed) => self.rule(listed, click.get()).await,
            None => nowhere(app),
        }
    }

    async fn command(&self, app: &AppKey, command: Verified<Command>) -> Answer {
        match self.of_app(app) {
            Some(listed) => self.obey(listed, command.get()).await,
            None => nowhere(app),
        }
    }

    async fn ask(&self, app: &AppKey, ask: Verified<Ask>) -> Answer {
        match self.of_app(app) {
            Some(listed) => self.open_for(listed, ask.get()).await,
            None => nowhere(app),
        }
    }

    fn refused(&self, app: &AppKey, refusal: &Refusal) {
        if let Some(listed) = self.of_app(app) {
            self.refuse(listed, refusal, self.clock.now());
        }
    }
}

/// The answer to what came in over a connection that no channel has.
fn nowhere(app: &AppKey) -> Answer {
    warn!(app = %app.id, "a click came in over a connection that no channel has");
    Answer {
        reply: Reply {
            tone: ReplyTone::Error,
            text: Inert::default(),
            refused: true,
            field: Field::Answer,
            card: None,
        },
        stored: false,
    }
}
