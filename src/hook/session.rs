//! The start of a session, and how hooks end a turn or a run.

use super::chain::{Asked, Failed};
use super::{Decision, HookContext, Hooks, Point, SessionContext};

/// A hook ends more than a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// The turn ends: no further call of it runs, the run ends as aborted.
    Turn {
        /// The hook.
        hook: String,
        /// Why.
        why: String,
    },
    /// The run ends at once, as an error.
    Run {
        /// The hook.
        hook: String,
        /// Why.
        why: String,
    },
}

impl Halt {
    pub(super) fn turn(hook: &str, reason: Option<String>) -> Self {
        Self::Turn {
            hook: hook.to_owned(),
            why: reason.unwrap_or_else(|| format!("the hook `{hook}` ended the turn")),
        }
    }

    pub(super) fn run(hook: &str, reason: Option<String>) -> Self {
        Self::Run {
            hook: hook.to_owned(),
            why: reason.unwrap_or_else(|| format!("the hook `{hook}` ended the run")),
        }
    }

    /// A hook that failed where no call can be denied ends the turn.
    pub(super) fn failed(failed: &Failed) -> Self {
        Self::Turn {
            hook: failed.hook.clone(),
            why: failed.told(),
        }
    }

    /// Why.
    pub fn why(&self) -> &str {
        match self {
            Self::Turn { why, .. } | Self::Run { why, .. } => why,
        }
    }
}

impl Hooks {
    /// Asks what is to be added before the first question to the model.
    pub async fn session_start(&self, context: &HookContext) -> Result<SessionContext, Halt> {
        let mut added = Vec::new();
        let point = Point::SessionStart;
        for entry in self
            .interceptors
            .iter()
            .filter(|e| e.is_asked(context.via, point, None))
        {
            let answer = entry.hook.session_start(context);
            match self.ask(entry, point, context, None, answer).await {
                Asked::Failed(failed) => return Err(Halt::failed(&failed)),
                Asked::Said(result) => match result.decision {
                    Decision::Modify(SessionContext(texts)) => {
                        added.extend(texts.into_iter().filter(|text| !text.trim().is_empty()));
                    }
                    Decision::AbortTurn { reason } => return Err(Halt::turn(&entry.name, reason)),
                    Decision::HardAbort { reason } => return Err(Halt::run(&entry.name, reason)),
                    _ => {}
                },
            }
        }
        Ok(SessionContext(added))
    }
}
