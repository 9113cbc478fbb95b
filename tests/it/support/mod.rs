//! What the integration tests stand on: fake platforms, a scripted model, a counting tool, the real program.
//!
//! Read in this order: [`loopback`] serves, [`clock`] tells the time of the fakes, [`fault`] breaks them on demand,
//! [`sockets`] and [`tls`] are other ways in, [`platform_request`] is a callback as a platform sends it; then one module per fake, [`program`] and [`pg`];
//! [`people`] and [`world`] put them together for the stories, [`mortal`] for those in which the program is killed, on
//! [`rows`] that outlive it.

pub mod authenticator;
pub mod clock;
pub mod fake_feishu;
pub mod fake_model;
pub mod fake_slack;
pub mod fake_tool;
pub mod fault;
pub mod limiter;
pub mod loopback;
pub mod mortal;
pub mod news;
pub mod people;
pub mod pg;
pub mod platform_request;
pub mod program;
pub mod rows;
pub mod sockets;
pub mod temp_dir;
pub mod tls;
pub mod world;
