//! An answer to all requests of a card at once: decided in one transaction, and told of each.

use gatepost_channel::{Answer, Click, Field, Inert, Reply, ReplyTone, SetCode};
use tracing::info;

use super::{DECIDE_WITHIN, Intake, reply};
use crate::confirmation::decide::{Decided, Ruling};
use crate::confirmation::decide_all::{AllRuling, DecideAll, DecidedAll, Tally};
use crate::confirmation::{Delivery, Dossier};
use crate::delivery::registry::Listed;
use crate::storage::ReplayKey;

impl Intake {
    /// Decides a verified press for all requests of a card. The press is on the card of the first.
    pub(super) async fn rule_all(
        &self,
        home: &Listed,
        click: &Click,
        replay: ReplayKey,
        set: SetCode,
    ) -> Answer {
        let deciding = async {
            let (press, _) = self.decide(home, click, replay).await?;
            let key = self.gatekeeper.maker().key().clone();
            self.gatekeeper.store().run(DecideAll::new(press, set, key)).await
        };
        match tokio::time::timeout(DECIDE_WITHIN, deciding).await {
            Ok(Ok(decided)) => {
                for dossier in &decided.dossiers {
                    if decided.settled.contains(&dossier.confirmation.id) {
                        self.gatekeeper.tell_decided(dossier);
                    }
                }
                Answer {
                    reply: self.answer_all(home, click, decided).await,
                    stored: true,
                }
            }
            failed => self.not_stored(home, failed.err().map(|_| "too slow")),
        }
    }

    async fn answer_all(&self, home: &Listed, click: &Click, decided: DecidedAll) -> Reply {
        let DecidedAll {
            ruling,
            dossiers,
            card: pressed,
            ..
        } = decided;
        let replayed = matches!(ruling, AllRuling::Replayed(_));
        let tally = match ruling {
            AllRuling::Judged(tally) => Ok(tally),
            AllRuling::Refused(refusal) => Err(Ruling::Refused(refusal)),
            AllRuling::Replayed(answer) => {
                serde_json::from_str(&answer).map_err(|_| Ruling::Replayed(answer))
            }
        };
        let (tone, text, tell) = match &tally {
            Ok(tally) => self.tallied(home, click, tally, &dossiers),
            Err(ruling) => {
                let said = reply::of(&judged(ruling.clone(), None), click.decision);
                (said.tone, self.words(home, said.key, None), said.tell)
            }
        };
        info!(channel = %home.name, requests = dossiers.len(), done = tally.as_ref().map_or(0, Tally::done), "a click for all of a card was decided");
        metrics::counter!("gatepost_clicks_total", "ruling" => "all").increment(1);
        if tell && !replayed {
            self.tell_clicker(home, click, dossiers.first(), text.clone())
                .await;
        }
        let card = dossiers
            .iter()
            .find_map(|dossier| {
                let pressed = |card: &&Delivery| pressed.as_ref().is_none_or(|pressed| *pressed == card.id);
                let here = dossier.deliveries.iter().filter(|card| card.channel == home.name);
                let delivery = here.into_iter().find(pressed)?;
                let maker = self.gatekeeper.maker();
                Some(maker.message(dossier, &dossiers, delivery, &home.voice, self.clock.now()))
            })
            .filter(|_| home.channel.takes_card());
        Reply {
            tone,
            text: Inert::new(&text),
            refused: tally.is_err(),
            field: Field::default(),
            card,
        }
    }

    /// How the requests took it, in words; whether it needs saying where the card itself shows it.
    fn tallied(
        &self,
        home: &Listed,
        click: &Click,
        tally: &Tally,
        dossiers: &[Dossier],
    ) -> (ReplyTone, String, bool) {
        let phrases = self.gatekeeper.maker().phrases(home.voice.language);
        let done = tally.done();
        let refused: Vec<_> = tally
            .refused
            .iter()
            .map(|(id, word)| {
                let about = dossiers
                    .iter()
                    .find(|dossier| dossier.confirmation.id == *id)
                    .cloned();
                // The words of a single press, whatever the card was.
                let said = reply::of(&judged(Ruling::Replayed(word.clone()), about), click.decision);
                (id.as_str(), phrases.reply(said.key))
            })
            .collect();
        let tone = match (done, refused.is_empty()) {
            (0, _) => ReplyTone::Warning,
            (_, true) => ReplyTone::Success,
            (_, false) => ReplyTone::Info,
        };
        let tell = tally.counted + tally.armed > 0 || !refused.is_empty();
        // Nobody needs to read the same words once for each request.
        match refused.as_slice() {
            [(_, why), others @ ..] if done == 0 && others.iter().all(|(_, other)| other == why) => {
                (tone, (*why).to_owned(), tell)
            }
            _ => {
                let mut said = phrases.all_answered(click.decision, done, refused);
                if let Some(waiting) = tally.waits_for() {
                    said.push('\n');
                    said.push_str(phrases.reply(reply::armed(waiting)));
                }
                (tone, said, tell)
            }
        }
    }
}

/// As if one request had been answered so.
const fn judged(ruling: Ruling, dossier: Option<Dossier>) -> Decided {
    Decided {
        ruling,
        dossier,
        fellows: Vec::new(),
        card: None,
    }
}
