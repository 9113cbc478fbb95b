//! The agent: the loop that asks a model, lets the gate judge the calls it wants, runs what may run, and parks on the rest.
//!
//! In reading order: [`piece`] is the plan, [`memory`] what a run remembers, [`engine`] decides the next step from it without
//! doing anything, [`runner`] does what the engine says. [`model`] and [`tool`] are the two things that lie outside,
//! [`control`] the calls that steer the run itself, [`sentinel`] what they lead to, [`scene`] what a run may do at this moment,
//! [`limits`] what it may spend,
//! [`compact`] what is left out of a long conversation, [`prompt`] what the model is told, [`desk`] what callers may do with jobs, [`agents`] all of it together.
//! The room must not know SQL, platforms or the web server.

pub mod agents;
pub mod compact;
pub mod control;
pub mod desk;
pub mod engine;
pub mod limits;
pub mod memory;
pub mod model;
pub mod piece;
pub mod prompt;
pub mod runner;
pub mod scene;
pub mod sentinel;
mod servers;
pub mod size;
pub mod tool;
pub mod turn;

pub use agents::Agents;
pub use desk::Desk;
pub use limits::Limits;
pub use piece::{Piece, Pieces};
pub use runner::Runner;
pub use tool::Toolbox;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod compact_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod evaluation_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod grant_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod movement_tests;
#[cfg(test)]
mod observed_tests;
#[cfg(test)]
mod outside_tests;
#[cfg(test)]
mod progress_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod runner_tests;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod subtask_tests;
#[cfg(test)]
mod token_tests;
