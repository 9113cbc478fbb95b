//! Who spoke, whether it was to the bot, and which channel stands for the place.

use std::time::Duration;

use gatepost_channel::{Answer, Command, Place, UtcMillis};
use tracing::{debug, warn};

use super::{acknowledged, who};
use crate::callback::Intake;
use crate::confirmation::decide::Ballot;
use crate::delivery::registry::Listed;
use crate::gatekeeper::attend::{About, Attended};
use crate::storage::StoreError;

/// How old words may be, where the request does not prove them fresh: a platform repeats a message for hours.
const FRESH: Duration = Duration::from_mins(5);

impl Intake {
    /// What is to be done with words in a group that were not said to the bot: nothing.
    pub(super) async fn overheard(&self, listed: &Listed, mentioned: &[String]) -> Option<Answer> {
        let Some(whisper) = listed.channel.whisper() else {
            return Some(acknowledged());
        };
        match whisper.is_me(mentioned).await {
            Ok(true) => None,
            Ok(false) => {
                debug!(channel = %listed.name, "words in a group were not said to the bot");
                Some(acknowledged())
            }
            Err(failure) => {
                warn!(channel = %listed.name, %failure, "whether words in a group were said to the bot could not be told");
                Some(Answer {
                    stored: false,
                    ..acknowledged()
                })
            }
        }
    }

    /// The channel that stands for the chat, and who spoke. In a group only a configured chat counts. Where the platform shows words and
    /// answer to the person alone, any chat does: every channel of the app, all of one organisation, vouches for the person, as long as
    /// none knows somebody else by the same identity.
    pub(super) async fn speaker<'a>(
        &'a self,
        listed: &'a Listed,
        command: &Command,
    ) -> Result<Result<(&'a Listed, Attended), &'static str>, StoreError> {
        let attend = async |home| {
            let user = &command.user;
            self.gatekeeper.attend(home, user, About::Nothing).await
        };
        let app = listed.channel.app();
        if command.app.as_ref().is_some_and(|claimed| *claimed != app.id) {
            return Ok(Err("other_app"));
        }
        let registry = self.gatekeeper.registry();
        if let Some(home) = registry.of_click(&app, &listed.org, command.place.chat()) {
            return Ok(Ok((home, attend(home).await?)));
        }
        if matches!(command.place, Place::Group { .. }) {
            return Ok(Err("unknown_chat"));
        }
        let others = registry.all().filter(|other| other.name != listed.name);
        let siblings = others.filter(|other| other.org == listed.org && other.channel.app() == app);
        let mut best = (listed, attend(listed).await?);
        for home in siblings {
            let other = attend(home).await?;
            if let (Ballot::Person(known), Ballot::Person(person)) = (&best.1.ballot, &other.ballot)
                && known != person
            {
                best.1.ballot = Ballot::Stranger(who(command));
                return Ok(Ok((listed, best.1)));
            }
            if standing(&other.ballot) > standing(&best.1.ballot) {
                best = (home, other);
            }
        }
        Ok(Ok(best))
    }
}

/// Of several channels the one counts that knows the person; else one on which they may speak, though nobody knows them.
const fn standing(ballot: &Ballot) -> u8 {
    match ballot {
        Ballot::Person(_) => 2,
        Ballot::Stranger(_) => 1,
        Ballot::Foreigner(_) | Ballot::Kept(..) => 0,
    }
}

/// Whether words that were said then still count.
pub(super) fn is_fresh(at: UtcMillis, now: UtcMillis) -> bool {
    u128::from(now.0.abs_diff(at.0)) <= FRESH.as_millis()
}
