//! Words to the bot: what waits for a person, one request with its arguments, and answers to it, from any chat of the app.
//!
//! Only the verified identity of who spoke counts, and every answer goes to that person alone. A question reads and changes nothing; an
//! answer to a request ends in the same transaction as a press on its card ([`Decide`]), where all rules are judged. Beside them words have
//! rules of their own, because they are given without a card on the screen: only a request that [`CardMaker::show`] shows whole can be
//! approved; where the rule asks once more, the request must be named by its id *and* by the code of its call, which only who has looked
//! at it knows; no grant can be asked for; and a rejection says why.
//!
//! [`words`] reads what was said, [`find`] what it is about, [`pace`] bounds how often one person is heard.
//!
//! [`CardMaker::show`]: crate::delivery::card::CardMaker::show

use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::{
    Answer, Answered, Card, Command, Decision, Inert, Listener, Place, Reply, ReplyTone, UtcMillis,
};
use tracing::{debug, info, warn};

use super::{DECIDE_WITHIN, Intake, reply};
use crate::audit::{Actor, Draft};
use crate::confirmation::Dossier;
use crate::confirmation::decide::{
    Backing, Ballot, Decide, Decided, Refusal, Ruling, Spoken, Surface, Target,
};
use crate::delivery::card::utc;
use crate::delivery::phrase::Phrases;
use crate::delivery::registry::Listed;
use crate::delivery::whisper::QueueWhisper;
use crate::ids::{ConfirmationId, OperatorId};
use crate::storage::{ReadError, ReplayKey};

use self::find::{Found, Waiting};
use self::pace::Turn;
use self::words::{Code, Name, Unread, Verb};

mod find;
pub(super) mod pace;
mod words;

/// How old words may be, where the request does not prove them fresh: a platform repeats a message for hours.
const FRESH: Duration = Duration::from_mins(5);
/// Requests on one page of what waits.
const PER_PAGE: usize = 10;
/// Characters of a tool's name in a list.
const TOOL: usize = 60;

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
            reply: self.say(listed, "try_again", ReplyTone::Warning, None),
            stored: false,
        }
    }

    async fn hear(&self, listed: &Listed, command: &Command) -> Result<Answer, ReadError> {
        if let Place::Group { mentioned, .. } = &command.place
            && let Some(deaf) = self.overheard(listed, mentioned).await
        {
            return Ok(deaf);
        }
        let (home, ballot) = match self.speaker(listed, command) {
            Ok(known) => known,
            Err(reason) => {
                self.refuse_words(listed, Actor::Platform(who(command)), reason, None);
                let heard = self.heard(listed, command);
                return self
                    .tell(&heard, heard.reply("unknown_chat", ReplyTone::Error))
                    .await;
            }
        };
        let heard = self.heard(home, command);
        let now = self.clock.now();
        if command.said_at.is_some_and(|at| !is_fresh(at, now)) {
            self.refuse_words(home, Actor::Platform(who(command)), "stale_message", None);
            return self
                .tell(&heard, heard.warn(&heard.phrases.command.too_late))
                .await;
        }
        match self
            .words_pace
            .take(&format!("{}|{}", home.channel.app().id, who(command)), now)
        {
            Turn::Taken => {}
            turn => {
                metrics::counter!("gatepost_commands_total", "said" => "too_many").increment(1);
                let told = heard.warn(&heard.phrases.command.too_many);
                return if turn == Turn::Over || command.answered == Answered::There {
                    self.tell(&heard, told).await
                } else {
                    Ok(acknowledged())
                };
            }
        }
        self.note_click(home);
        let read = words::read(&command.words);
        let person = match (&ballot, &read) {
            (Ballot::Person(person), _) => person,
            (_, Ok(Verb::Help)) => return self.tell(&heard, help(&heard)).await,
            (Ballot::Stranger(_), _) => return self.turn_away(&heard, "unknown_operator").await,
            (Ballot::Foreigner(_), _) => return self.turn_away(&heard, "foreign_tenant").await,
        };
        let said = match read {
            Err(unread) => misread(&heard, unread),
            Ok(Verb::Help) => help(&heard),
            Ok(Verb::Pending { page }) => {
                let waiting = find::waiting(&self.gatekeeper, &home.org, person, now).await?;
                self.list(&heard, &waiting, page)
            }
            Ok(Verb::Show { name }) => self.show(&heard, person, &name).await?,
            Ok(Verb::Decide {
                decision,
                name,
                code,
                reason,
            }) => {
                let answer = Wanted {
                    decision,
                    name,
                    code,
                    reason,
                };
                self.answer_by_words(&heard, person, &ballot, answer).await?
            }
        };
        self.tell(&heard, said).await
    }

    fn heard<'a>(&'a self, home: &'a Listed, command: &'a Command) -> Heard<'a> {
        Heard {
            home,
            command,
            phrases: self.gatekeeper.maker().phrases(home.language),
        }
    }

    /// What is to be done with words in a group that were not said to the bot: nothing.
    async fn overheard(&self, listed: &Listed, mentioned: &[String]) -> Option<Answer> {
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
    fn speaker<'a>(
        &'a self,
        listed: &'a Listed,
        command: &Command,
    ) -> Result<(&'a Listed, Ballot), &'static str> {
        let app = listed.channel.app();
        if command.app.as_ref().is_some_and(|claimed| *claimed != app.id) {
            return Err("other_app");
        }
        let registry = self.gatekeeper.registry();
        if let Some(home) = registry.of_click(&app, &listed.org, command.place.chat()) {
            return Ok((home, self.ballot(home, &command.user)));
        }
        if matches!(command.place, Place::Group { .. }) {
            return Err("unknown_chat");
        }
        let others = registry.all().filter(|other| other.name != listed.name);
        let siblings = others.filter(|other| other.org == listed.org && other.channel.app() == app);
        let mut best = (listed, self.ballot(listed, &command.user));
        for home in siblings {
            let ballot = self.ballot(home, &command.user);
            if let (Ballot::Person(known), Ballot::Person(other)) = (&best.1, &ballot)
                && known != other
            {
                return Ok((listed, Ballot::Stranger(who(command))));
            }
            if standing(&ballot) > standing(&best.1) {
                best = (home, ballot);
            }
        }
        Ok(best)
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

    /// Somebody who is nobody here.
    async fn turn_away(&self, heard: &Heard<'_>, reason: &'static str) -> Result<Answer, ReadError> {
        self.refuse_words(heard.home, Actor::Platform(who(heard.command)), reason, None);
        self.tell(heard, heard.reply(reason, ReplyTone::Error)).await
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

    fn list(&self, heard: &Heard<'_>, waiting: &Waiting, page: usize) -> Said {
        let words = &heard.phrases.command;
        let count = waiting.requests.len();
        let from = page
            .saturating_sub(1)
            .saturating_mul(PER_PAGE)
            .min(count.saturating_sub(1) / PER_PAGE * PER_PAGE);
        let shown = waiting.requests.iter().skip(from).take(PER_PAGE);
        let mut lines: Vec<String> = shown.map(|dossier| self.line(heard, dossier)).collect();
        if lines.is_empty() {
            lines.push(words.nothing_waits.clone());
        } else {
            lines.insert(0, words.waits.replace("{count}", &count.to_string()));
        }
        let left = count.saturating_sub(from + PER_PAGE);
        if left > 0 {
            let more = heard.fill(&words.more).replace("{count}", &left.to_string());
            lines.push(more.replace("{page}", &(from / PER_PAGE + 2).to_string()));
        }
        if waiting.beyond {
            lines.push(words.and_beyond.clone());
        }
        metrics::counter!("gatepost_commands_total", "said" => "pending").increment(1);
        Said::new(ReplyTone::Info, lines.join("\n"))
    }

    /// One request on one line: our layout, names of others inert.
    fn line(&self, heard: &Heard<'_>, dossier: &Dossier) -> String {
        let row = &dossier.confirmation;
        let tool = Inert::new(row.asked.tool.as_str()).one_line();
        let token = Inert::new(row.asked.token.as_str()).one_line();
        format!(
            "{} · {} · {} · {} {} · {}",
            find::code_of(&self.gatekeeper, dossier).0,
            tool.head(TOOL, |piece| piece.chars().count()),
            token.head(TOOL, |piece| piece.chars().count()),
            heard.phrases.command.decide_before,
            utc(row.expires_at),
            row.id,
        )
    }

    fn several(&self, heard: &Heard<'_>, found: &[Dossier]) -> Said {
        let mut lines = vec![heard.fill(&heard.phrases.command.several)];
        lines.extend(
            found
                .iter()
                .take(PER_PAGE)
                .map(|dossier| self.line(heard, dossier)),
        );
        Said::new(ReplyTone::Warning, lines.join("\n"))
    }

    async fn show(&self, heard: &Heard<'_>, person: &OperatorId, name: &Name) -> Result<Said, ReadError> {
        let (home, now) = (heard.home, self.clock.now());
        let dossier = match find::named(&self.gatekeeper, &home.org, (person, now), name).await? {
            Found::Nothing => return Ok(heard.reply("not_found", ReplyTone::Error)),
            Found::Several(found) => return Ok(self.several(heard, &found)),
            Found::One(dossier) => dossier,
        };
        let row = &dossier.confirmation;
        let actor = Actor::Operator(person.0.clone());
        if !find::may_decide(&self.gatekeeper, person, &dossier, now) {
            self.refuse_words(home, actor, Refusal::NotAuthorised.as_str(), Some(&row.id));
            return Ok(heard.reply("not_authorised", ReplyTone::Error));
        }
        let mut draft = Draft::new(&row.org, "confirmation.viewed", actor)
            .about(&row.id)
            .on(home.name.as_str())
            .with("surface", Surface::Command.as_str());
        draft.job.clone_from(&row.asked.job);
        self.gatekeeper.journal().write(draft);
        metrics::counter!("gatepost_commands_total", "said" => "show").increment(1);
        let shown = self.shown(heard, &dossier);
        Ok(Said {
            about: Some(row.id.clone()),
            shows: Some(Box::new(shown.card)),
            ..Said::new(ReplyTone::Info, self.line(heard, &dossier))
        })
    }

    fn shown(&self, heard: &Heard<'_>, dossier: &Dossier) -> crate::delivery::card::Shown {
        let (maker, channel) = (self.gatekeeper.maker(), &heard.home.channel);
        let (language, called) = (heard.home.language, &heard.command.called);
        maker.show(dossier, language, called, |card| channel.shows_all(card))
    }

    /// Answers a request, by the one function behind every surface.
    async fn answer_by_words(
        &self,
        heard: &Heard<'_>,
        person: &OperatorId,
        ballot: &Ballot,
        wanted: Wanted,
    ) -> Result<Said, ReadError> {
        let (home, now) = (heard.home, self.clock.now());
        let dossier = match find::named(&self.gatekeeper, &home.org, (person, now), &wanted.name).await? {
            Found::Nothing => return Ok(heard.reply("not_found", ReplyTone::Error)),
            Found::Several(found) => return Ok(self.several(heard, &found)),
            Found::One(dossier) => dossier,
        };
        let code = find::code_of(&self.gatekeeper, &dossier);
        if wanted.code.as_ref().is_some_and(|said| *said != code) {
            let words = heard.phrases.command.other_code.replace("{verb}", "show");
            return Ok(heard.warn(&words));
        }
        let by_code = wanted.code.is_some() || matches!(wanted.name, Name::Code(_));
        let decide = Decide {
            target: Target::Command(Spoken {
                id: dossier.confirmation.id.clone(),
                channel: home.name.clone(),
                org: home.org.clone(),
                whole: self.shown(heard, &dossier).whole,
                sure: wanted.code.is_some(),
                replay: heard.replay(),
            }),
            ballot: ballot.clone(),
            decision: wanted.decision,
            reason: self.gatekeeper.text(wanted.reason.as_deref()),
            grant: None,
            edit: None,
            // Its code names the call as it stands; an id names whatever stands.
            seen: by_code.then(|| dossier.confirmation.call().edit),
            surface: Surface::Command,
            backing: Backing::default(),
            roll: Arc::clone(self.gatekeeper.roll()),
        };
        let decided = self.gatekeeper.store().run(decide).await?;
        self.gatekeeper.tell_vote(&decided);
        Ok(self.ruled(heard, &dossier, wanted.decision, &decided))
    }

    /// What came of an answer, in the words of clicks, and of which request it is said.
    fn ruled(&self, heard: &Heard<'_>, dossier: &Dossier, decision: Decision, decided: &Decided) -> Said {
        let row = &dossier.confirmation;
        let said = reply::of(decided, decision);
        info!(channel = %heard.home.name, request = row.id.as_str(), ruling = said.key, "words were decided");
        metrics::counter!("gatepost_commands_total", "said" => said.key).increment(1);
        let mut lines = vec![heard.phrases.reply(said.key).to_owned()];
        match &decided.ruling {
            Ruling::Refused(Refusal::NotConfirmed) => {
                let how = heard.fill(&heard.phrases.command.how_to_confirm);
                let code = find::code_of(&self.gatekeeper, dossier).0;
                lines.push(how.replace("{id}", row.id.as_str()).replace("{code}", &code));
            }
            Ruling::Refused(Refusal::PartialView) => {
                lines.extend(self.gatekeeper.maker().full_view(row));
            }
            _ if reply::leads_to_console(said.key) => lines.extend(self.gatekeeper.maker().full_view(row)),
            _ => {}
        }
        // Who may not decide hears nothing of the request.
        let known = !matches!(decided.ruling, Ruling::Refused(Refusal::NotAuthorised));
        if known {
            lines.push(self.line(heard, dossier));
        }
        Said {
            about: known.then(|| row.id.clone()),
            question: false,
            ..Said::new(said.tone, lines.join("\n"))
        }
    }
}

/// An answer to a request, as it was said.
struct Wanted {
    decision: Decision,
    name: Name,
    code: Option<Code>,
    reason: Option<String>,
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

/// Of several channels the one counts that knows the person; else one on which they may speak, though nobody knows them.
const fn standing(ballot: &Ballot) -> u8 {
    match ballot {
        Ballot::Person(_) => 2,
        Ballot::Stranger(_) => 1,
        Ballot::Foreigner(_) => 0,
    }
}

/// Nothing is said here.
fn acknowledged() -> Answer {
    Answer {
        reply: Reply {
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

fn is_fresh(at: UtcMillis, now: UtcMillis) -> bool {
    u128::from(now.0.abs_diff(at.0)) <= FRESH.as_millis()
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hearing_tests;
#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
