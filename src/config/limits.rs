//! What one run of an agent may spend: keys of the `agent` section, some of which a piece may set for itself.

use super::node::{MapReader, Reader};

/// The least that a run must be able to remember, in bytes.
const LEAST_MEMORY: u32 = 256 * 1024;
/// The most: every step writes the whole of it.
const MOST_MEMORY: u32 = 64 * 1024 * 1024;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsConfig {
    /// `max_iterations`: replies of the model.
    pub max_iterations: u32,
    /// `text_only_limit`: replies in a row without a call.
    pub text_only: u32,
    /// `mistake_limit`: replies in a row of which no call could be acted upon.
    pub mistakes: u32,
    /// `card_limit`: requests to people.
    pub cards: u32,
    /// `ask_limit`: questions to people.
    pub asks: u32,
    /// `max_calls_per_reply`.
    pub calls_per_reply: u32,
    /// `max_revisits`: how often a movement may be entered again, where it does not say.
    pub revisits: u32,
    /// `max_subtask_depth`: how deep sub-tasks of sub-tasks go.
    pub subtask_depth: u32,
    /// `max_subtasks`: of one job.
    pub subtasks: u32,
    /// `max_memory`: bytes of everything that a run remembers.
    pub memory: u32,
    /// `max_sends`: how often an idempotent call whose answer is lost is sent at most.
    pub sends: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            text_only: 3,
            mistakes: 5,
            cards: 20,
            asks: 20,
            calls_per_reply: 32,
            revisits: 10,
            subtask_depth: 3,
            subtasks: 16,
            memory: 4 * 1024 * 1024,
            sends: 3,
        }
    }
}

impl LimitsConfig {
    pub(super) fn decode(map: &mut MapReader<'_>) -> Self {
        let default = Self::default();
        Self {
            max_iterations: iterations(map).unwrap_or(default.max_iterations),
            text_only: in_a_row(map, "text_only_limit").unwrap_or(default.text_only),
            mistakes: in_a_row(map, "mistake_limit").unwrap_or(default.mistakes),
            cards: people(map, "card_limit").unwrap_or(default.cards),
            asks: people(map, "ask_limit").unwrap_or(default.asks),
            calls_per_reply: number(map, "max_calls_per_reply", 1, 256).unwrap_or(default.calls_per_reply),
            revisits: number(map, "max_revisits", 0, 1_000).unwrap_or(default.revisits),
            subtask_depth: depth(map).unwrap_or(default.subtask_depth),
            subtasks: subtasks(map).unwrap_or(default.subtasks),
            memory: number(map, "max_memory", LEAST_MEMORY, MOST_MEMORY).unwrap_or(default.memory),
            sends: number(map, "max_sends", 1, 10).unwrap_or(default.sends),
        }
    }
}

fn number(map: &mut MapReader<'_>, key: &'static str, least: u32, most: u32) -> Option<u32> {
    map.optional(key)
        .and_then(|number: Reader<'_>| number.integer(least, most))
}

/// `max_iterations` of the section or a piece; a wrong value is complained about and counts as left out.
pub fn iterations(map: &mut MapReader<'_>) -> Option<u32> {
    number(map, "max_iterations", 1, 10_000)
}

/// `text_only_limit` or `mistake_limit`.
pub fn in_a_row(map: &mut MapReader<'_>, key: &'static str) -> Option<u32> {
    number(map, key, 1, 100)
}

/// `card_limit` or `ask_limit`.
pub fn people(map: &mut MapReader<'_>, key: &'static str) -> Option<u32> {
    number(map, key, 0, 1_000)
}

/// `max_subtask_depth`.
pub fn depth(map: &mut MapReader<'_>) -> Option<u32> {
    number(map, "max_subtask_depth", 0, 10)
}

/// `max_subtasks`.
pub fn subtasks(map: &mut MapReader<'_>) -> Option<u32> {
    number(map, "max_subtasks", 0, 200)
}
