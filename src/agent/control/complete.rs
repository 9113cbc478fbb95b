//! `complete`: the run is over (COMPLETE, ABORT), or the user is asked (ASK).

use serde_json::{Value, json};

use super::{Steer, Steers, text};
use crate::agent::scene::Scene;
use crate::gate::{Arguments, Json};
use crate::job::WaitReason;
use crate::job::finish::Ending;

pub(super) struct Complete;

impl Steers for Complete {
    fn offer(&self, _: &Scene<'_>) -> Option<(String, Value)> {
        let description = "End the job and hand over its result, or ask the user for what you need. Make this call alone, \
                           after you have seen the results of all others.";
        let parameters = json!({
            "type": "object",
            "required": ["status", "result"],
            "additionalProperties": false,
            "properties": {
                "status": {
                    "type": "string",
                    "enum": ["success", "aborted", "needs_user_input"],
                    "description": "success: done. aborted: it cannot be done. needs_user_input: `result` is a question, \
                                    and its answer will be the result of this call."
                },
                "result": { "type": "string", "description": "All that the user will see." }
            }
        });
        Some((description.to_owned(), parameters))
    }

    fn steer(&self, args: &Arguments, _: &Scene<'_>) -> Result<Steer, String> {
        let field = |name: &str| args.json().get(name).and_then(Json::as_str);
        let result = field("result").unwrap_or_default().to_owned();
        match field("status") {
            Some("success") => Ok(Steer::End(Ending::Completed { result })),
            Some("aborted") => Ok(Steer::End(Ending::Aborted { result })),
            Some("needs_user_input") => {
                text(args, "result").map_err(|_| "`result` must hold the question to the user".to_owned())?;
                Ok(Steer::Ask {
                    wait: WaitReason::UserInput,
                    question: result,
                })
            }
            _ => Err("`status` must be success, aborted or needs_user_input".to_owned()),
        }
    }
}
