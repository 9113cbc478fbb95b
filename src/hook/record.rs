//! The record: one line in the audit log for each hook that had a say, written behind the answer.

use std::sync::Arc;

use super::{HookContext, HookError, HookResult, Point};
use crate::audit::{Actor, Draft, Opening};
use crate::config::hook::OnFailure;
use crate::gatekeeper::Journal;
use crate::ids::Ids;

/// The most characters of a hook's own words in one line.
const MOST: usize = 500;

/// Writes the lines. Clones share the journal.
#[derive(Clone)]
pub struct Recorder {
    journal: Option<Journal>,
    ids: Arc<dyn Ids>,
}

impl Recorder {
    /// A recorder on this journal.
    pub fn new(journal: Journal, ids: Arc<dyn Ids>) -> Self {
        Self {
            journal: Some(journal),
            ids,
        }
    }

    /// A recorder that forgets everything.
    pub fn forgetful(ids: Arc<dyn Ids>) -> Self {
        Self { journal: None, ids }
    }

    /// A hook answered. Silence without side effects is not worth a line.
    pub(super) fn answered<T>(
        &self,
        hook: &str,
        point: Point,
        context: &HookContext,
        tool: Option<&str>,
        result: &HookResult<T>,
    ) {
        let action = result.decision.action();
        if action.is_none() && result.side_effects.is_empty() {
            return;
        }
        let word = action.map_or("silent", super::Action::word);
        let said = result.decision.reason().map(str::to_owned);
        let did = (!result.side_effects.is_empty()).then(|| result.side_effects.join("; "));
        let draft = draft(context, "hook.answered", point, hook, tool)
            .with("answer", word)
            .with_private("reason", self.text(said))
            .with_private("side_effects", self.text(did));
        self.write(draft);
    }

    /// A hook failed.
    pub(super) fn failed(
        &self,
        hook: &str,
        point: Point,
        context: &HookContext,
        tool: Option<&str>,
        error: &HookError,
        on_failure: OnFailure,
    ) {
        let follows = match on_failure {
            OnFailure::Deny => "deny",
            OnFailure::Continue => "continue",
        };
        let draft = draft(context, "hook.failed", point, hook, tool)
            .with("cause", error.code())
            .with("follows", follows)
            .with_private("detail", self.text(Some(error.to_string())));
        self.write(draft);
    }

    /// Whatever else a hook puts on record.
    pub(super) fn write(&self, draft: Draft) {
        if let Some(journal) = &self.journal {
            journal.write(draft);
        }
    }

    pub(super) fn fresh_id(&self) -> String {
        self.ids.fresh()
    }

    fn text(&self, text: Option<String>) -> Option<Opening> {
        let text: String = text?.replace('\0', "\u{FFFD}").chars().take(MOST).collect();
        (!text.is_empty()).then(|| Opening::new(&text, &*self.ids))
    }
}

/// An event of this run.
pub(super) fn draft(
    context: &HookContext,
    kind: &'static str,
    point: Point,
    hook: &str,
    tool: Option<&str>,
) -> Draft {
    let mut draft = Draft::new(&context.org, kind, Actor::Token(context.token.0.clone()))
        .with("hook", hook)
        .with("point", point.name());
    if let Some(tool) = tool {
        draft = draft.with("tool_name", tool);
    }
    if let Some(call) = &context.tool_call_id {
        draft = draft.with("tool_call_id", call.as_str());
    }
    draft.job.clone_from(&context.job);
    draft
}
