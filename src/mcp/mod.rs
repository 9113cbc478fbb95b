//! Servers of tools that speak MCP (Model Context Protocol, revisions 2024-11-05 to 2026-07-28): how they are started or
//! reached, what tools they offer, and how one call is sent.
//!
//! In reading order: [`server`] keeps one server connected, [`offer`] judges the tools that it names, [`call`] is one call and
//! what came of it, `link` is the session. The protocol itself is the official SDK's, rmcp, which only `link`, `wire`,
//! `answer`, `stdio`, `http` and the reading half of `offer` name; both transports are ours, so that a child is ended as every
//! other child, HTTP goes out through the one client, and the arguments travel as the exact text that was approved.
//!
//! Everything a server says is hostile: bounded, shown as text, believed in nothing. The room must not know jobs, requests,
//! policy or hooks.

mod answer;
pub mod call;
mod http;
mod link;
pub mod offer;
pub mod server;
mod sse;
mod stdio;
mod watcher;
mod wire;

pub use call::Called;
pub use offer::{Definition, Fingerprint};
pub use server::{Health, Limits, Server};
pub use watcher::{Moment, Watcher};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod http_tests;
#[cfg(test)]
mod server_tests;

/// The longest message that is read, in bytes. A longer one ends the connection.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;
