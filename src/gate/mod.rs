//! The gate: what a tool call is, what policy says about it, and what people may see of it.
//!
//! In reading order: [`json`] and [`number`] give arguments one meaning, [`arguments`] and [`digest`] name a call,
//! [`redact`](mod@redact) hides what people must not see, [`decision`] says what an answer needs, [`authority`] and [`code`] what it
//! takes beside it, [`after`] what happens while none comes, [`duty`] who is on call or away, [`edit`] what people may change of a
//! call, [`verdict`] why a call does not run.
//! The room is pure: it knows no platform, store, web, clock or chance.

pub mod after;
pub mod arguments;
pub mod authority;
pub mod code;
pub mod collapse;
pub mod decision;
pub mod digest;
pub mod duty;
pub mod edit;
pub mod grant;
pub mod json;
pub mod number;
pub mod policy;
pub mod redact;
pub mod terms;
pub mod verdict;
pub mod view;

pub use after::AfterTerms;
pub use arguments::{Arguments, InvalidArguments, ToolName};
pub use decision::{DecisionTerms, RequireReason, Stage};
pub use digest::{Digest, ShortCode};
pub use edit::{EditProblem, EditScope, EditTerms};
pub use json::Json;
pub use redact::redact;
pub use terms::Terms;
pub use verdict::DenyReason;
pub use view::{
    editable, redacted, shown, shown_canonical, shown_changes, shown_edited, shown_or_hidden, without_hidden,
};
