//! Child processes: how every program that is not ours is started, talked to and ended. Hooks, command tools and whatever else
//! starts a child do it here, so that there is one set of rules:
//!
//! - no shell, an empty environment plus what the entry lists, a process group of its own;
//! - the input is written while both outputs are read, and a child that does not read it is no error;
//! - what is kept of its outputs is bounded;
//! - at the time limit the group, and what left the group for a session of its own, gets TERM and after a short grace KILL;
//!   the child is reaped, and reading stops even when a stray process holds the pipe.
//!
//! [`spawn`](mod@spawn) starts, [`group`] ends, [`heard`] bounds, [`run`](mod@run) is one child from start to end; [`line`] and
//! [`complaints`] are for those that are talked to, [`sample`] what of their words people are shown. The room must not know what a child is for.

pub mod complaints;
pub mod group;
pub mod heard;
pub mod line;
pub mod run;
pub mod sample;
pub mod spawn;

pub use complaints::{Complaints, how_it_ended};
pub use group::Group;
pub use heard::{Heard, Keep};
pub use line::{Lines, NoLine};
pub use run::{Ended, How, Overflow, Request, run};
pub use sample::Sampler;
pub use spawn::{NotStarted, Spawned, spawn};

#[cfg(test)]
mod child_tests;
