//! What breaking the glass needs beside the word: the rule under which it is counted, and what everybody who could be passed over
//! is told, through a channel of the request that can tell them anything.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use gatepost_channel::{Listener, ReplyTone, UtcMillis};

use super::Gatekeeper;
use crate::confirmation::break_glass::{Glass, GlassNotice, may_break};
use crate::confirmation::roll::{Found, Roll};
use crate::confirmation::{Confirmation, stage};
use crate::delivery::Errand;
use crate::delivery::authority::passed_over;
use crate::delivery::mention::{Acquaintance as _, Member};
use crate::delivery::registry::Listed;
use crate::ids::{ConfirmationId, OperatorId, Org, OutboxId};
use crate::storage::StoreError;

/// Whether this person may see all of a request's arguments at this instant: who may vote on it, in whatever place, and who
/// could approve it alone. Nobody approves what they could not see.
pub fn may_see_all(roll: &Roll, person: &OperatorId, row: &Confirmation, at: UtcMillis) -> bool {
    let glass = row.terms.decision.break_glass.as_ref();
    roll.may_decide(person, &row.org, &row.in_force(), at)
        || glass.is_some_and(|glass| may_break(roll, person, &row.org, glass, at))
}

impl Gatekeeper {
    /// What breaking the glass needs, and who may be passed over beside those of whom the configuration says it: people who may
    /// answer by being in a group of a platform, as many as are looked at.
    pub(super) async fn glass(
        &self,
        operator: &OperatorId,
        org: &Org,
        id: &ConfirmationId,
        reason: Option<&str>,
    ) -> Result<(Glass, Vec<Found>), StoreError> {
        let Some(dossier) = self.dossier(org, id).await? else {
            let glass = Glass {
                rule: None,
                notices: Vec::new(),
            };
            return Ok((glass, Vec::new()));
        };
        let row = &dossier.confirmation;
        let (terms, now) = (row.in_force(), self.store().read().now().await?);
        let reason = self.text(reason).map(|reason| reason.value).unwrap_or_default();
        let roles = stage::roles(&terms);
        let channels = self.registry().of_org(org, &terms.channels);
        let company = channels.map(|listed| {
            let members = self.directories().members(listed, &roles);
            members.map(move |members| (listed, members))
        });
        let company = join_all(company).await;
        let members = company.iter().flat_map(|(_, members)| members);
        let found: Vec<Found> = members.map(|member| member.found.clone()).collect();
        let roll = self.rolled(found.clone());
        let deciders = roll.deciders(org, &terms, now).map(|voter| &voter.id);
        let deciders: Vec<&OperatorId> = deciders.filter(|id| !roll.is_same(id, operator)).collect();
        let (mut told, mut notices) = (BTreeSet::new(), Vec::new());
        for (listed, members) in &company {
            let asked = deciders.iter().filter(|person| !told.contains(**person));
            let asked = asked.map(|person| async {
                let member = members
                    .iter()
                    .find(|member| roll.is_same(&member.found.voter.id, person));
                (*person, self.account_on(listed, member, person).await)
            });
            for (person, user) in join_all(asked).await {
                let notice =
                    user.and_then(|user| self.glass_notice(row, listed, (person, user), operator, &reason));
                told.extend(notice.as_ref().map(|_| person.clone()));
                notices.extend(notice);
            }
        }
        let rule = row.rule.clone();
        Ok((Glass { rule, notices }, found))
    }

    /// The account through which a person can be told something on a channel.
    async fn account_on(
        &self,
        listed: &Listed,
        member: Option<&Member>,
        person: &OperatorId,
    ) -> Option<String> {
        let (name, kind) = (listed.name.as_str(), listed.channel.kind());
        match self.people().known_as(&listed.org, name, kind, person) {
            Some(known) => Some(known.to_owned()),
            None => match member {
                Some(member) => Some(member.id.clone()),
                None => self.directories().id_on(listed, person).await,
            },
        }
    }

    /// What this person is told on this channel, if it can tell one person anything.
    fn glass_notice(
        &self,
        row: &Confirmation,
        listed: &Listed,
        (person, user): (&OperatorId, String),
        operator: &OperatorId,
        reason: &str,
    ) -> Option<GlassNotice> {
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
    }
}
