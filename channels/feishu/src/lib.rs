//! Feishu and Lark: approval cards in group chats, decided by verified clicks.
//!
//! Read in this order:
//!
//! 1. [`config`]: what an app and a channel need; what may not be left empty.
//! 2. [`channel`]: the adapter itself, the port's verbs on one group.
//! 3. `card` and `elements`: the neutral card in card JSON 2.0, within the platform's budgets, without any element that reads markup.
//! 4. `verify`, `crypto`, `document`, `legacy`: how the bytes of a callback become an authentic document, or a refusal.
//! 5. `callback` and `message`: what an authentic document says, and the answer to a click; `whisper`: answers to one person.
//! 6. `post`, `page` (with `edit`, the field for changed arguments), `check` and `directory`: the calls that are made; [`client`] and `token`: how; `error`: what the platform's codes mean.
//! 7. [`connection`] and `frame`: the long connection, the same clicks without a public address.
//!
//! This crate knows neither store nor gate nor web server. The facts are those of the platform's documentation (sending and
//! updating messages, card JSON 2.0, callbacks, request verification) as of 2026.

pub mod channel;
pub mod client;
pub mod config;
pub mod connection;

mod arguments;
mod callback;
mod card;
mod check;
mod crypto;
mod directory;
mod document;
mod edit;
mod elements;
mod error;
mod exam;
mod frame;
mod legacy;
mod message;
mod page;
mod post;
mod set;
mod thread;
mod token;
mod verify;
mod whisper;

pub use channel::FeishuChannel;
pub use client::{FeishuApp, Now};
pub use config::{CallbackSecrets, ConfigError, FeishuAppConfig, FeishuConfig, Mode};
pub use connection::FeishuConnection;

#[cfg(test)]
mod channel_tests;
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
mod exam_tests;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod fake_socket;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod post_tests;
#[cfg(test)]
mod sdk_tests;
#[cfg(test)]
mod talk;

/// The adapter's kind, as the configuration spells it.
pub const KIND: &str = "feishu";
