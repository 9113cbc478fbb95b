//! What a rule says of the time after posting, of people and of need: each wrong value is refused with file, line, key and what to do.

use super::super::ProblemKind::{self, *};
use super::{line_of, refusal, spoilt};

/// What stands in the rule beside its quorum, and the one problem that must follow.
type Case = (&'static str, ProblemKind, &'static str);

const RULE: &str = "      quorum: 2\n";

/// Each behind `quorum` in the rule, on line 38.
#[rustfmt::skip]
const IN_A_RULE: &[Case] = &[
    ("escalate: []", BadValue, "escalate"),
    ("escalate: {after: 1m}", WrongType, "escalate"),
    ("escalate: [{remind: true}]", MissingKey, "escalate[0].after"),
    ("escalate: [{after: 1m}]", BadValue, "escalate[0]"),
    ("escalate: [{after: 0s, remind: true}]", BadValue, "escalate[0].after"),
    ("escalate: [{after: 500ms, remind: true}]", BadValue, "escalate[0].after"),
    ("escalate: [{after: 60, remind: true}]", BadValue, "escalate[0].after"),
    ("escalate: [{after: soon, remind: true}]", BadValue, "escalate[0].after"),
    ("escalate: [{after: 2m, remind: true}]", BadValue, "escalate[0].after"),
    ("escalate: [{after: 1m, remind: true}, {after: 1m, remind: true}]", BadValue, "escalate[1].after"),
    ("escalate: [{after: 1m, remind: true}, {after: 30s, remind: true}]", BadValue, "escalate[1].after"),
    ("escalate: [{after: 1m, remind: often}]", WrongType, "escalate[0].remind"),
    ("escalate: [{after: 1m, mention: [dana]}]", WrongType, "escalate[0].mention"),
    ("escalate: [{after: 1m, channels: ops}]", WrongType, "escalate[0].channels"),
    ("escalate: [{after: 1m, channels: [opps]}]", UnknownName, "escalate[0].channels[0]"),
    ("escalate: [{after: 1m, approvers: {operators: [dna]}}]", UnknownName, "escalate[0].approvers.operators[0]"),
    ("escalate: [{after: 1m, approvers: {roles: [fin]}}]", UnknownName, "escalate[0].approvers.roles[0]"),
    ("escalate: [{after: 1m, approvers: {on_call: [pay]}}]", UnknownName, "escalate[0].approvers.on_call[0]"),
    ("escalate: [{after: 1m, quorum: 1}]", UnknownKey, "escalate[0].quorum"),
    ("fallback: ops", WrongType, "fallback"),
    ("fallback: []", BadValue, "fallback"),
    ("fallback: [pay, opps]", UnknownName, "fallback[1]"),
    ("fallback: [a1, a2, a3, a4, a5, a6, a7, a8, a9]", BadValue, "fallback"),
    ("fallback: [pay]\n      fallback_after: soon", BadValue, "fallback_after"),
    ("fallback: [pay]\n      fallback_after: 500ms", BadValue, "fallback_after"),
    ("fallback: [pay]\n      fallback_after: 2m", BadValue, "fallback_after"),
    ("notify: [ops]", WrongType, "notify"),
    ("notify: {}", MissingKey, "notify.channels"),
    ("notify: {channels: [opps]}", UnknownName, "notify.channels[0]"),
    ("notify: {channels: [pay], approvers: {operators: [dana]}}", UnknownKey, "notify.approvers"),
    ("thread_notes: loud", WrongType, "thread_notes"),
    ("break_glass: true", WrongType, "break_glass"),
    ("break_glass: {uses: 1}", MissingKey, "break_glass.approvers"),
    ("break_glass: {approvers: {operators: [dana]}, uses: many}", WrongType, "break_glass.uses"),
    ("break_glass: {approvers: {operators: [dana]}, uses: 1001}", BadValue, "break_glass.uses"),
    ("break_glass: {approvers: {operators: [dana]}, per: 400d}", BadValue, "break_glass.per"),
    ("break_glass: {approvers: {operators: [dana]}, reason: x}", UnknownKey, "break_glass.reason"),
    ("step_up: yes", BadValue, "step_up"),
    ("step_up: true", WrongType, "step_up"),
    ("step_up: codes", BadValue, "step_up"),
    ("step_up: {code: true}", WrongType, "step_up"),
    ("approvers: {on_call: []}", BadValue, "approvers.on_call"),
    ("approvers: {on_call: [pay]}", UnknownName, "approvers.on_call[0]"),
];

#[test]
fn in_a_rule() {
    for (text, kind, key) in IN_A_RULE {
        let problem = refusal(&spoilt(RULE, &format!("{RULE}      {text}\n")));
        let lines = text.lines().count();
        let key = format!("policy.rules[0].{key}");
        assert_eq!(
            (problem.kind, &problem.key, line_of(&problem)),
            (*kind, &key, 37 + lines),
            "{text}: {problem}"
        );
        let told = problem.to_string();
        assert!(
            told.starts_with(&format!("gatepost.yaml:{}:", 37 + lines)),
            "{told}"
        );
        assert!(problem.remedy.is_some(), "{text}: {problem}");
    }
}

/// Each in `policy.confirm`, on line 32.
#[rustfmt::skip]
const FOR_ALL: &[Case] = &[
    ("escalate: [{after: 1m, channels: [opps]}]", UnknownName, "escalate[0].channels[0]"),
    ("fallback: [opps]", UnknownName, "fallback[0]"),
    ("fallback: [pay], fallback_after: 3m", BadValue, "fallback_after"),
    ("notify: {channels: [opps]}", UnknownName, "notify.channels[0]"),
    ("thread_notes: 1", WrongType, "thread_notes"),
    ("break_glass: {approvers: {operators: [dana]}}", UnknownKey, "break_glass"),
];

#[test]
fn for_all_rules() {
    for (text, kind, key) in FOR_ALL {
        let problem = refusal(&spoilt("timeout: 2m}", &format!("timeout: 2m, {text}}}")));
        assert_eq!(
            (problem.kind, problem.key.as_str(), line_of(&problem)),
            (*kind, format!("policy.confirm.{key}").as_str(), 32),
            "{text}: {problem}"
        );
        assert!(problem.remedy.is_some(), "{text}: {problem}");
    }
}

/// Each behind the id of an operator, on line 14.
#[rustfmt::skip]
const OF_AN_OPERATOR: &[Case] = &[
    ("away: {from: x}", WrongType, "away"),
    ("away: [{from: 2026-12-24, until: '2026-12-26T00:00:00Z', substitute: dana}]", BadValue, "away[0].from"),
    ("away: [{from: '2026-12-24T00:00:00Z', until: tomorrow, substitute: dana}]", BadValue, "away[0].until"),
    ("away: [{from: '2026-12-24T00:00:00Z', substitute: dana}]", MissingKey, "away[0].until"),
    ("away: [{until: '2026-12-24T00:00:00Z', substitute: dana}]", MissingKey, "away[0].from"),
    ("totp: 12345678", WrongType, "totp"),
    ("substitutes: [dna]", UnknownName, "substitutes[0]"),
];

#[test]
fn of_an_operator() {
    for (text, kind, key) in OF_AN_OPERATOR {
        let problem = refusal(&spoilt("  - id: noor\n", &format!("  - id: noor\n    {text}\n")));
        assert_eq!(
            (problem.kind, problem.key.as_str(), line_of(&problem)),
            (*kind, format!("operators[1].{key}").as_str(), 14),
            "{text}: {problem}"
        );
        assert!(problem.remedy.is_some(), "{text}: {problem}");
    }
}

#[test]
fn of_people_on_call() {
    for (text, kind, key) in [
        ("{name: p, shifts: []}", NobodyDecides, ""),
        ("{name: p, shifts: {from: x}}", WrongType, ".shifts"),
        (
            "{name: p, shifts: [{from: x, until: y, operator: dana}]}",
            BadValue,
            ".shifts[0].from",
        ),
        ("{name: p, rotation: [dana]}", WrongType, ".rotation"),
        (
            "{name: p, rotation: {every: 7d, operators: [dana]}}",
            MissingKey,
            ".rotation.start",
        ),
        (
            "{name: 'p q', rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: [dana]}}",
            BadValue,
            ".name",
        ),
        ("{name: p, turns: 3}", UnknownKey, ".turns"),
    ] {
        let text = spoilt(
            "channels:\n  - name: ops\n",
            &format!("on_call:\n  - {text}\nchannels:\n  - name: ops\n"),
        );
        let problems = super::refusals(&text);
        let named = |problem: &&super::Problem| {
            (problem.kind, problem.key.clone()) == (kind, format!("on_call[0]{key}"))
        };
        let problem = problems.iter().find(named);
        let problem = problem.unwrap_or_else(|| panic!("{text}: {problems:#?}"));
        assert_eq!(line_of(problem), 17, "{problem}");
        assert!(problem.remedy.is_some(), "{problem}");
    }
}
