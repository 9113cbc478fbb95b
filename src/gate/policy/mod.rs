//! Policy: which calls run, which are refused, and which need a person.
//!
//! It must not know files and lines, operators, or how a question reaches anybody.

mod source;

pub use source::{Approvers, ConfirmSource, Effect, PartialView, PolicySource, RuleSource};
