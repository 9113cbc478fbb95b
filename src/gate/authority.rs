//! What a rule asks of a person beside their answer (step-up), and who may go past its people in need (break-glass).
//!
//! It must not know who anybody is, nor how somebody proves it.

use serde::{Deserialize, Serialize};

use super::policy::Approvers;

/// What an approval takes beside the press, so that whoever holds somebody's chat account approves nothing alone. A rejection takes
/// nothing. The default is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepUp {
    /// A one-time code of the person, given where only that person is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
    /// A second person who may approve as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub second_person: bool,
}

impl StepUp {
    /// Whether the press alone is enough.
    pub const fn is_none(&self) -> bool {
        !self.code && !self.second_person
    }

    /// What both ask for.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            code: self.code || other.code,
            second_person: self.second_person || other.second_person,
        }
    }
}

/// Who may approve alone, past quorum, stages and approvers, and how often. It lifts nothing else: no deny rule, no ban on
/// self-approval, no deadline, no digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakGlass {
    /// Whoever does must be among each of these by a right of their own; never empty.
    pub lists: Vec<Approvers>,
    /// How often it may be done under one rule, by whomever, within [`Self::per_ms`].
    pub uses: u32,
    /// The window, in milliseconds.
    pub per_ms: i64,
}

impl BreakGlass {
    /// What both allow: who is among both, as seldom as either says.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for list in &other.lists {
            if !both.lists.contains(list) {
                both.lists.push(list.clone());
            }
        }
        both.uses = both.uses.min(other.uses);
        both.per_ms = both.per_ms.max(other.per_ms);
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_two_rules_ask_for_more_and_allow_less() {
        let code = StepUp {
            code: true,
            ..StepUp::default()
        };
        let second = StepUp {
            second_person: true,
            ..StepUp::default()
        };
        assert!(StepUp::default().and(StepUp::default()).is_none());
        assert_eq!(
            code.and(second),
            StepUp {
                code: true,
                second_person: true
            }
        );
        let glass = |role: &str, uses, per_ms| BreakGlass {
            lists: vec![Approvers {
                roles: vec![role.to_owned()],
                ..Approvers::default()
            }],
            uses,
            per_ms,
        };
        let both = glass("a", 3, 10).and(&glass("b", 1, 5));
        assert_eq!((both.lists.len(), both.uses, both.per_ms), (2, 1, 10));
        assert_eq!(both.and(&both), both);
    }
}
