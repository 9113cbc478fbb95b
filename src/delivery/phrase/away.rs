//! Answers to "I am away" and "I am back".

use serde::Deserialize;

/// See the module. `{command}` is how the bot was called; what else stands in braces is replaced.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwayWords {
    /// How it is said; `{zone}`.
    pub how: String,
    /// It is set: `{from}`, `{until}`, `{substitute}`.
    pub set: String,
    /// It is over: `{substitute}`.
    pub back: String,
    /// The configuration names nobody for this person.
    pub no_substitute: String,
    /// Somebody else was named: `{names}` are those who may be.
    pub not_a_substitute: String,
    /// It would be over before it begins.
    pub past: String,
    /// It is too long.
    pub too_long: String,
    /// The configuration has one in that time.
    pub configured: String,
    /// People would stand in for each other: `{names}`.
    pub circle: String,
    /// There are too many.
    pub too_many: String,
    /// There is none to end.
    pub not_away: String,
}
