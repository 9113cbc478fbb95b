//! The words of cards about the right by which somebody answers.

use serde::Deserialize;

/// See the module. What stands in braces is replaced.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityWords {
    /// A substitute: `{name}` and `{absent}`.
    pub acting_for: String,
    /// Label of approvals that count nothing yet.
    pub armed: String,
    /// One of them: `{name}` and `{until}`.
    pub armed_code: String,
    /// One of them: `{name}` and `{until}`.
    pub armed_second_person: String,
    /// Label of what an approval takes beside the press.
    pub takes: String,
    /// A one-time code.
    pub takes_code: String,
    /// A second person.
    pub takes_second_person: String,
    /// A vote that took a second person: `{name}` and `{second}`.
    pub confirmed_by: String,
    /// Title of a request that one person approved alone.
    pub broken_title: String,
    /// Label of who did.
    pub broken: String,
    /// Who did: `{name}`.
    pub broken_value: String,
    /// Label of those who were passed over.
    pub passed_over_label: String,
    /// What each of those is told: `{name}`, `{request}`, `{tool}` and `{reason}`.
    pub passed_over: String,
}
