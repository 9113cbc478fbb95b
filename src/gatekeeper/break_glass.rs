//! What breaking the glass needs beside the word: the rule under which it is counted, and what everybody who could be passed over
//! is told, through a channel of the request that can tell them anything.

use gatepost_channel::{Listener, ReplyTone, UtcMillis};

use super::Gatekeeper;
use crate::confirmation::Confirmation;
use crate::confirmation::break_glass::{Glass, GlassNotice, may_break};
use crate::delivery::Errand;
use crate::delivery::authority::passed_over;
use crate::ids::{ConfirmationId, OperatorId, Org, OutboxId};
use crate::storage::StoreError;

impl Gatekeeper {
    /// Whether this person may see all of a request's arguments at this instant: who may vote on it, in whatever place, and who
    /// could approve it alone. Nobody approves what they could not see.
    pub fn may_see_all(&self, person: &OperatorId, row: &Confirmation, at: UtcMillis) -> bool {
        let glass = row.terms.decision.break_glass.as_ref();
        self.roll().may_decide(person, &row.org, &row.in_force(), at)
            || glass.is_some_and(|glass| may_break(self.roll(), person, &row.org, glass, at))
    }

    pub(super) async fn glass(
        &self,
        operator: &OperatorId,
        org: &Org,
        id: &ConfirmationId,
        reason: Option<&str>,
    ) -> Result<Glass, StoreError> {
        let Some(dossier) = self.dossier(org, id).await? else {
            return Ok(Glass {
                rule: None,
                notices: Vec::new(),
            });
        };
        let row = &dossier.confirmation;
        let now = self.store().read().now().await?;
        let reason = self.text(reason).map(|reason| reason.value).unwrap_or_default();
        let notices = self
            .roll()
            .deciders(org, &row.terms, now)
            .filter(|voter| voter.id != *operator)
            .filter_map(|voter| self.glass_notice(row, &voter.id, operator, &reason))
            .collect();
        Ok(Glass {
            rule: row.rule.clone(),
            notices,
        })
    }

    /// What this person is told, through the first channel of the request on which they are known.
    fn glass_notice(
        &self,
        row: &Confirmation,
        person: &OperatorId,
        operator: &OperatorId,
        reason: &str,
    ) -> Option<GlassNotice> {
        self.registry()
            .of_org(&row.org, &row.terms.channels)
            .find_map(|listed| {
                let (name, kind) = (listed.name.as_str(), listed.channel.kind());
                let user = self.people().known_as(&row.org, name, kind, person)?.to_owned();
                let chat = listed.channel.chat().to_owned();
                let words = &self.maker().phrases(listed.voice.language).authority;
                let text = passed_over(row, self.roll().name(operator), reason, words);
                let errand = if listed.channel.private_notice().is_some() {
                    Errand::Notice { user, chat, text }
                } else {
                    listed.channel.whisper()?;
                    Errand::Whisper {
                        to: Listener {
                            user,
                            chat,
                            message: None,
                        },
                        tone: ReplyTone::Warning,
                        text,
                        shows: None,
                    }
                };
                Some(GlassNotice {
                    id: OutboxId::fresh(&**self.ids()),
                    person: person.clone(),
                    channel: listed.name.clone(),
                    errand,
                })
            })
    }
}
