//! One request: shown to who may decide it, and answered by the one function behind every surface.

use gatepost_channel::{Decision, ReplyTone};
use tracing::info;

use super::find::{self, Asker, Found};
use super::words::{Name, Wanted};
use super::{Heard, Said};
use crate::audit::{Actor, Draft};
use crate::callback::{Intake, reply};
use crate::confirmation::Dossier;
use crate::confirmation::decide::{Backing, Decide, Decided, Refusal, Ruling, Spoken, Surface, Target};
use crate::delivery::card::Shown;
use crate::gatekeeper::attend::{About, Attended};
use crate::storage::ReadError;

impl Intake {
    /// One request with its arguments, for who may decide it; that they saw it is put on record.
    pub(super) async fn show(
        &self,
        heard: &Heard<'_>,
        asker: Asker<'_>,
        name: &Name,
    ) -> Result<Said, ReadError> {
        let home = heard.home;
        let dossier = match find::named(&self.gatekeeper, &home.org, asker, name).await? {
            Found::Nothing => return Ok(heard.reply("not_found", ReplyTone::Error)),
            Found::Several(found) => return Ok(self.several(heard, &found)),
            Found::One(dossier) => dossier,
        };
        let row = &dossier.confirmation;
        let actor = Actor::Operator(asker.person.0.clone());
        if let Err(refusal) = find::may_be_shown(asker, &dossier) {
            self.refuse_words(home, actor, refusal.as_str(), Some(&row.id));
            let tone = match refusal {
                Refusal::LookUpFailed => ReplyTone::Warning,
                _ => ReplyTone::Error,
            };
            return Ok(heard.reply(refusal.as_str(), tone));
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

    fn shown(&self, heard: &Heard<'_>, dossier: &Dossier) -> Shown {
        let (maker, channel) = (self.gatekeeper.maker(), &heard.home.channel);
        let (voice, called) = (&heard.home.voice, &heard.command.called);
        maker.show(dossier, (voice, self.clock.now()), called, |card| {
            channel.shows_all(card)
        })
    }

    /// Answers a request, by the one function behind every surface.
    pub(super) async fn answer_by_words(
        &self,
        heard: &Heard<'_>,
        asker: Asker<'_>,
        wanted: Wanted,
    ) -> Result<Said, ReadError> {
        let home = heard.home;
        let dossier = match find::named(&self.gatekeeper, &home.org, asker, &wanted.name).await? {
            Found::Nothing => return Ok(heard.reply("not_found", ReplyTone::Error)),
            Found::Several(found) => return Ok(self.several(heard, &found)),
            Found::One(dossier) => dossier,
        };
        let code = find::code_of(&self.gatekeeper, &dossier);
        let by_code = wanted.code.is_some() || matches!(wanted.name, Name::Code(_));
        if wanted.code.as_ref().is_some_and(|said| *said != code) {
            let words = heard.phrases.command.other_code.replace("{verb}", "show");
            return Ok(heard.warn(&words));
        }
        let (gatekeeper, user) = (&self.gatekeeper, &heard.command.user);
        let Attended {
            ballot,
            roll,
            insight,
        } = gatekeeper.attend(home, user, About::Request(&dossier)).await?;
        let decide = Decide {
            target: Target::Command(Spoken {
                id: dossier.confirmation.id.clone(),
                channel: home.name.clone(),
                org: home.org.clone(),
                whole: self.shown(heard, &dossier).whole,
                sure: wanted.code.is_some(),
                replay: heard.replay(),
            }),
            ballot,
            decision: wanted.decision,
            reason: self.gatekeeper.text(wanted.reason.as_deref()),
            grant: None,
            edit: None,
            // Its code names the call as it stands; an id names whatever stands.
            seen: by_code.then(|| dossier.confirmation.call().edit),
            surface: Surface::Command,
            roll,
            backing: Backing::default(),
            insight,
        };
        let decided = self.gatekeeper.store().run(decide).await?;
        self.gatekeeper.tell_vote(&decided);
        let known = find::may_decide(asker, &dossier);
        Ok(self.ruled(heard, (&dossier, known), wanted.decision, &decided))
    }

    /// What came of an answer, in the words of clicks. Of which request it is said hears only who may know of it.
    fn ruled(
        &self,
        heard: &Heard<'_>,
        (dossier, known): (&Dossier, bool),
        decision: Decision,
        decided: &Decided,
    ) -> Said {
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
