//! "I am away until then, and this one acts meanwhile"; and back again. What may be set is judged where it is stored.

use gatepost_channel::{ReplyTone, UtcMillis};

use super::find::Asker;
use super::words::Until;
use super::{Heard, Said};
use crate::audit::Actor;
use crate::callback::Intake;
use crate::clock::parse_rfc3339;
use crate::confirmation::away::{AwayRefusal, Span, Wish};
use crate::ids::OperatorId;
use crate::storage::StoreError;

/// How it is said.
pub(super) fn how(heard: &Heard<'_>) -> Said {
    heard.warn(
        &heard
            .phrases
            .command
            .away
            .how
            .replace("{zone}", &heard.home.voice.zone.to_string()),
    )
}

impl Intake {
    /// The person is away until then.
    pub(super) async fn leave(
        &self,
        heard: &Heard<'_>,
        asker: Asker<'_>,
        until: &Until,
        substitute: Option<&str>,
    ) -> Result<Said, StoreError> {
        let until = match until {
            Until::At(text) => parse_rfc3339(text).or_else(|| heard.home.voice.zone.read(text)),
            Until::For(span) => Some(asker.now.plus(*span)),
        };
        let Some(until) = until else {
            return Ok(how(heard));
        };
        let named = substitute.map(|name| self.who_is_meant(heard, name));
        let set = match named {
            Some(None) => Err(AwayRefusal::NotASubstitute),
            named => {
                let wish = Wish::Leave {
                    from: None,
                    until,
                    substitute: named.flatten(),
                };
                self.wished(heard, asker, wish).await?
            }
        };
        let words = &heard.phrases.command.away;
        Ok(self.told(heard, asker.person, set, &words.set))
    }

    /// The person is there again.
    pub(super) async fn back(&self, heard: &Heard<'_>, asker: Asker<'_>) -> Result<Said, StoreError> {
        // A platform may bring the same words twice, so they never take back what is planned.
        let ended = self.wished(heard, asker, Wish::Return { planned: false }).await?;
        Ok(self.told(heard, asker.person, ended, &heard.phrases.command.away.back))
    }

    async fn wished(
        &self,
        heard: &Heard<'_>,
        asker: Asker<'_>,
        wish: Wish,
    ) -> Result<Result<Span, AwayRefusal>, StoreError> {
        let actor = Actor::Operator(asker.person.0.clone());
        let org = &heard.home.org;
        self.gatekeeper.set_away(org, asker.person, actor, wish).await
    }

    /// The person whom a name means: a mention of the platform, else whatever an operator is called by.
    fn who_is_meant(&self, heard: &Heard<'_>, name: &str) -> Option<OperatorId> {
        let bare = name
            .trim_start_matches('<')
            .trim_end_matches('>')
            .trim_start_matches('@');
        let (id, label) = bare.split_once('|').unwrap_or((bare, bare));
        let home = heard.home;
        let known = self.gatekeeper.people().clicker(
            &home.org,
            home.name.as_str(),
            home.channel.kind(),
            &[id.to_owned()],
        );
        known.cloned().or_else(|| self.gatekeeper.meant(&home.org, label))
    }

    fn told(
        &self,
        heard: &Heard<'_>,
        person: &OperatorId,
        done: Result<Span, AwayRefusal>,
        words: &str,
    ) -> Said {
        let key = match &done {
            Ok(_) => "away",
            Err(refusal) => refusal.as_str(),
        };
        metrics::counter!("gatepost_commands_total", "said" => key).increment(1);
        let span = match done {
            Ok(span) => span,
            Err(refusal) => return self.not_away(heard, person, refusal),
        };
        let show = |at: UtcMillis| heard.home.voice.zone.show(at);
        let roll = self.gatekeeper.roll();
        let text = heard
            .fill(words)
            .replace("{from}", &show(span.from))
            .replace("{until}", &show(span.until))
            .replace("{substitute}", roll.name(&span.substitute));
        Said::new(ReplyTone::Success, text)
    }

    fn not_away(&self, heard: &Heard<'_>, person: &OperatorId, refusal: AwayRefusal) -> Said {
        let words = &heard.phrases.command.away;
        let said = match refusal {
            AwayRefusal::Unknown => return heard.reply("unknown_operator", ReplyTone::Error),
            AwayRefusal::NoSubstitute => &words.no_substitute,
            AwayRefusal::NotASubstitute => &words.not_a_substitute,
            AwayRefusal::Past => &words.past,
            AwayRefusal::TooLong => &words.too_long,
            AwayRefusal::Configured => &words.configured,
            AwayRefusal::Circle => &words.circle,
            AwayRefusal::TooMany => &words.too_many,
            AwayRefusal::NotAway => &words.not_away,
        };
        let roll = self.gatekeeper.roll();
        let may_name = roll.absences().may_name(person.as_str()).iter();
        let names: Vec<&str> = may_name
            .filter_map(|id| roll.voters().find(|voter| voter.id.as_str() == id))
            .map(|voter| voter.name.as_str())
            .collect();
        Said::new(
            ReplyTone::Warning,
            heard.fill(said).replace("{names}", &names.join(", ")),
        )
    }
}
