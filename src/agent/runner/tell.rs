//! What observers are told of a run: names, sizes and reasons, never arguments or results. An event is told when it happens in
//! this process; what a crash makes happen again is told again.

use serde_json::Value;

use super::{Session, hook};
use crate::agent::control::Control;
use crate::agent::engine::Event;
use crate::agent::memory::CallState;
use crate::agent::model::Progress;
use crate::hook::{EventKind, Hooks, Severity};
use crate::ids::{ConfirmationId, JobId};
use crate::job::park::Until;
use crate::job::worker::Ran;
use crate::job::{Job, JobStatus};

impl Session<'_> {
    pub(super) fn tell(&self, kind: EventKind, severity: Severity, payload: &[(&str, Value)]) {
        self.hooks.happened(kind, severity, &self.context(), || {
            payload
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect()
        });
    }

    fn info(&self, kind: EventKind, payload: &[(&str, Value)]) {
        self.tell(kind, Severity::Info, payload);
    }

    /// A worker took the job. A run that waited goes on, perhaps with the words that it waited for.
    pub(super) fn tell_start(&self) {
        self.info(EventKind::TurnStart, &[]);
        if self.memory.replies == 0 {
            return;
        }
        self.info(EventKind::RunResumed, &[]);
        let answered = self.memory.calls().iter().find(|call| {
            let asks = matches!(
                Control::named(&call.tool),
                Some(Control::Complete | Control::BrowserLogin)
            );
            asks && matches!(&call.state, CallState::Done { result } if !result.starts_with("error:"))
        });
        if let Some(call) = answered {
            self.info(
                EventKind::SteeringInjected,
                &[("Tool", call.tool.as_str().into())],
            );
        }
    }

    /// What happens to a call, on its way into the memory.
    pub(super) fn tell_of(&self, event: &Event) {
        let tool = |at: &usize| Value::from(self.memory.call(*at).map(|call| call.tool.clone()));
        match event {
            Event::Denied { at, reason, .. } => self.info(
                EventKind::ToolExecSkipped,
                &[("Tool", tool(at)), ("Reason", reason.code().into())],
            ),
            Event::Asked { at, request } => self.info(
                EventKind::ApprovalAsked,
                &[("Tool", tool(at)), ("Request", request.as_str().into())],
            ),
            _ => {}
        }
    }

    /// The run hears how a request was decided.
    pub(super) fn tell_decided(&self, request: &ConfirmationId, status: &'static str) {
        self.info(
            EventKind::ApprovalDecided,
            &[("Request", request.as_str().into()), ("Status", status.into())],
        );
    }

    pub(super) fn tell_parked(&self, until: &Until) {
        let reason = match until {
            Until::Decided { reason, .. } | Until::Answered(reason) => reason.as_str(),
            Until::SubtasksEnded(_) => "subtasks",
        };
        self.info(EventKind::RunParked, &[("Reason", reason.into())]);
    }

    /// Somebody wants the run to stop: the server, or whoever cancelled the job or took it over.
    pub(super) fn tell_interrupt(&self, ran: &Ran) {
        let kind = if *ran == Ran::Stopped {
            "graceful"
        } else {
            "hard_abort"
        };
        self.info(EventKind::InterruptReceived, &[("Kind", kind.into())]);
    }

    pub(super) fn tell_compressed(&self, before: usize) {
        let after = self.memory.history.len();
        self.info(
            EventKind::ContextCompress,
            &[("MessagesBefore", before.into()), ("MessagesAfter", after.into())],
        );
    }

    /// What comes while the model is asked.
    pub(super) fn tell_progress(&self, progress: Progress) {
        match progress {
            Progress::Heard { bytes } => {
                self.tell(EventKind::LlmDelta, Severity::Debug, &[("Bytes", bytes.into())]);
            }
            Progress::AskedAgain { tries } => {
                self.tell(EventKind::LlmRetry, Severity::Warn, &[("Attempt", tries.into())]);
            }
        }
    }

    pub(super) fn tell_spawned(&self, child: &JobId, piece: &str) {
        self.info(
            EventKind::SubturnSpawn,
            &[("Job", child.as_str().into()), ("Piece", piece.into())],
        );
    }

    /// The end of a sub-task reached this run.
    pub(super) fn tell_delivered(&self, child: &JobId, status: &str) {
        self.info(
            EventKind::SubturnResultDelivered,
            &[("Job", child.as_str().into()), ("Status", status.into())],
        );
    }

    /// The run is over. A sub-task tells so beside.
    pub(super) fn tell_ended(&self, status: JobStatus) {
        if status == JobStatus::Error {
            self.tell(EventKind::Error, Severity::Error, &[("Stage", "run".into())]);
        }
        if let Some(parent) = &self.job.parent {
            self.info(
                EventKind::SubturnEnd,
                &[
                    ("Parent", parent.as_str().into()),
                    ("Status", status.as_str().into()),
                ],
            );
        }
    }

    pub(super) fn tell_mcp(&self, kind: EventKind, tool: &str) {
        if tool.starts_with("mcp__") {
            self.info(kind, &[("Tool", tool.into())]);
        }
    }
}

/// Tells of a job that no session was made for.
pub(super) fn of_job(hooks: &Hooks, job: &Job, kind: EventKind, severity: Severity) {
    hooks.happened(kind, severity, &hook::context(job), || {
        let parent = job.parent.iter();
        parent
            .map(|parent| ("Parent".to_owned(), parent.as_str().into()))
            .collect()
    });
}
