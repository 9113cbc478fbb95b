//! Asking: a call that needs a person becomes a row, its cards go into the outbox, and asking again finds the same row.

use std::sync::Arc;

use crate::audit::{Actor, Commitment, Draft, Opening, Private};
use crate::clock::rfc3339;
use crate::delivery::escalate;
use crate::ids::{ConfirmationId, Ids, Org};
use crate::storage::{CallKey, Touches, Transaction, TwinKey, Workspace};

use super::roll::Roll;
use super::set::{self, Joining};
use super::settle::{refresh_cards, settle};
use super::{Asked, Basis, Confirmation, Delivery, Dossier, Ledger, Permit, Progress, State, grant};
use crate::gate::Terms;

/// A new request, complete but for its times.
#[derive(Debug, Clone)]
pub struct Create {
    /// Its id, used when the call is new.
    pub id: ConfirmationId,
    /// Whose it is.
    pub org: Org,
    /// The call.
    pub asked: Asked,
    /// The rule that asks for a person.
    pub rule: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Under what terms.
    pub terms: Terms,
    /// Its cards, one for each channel; queued.
    pub deliveries: Vec<Delivery>,
    /// Lets the call run under a grant: who may decide, as the configuration has it now, since a grant counts only while those
    /// who gave it may. Nothing where somebody asks for a person about this very call.
    pub grantors: Option<Arc<Roll>>,
    /// Lets the request share a card with those like it; nothing where its terms do not.
    pub collapse: Option<Joining>,
    /// Joins an open request of the same session, tool and arguments, for hosts without lasting call ids.
    pub join_twin: bool,
    /// The arguments as people may see them, for the audit log: see [`shown_args`].
    pub shown_args: Private,
    /// Who is said to have asked, for the audit log.
    pub shown_requester: Option<Opening>,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// A new request.
    Fresh(Dossier),
    /// The call was asked before: this is its request, wherever it stands.
    Same(Dossier),
    /// The same call id was used with other arguments, requester or agent.
    Conflict(ConfirmationId),
}

/// How the audit log keeps the arguments of a request. While nothing of them is hidden they are the request's own, and stand in its
/// row; a redacted form stands beside the event, since nothing else keeps it.
pub fn shown_args(args: &str, redacted: Option<&str>, ids: &dyn Ids) -> Private {
    match redacted {
        None => Private::ArgsOfRequest(Commitment::to(args, ids)),
        Some(redacted) => Private::Beside(Opening::new(redacted, ids)),
    }
}

impl Create {
    /// Whether an open request asks for this very call: by the same agent, for the same person, and of the same people. Another
    /// sub-agent's call, or one that falls under another rule, is a request of its own.
    fn asks_the_same(&self, open: &Dossier) -> bool {
        let row = &open.confirmation;
        row.asked.agent_id == self.asked.agent_id
            && row.asked.requester == self.asked.requester
            && row.rule == self.rule
            && row.terms == self.terms
    }

    fn call_key(&self) -> Option<CallKey> {
        Some(CallKey {
            org: self.org.clone(),
            token: self.asked.token.clone(),
            session: self.asked.session_id.clone().unwrap_or_default(),
            call: self.asked.tool_call_id.clone()?,
        })
    }

    fn twin_key(&self) -> Option<TwinKey> {
        self.join_twin.then(|| TwinKey {
            org: self.org.clone(),
            token: self.asked.token.clone(),
            session: self.asked.session_id.clone().unwrap_or_default(),
            digest: *self.asked.digest.as_bytes(),
        })
    }
}

impl Transaction for Create {
    type Answer = Created;
    const NAME: &'static str = "create";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.org.clone());
        touches.calls.extend(self.call_key());
        touches.twins.extend(self.twin_key());
        touches.jobs.extend(self.asked.job.clone());
        touches
            .alikes
            .extend(self.collapse.as_ref().map(|joining| joining.alike));
        if self.grantors.is_some() && self.terms.decision.grants.is_some() {
            touches.grant_keys.insert(grant::key(&self.org, &self.asked));
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> Created {
        if let Some(id) = self.call_key().and_then(|key| workspace.by_call(&key).cloned())
            && let Some(dossier) = workspace.dossier(&id)
        {
            let row = &dossier.confirmation;
            let before = &row.asked;
            // Who has run the call as people changed it may ask about it as it ran.
            let approved = matches!(row.state, State::Approved { .. });
            let same = (before.digest == self.asked.digest || approved && row.is_about(&self.asked.digest))
                && before.requester == self.asked.requester
                && before.agent_id == self.asked.agent_id;
            return if same {
                Created::Same(dossier)
            } else {
                Created::Conflict(id)
            };
        }
        if let Some(id) = self.twin_key().and_then(|key| workspace.by_twin(&key).cloned())
            && let Some(dossier) = workspace.dossier(&id)
            && self.asks_the_same(&dossier)
        {
            return Created::Same(dossier);
        }
        let now = workspace.now();
        let granted = self.grantors.as_ref().and_then(|roll| {
            grant::covering(
                workspace,
                &self.org,
                self.rule.as_deref(),
                &self.asked,
                &self.terms,
                roll,
            )
        });
        let mut confirmation = Confirmation {
            id: self.id.clone(),
            org: self.org.clone(),
            asked: self.asked.clone(),
            rule: self.rule.clone(),
            reason: self.reason.clone(),
            terms: self.terms.clone(),
            set: None,
            created_at: now,
            expires_at: gatepost_channel::UtcMillis(now.0.saturating_add(self.terms.timeout_ms)),
            state: State::Pending,
            ledger: Ledger::default(),
            progress: Progress {
                basis: granted.clone().map(Basis::Grant),
                ..Progress::default()
            },
            revision: 1,
            edition: 1,
            version: 0,
        };
        let draft = Draft::new(
            &self.org,
            "confirmation.created",
            Actor::Token(self.asked.token.0.clone()),
        )
        .about(&self.id)
        .with("tool_name", self.asked.tool.as_str())
        .with("quorum", self.terms.quorum)
        .with("expires_at", rfc3339(confirmation.expires_at))
        .committed("tool_args", self.shown_args.clone())
        .with_private("requester", self.shown_requester.clone())
        .with_some("rule", self.rule.as_deref());
        // Nobody is asked about what was granted: there are no cards.
        let mut cards = if granted.is_some() {
            Vec::new()
        } else {
            self.deliveries.clone()
        };
        if let Some(joining) = self.collapse.as_ref().filter(|_| granted.is_none()) {
            cards = set::join(workspace, joining, &mut confirmation, cards);
        }
        let set = confirmation.set.as_ref();
        let beside = set.filter(|set| set.first != self.id);
        let mut draft = draft.with_some("beside", beside.map(|set| set.first.as_str()));
        draft.job.clone_from(&self.asked.job);
        workspace.insert_confirmation(confirmation, cards);
        workspace.audit(draft);
        if let Some(id) = granted {
            let actor = Actor::Grant(id.to_string());
            grant::take(workspace, &id, &self.id, actor.clone());
            let approved = State::Approved {
                at: now,
                permit: Permit::Open,
            };
            settle(workspace, &self.id, approved, actor);
        } else {
            refresh_cards(workspace, &self.id);
            if !self.terms.after.escalate.is_empty() {
                escalate::queue_next(workspace, &self.id);
            }
        }
        workspace
            .dossier(&self.id)
            .map_or_else(|| Created::Conflict(self.id.clone()), Created::Fresh)
    }
}
