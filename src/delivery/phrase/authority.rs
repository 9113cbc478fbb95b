//! The words of cards about the right by which somebody answers.

use serde::Deserialize;

/// See the module.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityWords {
    /// A substitute: holds `{name}` and `{absent}`.
    pub acting_for: String,
}
