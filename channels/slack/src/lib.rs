//! Slack as a channel: cards in Block Kit, clicks over signed HTTP or Socket Mode, edits and private notices over the Web API.
//!
//! The crate knows Slack and the port, and neither store nor gate nor web server. Read in this order:
//!
//! 1. [`config`]: what an operator writes down, and what is refused at start-up.
//! 2. [`channel`]: the app with its token and secrets, and the channels that share it.
//! 3. `blocks`, `card`: the parts of Block Kit that are used, and the layout of a card within Slack's limits.
//! 4. `client`, `error`, `wait`: one call to the Web API, and what its failure means.
//! 5. `post`, `notice`, `dialog`, `check`, `exam`, `directory`: what is done with such calls; `modal` lays out what
//!    `dialog` opens, `edit` the field for changed arguments in it.
//! 6. `verify`, `callback`, `submission`, `command`: from raw bytes to a click or a slash command, and the answer to the latter.
//! 7. [`connection`]: Socket Mode, the same clicks without a public address.
//!
//! Untrusted text is written only into `plain_text` objects with `emoji: false` and into preformatted rich text, where Slack
//! reads no markup, mention or link. Facts are from Slack's method reference and request-signing guide.

mod arguments;
mod blocks;
mod callback;
mod card;
pub mod channel;
mod check;
mod client;
mod command;
pub mod config;
pub mod connection;
mod dialog;
mod directory;
mod edit;
mod error;
mod exam;
mod modal;
mod notice;
mod post;
mod set;
mod submission;
mod thread;
mod verify;
mod wait;

pub use channel::{SlackApp, SlackChannel};
pub use config::{ConfigError, Mode, SlackConfig};

#[cfg(test)]
mod callback_tests;
#[cfg(test)]
mod card_tests;
#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod connection_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod directory_tests;
#[cfg(test)]
mod error_tests;
#[cfg(test)]
mod exam_tests;
#[cfg(test)]
mod fake_api;
#[cfg(test)]
mod fake_socket;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod modal_tests;
#[cfg(test)]
mod post_tests;
#[cfg(test)]
mod sdk_tests;
#[cfg(test)]
mod submission_tests;
#[cfg(test)]
mod verify_tests;
