//! Moving on and dividing the work: the run enters a movement, begins sub-tasks, and waits for them.

use serde_json::json;

use super::{Halt, Session, Then};
use crate::agent::engine::Event;
use crate::agent::tool::told;
use crate::ids::JobId;
use crate::job::finish::Ending;
use crate::job::park::Until;
use crate::job::progress::Progress;
use crate::job::spawn::{Newborn, Spawn};
use crate::job::submit::Submit;
use crate::job::worker::Ran;
use crate::job::{Job, JobState};

impl Session<'_> {
    pub(super) async fn enter(&mut self, name: &str) -> Result<Then, Halt> {
        let Some(movement) = self.piece.movement(name) else {
            return self
                .finish(Ending::Failed {
                    error: format!("undecided: the piece has no movement `{name}` to go on in"),
                })
                .await;
        };
        self.progress(Progress::MovementChanged {
            from: self.job.movement.clone(),
            to: name.to_owned(),
        });
        self.movement = movement;
        name.clone_into(&mut self.job.movement);
        // Movement and memory are saved together, before the model is asked.
        self.dirty = true;
        Ok(Then::Event(Event::Entered))
    }

    /// Prepares a sub-task; it begins with the memory that knows it, in one transaction.
    pub(super) fn conceive(&mut self, at: usize, piece: &str, input: &str) -> Then {
        let gatekeeper = &self.runner.gatekeeper;
        let Some(plan) = self.runner.pieces.get(piece) else {
            let failed = format!("there is no piece `{piece}`");
            return Then::Rest(Ran::Failed(failed));
        };
        let child = JobId::fresh(&**gatekeeper.ids());
        let ceiling = self.scene().ceiling(&self.memory);
        self.newborn = Some(Newborn {
            memory: self.memory.of_subtask(input, ceiling).write(),
            submit: Submit {
                id: child.clone(),
                org: self.job.org.clone(),
                token: self.job.token.clone(),
                piece: piece.to_owned(),
                movement: plan.initial_movement.clone(),
                input: input.to_owned(),
                shown_input: gatekeeper.text(Some(input)),
                agent_id: self.job.agent_id.clone(),
                session_id: self.job.session_id.clone(),
                requester: self.job.requester.clone(),
                persons: self.job.persons.clone(),
                parent: Some(self.job.id.clone()),
                priority: self.job.priority,
                run_at: None,
            },
        });
        Then::Event(Event::Spawned {
            at,
            child,
            piece: piece.to_owned(),
        })
    }

    pub(super) async fn spawn(&mut self, newborn: Newborn) -> Result<(), Halt> {
        let (child, piece) = (newborn.submit.id.clone(), newborn.submit.piece.clone());
        let spawn = Spawn {
            hold: self.hold.clone(),
            newborn,
            remembered: self.remembered(),
        };
        self.store().run(spawn).await??;
        self.saved();
        self.tell_spawned(&child, &piece);
        Ok(())
    }

    /// Looks at the sub-tasks. While one has not ended the job parks, and parking looks again under their locks.
    pub(super) async fn await_subtasks(&mut self, at: usize, resume: Option<&str>) -> Result<Then, Halt> {
        let awaited: Vec<_> = self.memory.awaited().cloned().collect();
        let mut ended = Vec::with_capacity(awaited.len());
        for child in &awaited {
            match self.store().read().job(&child.job).await? {
                Some(job) if !job.state.status().is_final() => {
                    let children = awaited.iter().map(|child| child.job.clone()).collect();
                    return self.park(Until::SubtasksEnded(children), resume, None).await;
                }
                job => ended.push(became(&child.job, &child.piece, job.as_ref())),
            }
        }
        for (child, told) in awaited.iter().zip(&ended) {
            self.tell_delivered(&child.job, told["status"].as_str().unwrap_or_default());
        }
        Ok(Then::Event(Event::SubtasksEnded {
            at,
            told: told(&serde_json::Value::Array(ended).to_string()),
        }))
    }

    /// The sub-tasks that the memory knows.
    pub(super) fn children(&self) -> Vec<JobId> {
        self.memory
            .children
            .iter()
            .map(|child| child.job.clone())
            .collect()
    }
}

/// What became of a sub-task, for the model of the job that began it.
fn became(id: &JobId, piece: &str, job: Option<&Job>) -> serde_json::Value {
    let (status, result) = match job.map(|job| (&job.state, job.state.status().as_str())) {
        Some((JobState::Completed { result } | JobState::Aborted { result }, status)) => {
            (status, result.as_str())
        }
        Some((JobState::Error { error }, status)) => (status, error.as_str()),
        Some((_, status)) => (status, ""),
        None => ("error", "the sub-task is gone"),
    };
    json!({ "job": id.as_str(), "piece": piece, "status": status, "result": result })
}
