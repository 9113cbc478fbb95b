//! `transition`: the way to another movement. What the model may choose is an enum made of the movement's rules; of the
//! sentinels only WAIT_SUBTASKS can stand in it, and only where a rule names it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Steer, Steers, text};
use crate::agent::piece::Movement;
use crate::agent::scene::Scene;
use crate::agent::sentinel::Sentinel;
use crate::gate::Arguments;

pub(super) struct Transition;

/// Where the movement may lead, in the order of its rules. A movement without rules leads where its `default_next` says, when
/// that is a movement.
fn ways<'a>(scene: &'a Scene<'_>) -> Vec<&'a str> {
    let movement: &Movement = scene.movement;
    let mut ways: Vec<&str> = Vec::new();
    for rule in &movement.rules {
        if !ways.contains(&rule.next.as_str()) {
            ways.push(&rule.next);
        }
    }
    if ways.is_empty() {
        ways.extend(scene.default_movement());
    }
    ways
}

impl Steers for Transition {
    fn offer(&self, scene: &Scene<'_>) -> Option<(String, Value)> {
        let ways = ways(scene);
        if ways.is_empty() {
            return None;
        }
        let mut description =
            "Go on in the next movement, alone in a reply, when the condition of a way is met:".to_owned();
        for rule in &scene.movement.rules {
            // Writing to a text cannot fail.
            let _ = write!(description, "\n- {}: {}", rule.next, rule.condition);
        }
        let mut required = vec!["next"];
        if let Some(next) = scene.default_movement() {
            let _ = write!(description, "\nWithout `next`, when no condition is met: {next}");
            required.clear();
        }
        let parameters = json!({
            "type": "object",
            "required": required,
            "additionalProperties": false,
            "properties": {
                "next": { "type": "string", "enum": ways },
                "reason": { "type": "string", "description": "Why, in a sentence." }
            }
        });
        Some((description, parameters))
    }

    fn steer(&self, args: &Arguments, scene: &Scene<'_>) -> Result<Steer, String> {
        let next = match (args.json().get("next"), scene.default_movement()) {
            (None, Some(next)) => {
                return Ok(Steer::Enter {
                    movement: next.to_owned(),
                });
            }
            _ => text(args, "next")?,
        };
        let ways = ways(scene);
        if !ways.contains(&next) {
            return Err(format!("`next` must be one of: {}", ways.join(", ")));
        }
        if next == Sentinel::WaitSubtasks.as_str() {
            return Ok(Steer::WaitSubtasks {
                resume: scene.default_movement().map(str::to_owned),
            });
        }
        Ok(Steer::Enter {
            movement: next.to_owned(),
        })
    }
}
