//! What the model is told about its job: the piece, the movement, and the rules of the house.

use super::control::Control;
use super::memory::Memory;
use super::model::{Listener, Question, ToolOffer};
use super::scene::Scene;
use super::tool::Shelf;

/// How calls are made here, whatever the piece says.
const HOUSE: &str = "\
Work by calling tools. Some calls need a person's approval; you will see their result, or why they were refused, as if \
they had taken a little longer. A refusal is an answer: do not try to get around it. When the job is done, when it cannot \
be done, or when you need something from the user, call `complete`.";

/// The question for the next reply.
pub fn question<'a>(scene: &Scene<'_>, shelf: &Shelf, memory: &'a Memory) -> Question<'a> {
    let (piece, movement) = (scene.piece, scene.movement);
    let absent = (!scene.absent.is_empty()).then(|| {
        format!(
            "These servers of tools are not there at the moment, and their tools are missing: {}.",
            scene.absent.join(", ")
        )
    });
    let parts = [
        movement.persona.as_deref(),
        piece.description.as_deref(),
        Some(movement.instruction.as_str()),
        Some(HOUSE),
        absent.as_deref(),
    ];
    let mut tools: Vec<ToolOffer> = shelf
        .all()
        .filter(|tool| scene.tools.contains_key(tool.name.as_str()))
        .map(|tool| ToolOffer {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        })
        .collect();
    tools.extend(Control::ALL.iter().filter_map(|tool| tool.offer(scene)));
    Question {
        system: parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n"),
        history: &memory.history,
        tools,
        listener: Listener::default(),
    }
}
