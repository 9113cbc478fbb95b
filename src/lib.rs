//! Gatepost: an approval gate for AI agents.
//!
//! The map, in reading order:
//!
//! - [`gate`]: the question. A tool call, its canonical arguments and digest, the policy, the verdict.
//! - [`confirmation`]: the request that a person must decide; each moment of its life is a file.
//! - [`audit`]: what happened, chained.
//! - [`job`]: the durable agent run that parks on a request and resumes from it.
//! - [`agent`]: the loop that asks a model and runs its calls, as far as the gate lets it.
//! - [`delivery`]: cards and the outbox.
//! - [`gatekeeper`]: what callers may do, whatever they come through: ask, wait, decide, consume.
//! - [`child`]: programs that are not ours: started, bounded, ended.
//! - [`mcp`]: servers of tools that speak MCP: connected, their offer judged, one call sent.
//! - [`hook`]: what runs around the model and around tools: observers, interceptors, approvers.
//! - [`host`]: the dialects of agent hosts on top of the gatekeeper.
//! - [`callback`]: intake of platform callbacks: verify, decide, answer in time.
//! - [`storage`]: whole transactions on SQLite and PostgreSQL; the only room that knows SQL.
//! - [`config`]: what the operator wrote.
//! - [`http`], [`console`], [`telemetry`]: the outside: the API, pages for people, log lines and metrics.
//! - [`app`]: puts concrete parts together; the only file that names them all.
//! - [`cli`]: the command line.
//! - [`bench`]: what Gatepost takes, beside what the machine could give.
//! - [`clock`], [`ids`], [`lifecycle`]: time, chance and tasks as parameters.

pub mod agent;
pub mod app;
pub mod audit;
pub mod bench;
pub mod callback;
pub mod child;
pub mod cli;
pub mod clock;
pub mod config;
pub mod confirmation;
pub mod console;
pub mod delivery;
pub mod gate;
pub mod gatekeeper;
pub mod hook;
pub mod host;
pub mod http;
pub mod ids;
pub mod job;
pub mod lifecycle;
pub mod mcp;
pub mod storage;
pub mod telemetry;
