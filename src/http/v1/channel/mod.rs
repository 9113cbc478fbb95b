//! Channels over HTTP: callbacks of platforms, health and test cards for admins.

pub mod callback;
pub mod list;
pub mod test;
pub mod throttle;

#[cfg(test)]
mod channel_tests;
