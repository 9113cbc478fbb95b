//! Room: the bound on what a run remembers, in bytes as they are stored.
//!
//! Half of the bound is for what is over, a quarter for the words and calls of one reply, a quarter for their results. So what
//! is stored never exceeds it: a reply and each result are bounded before they enter, and before the model is asked again the
//! oldest of the conversation is left out. Only when that does not help, the run ends.

use super::Setting;
use crate::agent::compact;
use crate::agent::memory::Memory;
use crate::agent::size;

/// Makes room for another reply and its results.
///
/// # Errors
/// There is none, in words for the job's error.
pub(super) fn make(memory: &mut Memory, setting: &Setting<'_>) -> Result<(), String> {
    let limits = &setting.limits;
    let most = limits.memory / 2;
    let rest = memory
        .write()
        .len()
        .saturating_sub(compact::size(&memory.history));
    let budget = limits.context.min(compact::tokens(most.saturating_sub(rest)));
    if compact::compact(&mut memory.history, budget) {
        memory.compactions = memory.compactions.saturating_add(1);
    }
    let now = memory.write().len();
    if now > most {
        return Err(format!(
            "memory_limit: the run remembers {now} bytes after the oldest of it was left out; it may remember {most} between two \
             replies (half of agent.max_memory)"
        ));
    }
    Ok(())
}

/// The most bytes of the words and calls of one reply.
pub(in crate::agent) const fn for_reply(memory: usize) -> usize {
    memory / 4
}

/// A result, within its share of the turn.
pub(super) fn result(told: String, memory: &Memory, setting: &Setting<'_>) -> String {
    size::bounded(told, setting.limits.memory / 4 / memory.calls().len().max(1))
}
