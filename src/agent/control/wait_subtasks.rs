//! `wait_subtasks`: the run waits until its sub-tasks ended and goes on in the movement where it is (WAIT_SUBTASKS).

use serde_json::{Value, json};

use super::{Steer, Steers};
use crate::agent::scene::Scene;
use crate::gate::Arguments;

pub(super) struct WaitSubtasks;

impl Steers for WaitSubtasks {
    fn offer(&self, scene: &Scene<'_>) -> Option<(String, Value)> {
        let description = "Wait until all your sub-tasks ended. The result of this call holds what became of each, in the \
                           order in which you began them. Make it alone.";
        let parameters = json!({ "type": "object", "additionalProperties": false, "properties": {} });
        (scene.has_subtasks || !scene.spawnable.is_empty()).then(|| (description.to_owned(), parameters))
    }

    fn steer(&self, _: &Arguments, _: &Scene<'_>) -> Result<Steer, String> {
        Ok(Steer::WaitSubtasks { resume: None })
    }
}
