//! What every hook is told beside what the point is about: who runs, for whom, where.

use serde_json::{Map, Value};

use crate::gatekeeper::Via;
use crate::ids::{JobId, Org, TokenName};

/// The context of a run. It is shared by all hooks of a point and changed by none.
#[derive(Debug, Clone, PartialEq)]
pub struct HookContext {
    /// Through what the call comes.
    pub via: Via,
    /// The organisation.
    pub org: Org,
    /// The token under which the run goes.
    pub token: TokenName,
    /// The agent, as it calls itself.
    pub agent_id: Option<String>,
    /// For whom it runs, as the agent says.
    pub user_id: Option<String>,
    /// The conversation: the job's id; of a call that no job makes the session that it names, or nothing.
    pub session_id: String,
    /// The job.
    pub job: Option<JobId>,
    /// The job whose sub-task this is.
    pub parent: Option<JobId>,
    /// The number of the turn, from 0.
    pub turn: u32,
    /// The call's id; only at the points of a tool.
    pub tool_call_id: Option<String>,
    /// Facts of this request, free in form: `requires_confirmation`, the piece, the movement, what else whoever runs knows.
    pub metadata: Map<String, Value>,
}

impl HookContext {
    /// The context for one call.
    #[must_use]
    pub fn of_call(&self, id: &str) -> Self {
        Self {
            tool_call_id: Some(id.to_owned()),
            ..self.clone()
        }
    }
}
