//! One integration binary: the real program over real HTTP, with fake platforms that keep the platforms' limits.
//!
//! Loopback only. A test never sleeps for time to pass: it moves a clock or waits for an event.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test drives real time, real tasks and real clients, and a broken expectation ends it"
)]

mod cards;
mod channels;
mod cli;
mod fakes_selftest;
mod hooks;
mod story;
mod support;
mod views;
