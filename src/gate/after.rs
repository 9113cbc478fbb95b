//! What a rule says about the time after its cards were posted: who is reminded when, who else is asked, where a card goes that a
//! channel refuses, and who is told without being asked. Part of the terms of a request.
//!
//! It must not know who anybody is, nor how anything reaches them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::policy::Approvers;
use super::terms::Terms;

/// The most steps of an escalation.
pub const MAX_STEPS: usize = 8;
/// The most channels in a fallback chain, and in a list of channels that are told.
pub const MAX_CHANNELS: usize = 8;

/// See the module. The default is silence: the cards stand until somebody answers or the time is over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterTerms {
    /// Where a card goes that a channel refuses for good: the first of these that does not ask yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Channels that are told: they get a card on which nothing can be pressed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// What happens while nobody decides, in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalate: Vec<Escalation>,
    /// Whether what came of the request is said below its cards too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub thread_notes: bool,
}

/// One step of an escalation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Escalation {
    /// How long after the request was made, in milliseconds.
    pub after_ms: i64,
    /// Whether a line below each card reminds of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remind: bool,
    /// Whether that line mentions those who may still answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mention: bool,
    /// Channels that get a card from now on too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
    /// Who may decide from now on too, in whatever stage is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Approvers>,
}

/// What is written of the same in a rule or in `policy.confirm`. What a rule leaves out comes from `policy.confirm`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AfterSource {
    /// See [`AfterTerms::fallback`].
    pub fallback: Option<Vec<String>>,
    /// See [`AfterTerms::notify`].
    pub notify: Option<Vec<String>>,
    /// See [`AfterTerms::escalate`].
    pub escalate: Option<Vec<Escalation>>,
    /// See [`AfterTerms::thread_notes`].
    pub thread_notes: Option<bool>,
}

impl AfterSource {
    /// What the rule says, else what `policy.confirm` says, else silence.
    pub fn resolve(&self, policy: &Self) -> AfterTerms {
        fn one_of<T: Clone + Default>(rule: Option<&T>, policy: Option<&T>) -> T {
            rule.or(policy).cloned().unwrap_or_default()
        }
        AfterTerms {
            fallback: one_of(self.fallback.as_ref(), policy.fallback.as_ref()),
            notify: one_of(self.notify.as_ref(), policy.notify.as_ref()),
            escalate: one_of(self.escalate.as_ref(), policy.escalate.as_ref()),
            thread_notes: self.thread_notes.or(policy.thread_notes).unwrap_or(false),
        }
    }
}

impl AfterTerms {
    /// Whether nothing is said.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a step lets more people decide.
    fn widens(&self) -> bool {
        self.escalate.iter().any(|step| step.approvers.is_some())
    }

    /// Both together. Everybody whom either wants to be told is told. But a step that lets more people decide holds only where
    /// its rule stands alone: beside another rule, that one has not said so.
    #[must_use]
    pub fn together_with(&self, other: &Self) -> Self {
        let mut terms = self.clone();
        for (into, from) in [
            (&mut terms.fallback, &other.fallback),
            (&mut terms.notify, &other.notify),
        ] {
            for channel in from {
                if !into.contains(channel) {
                    into.push(channel.clone());
                }
            }
        }
        terms.thread_notes |= other.thread_notes;
        if self.escalate != other.escalate {
            for step in &other.escalate {
                if !terms.escalate.contains(step) {
                    terms.escalate.push(step.clone());
                }
            }
            for step in &mut terms.escalate {
                step.approvers = None;
            }
            terms.escalate.sort_by_key(|step| step.after_ms);
        }
        terms
    }
}

impl Terms {
    /// The terms as they hold once so many steps of the escalation were taken: whoever a step added may decide too. Everything
    /// that the rule asks of everybody (`also`, quorum, self-approval) is asked of them as well.
    pub fn after_steps(&self, taken: u32) -> Cow<'_, Self> {
        let taken = usize::try_from(taken).unwrap_or(usize::MAX);
        if taken == 0 || !self.after.widens() {
            return Cow::Borrowed(self);
        }
        let mut terms = self.clone();
        let steps = self.after.escalate.iter().take(taken);
        for added in steps.filter_map(|step| step.approvers.as_ref()) {
            terms.approvers.include(added);
            for stage in &mut terms.decision.stages {
                stage.approvers.include(added);
            }
        }
        Cow::Owned(terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(after_ms: i64, operators: &[&str]) -> Escalation {
        Escalation {
            after_ms,
            approvers: (!operators.is_empty()).then(|| Approvers {
                operators: operators.iter().map(|id| (*id).to_owned()).collect(),
                ..Approvers::default()
            }),
            ..Escalation::default()
        }
    }

    #[test]
    fn what_is_not_said_is_not_stored() {
        let silent = AfterTerms::default();
        assert!(silent.is_silent());
        assert_eq!(serde_json::to_string(&silent).unwrap(), "{}");
        let said = AfterTerms {
            escalate: vec![step(600_000, &[])],
            ..AfterTerms::default()
        };
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(text, r#"{"escalate":[{"after_ms":600000}]}"#);
        assert_eq!(serde_json::from_str::<AfterTerms>(&text).unwrap(), said);
    }

    #[test]
    fn beside_another_rule_nobody_is_added_who_decides() {
        let widening = AfterTerms {
            escalate: vec![step(20, &["lea"])],
            fallback: vec!["b".into()],
            ..AfterTerms::default()
        };
        assert_eq!(widening.together_with(&widening), widening, "both say so");
        let other = AfterTerms {
            escalate: vec![step(10, &[])],
            fallback: vec!["a".into(), "b".into()],
            thread_notes: true,
            ..AfterTerms::default()
        };
        for both in [widening.together_with(&other), other.together_with(&widening)] {
            assert!(both.escalate.iter().all(|step| step.approvers.is_none()));
            let times: Vec<_> = both.escalate.iter().map(|step| step.after_ms).collect();
            assert_eq!(times, [10, 20]);
            assert!(both.thread_notes && both.fallback.len() == 2);
        }
        let plain = AfterTerms::default();
        assert!(!widening.together_with(&plain).widens() && !plain.together_with(&widening).widens());
    }
}
