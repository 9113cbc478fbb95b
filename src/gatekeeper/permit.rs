//! From an approval to an execution: the permit is consumed only after policy was asked again.

use super::council::{News, Via, What};
use super::{Caller, Gatekeeper};
use crate::confirmation::consume::{Consume, Granted, NotGranted};
use crate::confirmation::{Basis, Confirmation, Dossier};
use crate::gate::grant::GrantTerms;
use crate::gate::json::ReadLimits;
use crate::gate::policy::{CallFacts, Effect, Judgement, Voices};
use crate::gate::{Digest, Json};
use crate::ids::{ConfirmationId, PermitId};
use crate::storage::StoreError;

impl Gatekeeper {
    /// Consumes the permit of an approved call, once.
    pub async fn consume(
        &self,
        via: Via,
        caller: &Caller,
        id: &ConfirmationId,
        digest: Digest,
    ) -> Result<Result<Granted, NotGranted>, StoreError> {
        let Some(dossier) = self.store().read().dossier(id).await? else {
            return Ok(Err(NotGranted::NotFound));
        };
        if dossier.confirmation.asked.token != caller.token || dossier.confirmation.org != caller.org {
            return Ok(Err(NotGranted::NotFound));
        }
        let row = &dossier.confirmation;
        let consume = self.consumption(&dossier, digest).await?;
        let granted = self.store().run(consume).await?;
        if granted.is_ok() {
            self.news(News::of_asked(via, &row.org, &row.asked, What::Begun));
        }
        Ok(granted)
    }

    /// The consumption as a transaction: with today's voters, and today's policy on the call as people approved it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn consumption(&self, dossier: &Dossier, digest: Digest) -> Result<Consume, StoreError> {
        let row = &dossier.confirmation;
        let today = self.today(row);
        Ok(Consume {
            id: row.id.clone(),
            token: row.asked.token.clone(),
            digest,
            judged: row.call().digest,
            permit: PermitId::fresh(&**self.ids()),
            roll: self.roll_at_consume(row, &dossier.votes).await?,
            denied_by: denied_by(today.as_ref()),
            grant: row.progress.basis.as_ref().and_then(Basis::grant).cloned(),
            offered: self.offered(row, today),
        })
    }

    /// What the rule under which a grant approved the call offers by now. Another rule that speaks for the call offers nothing to
    /// what was granted under the old one.
    fn offered(&self, row: &Confirmation, today: Option<Judgement>) -> Option<GrantTerms> {
        row.progress.basis.as_ref().and_then(Basis::grant)?;
        // As the rules alone ask, if they do: a tool that asks as well brings the terms of whatever allows the call without the
        // agent's word, and these offer nothing.
        let asks = |judged: &Judgement| judged.effect == Effect::Confirm;
        let judged = self.judge_again(row, Voices::default()).filter(asks).or(today)?;
        (judged.rule == row.rule)
            .then_some(judged.terms)
            .flatten()
            .and_then(|terms| terms.decision.grants)
    }

    /// What policy says of the call by now; nothing when it can no longer be read.
    fn today(&self, row: &Confirmation) -> Option<Judgement> {
        // Somebody asked for a person then; terms stand where a rule alone would allow the call.
        let voices = Voices {
            tool_requires_confirmation: true,
            hooks: None,
        };
        self.judge_again(row, voices)
    }

    fn judge_again(&self, row: &Confirmation, voices: Voices) -> Option<Judgement> {
        let text = row.call().args;
        let args = Json::read(text.as_bytes(), ReadLimits::bytes(text.len())).ok()?;
        self.judge_call(row, &args, voices)
    }

    /// What policy says by now of a request's call with these arguments; nothing when what was said of it can no longer be read.
    pub(super) fn judge_call(&self, row: &Confirmation, args: &Json, voices: Voices) -> Option<Judgement> {
        let metadata = match row
            .asked
            .metadata
            .as_deref()
            .map(|text| Json::read(text.as_bytes(), ReadLimits::bytes(text.len())))
        {
            Some(Err(_)) => return None,
            Some(Ok(metadata)) => Some(metadata),
            None => None,
        };
        let facts = CallFacts {
            tool: &row.asked.tool,
            args,
            token: row.asked.token.as_str(),
            agent: row.asked.agent_id.as_deref(),
            requester: row.asked.requester.as_deref(),
            org: row.org.as_str(),
            metadata: metadata.as_ref(),
            known_person: !row.asked.persons.is_empty(),
        };
        Some(self.0.policy.judge(&facts, &voices))
    }
}

/// The rule that denies the call by now. What can no longer be read is denied too.
fn denied_by(today: Option<&Judgement>) -> Option<String> {
    match today {
        None => Some("unreadable".to_owned()),
        Some(today) if today.effect == Effect::Deny => {
            Some(today.rule.clone().unwrap_or_else(|| "default".to_owned()))
        }
        Some(_) => None,
    }
}
