//! Step-up, break-glass and the secrets of one-time codes: what is read, and every start-up error.

use super::super::ProblemKind::{self, *};
use super::{BASE, line_of, loaded, refusal, spoilt};

const RULE: &str = "      quorum: 2\n";
const DANA: &str = "    email: dana@example.com\n";
const NOOR: &str = "  - id: noor\n";
const SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

fn check(from: &str, to: &str, kind: ProblemKind, key: &str) {
    let problem = refusal(&spoilt(from, to));
    assert_eq!((problem.kind, problem.key.as_str()), (kind, key), "{problem}");
    assert!(line_of(&problem) > 0, "{problem}");
    assert!(!problem.to_string().contains(SECRET), "{problem}");
}

/// The base with codes for these operators, and the rule with this instead of its quorum.
fn with(codes: &[&str], rule: &str) -> String {
    let mut text = BASE.replacen(RULE, rule, 1);
    for (id, place) in [("dana", DANA), ("noor", NOOR)] {
        if codes.contains(&id) {
            text = text.replacen(place, &format!("{place}    totp: {SECRET}\n"), 1);
        }
    }
    text
}

#[test]
fn codes_are_in_reach_of_who_is_asked() {
    assert_eq!(
        loaded(&with(&["dana", "noor"], "      step_up: code\n")).warnings,
        []
    );
    let warned = loaded(&with(&["dana"], "      step_up: code\n")).warnings;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(warned[0].key, "policy.rules[0].step_up");
    assert!(warned[0].message.ends_with("noor"), "{warned:?}");
    // Whoever is asked beside the approvers needs one as well.
    let beside = "      step_up: code\n      break_glass: {approvers: {operators: [noor]}}\n      escalate: [{after: 1m, approvers: {operators: [noor, dana]}}]\n      approvers: {operators: [dana]}\n";
    let warned = loaded(&with(&["dana"], beside)).warnings;
    let keys: Vec<&str> = warned.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "policy.rules[0].break_glass.approvers",
            "policy.rules[0].escalate[0].approvers"
        ]
    );
    assert!(
        warned
            .iter()
            .all(|warning| warning.message.ends_with("`operators`: noor")),
        "{warned:?}"
    );
    assert_eq!(loaded(&with(&["dana", "noor"], beside)).warnings, []);
    for (codes, rule) in [
        (&["dana"][..], "      quorum: 2\n      step_up: code\n"),
        (&[], "      step_up: code\n"),
        (&["dana"], "      step_up: both\n"),
    ] {
        let problem = refusal(&with(codes, rule));
        assert_eq!(
            (problem.kind, problem.key.as_str()),
            (NobodyDecides, "policy.rules[0].step_up")
        );
    }
    check(
        RULE,
        "      step_up: passkey\n",
        BadValue,
        "policy.rules[0].step_up",
    );
}

#[test]
fn a_second_person_is_there() {
    assert_eq!(loaded(&with(&[], "      step_up: second_person\n")).warnings, []);
    check(
        RULE,
        "      step_up: second_person\n      approvers: {operators: [dana]}\n",
        BadValue,
        "policy.rules[0].step_up",
    );
}

#[test]
fn a_secret_of_codes_is_one() {
    let totp = |secret: &str| format!("{DANA}    totp: {secret}\n");
    assert!(
        loaded(&spoilt(DANA, &totp(SECRET))).config.operators[0]
            .code_key
            .is_some()
    );
    for secret in [
        "GEZDGNBVGY3TQOJQ",
        "not-base-32-at-all-1890",
        "'ou_7d8a6e7d8a6e7d8a6e7d8a6e7d8a6e0'",
    ] {
        check(DANA, &totp(secret), BadSecret, "operators[0].totp");
    }
}

#[test]
fn somebody_may_break_the_glass() {
    let glass = |inner: &str| format!("      quorum: 2\n      break_glass: {inner}\n");
    let text = spoilt(RULE, &glass("{approvers: {operators: [dana]}, uses: 2, per: 7d}"));
    let config = loaded(&text).config;
    let read = config.policy.rules[0].confirm.break_glass.clone().unwrap();
    assert_eq!((read.uses, read.per_ms), (2, 604_800_000));
    let usual = loaded(&spoilt(RULE, &glass("{approvers: {operators: [dana]}}"))).config;
    let read = usual.policy.rules[0].confirm.break_glass.clone().unwrap();
    assert_eq!((read.uses, read.per_ms), (1, 86_400_000));
    for (inner, kind, key) in [
        ("{}", MissingKey, "policy.rules[0].break_glass.approvers"),
        (
            "{approvers: {}}",
            NobodyDecides,
            "policy.rules[0].break_glass.approvers",
        ),
        (
            "{approvers: {operators: [dna]}}",
            UnknownName,
            "policy.rules[0].break_glass.approvers.operators[0]",
        ),
        (
            "{approvers: {roles: [fin]}}",
            UnknownName,
            "policy.rules[0].break_glass.approvers.roles[0]",
        ),
        (
            "{approvers: {on_call: [pay]}}",
            UnknownName,
            "policy.rules[0].break_glass.approvers.on_call[0]",
        ),
        (
            "{approvers: {operators: [dana]}, uses: 0}",
            BadValue,
            "policy.rules[0].break_glass.uses",
        ),
        (
            "{approvers: {operators: [dana]}, per: 1s}",
            BadValue,
            "policy.rules[0].break_glass.per",
        ),
        (
            "{approvers: {operators: [dana]}, for: 1h}",
            UnknownKey,
            "policy.rules[0].break_glass.for",
        ),
    ] {
        check(RULE, &glass(inner), kind, key);
    }
    check(
        "timeout: 2m}",
        "timeout: 2m, break_glass: {approvers: {operators: [dana]}}}",
        UnknownKey,
        "policy.confirm.break_glass",
    );
}
