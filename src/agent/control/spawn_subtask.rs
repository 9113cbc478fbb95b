//! `spawn_subtask`: a job of its own for a part of the work, with at most the tools of the one that begins it.

use serde_json::{Value, json};

use super::{Steer, Steers, text};
use crate::agent::scene::Scene;
use crate::gate::Arguments;

pub(super) struct SpawnSubtask;

impl Steers for SpawnSubtask {
    /// Several may begin in one reply.
    fn alone(&self) -> bool {
        false
    }

    fn offer(&self, scene: &Scene<'_>) -> Option<(String, Value)> {
        if scene.spawnable.is_empty() {
            return None;
        }
        let mut description =
            "Begin a sub-task: a job of its own that runs beside this one and sees nothing but its input. \
                               Its result comes from `wait_subtasks`. The pieces:"
                .to_owned();
        for piece in &scene.spawnable {
            description.push_str("\n- ");
            description.push_str(&piece.name);
            if let Some(what) = &piece.description {
                description.push_str(": ");
                description.push_str(what);
            }
        }
        let names: Vec<&str> = scene.spawnable.iter().map(|piece| piece.name.as_str()).collect();
        let parameters = json!({
            "type": "object",
            "required": ["piece", "input"],
            "additionalProperties": false,
            "properties": {
                "piece": { "type": "string", "enum": names },
                "input": { "type": "string", "description": "All that the sub-task is told." }
            }
        });
        Some((description, parameters))
    }

    fn steer(&self, args: &Arguments, scene: &Scene<'_>) -> Result<Steer, String> {
        let (piece, input) = (text(args, "piece")?, text(args, "input")?);
        if scene.spawnable.is_empty() {
            return Err("this job may begin no further sub-task".to_owned());
        }
        if !scene.spawnable.iter().any(|known| known.name == piece) {
            let names: Vec<&str> = scene.spawnable.iter().map(|piece| piece.name.as_str()).collect();
            return Err(format!("`piece` must be one of: {}", names.join(", ")));
        }
        Ok(Steer::Spawn {
            piece: piece.to_owned(),
            input: input.to_owned(),
        })
    }
}
