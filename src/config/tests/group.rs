//! Groups of operators: what they are read as, what is refused, and how they are counted.

use super::super::{
    GroupOf, OperatorGroup,
    ProblemKind::{self, *},
};
use super::{BASE, line_of, loaded, refusal, spoilt};

fn with(groups: &str) -> String {
    spoilt("channels:\n", &format!("operator_groups:\n{groups}channels:\n"))
}

#[test]
fn a_group_is_read_as_it_is_written() {
    let config = loaded(&with(
        "  - {name: oncall, channel: ops, usergroup: S0614TZR7, roles: [finance, platform]}\n\
         \x20 - {name: treasury, channel: pay, group: g187131}\n\
         \x20 - {name: room, channel: ops, members: true}\n",
    ))
    .config;
    let group = |name: &str, channel: &str, of: GroupOf, roles: &[&str]| OperatorGroup {
        name: name.into(),
        channel: channel.into(),
        of,
        roles: roles.iter().copied().map(str::to_owned).collect(),
    };
    assert_eq!(
        config.operator_groups,
        [
            group(
                "oncall",
                "ops",
                GroupOf::Usergroup("S0614TZR7".into()),
                &["finance", "platform"]
            ),
            group("treasury", "pay", GroupOf::Group("g187131".into()), &["treasury"]),
            group("room", "ops", GroupOf::Members, &["room"]),
        ]
    );
}

#[test]
fn what_names_nobody_clearly_is_refused() {
    let cases: &[(&str, ProblemKind, &str)] = &[
        (
            "{channel: ops, members: true}",
            MissingKey,
            "operator_groups[0].name",
        ),
        (
            "{name: a, members: true}",
            MissingKey,
            "operator_groups[0].channel",
        ),
        ("{name: a, channel: ops}", MissingKey, "operator_groups[0]"),
        (
            "{name: a, channel: ops, members: true, usergroup: S1}",
            Conflict,
            "operator_groups[0]",
        ),
        // Being in a chat is authority only where it says so.
        (
            "{name: a, channel: ops, members: false}",
            BadValue,
            "operator_groups[0].members",
        ),
        (
            "{name: a, channel: opps, members: true}",
            UnknownName,
            "operator_groups[0].channel",
        ),
        (
            "{name: a, channel: desk, members: true}",
            Conflict,
            "operator_groups[0].members",
        ),
        (
            "{name: a, channel: pay, usergroup: S1}",
            Conflict,
            "operator_groups[0].usergroup",
        ),
        (
            "{name: a, channel: ops, group: g1}",
            Conflict,
            "operator_groups[0].group",
        ),
        (
            "{name: a, channel: ops, usergroup: '@oncall'}",
            BadValue,
            "operator_groups[0].usergroup",
        ),
        (
            "{name: a, channel: pay, group: a/b}",
            BadValue,
            "operator_groups[0].group",
        ),
        (
            "{name: a, channel: ops, members: true, roles: []}",
            BadValue,
            "operator_groups[0].roles",
        ),
        (
            "{name: a, channel: ops, members: true, orgs: [x]}",
            UnknownKey,
            "operator_groups[0].orgs",
        ),
    ];
    for (group, kind, key) in cases {
        let problem = refusal(&with(&format!("  - {group}\n")));
        assert_eq!(
            (problem.kind, problem.key.as_str(), line_of(&problem)),
            (*kind, *key, 17),
            "{group}"
        );
    }
    let twice = "  - {name: a, channel: ops, members: true}\n  - {name: a, channel: pay, members: true}\n";
    let problem = refusal(&with(twice));
    assert_eq!(
        (problem.kind, problem.key.as_str()),
        (Conflict, "operator_groups[1].name")
    );
}

#[test]
fn an_operator_cannot_be_named_like_an_account() {
    let problem = refusal(&BASE.replacen("  - id: noor\n", "  - id: slack:U061F7AUR\n", 1));
    assert_eq!(
        (problem.kind, problem.key.as_str()),
        (Conflict, "operators[1].id")
    );
}

/// How many are in a group, only the platform knows: a quorum that needs them is no error.
#[test]
fn a_quorum_may_count_on_a_group() {
    let four = |text: &str| text.replacen("      quorum: 2\n", "      quorum: 4\n", 1);
    assert_eq!(refusal(&four(BASE)).key, "policy.rules[0].quorum");
    let group = |roles: &str| {
        with(&format!(
            "  - {{name: oncall, channel: ops, usergroup: S1, roles: [{roles}]}}\n"
        ))
    };
    loaded(&four(&group("finance")));
    assert_eq!(
        refusal(&four(&group("platform"))).key,
        "policy.rules[0].quorum",
        "another role fills nothing"
    );
    let by_name = group("finance").replacen("roles: [finance]}, timeout", "roles: [oncall]}, timeout", 1);
    assert_eq!(refusal(&by_name).kind, UnknownName, "roles are named, not groups");
    let stages = "      stages: [{name: a, approvers: {operators: [dana]}}, {name: b, approvers: {roles: [oncall]}, quorum: 3}]\n";
    loaded(
        &with("  - {name: oncall, channel: ops, usergroup: S1}\n").replacen("      quorum: 2\n", stages, 1),
    );
}

#[test]
fn whoever_cannot_be_told_apart_from_a_member_is_pointed_out() {
    let text = with("  - {name: treasury, channel: pay, group: g1}\n");
    let warned = |text: &str| {
        let found = loaded(text).warnings;
        found
            .iter()
            .filter(|warning| warning.key == "operator_groups[0].channel")
            .map(|warning| warning.message.clone())
            .collect::<Vec<_>>()
    };
    let told = warned(&text);
    assert!(told.len() == 1 && told[0].contains("`noor`"), "{told:?}");
    assert!(
        warned(&text.replacen("  - id: noor\n", "  - id: noor\n    email: noor@example.com\n", 1)).is_empty()
    );
}
