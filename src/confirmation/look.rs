//! Looking: a person asks, from a card, to be shown more of its request than the card shows. Whoever may not decide is refused and
//! sees nothing; seeing everything is an act for the audit log, on record before anything is shown.

use std::sync::Arc;

use gatepost_channel::Wants;

use super::clicked::Clicked;
use super::decide::{Ballot, REPLAY_GRACE, Refusal};
use super::roll::Roll;
use super::{Dossier, Status, expire};
use crate::audit::{Actor, Draft};
use crate::ids::{ConfirmationId, DeliveryId, OperatorId};
use crate::storage::{ReplayRow, Touches, Transaction, Workspace};

/// One ask.
#[derive(Debug, Clone)]
pub struct Look {
    /// From which card.
    pub clicked: Clicked,
    /// By whom.
    pub ballot: Ballot,
    /// For what.
    pub wants: Wants,
    /// Who may decide, as the configuration has it now.
    pub roll: Arc<Roll>,
}

/// What may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// The person may see the request as it stands now, from this card.
    At(Box<Dossier>, DeliveryId),
    /// The same callback came before; it was answered then.
    Repeated,
    /// Nothing is shown.
    Refused(Refusal),
}

impl Transaction for Look {
    type Answer = Looked;
    const NAME: &'static str = "look";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.clicked.org.clone());
        touches.tokens.extend(self.clicked.token);
        touches.replays.insert(self.clicked.replay.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Looked {
        let earlier = workspace.replay(&self.clicked.replay);
        if let Some(request) = earlier.map(|row| row.confirmation.clone()) {
            self.refuse(workspace, request.as_ref(), "replayed");
            return Looked::Repeated;
        }
        match self.find(workspace) {
            Ok((id, card, person)) => {
                self.remember(workspace, Some(&id), "shown");
                if self.wants == Wants::Everything {
                    self.on_record(workspace, &id, &person);
                }
                workspace
                    .dossier(&id)
                    .map_or(Looked::Refused(Refusal::NotFound), |dossier| {
                        Looked::At(Box::new(dossier), card)
                    })
            }
            Err((id, refusal)) => {
                self.refuse(workspace, id.as_ref(), refusal.as_str());
                // What could not be found out may be found out the next time.
                if refusal != Refusal::LookUpFailed {
                    self.remember(workspace, id.as_ref(), refusal.as_str());
                }
                Looked::Refused(refusal)
            }
        }
    }
}

impl Look {
    fn find(
        &self,
        workspace: &mut Workspace,
    ) -> Result<(ConfirmationId, DeliveryId, OperatorId), (Option<ConfirmationId>, Refusal)> {
        let (id, card) = self.clicked.find(workspace)?;
        let refused = |refusal| (Some(id.clone()), refusal);
        let person = match &self.ballot {
            Ballot::Person(person) => person.clone(),
            Ballot::Stranger(_) => return Err(refused(Refusal::UnknownOperator)),
            Ballot::Foreigner(_) => return Err(refused(Refusal::ForeignTenant)),
            Ballot::Kept(_, refusal) => return Err(refused(*refusal)),
        };
        let row = workspace
            .confirmation(&id)
            .ok_or_else(|| refused(Refusal::NotFound))?;
        let (terms, now) = (row.in_force(), workspace.now());
        let may = |roll: &Roll| roll.may_decide(&person, &row.org, &terms, now);
        if !may(&self.roll) {
            let perhaps = self.roll.hopeful().is_some_and(|roll| may(&roll));
            return Err(refused(if perhaps {
                Refusal::LookUpFailed
            } else {
                Refusal::NotAuthorised
            }));
        }
        // What is shown is how it stands: past its deadline it is over, whether the sweeper came by or not.
        if row.state.status() == Status::Pending && workspace.now() >= row.expires_at {
            expire::expire(workspace, &id);
        }
        Ok((id, card, person))
    }

    fn on_record(&self, workspace: &mut Workspace, id: &ConfirmationId, person: &OperatorId) {
        let mut draft = Draft::new(
            &self.clicked.org,
            "confirmation.viewed",
            Actor::Operator(person.0.clone()),
        )
        .about(id)
        .on(self.clicked.channel.as_str());
        draft.job = workspace.confirmation(id).and_then(|row| row.asked.job.clone());
        workspace.audit(draft);
    }

    fn refuse(&self, workspace: &mut Workspace, id: Option<&ConfirmationId>, reason: &str) {
        let actor = match &self.ballot {
            Ballot::Person(person) => Actor::Operator(person.0.clone()),
            Ballot::Stranger(user) | Ballot::Foreigner(user) | Ballot::Kept(user, _) => {
                Actor::Platform(user.clone())
            }
        };
        let mut draft = Draft::new(&self.clicked.org, "callback.refused", actor)
            .on(self.clicked.channel.as_str())
            .with("reason", reason)
            .with("wants", self.wants.as_str());
        draft.confirmation = id.cloned();
        workspace.audit(draft);
    }

    fn remember(&self, workspace: &mut Workspace, id: Option<&ConfirmationId>, answer: &str) {
        let now = workspace.now();
        let lives = id
            .and_then(|id| workspace.confirmation(id))
            .map_or(now, |row| row.expires_at.max(now));
        workspace.insert_replay(ReplayRow {
            key: self.clicked.replay.clone(),
            confirmation: id.cloned(),
            answer: answer.to_owned(),
            forget_at: lives.plus(REPLAY_GRACE),
        });
    }
}
