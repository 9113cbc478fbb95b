//! A host says that a call ran: the outcome goes to the request that permitted it, if there is one.

use crate::audit::{Actor, Draft};
use crate::confirmation::outcome::record;
use crate::confirmation::{Confirmation, Outcome};
use crate::ids::ConfirmationId;
use crate::storage::{CallKey, Touches, Transaction, TwinKey, Workspace};

/// Reports the outcome of a call by the key under which it was asked. The first report stands.
#[derive(Debug, Clone)]
pub struct Executed {
    /// The call; the key holds the token, so nobody reports for others.
    pub key: CallKey,
    /// The same call by what it is, where the host says that: a call that joined an open request has an id that no request knows.
    pub twin: Option<TwinKey>,
    /// What it led to.
    pub outcome: Outcome,
}

impl Executed {
    /// Whether people changed the call, and the host says that it ran another one.
    fn ran_something_else(&self, workspace: &Workspace, id: &ConfirmationId) -> bool {
        let call = workspace.confirmation(id).map(Confirmation::call);
        let (Some(call), Some(told)) = (call, &self.twin) else {
            return false;
        };
        call.edit > 0 && *call.digest.as_bytes() != told.digest
    }
}

impl Transaction for Executed {
    /// Whether this report is now on record.
    type Answer = bool;
    const NAME: &'static str = "executed";

    fn touches(&self, touches: &mut Touches) {
        touches.calls.insert(self.key.clone());
        touches.twins.extend(self.twin.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let by_call = workspace.by_call(&self.key);
        let by_twin = || self.twin.as_ref().and_then(|twin| workspace.executing_twin(twin));
        let Some(id) = by_call.or_else(by_twin).cloned() else {
            return false;
        };
        let unreported = workspace
            .confirmation(&id)
            .is_some_and(|row| row.state.consumed().is_some() && row.ledger.outcome.is_none());
        // Hosts that drop a rewrite have been seen; what people approved is then not what ran.
        let ignored = unreported && self.ran_something_else(workspace, &id);
        if ignored {
            let actor = Actor::Token(self.key.token.0.clone());
            workspace.audit(Draft::new(&self.key.org, "edit.ignored", actor).about(&id));
        }
        if unreported {
            record(
                workspace,
                &id,
                &self.outcome,
                None,
                Actor::Token(self.key.token.0.clone()),
            );
        }
        unreported
    }
}

#[cfg(test)]
mod tests {
    use gatepost_channel::Decision::Approve;

    use super::*;
    use crate::confirmation::OutcomeStatus;
    use crate::confirmation::consume::Consume;
    use crate::confirmation::create::Created;
    use crate::confirmation::edit::Edit;
    use crate::confirmation::fixture::{World, terms};
    use crate::gate::json::ReadLimits;
    use crate::gate::{Arguments, Digest};
    use crate::ids::{PermitId, TokenName};

    #[test]
    fn a_call_that_joined_an_open_request_has_an_outcome_and_another_agents_call_does_not_join() {
        let mut world = World::default();
        let asked = |world: &World, call: &str, agent: &str| {
            let mut create = world.pay(terms(1), &[]);
            create.asked.tool_call_id = Some(call.into());
            create.asked.agent_id = Some(agent.into());
            create.join_twin = true;
            create
        };
        let first = asked(&world, "one", "main");
        let Created::Fresh(dossier) = world.memory.run(&first) else {
            panic!("it is new")
        };
        let id = dossier.confirmation.id;
        let again = asked(&world, "two", "main");
        assert!(matches!(world.memory.run(&again), Created::Same(same) if same.confirmation.id == id));
        for other in [
            asked(&world, "three", "main/subagent"),
            crate::confirmation::create::Create {
                rule: Some("stricter".into()),
                ..asked(&world, "four", "main")
            },
            crate::confirmation::create::Create {
                terms: terms(2),
                ..asked(&world, "five", "main")
            },
        ] {
            assert!(
                matches!(world.memory.run(&other), Created::Fresh(_)),
                "{:?}",
                other.asked
            );
        }

        for card in &mut world.memory.dossiers.get_mut(&id).expect("stored").deliveries {
            card.unheard = true;
        }
        world.click(&id, 0, "dana", Approve);
        let consume = Consume {
            id: id.clone(),
            token: TokenName::from("agent"),
            digest: first.asked.digest,
            judged: first.asked.digest,
            permit: PermitId::fresh(&world.ids),
            roll: std::sync::Arc::clone(&world.roll),
            denied_by: None,
            grant: None,
            offered: None,
        };
        assert!(world.memory.run(&consume).is_ok());
        let key = CallKey {
            org: first.org.clone(),
            token: TokenName::from("agent"),
            session: "s1".into(),
            call: "two".into(),
        };
        let twin = TwinKey {
            org: key.org.clone(),
            token: key.token.clone(),
            session: key.session.clone(),
            digest: *first.asked.digest.as_bytes(),
        };
        let report = |twin: Option<TwinKey>| Executed {
            key: key.clone(),
            twin,
            outcome: Outcome {
                status: OutcomeStatus::Succeeded,
                detail: None,
            },
        };
        let stranger = TwinKey {
            token: TokenName::from("stranger"),
            ..twin.clone()
        };
        assert!(!world.memory.run(&report(None)), "no request knows this id");
        assert!(
            !world.memory.run(&report(Some(stranger))),
            "nobody reports for others"
        );
        assert!(world.memory.run(&report(Some(twin.clone()))));
        assert_eq!(
            world
                .row(&id)
                .confirmation
                .ledger
                .outcome
                .as_ref()
                .map(|outcome| outcome.status),
            Some(OutcomeStatus::Succeeded)
        );
        assert!(!world.memory.run(&report(Some(twin))), "once");
    }

    #[test]
    fn a_host_that_runs_what_nobody_approved_is_on_record() {
        for (told, ignored) in [(r#"{"amount":60000}"#, true), (r#"{"amount":4}"#, false)] {
            let mut world = World::default();
            let mut create = world.pay(terms(1), &[]);
            create.asked.tool_call_id = Some("one".into());
            let Created::Fresh(dossier) = world.memory.run(&create) else {
                panic!("it is new")
            };
            let (id, org) = (dossier.confirmation.id, create.org.clone());
            let digest = |text: &str| {
                let args = Arguments::read(text.as_bytes(), ReadLimits::bytes(99)).expect("arguments");
                Digest::of(&create.asked.tool, &args)
            };
            let row = world.memory.dossiers.get_mut(&id).expect("stored");
            row.confirmation.progress.edit = Some(Edit {
                number: 1,
                by: "dana".into(),
                at: row.confirmation.created_at,
                args: r#"{"amount":4}"#.to_owned(),
                digest: digest(r#"{"amount":4}"#),
            });
            for card in &mut row.deliveries {
                card.unheard = true;
            }
            world.click(&id, 0, "dana", Approve);
            let consume = Consume {
                id: id.clone(),
                token: TokenName::from("agent"),
                digest: create.asked.digest,
                judged: digest(r#"{"amount":4}"#),
                permit: PermitId::fresh(&world.ids),
                roll: std::sync::Arc::clone(&world.roll),
                denied_by: None,
                grant: None,
                offered: None,
            };
            assert!(world.memory.run(&consume).is_ok());
            let key = CallKey {
                org: org.clone(),
                token: TokenName::from("agent"),
                session: "s1".into(),
                call: "one".into(),
            };
            let ran = Executed {
                twin: Some(TwinKey {
                    org,
                    token: key.token.clone(),
                    session: key.session.clone(),
                    digest: *digest(told).as_bytes(),
                }),
                key,
                outcome: Outcome {
                    status: OutcomeStatus::Succeeded,
                    detail: None,
                },
            };
            assert!(world.memory.run(&ran));
            assert_eq!(world.memory.kinds().contains(&"edit.ignored"), ignored, "{told}");
        }
    }
}
