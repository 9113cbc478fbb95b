//! Hooks: code that runs around the model and around tools. An observer looks on, an interceptor may change or stop, an around
//! hook wraps, an approver agrees or not. None of them can skip the confirmation gate, which judges last.
//!
//! In reading order: [`point`] says where hooks run, [`action`] what they may do there, [`context`] and [`payload`] what they
//! are shown, [`answer`] what they give back. [`registry`] holds them in their one order; [`tool`], [`model`] and [`session`]
//! run the chains and are what the runner calls; [`around`] nests; [`observe`] hands events out. [`process`] and [`command`]
//! are hooks that are programs, [`builtin`] those that Gatepost brings, [`build`] makes all of them from the configuration.
//!
//! The room must not know SQL, platforms, or how a run goes on after an answer.

pub mod action;
pub mod answer;
pub mod around;
pub mod build;
pub mod builtin;
mod chain;
pub mod command;
pub mod context;
pub mod council;
pub mod event;
pub mod failure;
pub mod model;
pub mod observe;
pub mod payload;
pub mod point;
pub mod process;
pub mod record;
pub mod registry;
pub mod schema;
pub mod session;
pub mod tool;

pub use action::Action;
pub use answer::{Decision, HookResult};
pub use around::{Around, Next, NotRun, Ran};
pub use build::{BuildError, Outside, absent, build, check};
pub use context::HookContext;
pub use council::Chamber;
pub use event::{Event, EventKind, EventScope, Severity};
pub use failure::HookError;
pub use observe::Observer;
pub use payload::{
    Message, ModelReply, ModelRequest, PastCall, SessionContext, ToolCall, ToolOffer, ToolOutput, WantedCall,
};
pub use point::Point;
pub use record::Recorder;
pub use registry::{Approver, Hooks, Interceptor, Mount, Source};
pub use session::Halt;
pub use tool::{Before, Judged};

#[cfg(test)]
mod around_tests;
#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod council_tests;
#[cfg(test)]
mod fixture;
