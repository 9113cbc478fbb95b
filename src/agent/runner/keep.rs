//! Keeping a run: its memory saved, the job parked, ended, or let go of.

use tracing::warn;

use super::{Halt, Session, Then};
use crate::job::Job;
use crate::job::family::Family;
use crate::job::finish::{Ending, Finish};
use crate::job::park::{Park, Parked, Until};
use crate::job::progress::Progress;
use crate::job::save::{Remembered, Save};
use crate::job::worker::Ran;

impl Session<'_> {
    /// Parks; the run goes on in the movement `resume`, or where it is.
    pub(super) async fn park(
        &mut self,
        until: Until,
        resume: Option<&str>,
        asks: Option<String>,
    ) -> Result<Then, Halt> {
        let told = until.clone();
        let park = Park {
            hold: self.hold.clone(),
            until,
            resume_movement: resume.unwrap_or(&self.job.movement).to_owned(),
            remembered: self.remembered(),
            asks: self.runner.gatekeeper.text(asks.as_deref()),
        };
        let parked = self.store().run(park).await??;
        self.saved();
        Ok(match parked {
            Parked::Waiting => {
                self.progress(Progress::Parked {
                    reason: match &told {
                        Until::Decided { reason, .. } | Until::Answered(reason) => reason.as_str(),
                        Until::SubtasksEnded(_) => "subtasks",
                    },
                });
                self.tell_parked(&told);
                Then::Rest(Ran::Done)
            }
            Parked::Nothing => Then::Again,
        })
    }

    pub(super) async fn finish(&mut self, ending: Ending) -> Result<Then, Halt> {
        let text = match &ending {
            Ending::Completed { result } | Ending::Aborted { result } => result,
            Ending::Failed { error } => error,
        };
        let status = ending.status();
        let family = Family::of(self.store().read(), &self.job_now()).await?;
        let finish = Finish {
            family,
            hold: self.hold.clone(),
            said: self.runner.gatekeeper.text(Some(text)),
            ending,
            confirmations: self.memory.asked.clone(),
            remembered: Some(self.remembered()),
            parent: self.job.parent.clone(),
        };
        self.store().run(finish).await??;
        self.progress(Progress::Ended {
            status: status.as_str(),
        });
        self.tell_ended(status);
        Ok(Then::Rest(Ran::Done))
    }

    /// The job as this run knows it: its sub-tasks are in the memory first.
    fn job_now(&self) -> Job {
        Job {
            children: self.children(),
            ..self.job.clone()
        }
    }

    pub(super) async fn save(&mut self) -> Result<(), Halt> {
        if self.dirty {
            let save = Save {
                hold: self.hold.clone(),
                remembered: self.remembered(),
            };
            self.store().run(save).await??;
            self.saved();
        }
        Ok(())
    }

    pub(super) fn saved(&mut self) {
        self.dirty = false;
        self.taken.clear();
    }

    pub(super) fn remembered(&self) -> Remembered {
        Remembered {
            memory: self.memory.write(),
            movement: self.job.movement.clone(),
            confirmations: self.memory.asked.clone(),
            taken: self.taken.clone(),
        }
    }

    /// The job went to somebody else. When it ended, what this run asked meanwhile is withdrawn: nobody waits for it.
    pub(super) async fn let_go(&self) {
        let ended = matches!(
            self.store().read().job(&self.job.id).await,
            Ok(Some(job)) if job.state.status().is_final()
        );
        if ended {
            for request in &self.memory.asked {
                if let Err(error) = self.runner.gatekeeper.cancel(&self.caller, request).await {
                    warn!(%request, %error, "a request of a job that ended could not be withdrawn");
                }
            }
        }
    }
}
