//! The switch for evaluation runs: jobs of named tokens whose calls go past the people whom policy wants asked.

use std::collections::BTreeSet;

use super::node::Reader;

/// See the module. By default no token is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvaluationConfig {
    /// The tokens whose jobs ask nobody; empty unless `bypass_gate` is true.
    pub tokens: BTreeSet<String>,
}

impl EvaluationConfig {
    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let bypass = map.required("bypass_gate").and_then(|flag| flag.boolean());
        let tokens = map.required("tokens").and_then(|tokens| tokens.texts());
        map.finish();
        let (bypass, tokens) = (bypass?, tokens?);
        if !bypass {
            return Some(Self::default());
        }
        reader.warn(
            "jobs of these tokens run calls that need a person without asking one; each such call is on record as gate.bypassed",
        );
        Some(Self {
            tokens: tokens.into_iter().collect(),
        })
    }
}
