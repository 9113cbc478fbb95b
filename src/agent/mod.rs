//! The agent: the loop that asks a model, lets the gate judge the calls it wants, runs what may run, and parks on the rest.
//!
//! In reading order: [`piece`] is the plan, [`memory`] what a run remembers, [`engine`] decides the next step from it without
//! doing anything, [`runner`] does what the engine says. [`model`] and [`tool`] are the two things that lie outside,
//! [`control`] the calls that steer the run itself, [`prompt`] what the model is told, [`desk`] what callers may do with jobs, [`agents`] all of it together.
//! The room must not know SQL, platforms or the web server.

pub mod agents;
pub mod control;
pub mod desk;
pub mod engine;
pub mod memory;
pub mod model;
pub mod piece;
pub mod prompt;
pub mod runner;
pub mod tool;
pub mod turn;

pub use agents::Agents;
pub use desk::Desk;
pub use engine::Limits;
pub use piece::{Piece, Pieces};
pub use runner::Runner;
pub use tool::Toolbox;

#[cfg(test)]
mod outside_tests;
#[cfg(test)]
mod runner_tests;
