//! People on call and absences: what is read, and every start-up error.

use super::super::ProblemKind::{self, *};
use super::{BASE, line_of, loaded, refusal, spoilt};
use crate::clock::parse_rfc3339;

const NOOR: &str = "  - id: noor\n";
const LISTS: &str = "channels:\n  - name: ops\n";
const RULE: &str = "      quorum: 2\n";

fn with_lists(lists: &str) -> String {
    format!("on_call:\n{lists}{LISTS}")
}

fn check(from: &str, to: &str, kind: ProblemKind, key: &str) -> String {
    let problem = refusal(&spoilt(from, to));
    assert_eq!((problem.kind, problem.key.as_str()), (kind, key), "{problem}");
    assert!(line_of(&problem) > 0, "{problem}");
    problem.to_string()
}

#[test]
fn absences_and_lists_are_read() {
    let away = "  - id: noor\n    away: [{from: '2026-12-24T08:00:00+08:00', until: '2027-01-01T00:00:00Z', substitute: dana}]\n";
    let text = spoilt(NOOR, away);
    let noor = &loaded(&text).config.operators[1];
    assert_eq!(noor.away.len(), 1);
    assert_eq!(Some(noor.away[0].from), parse_rfc3339("2026-12-24T00:00:00Z"));
    assert_eq!(noor.away[0].substitute, "dana");

    let lists = "  - name: payments\n    rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: [dana, noor]}\n    shifts: [{from: '2026-12-03T00:00:00Z', until: '2026-12-04T00:00:00Z', operator: noor}]\n";
    let config = loaded(&spoilt(LISTS, &with_lists(lists))).config;
    let rota = &config.on_call[0].rota;
    for (at, person) in [
        ("2026-12-02T00:00:00Z", "dana"),
        ("2026-12-03T12:00:00Z", "noor"),
        ("2026-12-08T00:00:00Z", "noor"),
        ("2026-12-15T00:00:00Z", "dana"),
    ] {
        assert_eq!(rota.on_call(parse_rfc3339(at).unwrap()), [person], "{at}");
    }
}

#[test]
fn absences_that_cannot_be_meant_are_refused() {
    let away = |spans: &str| format!("  - id: noor\n    away: {spans}\n");
    let span = "from: '2026-12-24T00:00:00Z', until: '2026-12-26T00:00:00Z'";
    for (spans, kind, key) in [
        (
            format!("[{{{span}, substitute: dna}}]"),
            UnknownName,
            "operators[1].away[0].substitute",
        ),
        (
            format!("[{{{span}, substitute: noor}}]"),
            Conflict,
            "operators[1].away[0].substitute",
        ),
        (
            format!("[{{{span}}}]"),
            MissingKey,
            "operators[1].away[0].substitute",
        ),
        (
            "[{from: '2026-12-24', until: '2026-12-26T00:00:00Z', substitute: dana}]".to_owned(),
            BadValue,
            "operators[1].away[0].from",
        ),
        (
            "[{from: '2026-12-26T00:00:00Z', until: '2026-12-26T00:00:00Z', substitute: dana}]".to_owned(),
            BadValue,
            "operators[1].away[0]",
        ),
        (
            format!(
                "[{{{span}, substitute: dana}}, {{from: '2026-12-25T00:00:00Z', until: '2026-12-27T00:00:00Z', substitute: dana}}]"
            ),
            Conflict,
            "operators[1].away[1]",
        ),
        (
            format!("[{{{span}, substitute: dana, until_when: x}}]"),
            UnknownKey,
            "operators[1].away[0].until_when",
        ),
    ] {
        check(NOOR, &away(&spans), kind, key);
    }
}

#[test]
fn a_circle_is_named_whole() {
    let dana =
        "    away: [{from: '2026-12-24T00:00:00Z', until: '2026-12-26T00:00:00Z', substitute: noor}]\n";
    let noor =
        "    away: [{from: '2026-12-25T00:00:00Z', until: '2026-12-28T00:00:00Z', substitute: dana}]\n";
    let both = BASE
        .replacen(
            "    email: dana@example.com\n",
            &format!("    email: dana@example.com\n{dana}"),
            1,
        )
        .replacen(NOOR, &format!("{NOOR}{noor}"), 1);
    let problem = refusal(&both);
    assert_eq!(
        (problem.kind, problem.key.as_str()),
        (Conflict, "operators[0].away")
    );
    assert!(problem.to_string().contains("dana → noor → dana"), "{problem}");
    // One after the other they may.
    let apart = both.replace("2026-12-25T00:00:00Z", "2026-12-26T00:00:00Z");
    assert_eq!(loaded(&apart).warnings, []);
}

#[test]
fn a_substitute_is_of_the_same_organisation() {
    let text = BASE
        .replacen("    email: dana@example.com\n", "    email: dana@example.com\n    orgs: [default]\n", 1)
        .replacen(
            NOOR,
            "  - id: kai\n    orgs: [elsewhere]\n    away: [{from: '2026-12-24T00:00:00Z', until: '2026-12-26T00:00:00Z', substitute: dana}]\n  - id: noor\n    orgs: [default]\n",
            1,
        );
    let problem = refusal(&text);
    assert_eq!(
        (problem.kind, problem.key.as_str()),
        (Conflict, "operators[1].away[0].substitute")
    );
}

#[test]
fn lists_that_cannot_be_meant_are_refused() {
    for (lists, kind, key) in [
        ("  - {name: payments}\n", NobodyDecides, "on_call[0]"),
        (
            "  - {rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: [dana]}}\n",
            MissingKey,
            "on_call[0].name",
        ),
        (
            "  - {name: p, rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: []}}\n",
            BadValue,
            "on_call[0].rotation.operators",
        ),
        (
            "  - {name: p, rotation: {start: '2026-12-01T00:00:00Z', every: 1s, operators: [dana]}}\n",
            BadValue,
            "on_call[0].rotation.every",
        ),
        (
            "  - {name: p, rotation: {start: 'today', every: 7d, operators: [dana]}}\n",
            BadValue,
            "on_call[0].rotation.start",
        ),
        (
            "  - {name: p, rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: [dna]}}\n",
            UnknownName,
            "on_call[0].rotation.operators[0]",
        ),
        (
            "  - {name: p, shifts: [{from: '2026-12-01T00:00:00Z', until: '2026-12-02T00:00:00Z', operator: dna}]}\n",
            UnknownName,
            "on_call[0].shifts[0].operator",
        ),
    ] {
        check(LISTS, &with_lists(lists), kind, key);
    }
    let twice =
        "  - {name: p, rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: [dana]}}\n".repeat(2);
    check(LISTS, &with_lists(&twice), Conflict, "on_call[1].name");
}

#[test]
fn the_quorum_is_in_reach_of_who_is_on_call() {
    let rule =
        |approvers: &str, quorum: u32| format!("      approvers: {approvers}\n      quorum: {quorum}\n");
    check(
        RULE,
        &rule("{on_call: [pay]}", 1),
        UnknownName,
        "policy.rules[0].approvers.on_call[0]",
    );
    let turns = "  - name: payments\n    rotation: {start: '2026-12-01T00:00:00Z', every: 7d, operators: [dana, noor]}\n";
    let with = |approvers: &str, quorum: u32| {
        BASE.replacen(LISTS, &with_lists(turns), 1)
            .replacen(RULE, &rule(approvers, quorum), 1)
    };
    assert_eq!(loaded(&with("{on_call: [payments]}", 1)).warnings, []);
    // There are two on the list, but never both at once.
    let problem = refusal(&with("{on_call: [payments]}", 2));
    assert_eq!(
        (problem.kind, problem.key.as_str()),
        (BadValue, "policy.rules[0].quorum"),
        "{problem}"
    );
    // With dana beside, the quorum is there while noor is on call, and only then.
    let warnings = loaded(&with("{on_call: [payments], operators: [dana]}", 2)).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].key, "policy.rules[0].approvers.on_call");
    assert!(warnings[0].message.contains("only 1 could: dana"), "{warnings:?}");
    // Stages are filled at one and the same time.
    let stages = "      stages: [{name: a, approvers: {on_call: [payments]}}, {name: b, approvers: {operators: [dana]}}]\n";
    let text = BASE
        .replacen(LISTS, &with_lists(turns), 1)
        .replacen(RULE, stages, 1);
    assert!(
        loaded(&text)
            .warnings
            .iter()
            .any(|warning| warning.key.ends_with("on_call"))
    );
}

#[test]
fn whom_somebody_may_name_is_read_and_checked() {
    let list = |names: &str| format!("  - id: noor\n    substitutes: {names}\n");
    let read = loaded(&spoilt(NOOR, &list("[dana]"))).config;
    assert_eq!(read.operators[1].substitutes, ["dana"]);
    assert_eq!(
        read.operators[0].substitutes, [""; 0],
        "nobody, unless it is said"
    );
    for (names, kind, key) in [
        ("[dna]", UnknownName, "operators[1].substitutes[0]"),
        ("[noor]", Conflict, "operators[1].substitutes[0]"),
        ("[dana, dana]", Conflict, "operators[1].substitutes[1]"),
        ("[]", BadValue, "operators[1].substitutes"),
        ("dana", WrongType, "operators[1].substitutes"),
    ] {
        let told = check(NOOR, &list(names), kind, key);
        assert!(told.contains("gatepost.yaml:14"), "{told}");
    }
}
