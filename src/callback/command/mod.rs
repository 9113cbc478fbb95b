//! Words to the bot: what waits for a person, one request with its arguments, and answers to it, from any chat of the app.
//!
//! Only the verified identity of who spoke counts, and every answer goes to that person alone. A question reads and changes nothing; an
//! answer to a request ends in the same transaction as a press on its card ([`Decide`]), where all rules are judged. Beside them words have
//! rules of their own, because they are given without a card on the screen: only a request that [`CardMaker::show`] shows whole can be
//! approved; where the rule asks once more, the request must be named by its id *and* by the code of its call, which only who has looked
//! at it knows; no grant can be asked for; and a rejection says why.
//!
//! [`pace`] bounds how often one person is heard, [`speaker`] tells who it is, [`words`] reads what was said and [`find`] what it means;
//! [`list`] and [`answer`] do it.
//!
//! [`CardMaker::show`]: crate::delivery::card::CardMaker::show

use gatepost_channel::{Answer, Answered, Card, Command, Field, Inert, Listener, Place, Reply, ReplyTone};
use tracing::warn;

use super::{DECIDE_WITHIN, Intake};
use crate::audit::{Actor, Draft};
use crate::confirmation::decide::{Ballot, Surface};
use crate::delivery::phrase::Phrases;
use crate::delivery::registry::Listed;
use crate::delivery::whisper::QueueWhisper;
use crate::ids::ConfirmationId;
use crate::storage::{ReadError, ReplayKey};

use self::find::Asker;
use self::pace::Turn;
use self::speaker::is_fresh;
use self::words::{Unread, Verb};

mod answer;
mod find;
mod list;
pub(super) mod pace;
mod speaker;
mod words;

/// What the person is told.
struct Said {
    tone: ReplyTone,
    text: String,
    /// The request that it is about, when the person may know of it.
    about: Option<ConfirmationId>,
    /// The request itself, shown.
    shows: Option<Box<Card>>,
    /// Whether nothing but this answer remembers the command.
    question: bool,
}

impl Said {
    const fn new(tone: ReplyTone, text: String) -> Self {
        Self {
            tone,
            text,
            about: None,
            shows: None,
            question: true,
        }
    }
}

/// Who spoke, and to what.
struct Heard<'a> {
    home: &'a Listed,
    command: &'a Command,
    phrases: &'a Phrases,
}

impl Heard<'_> {
    /// Own words with how the bot was called.
    fn fill(&self, words: &str) -> String {
        words.replace("{command}", &self.command.called)
    }

    fn reply(&self, key: &str, tone: ReplyTone) -> Said {
        Said::new(tone, self.phrases.reply(key).to_owned())
    }

    fn warn(&self, words: &str) -> Said {
        Said::new(ReplyTone::Warning, self.fill(words))
    }

    fn replay(&self) -> ReplayKey {
        ReplayKey {
            app: self.home.channel.app(),
            key: self.command.replay_key.clone(),
        }
    }
}

impl Intake {
    /// Obeys or refuses a verified command, whatever it came in by. `listed` is a channel of the app that vouches for it.
    pub(super) async fn obey(&self, listed: &Listed, command: &Command) -> Answer {
        let heard = tokio::time::timeout(DECIDE_WITHIN, self.hear(listed, command)).await;
        let trouble = match heard {
            Ok(Ok(answer)) => return answer,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "too slow".to_owned(),
        };
        warn!(channel = %listed.name, error = %trouble, "a command could not be answered in time");
        metrics::counter!("gatepost_callbacks_unstored_total").increment(1);
        Answer {
            reply: self.say(listed, "try_again", ReplyTone::Warning, true, None),
            stored: false,
        }
    }

    async fn hear(&self, listed: &Listed, command: &Command) -> Result<Answer, ReadError> {
        if let Place::Group { mentioned, .. } = &command.place
            && let Some(deaf) = self.overheard(listed, mentioned).await
        {
            return Ok(deaf);
        }
        let now = self.clock.now();
        let at_door = self.heard(listed, command);
        let speaker = format!("{}|{}", listed.channel.app().id, who(command));
        let turn = self.words_pace.take(&speaker, now);
        if turn != Turn::Taken {
            metrics::counter!("gatepost_commands_total", "said" => "too_many").increment(1);
            if turn == Turn::Silent && command.answered == Answered::Apart {
                return Ok(acknowledged());
            }
            let told = at_door.warn(&at_door.phrases.command.too_many);
            return self.tell(&at_door, told).await;
        }
        let spoken = self.speaker(listed, command).await?;
        let (home, attended) = match spoken {
            Ok(known) => known,
            Err(reason) => return self.turn_away(&at_door, reason, "unknown_chat").await,
        };
        let heard = self.heard(home, command);
        if command.said_at.is_some_and(|at| !is_fresh(at, now)) {
            self.refuse_words(home, Actor::Platform(who(command)), "stale_message", None);
            let told = heard.warn(&heard.phrases.command.too_late);
            return self.tell(&heard, told).await;
        }
        self.note_click(home);
        let asker = |person| Asker {
            person,
            roll: &attended.roll,
            now,
        };
        let said = match (words::read(&command.words), &attended.ballot) {
            (Ok(Verb::Help), _) => help(&heard),
            (_, Ballot::Stranger(_)) => {
                return self
                    .turn_away(&heard, "unknown_operator", "unknown_operator")
                    .await;
            }
            (_, Ballot::Foreigner(_)) => {
                return self.turn_away(&heard, "foreign_tenant", "foreign_tenant").await;
            }
            (_, Ballot::Kept(_, refusal)) => {
                return self.turn_away(&heard, refusal.as_str(), refusal.as_str()).await;
            }
            (Err(unread), Ballot::Person(_)) => misread(&heard, unread),
            (Ok(Verb::Pending { page }), Ballot::Person(person)) => {
                let waiting = find::waiting(&self.gatekeeper, &home.org, asker(person)).await?;
                self.list(&heard, &waiting, page)
            }
            (Ok(Verb::Show { name }), Ballot::Person(person)) => {
                self.show(&heard, asker(person), &name).await?
            }
            (Ok(Verb::Decide(wanted)), Ballot::Person(person)) => {
                self.answer_by_words(&heard, asker(person), wanted).await?
            }
        };
        self.tell(&heard, said).await
    }

    fn heard<'a>(&'a self, home: &'a Listed, command: &'a Command) -> Heard<'a> {
        Heard {
            home,
            command,
            phrases: self.gatekeeper.maker().phrases(home.voice.language),
        }
    }

    /// Tells the person, in the answer to their request or apart from it.
    async fn tell(&self, heard: &Heard<'_>, said: Said) -> Result<Answer, ReadError> {
        let Said {
            tone,
            text,
            about,
            shows,
            question,
        } = said;
        let Some(user) = heard.command.user.ids.first() else {
            return Ok(acknowledged());
        };
        if heard.command.answered == Answered::There {
            return Ok(Answer {
                reply: Reply {
                    refused: false,
                    field: Field::Answer,
                    tone,
                    text: Inert::new(&text),
                    card: shows.map(|card| *card),
                },
                stored: true,
            });
        }
        let message = match &heard.command.place {
            Place::Private { .. } => None,
            Place::Group { message, .. } => Some(message.clone()),
        };
        let whisper = QueueWhisper {
            replay: heard.replay(),
            question,
            confirmation: about,
            channel: heard.home.name.clone(),
            to: Listener {
                user: user.clone(),
                chat: heard.command.place.chat().to_owned(),
                message,
            },
            tone,
            text,
            shows: shows.map(|_| heard.command.called.clone()),
        };
        self.gatekeeper.store().run(whisper).await?;
        Ok(acknowledged())
    }

    /// Somebody who is not heard here, for this reason and in these words.
    async fn turn_away(
        &self,
        heard: &Heard<'_>,
        reason: &'static str,
        words: &'static str,
    ) -> Result<Answer, ReadError> {
        self.refuse_words(heard.home, Actor::Platform(who(heard.command)), reason, None);
        self.tell(heard, heard.reply(words, ReplyTone::Error)).await
    }

    /// Puts on record that words were refused before any request was asked about them.
    fn refuse_words(&self, at: &Listed, actor: Actor, reason: &'static str, about: Option<&ConfirmationId>) {
        metrics::counter!("gatepost_commands_total", "said" => reason).increment(1);
        let mut draft = Draft::new(&at.org, "callback.refused", actor)
            .on(at.name.as_str())
            .with("reason", reason)
            .with("surface", Surface::Command.as_str());
        draft.confirmation = about.cloned();
        self.gatekeeper.journal().write(draft);
    }
}

fn help(heard: &Heard<'_>) -> Said {
    Said::new(ReplyTone::Info, heard.fill(&heard.phrases.command.help))
}

fn misread(heard: &Heard<'_>, unread: Unread) -> Said {
    let words = &heard.phrases.command;
    match unread {
        Unread::Verb => heard.warn(&format!("{}\n{}", words.not_understood, words.help)),
        Unread::Name(verb) => heard.warn(&words.which.replace("{verb}", verb)),
        Unread::Reason => heard.warn(&words.reject_why),
    }
}

/// Nothing is said here.
fn acknowledged() -> Answer {
    Answer {
        reply: Reply {
            refused: false,
            field: Field::Answer,
            tone: ReplyTone::Info,
            text: Inert::default(),
            card: None,
        },
        stored: true,
    }
}

/// Who spoke, for the log and the audit.
fn who(command: &Command) -> String {
    command.user.ids.first().cloned().unwrap_or_default()
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hearing_tests;
#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
