//! Spawning: a run begins a sub-task. The new job, the parent's list of its children and the memory in which the call is over
//! are written in one transaction, so a crash leaves either all of it or nothing: the same call never begins two.

use crate::storage::{Touches, Transaction, Workspace};

use super::Job;
use super::hold::{Hold, LostLease};
use super::save::Remembered;
use super::submit::Submit;

/// A sub-task that is about to begin.
#[derive(Debug, Clone)]
pub struct Newborn {
    /// The job; its parent is the one that holds.
    pub submit: Submit,
    /// What it remembers from the start.
    pub memory: String,
}

/// Begins a sub-task.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// By whom.
    pub hold: Hold,
    /// The sub-task.
    pub newborn: Newborn,
    /// The parent's memory in which it has begun.
    pub remembered: Remembered,
}

impl Transaction for Spawn {
    type Answer = Result<Job, LostLease>;
    const NAME: &'static str = "spawn_job";

    fn touches(&self, touches: &mut Touches) {
        self.remembered.touches(&self.hold, touches);
        self.newborn.submit.touches(touches);
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        self.hold.of(workspace)?;
        self.remembered.write(workspace, &self.hold);
        let child = self.newborn.submit.begin(workspace, &self.newborn.memory);
        workspace.change_job(&self.hold.job, |job| job.children.push(child.id.clone()));
        Ok(child)
    }
}
