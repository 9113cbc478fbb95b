//! Where hooks run, and for whose calls.

use crate::gatekeeper::Via;

/// A point in a run at which hooks are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Before the first question to the model: context may be added.
    SessionStart,
    /// Before each question to the model: it may be rewritten.
    BeforeModel,
    /// Around each question to the model.
    AroundModel,
    /// After each reply of the model: it may be rewritten.
    AfterModel,
    /// Before a tool runs: its arguments may be rewritten, the call answered or denied.
    PreToolUse,
    /// Whether the call may run.
    ApproveTool,
    /// Around the tool.
    AroundTool,
    /// After a tool ran: its result may be rewritten.
    PostToolUse,
}

impl Point {
    /// All of them, in the order in which a run meets them.
    pub const ALL: [Self; 8] = [
        Self::SessionStart,
        Self::BeforeModel,
        Self::AroundModel,
        Self::AfterModel,
        Self::PreToolUse,
        Self::ApproveTool,
        Self::AroundTool,
        Self::PostToolUse,
    ];

    /// Its name in configuration, audit and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::BeforeModel => "before_model",
            Self::AroundModel => "around_model",
            Self::AfterModel => "after_model",
            Self::PreToolUse => "pre_tool_use",
            Self::ApproveTool => "approve_tool",
            Self::AroundTool => "around_tool",
            Self::PostToolUse => "post_tool_use",
        }
    }

    /// The point of this name, aliases included.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "before_llm" => Some(Self::BeforeModel),
            "after_llm" => Some(Self::AfterModel),
            "before_tool" => Some(Self::PreToolUse),
            "after_tool" => Some(Self::PostToolUse),
            _ => Self::ALL.into_iter().find(|point| point.name() == name),
        }
    }
}

/// The surfaces of the configuration.
pub(super) fn surfaces(words: &[crate::config::hook::HookSurface]) -> Vec<Via> {
    use crate::config::hook::HookSurface;
    words
        .iter()
        .map(|surface| match surface {
            HookSurface::Job => Via::Job,
            HookSurface::Api => Via::Api,
            HookSurface::Host => Via::Host,
        })
        .collect()
}

impl From<crate::config::hook::HookPoint> for Point {
    fn from(point: crate::config::hook::HookPoint) -> Self {
        use crate::config::hook::HookPoint;
        match point {
            HookPoint::SessionStart => Self::SessionStart,
            HookPoint::BeforeModel => Self::BeforeModel,
            HookPoint::AfterModel => Self::AfterModel,
            HookPoint::PreToolUse => Self::PreToolUse,
            HookPoint::ApproveTool => Self::ApproveTool,
            HookPoint::PostToolUse => Self::PostToolUse,
        }
    }
}
