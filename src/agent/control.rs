//! Control-flow tools: calls with which the model steers the run itself. They do no work; they end or park the run. To add one,
//! add a line to [`Control`] and say what it leads to.

use serde_json::json;

use super::memory::CallState;
use super::model::ToolOffer;
use crate::gate::{Arguments, Json};
use crate::job::finish::Ending;

/// The control-flow tools there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// Ends the run, or asks the user.
    Complete,
}

/// What a sound call of a control-flow tool leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// The run is over.
    End(Ending),
    /// The user is asked.
    Ask(String),
}

impl Control {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Complete];

    /// The name as the model sees it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
        }
    }

    /// The tool of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// How it is offered to the model.
    pub fn offer(self) -> ToolOffer {
        match self {
            Self::Complete => ToolOffer {
                name: self.name().to_owned(),
                description:
                    "End the job and hand over its result, or ask the user for what you need. Make this call \
                              alone, after you have seen the results of all others."
                        .to_owned(),
                parameters: json!({
                    "type": "object",
                    "required": ["status", "result"],
                    "additionalProperties": false,
                    "properties": {
                        "status": {
                            "type": "string",
                            "enum": ["success", "aborted", "needs_user_input"],
                            "description": "success: done. aborted: it cannot be done. needs_user_input: `result` is a \
                                            question, and its answer will be the result of this call."
                        },
                        "result": { "type": "string", "description": "All that the user will see." }
                    }
                }),
            },
        }
    }

    /// What a call with these arguments leads to, or what is wrong with it.
    pub fn steer(self, args: &Arguments) -> Result<Steer, String> {
        match self {
            Self::Complete => {
                let field = |name: &str| args.json().get(name).and_then(Json::as_str);
                let result = field("result").unwrap_or_default().to_owned();
                match field("status") {
                    Some("success") => Ok(Steer::End(Ending::Completed { result })),
                    Some("aborted") => Ok(Steer::End(Ending::Aborted { result })),
                    Some("needs_user_input") if result.trim().is_empty() => {
                        Err("`result` must hold the question to the user".to_owned())
                    }
                    Some("needs_user_input") => Ok(Steer::Ask(result)),
                    _ => Err("`status` must be success, aborted or needs_user_input".to_owned()),
                }
            }
        }
    }
}

/// The state in which a call of a control-flow tool enters the turn: planned when it is sound.
pub(super) fn judge(tool: Control, args: &Arguments) -> CallState {
    match tool.steer(args) {
        Ok(_) => CallState::Planned,
        Err(why) => CallState::Done {
            result: format!("error: {why}"),
        },
    }
}
