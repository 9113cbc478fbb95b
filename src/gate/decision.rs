//! What a rule asks of an answer beyond yes or no, and what it offers beside them. Part of the terms of a request.
//!
//! It must not know who anybody is, nor how an answer reaches us.

use gatepost_channel::Decision;
use serde::{Deserialize, Serialize};

use super::authority::{BreakGlass, StepUp};
use super::collapse::Collapse;
use super::edit::EditTerms;
use super::grant::GrantTerms;
use super::policy::Approvers;

/// The most stages of a rule.
pub const MAX_STAGES: usize = 16;

/// See the module. The default is a plain yes or no.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionTerms {
    /// Which answers need a reason in words.
    pub require_reason: RequireReason,
    /// Whether a person is asked once more before an Approve is sent.
    pub confirm_step: bool,
    /// Who is asked one after the other; empty: everybody at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What an approval may let run beside this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<GrantTerms>,
    /// What people may change of the arguments when they approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<EditTerms>,
    /// When like requests share a card, so that they can be answered together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse: Option<Collapse>,
    /// What an approval takes beside the press.
    #[serde(skip_serializing_if = "StepUp::is_none")]
    pub step_up: StepUp,
    /// Who may approve alone in need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub break_glass: Option<BreakGlass>,
}

/// Which answers need a reason in words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequireReason {
    /// None.
    #[default]
    Never,
    /// Reject.
    Reject,
    /// Approve.
    Approve,
    /// Either.
    Both,
}

impl RequireReason {
    /// Whether this answer needs one.
    pub fn of(self, decision: Decision) -> bool {
        match decision {
            Decision::Approve => matches!(self, Self::Approve | Self::Both),
            Decision::Reject => matches!(self, Self::Reject | Self::Both),
        }
    }

    /// What both ask for.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let needs = |decision| self.of(decision) || other.of(decision);
        match (needs(Decision::Approve), needs(Decision::Reject)) {
            (true, true) => Self::Both,
            (true, false) => Self::Approve,
            (false, true) => Self::Reject,
            (false, false) => Self::Never,
        }
    }
}

/// Whether a text says something: a letter or a digit stands in it. Blanks, marks and what cannot be seen give no reason.
pub fn says_something(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// One group of people who are asked together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name, for people.
    pub name: String,
    /// Who may answer.
    pub approvers: Approvers,
    /// Distinct persons needed to approve; at least 1.
    pub quorum: u32,
}

/// Everybody who is named in any of the stages.
pub fn everybody(stages: &[Stage]) -> Approvers {
    let mut all = Approvers::default();
    for stage in stages {
        all.include(&stage.approvers);
    }
    all
}

/// How many persons the stages need together: nobody counts in two of them.
pub fn persons_needed(stages: &[Stage]) -> u32 {
    stages
        .iter()
        .fold(0, |sum: u32, stage| sum.saturating_add(stage.quorum.max(1)))
}

/// Whether so many distinct persons can be found that each stage reaches its quorum. `may` tells who may answer in a stage.
pub fn can_be_filled<P>(stages: &[Stage], persons: &[P], may: impl Fn(&P, &Approvers) -> bool) -> bool {
    let places: Vec<usize> = stages
        .iter()
        .enumerate()
        .flat_map(|(at, stage)| {
            let places = usize::try_from(stage.quorum.max(1)).unwrap_or(usize::MAX);
            std::iter::repeat_n(at, places.min(persons.len().saturating_add(1)))
        })
        .collect();
    let allowed: Vec<Vec<bool>> = stages
        .iter()
        .map(|stage| {
            persons
                .iter()
                .map(|person| may(person, &stage.approvers))
                .collect()
        })
        .collect();
    // A maximum matching of places to persons, by augmenting paths.
    let mut place_of: Vec<Option<usize>> = vec![None; persons.len()];
    places.len() <= persons.len()
        && (0..places.len()).all(|place| {
            let mut seen = vec![false; persons.len()];
            seat(place, &places, &allowed, &mut place_of, &mut seen)
        })
}

fn seat(
    place: usize,
    places: &[usize],
    allowed: &[Vec<bool>],
    place_of: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for person in 0..place_of.len() {
        if seen[person] || !allowed[places[place]][person] {
            continue;
        }
        seen[person] = true;
        let free = match place_of[person] {
            None => true,
            Some(other) => seat(other, places, allowed, place_of, seen),
        };
        if free {
            place_of[person] = Some(place);
            return true;
        }
    }
    false
}

impl DecisionTerms {
    /// Whether a plain yes or no is asked for, as where a rule says nothing of it.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// These terms, in nothing milder than others. `own` and `theirs` are who answers, and how many, where no stages stand.
    #[must_use]
    pub fn no_weaker_than(&self, other: &Self, own: Stage) -> Self {
        let mut terms = self.clone();
        terms.require_reason = terms.require_reason.and(other.require_reason);
        terms.confirm_step |= other.confirm_step;
        terms.grants = self
            .grants
            .as_ref()
            .zip(other.grants.as_ref())
            .and_then(|(ours, theirs)| ours.and(theirs));
        let edits = self.edits.as_ref().zip(other.edits.as_ref());
        terms.edits = edits.and_then(|(ours, theirs)| ours.and(theirs));
        let both = self.collapse.zip(other.collapse);
        terms.collapse = both.map(|(ours, theirs)| ours.and(theirs));
        terms.step_up = self.step_up.and(other.step_up);
        terms.break_glass = self
            .break_glass
            .as_ref()
            .zip(other.break_glass.as_ref())
            .map(|(ours, theirs)| ours.and(theirs));
        if !other.stages.is_empty() && other.stages != self.stages {
            if terms.stages.is_empty() {
                terms.stages.push(own);
            }
            terms.stages.extend(other.stages.iter().cloned());
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, operators: &[&str], quorum: u32) -> Stage {
        Stage {
            name: name.into(),
            approvers: Approvers {
                roles: vec![],
                operators: operators.iter().map(|id| (*id).to_owned()).collect(),
                ..Approvers::default()
            },
            quorum,
        }
    }

    #[test]
    fn stages_are_filled_by_distinct_persons_or_not_at_all() {
        let people = ["a", "b", "c"];
        let may = |person: &&str, approvers: &Approvers| approvers.operators.iter().any(|id| id == person);
        for (stages, expected) in [
            (vec![stage("x", &["a"], 1), stage("y", &["b"], 1)], true),
            (vec![stage("x", &["a"], 1), stage("y", &["a"], 1)], false),
            // Whoever is in both must be left for the stage that has nobody else.
            (vec![stage("x", &["a", "b"], 1), stage("y", &["a"], 1)], true),
            (vec![stage("x", &["a", "b"], 2), stage("y", &["a"], 1)], false),
            (
                vec![
                    stage("x", &["a", "b"], 1),
                    stage("y", &["a", "c"], 1),
                    stage("z", &["a"], 1),
                ],
                true,
            ),
            (vec![stage("x", &["a"], u32::MAX)], false),
            (vec![], true),
        ] {
            assert_eq!(can_be_filled(&stages, &people, may), expected, "{stages:?}");
        }
    }

    #[test]
    fn a_reason_says_something() {
        for (text, expected) in [
            ("checked", true),
            ("已核对", true),
            ("7", true),
            ("", false),
            ("  ", false),
            ("...", false),
            ("\u{200B}\u{2060}", false),
        ] {
            assert_eq!(says_something(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_two_rules_ask_for_is_asked_for() {
        use RequireReason::{Approve, Both, Never, Reject};
        for (one, other, both) in [
            (Never, Never, Never),
            (Never, Reject, Reject),
            (Approve, Reject, Both),
            (Both, Never, Both),
            (Approve, Approve, Approve),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both));
        }
    }

    #[test]
    fn beside_another_rule_its_stages_come_too() {
        let staged = DecisionTerms {
            stages: vec![stage("x", &["a"], 1), stage("y", &["b"], 1)],
            ..DecisionTerms::default()
        };
        let plain = DecisionTerms::default();
        let both = plain.no_weaker_than(&staged, stage("own", &["c"], 2));
        let names: Vec<_> = both.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["own", "x", "y"]);
        assert_eq!(staged.no_weaker_than(&staged, stage("own", &["c"], 2)), staged);
        assert_eq!(staged.no_weaker_than(&plain, stage("own", &["c"], 2)), staged);
    }
}
