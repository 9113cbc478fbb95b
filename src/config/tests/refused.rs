//! Every start-up error, one by one: family, key and line.

use super::super::ProblemKind::{self, *};
use super::{BASE, line_of, loaded, parse, refusal, refusals, spoilt};

/// Replaced text, what replaces it, and the one problem that must follow.
type Case = (&'static str, &'static str, ProblemKind, &'static str, usize);

const RULE: &str = "      effect: confirm\n      quorum: 2\n";
const DESK: &str = "  - {name: desk, kind: local}\n";

#[rustfmt::skip]
const KEYS_AND_VALUES: &[Case] = &[
    ("server: {listen", "server: {listn: 1, listen", UnknownKey, "server.listn", 1),
    ("      quorum: 2\n", "      approver: [dana]\n", UnknownKey, "policy.rules[0].approver", 37),
    ("policy:\n", "polcy: {}\npolicy:\n", UnknownKey, "polcy", 30),
    (DESK, "  - {name: desk, kind: local, chat_id: x}\n", UnknownKey, "channels[2].chat_id", 29),
    ("      role: agent\n", "", MissingKey, "auth.tokens[0].role", 4),
    ("      effect: allow\n", "", MissingKey, "policy.rules[1].effect", 38),
    ("      tools: [read_*]\n", "      tools: []\n", BadValue, "policy.rules[1].tools", 39),
    ("      tools: [read_*]\n", "      tools: read_*\n", WrongType, "policy.rules[1].tools", 39),
    ("  default: deny\n", "  default: dney\n", BadValue, "policy.default", 31),
    ("  default: deny\n", "  default:\n", WrongType, "policy.default", 31),
    ("timeout: 2m}", "timeout: 2 sec}", BadValue, "policy.confirm.timeout", 32),
    ("timeout: 2m}", "timeout: -5}", BadValue, "policy.confirm.timeout", 32),
    ("timeout: 2m}", "timeout: 0s}", BadValue, "policy.confirm.timeout", 32),
    ("timeout: 2m}", "timeout: 120}", BadValue, "policy.confirm.timeout", 32),
    ("timeout: 2m}", "timeout: 800d}", BadValue, "policy.confirm.timeout", 32),
    ("      quorum: 2\n", "      quorum: 0\n", BadValue, "policy.rules[0].quorum", 37),
    ("      quorum: 2\n", "      quorum: -1\n", BadValue, "policy.rules[0].quorum", 37),
    ("      quorum: 2\n", "      quorum: 1.5\n", BadValue, "policy.rules[0].quorum", 37),
    ("      quorum: 2\n", "      quorum: 99999999999999999999\n", BadValue, "policy.rules[0].quorum", 37),
    ("      quorum: 2\n", "      quorum: two\n", WrongType, "policy.rules[0].quorum", 37),
    ("      quorum: 2\n", "      self_approval: yes\n", WrongType, "policy.rules[0].self_approval", 37),
    ("      quorum: 2\n", "      require_reason: never\n", BadValue, "policy.rules[0].require_reason", 37),
    ("      quorum: 2\n", "      risk: extreme\n", BadValue, "policy.rules[0].risk", 37),
    ("timeout: 2m}", "timeout: 2m, risk: 3}", WrongType, "policy.confirm.risk", 32),
    ("  - name: pay\n", "  - name: pay\n    time_zone: Mars/Base\n", BadValue, "channels[1].time_zone", 23),
    ("server: {listen", "server: {time_zone: CST6, listen", BadValue, "server.time_zone", 1),
    ("      quorum: 2\n", "      stages: [{name: a}]\n", MissingKey, "policy.rules[0].stages[0].approvers", 37),
    ("      quorum: 2\n", "      grants: {}\n", MissingKey, "policy.rules[0].grants.scopes", 37),
    ("      quorum: 2\n", "      grants: {scopes: [session, always]}\n", BadValue, "policy.rules[0].grants.scopes[1]", 37),
    ("      quorum: 2\n", "      grants: {scopes: [8d]}\n", BadValue, "policy.rules[0].grants.scopes[0]", 37),
    ("      quorum: 2\n", "      grants: {scopes: [1h], max_uses: 0}\n", BadValue, "policy.rules[0].grants.max_uses", 37),
    ("      quorum: 2\n", "      grants: {scopes: [1h], arguments: some}\n", BadValue, "policy.rules[0].grants.arguments", 37),
    ("      quorum: 2\n", "      grants: {scopes: [1h], arguments: [payee]}\n", BadValue, "policy.rules[0].grants.arguments[0]", 37),
    ("      quorum: 2\n", "      grants: {scopes: [1h], arguments: ['/items/*']}\n", Policy, "policy.rules[0].grants.arguments", 37),
    ("      quorum: 2\n", "      accepts_edits: some\n", WrongType, "policy.rules[0].accepts_edits", 37),
    ("      quorum: 2\n", "      accepts_edits: {amount: true}\n", WrongType, "policy.rules[0].accepts_edits", 37),
    ("      quorum: 2\n", "      accepts_edits: []\n", Policy, "policy.rules[0].accepts_edits", 37),
    ("      quorum: 2\n", "      accepts_edits: [amount]\n", BadValue, "policy.rules[0].accepts_edits[0]", 37),
    ("      quorum: 2\n", "      redact: [/card]\n      accepts_edits: [/amount, /card/number]\n", Policy, "policy.rules[0].accepts_edits", 38),
    ("timeout: 2m}", "timeout: 2m, accepts_edits: true}", UnknownKey, "policy.confirm.accepts_edits", 32),
    ("      quorum: 2\n", "      collapse: {}\n", MissingKey, "policy.rules[0].collapse.window", 37),
    ("      quorum: 2\n", "      collapse: 30s\n", WrongType, "policy.rules[0].collapse", 37),
    ("      quorum: 2\n", "      collapse: {window: 2h}\n", BadValue, "policy.rules[0].collapse.window", 37),
    ("      quorum: 2\n", "      collapse: {window: 30s, most: 11}\n", BadValue, "policy.rules[0].collapse.most", 37),
    ("timeout: 2m}", "timeout: 2m, collapse: {window: 30s, most: 0}}", BadValue, "policy.confirm.collapse.most", 32),
    ("timeout: 2m}", "timeout: 2m, grants: {scopes: [1h]}}", UnknownKey, "policy.confirm.grants", 32),
    ("timeout: 2m}", "timeout: 2m, stages: []}", UnknownKey, "policy.confirm.stages", 32),
    ("      quorum: 2\n", "      stages: [{name: a, approvers: {roles: [fin]}}]\n", UnknownName, "policy.rules[0].stages[0].approvers.roles[0]", 37),
    ("      quorum: 2\n", "      stages: [{name: a, approvers: {operators: [dana]}}, {name: b, approvers: {operators: [dana], roles: [finance]}}, {name: c, approvers: {operators: [dana]}}]\n", BadValue, "policy.rules[0].stages", 37),
    ("      quorum: 2\n", "      stages: [{name: a, approvers: {operators: [dana]}}, {name: b, approvers: {operators: [dana]}}]\n", BadValue, "policy.rules[0].stages", 37),
    ("      quorum: 2\n", "      stages: [{name: a, approvers: {roles: [finance]}, quorum: 2}]\n      quorum: 2\n", Policy, "policy.rules[0].stages", 37),
    ("      quorum: 2\n", "      stages: [{name: a, approvers: {operators: [dana]}}, {name: a, approvers: {operators: [noor]}}]\n", Policy, "policy.rules[0].stages[1].name", 37),
    ("      quorum: 2\n", "      redact: [card/number]\n", BadValue, "policy.rules[0].redact[0]", 37),
    ("      quorum: 2\n", "      redact: ['/a~2b']\n", BadValue, "policy.rules[0].redact[0]", 37),
    ("server: {listen", "job: {workers: 0}\nserver: {listen", BadValue, "job.workers", 1),
    ("server: {listen", "job: {lease: 0s}\nserver: {listen", BadValue, "job.lease", 1),
    ("  - name: pay\n", "  - name: pay/../x\n", BadValue, "channels[1].name", 22),
    ("    email: dana@example.com\n", "    email: dana\n", BadValue, "operators[0].email", 10),
    ("  - id: dana\n", "  - id: dana\n    id: mira\n", DuplicateKey, "operators[0]", 10),
    ("server: {listen", "agent: {max_memory: 1000}\nserver: {listen", BadValue, "agent.max_memory", 1),
    ("server: {listen", "agent: {ask_limit: few}\nserver: {listen", WrongType, "agent.ask_limit", 1),
    ("server: {listen", "agent: {max_iterations: 0}\nserver: {listen", BadValue, "agent.max_iterations", 1),
    ("server: {listen", "agent: {evaluation: {bypass_gate: true, tokens: []}}\nserver: {listen", BadValue, "agent.evaluation.tokens", 1),
    ("server: {listen", "agent: {evaluation: {tokens: [agent]}}\nserver: {listen", MissingKey, "agent.evaluation.bypass_gate", 1),
    ("server: {listen", "agent: {evaluation: {bypass_gate: true, tokens: [agnet]}}\nserver: {listen", UnknownName, "agent.evaluation.tokens", 1),
    ("server: {listen", "agent: {evaluation: {bypass_gate: true, tokens: [dana-cli]}}\nserver: {listen", UnknownName, "agent.evaluation.tokens", 1),
    ("127.0.0.1:8460", "'::8080'", BadValue, "server.listen", 1),
    ("127.0.0.1:8460", "8080", WrongType, "server.listen", 1),
];

#[test]
fn keys_and_values() {
    run(KEYS_AND_VALUES);
}

#[rustfmt::skip]
const TOKENS: &[Case] = &[
    ("agent-secret-0123456789", "fifteen-chars-1", BadSecret, "auth.tokens[0].secret", 5),
    ("agent-secret-0123456789", "dana-secret-0123456789", Conflict, "auth.tokens[1].secret", 7),
    ("agent-secret-0123456789", "d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e", Unsafe, "auth.tokens[0].secret", 5),
    ("agent-secret-0123456789", "agent secret 0123456789", BadSecret, "auth.tokens[0].secret", 5),
    (", operator: dana}", "}", MissingKey, "auth.tokens[1].operator", 7),
    ("operator: dana}", "operator: dna}", UnknownName, "auth.tokens[1].operator", 7),
    ("name: dana-cli", "name: agent", Conflict, "auth.tokens[1].name", 7),
];

#[test]
fn tokens() {
    run(TOKENS);
}

#[rustfmt::skip]
const OPERATORS: &[Case] = &[
    ("  - id: noor\n", "  - id: dana\n", Conflict, "operators[1].id", 13),
    ("slack: U061F7AUR", "slack: U024BE7LH", Conflict, "operators[1].identities.slack", 15),
    ("slack: U061F7AUR", "ops: U024BE7LH", Conflict, "operators[1].identities.ops", 15),
    ("slack: U061F7AUR", "slak: U061F7AUR", UnknownName, "operators[1].identities.slak", 15),
    ("  - id: noor\n", "  - id: noor\n    email: Dana@Example.com\n", Conflict, "operators[1].email", 14),
    ("  - id: noor\n", "  - id: dana@example.com\n", Conflict, "operators[1].id", 13),
    ("  - id: noor\n", "  - id: noor\n    orgs: []\n", BadValue, "operators[1].orgs", 14),
];

#[test]
fn operators() {
    run(OPERATORS);
}

#[test]
fn an_operator_names_its_organisation_once_there_are_two() {
    let problems = refusals(&spoilt(DESK, "  - {name: desk, kind: local, org: acme}\n"));
    let found: Vec<_> = problems
        .iter()
        .map(|p| (p.kind, p.key.as_str(), line_of(p)))
        .collect();
    assert_eq!(
        found[..2],
        [
            (MissingKey, "operators[0].orgs", 9),
            (MissingKey, "operators[1].orgs", 13)
        ]
    );
    assert!(problems[0].message.contains("acme, default"), "{}", problems[0]);
}

#[rustfmt::skip]
const CHANNELS: &[Case] = &[
    ("  - name: pay\n", "  - name: ops\n", Conflict, "channels[1].name", 22),
    ("  - name: pay\n", "  - name: slack\n", Conflict, "channels[1].name", 22),
    ("encrypt-key-of-pay", "verification-token-of-pay", Unsafe, "channels[1].encrypt_key", 26),
];

#[test]
fn channels() {
    let second = |settings: &str| format!("{DESK}  - {{name: two, kind: slack, {settings}}}\n");
    for (settings, key, kind) in [
        (
            "bot_token: xoxb-bot-of-ops, signing_secret: other, channel: C9",
            "channels[3].bot_token",
            Conflict,
        ),
        (
            "bot_token: xoxb-bot-of-ops, signing_secret: d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e, channel: C0123456789",
            "channels[3].channel",
            Conflict,
        ),
        (
            "bot_token: b, signing_secret: s, channel: C9, base_url: 'http://slack.com/api'",
            "channels[3].base_url",
            Unsafe,
        ),
        (
            "bot_token: b, signing_secret: s, channel: C9, base_url: slack.com",
            "channels[3].base_url",
            BadValue,
        ),
        (
            "bot_token: b, signing_secret: s, channel: C9, base_url: 'ftp://x/'",
            "channels[3].base_url",
            BadValue,
        ),
        (
            "bot_token: b, signing_secret: s, channel: C9, mode: long_connection",
            "channels[3].mode",
            BadValue,
        ),
        (
            "bot_token: b, signing_secret: s, channel: C9, teams: []",
            "channels[3].teams",
            BadValue,
        ),
        (
            "bot_token: 'b b', signing_secret: s, channel: C9",
            "channels[3].bot_token",
            BadSecret,
        ),
    ] {
        let problem = refusal(&spoilt(DESK, &second(settings)));
        assert_eq!(
            (problem.kind, problem.key.as_str(), line_of(&problem)),
            (kind, key, 30),
            "{problem}"
        );
    }
    for loopback in [
        "http://127.0.0.1:9000/api",
        "http://[::1]:9000",
        "http://localhost:1",
    ] {
        let settings = format!("bot_token: b, signing_secret: s, channel: C9, base_url: '{loopback}'");
        loaded(&spoilt(DESK, &second(&settings)));
    }
    run(CHANNELS);
}

#[test]
fn an_app_belongs_to_one_organisation() {
    let operators = |text: &str| {
        text.replace(
            "    roles: [finance]\n",
            "    roles: [finance]\n    orgs: [default, acme]\n",
        )
    };
    for (settings, key) in [
        (
            "kind: slack, bot_token: xoxb-bot-of-ops, signing_secret: s, channel: C9",
            "channels[3].bot_token",
        ),
        (
            "kind: slack, bot_token: b, signing_secret: [x, d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e], channel: C9",
            "channels[3].signing_secret",
        ),
        (
            "kind: feishu, app_id: cli_a1b2c3d4e5f60718, app_secret: a, mode: long_connection, chat_id: oc_1",
            "channels[3].app_id",
        ),
        (
            "kind: feishu, app_id: cli_2, app_secret: app-secret-of-pay, mode: long_connection, chat_id: oc_1",
            "channels[3].app_secret",
        ),
        (
            "kind: feishu, app_id: cli_2, app_secret: a, encrypt_key: encrypt-key-of-pay, verification_token: v, chat_id: oc_1",
            "channels[3].encrypt_key",
        ),
    ] {
        let text = operators(&spoilt(
            DESK,
            &format!("{DESK}  - {{name: two, org: acme, {settings}}}\n"),
        ));
        let problem = refusal(&text);
        assert_eq!(
            (problem.kind, problem.key.as_str(), line_of(&problem)),
            (Conflict, key, 32),
            "{problem}"
        );
        assert!(
            problem.message.contains("default") && problem.message.contains("acme"),
            "{problem}"
        );
    }
}

#[rustfmt::skip]
const POLICY_NAMES: &[Case] = &[
    ("[ops, desk]", "[opps, desk]", UnknownName, "policy.confirm.channels[0]", 32),
    ("{roles: [finance]}", "{roles: [finance], operators: [dan]}", UnknownName, "policy.confirm.approvers.operators[0]", 32),
    ("    - name: rest\n", "    - name: payments\n", Conflict, "policy.rules[1].name", 38),
    ("      effect: allow\n", "      effect: deny\n      orgs: [acne]\n", UnknownName, "policy.rules[1].orgs[0]", 41),
    (RULE, "      effect: confirm\n      quorum: 3\n", BadValue, "policy.rules[0].quorum", 37),
    (RULE, "      effect: confirm\n      deny_threshold: 3\n", BadValue, "policy.rules[0].deny_threshold", 37),
    (RULE, "      effect: confirm\n      quorum: 2\n      approvers: {operators: [dana]}\n", BadValue, "policy.rules[0].quorum", 37),
];

#[test]
fn policy_names() {
    run(POLICY_NAMES);
}

#[test]
fn nobody_is_never_everybody() {
    // The spellings of RH-303, in a rule.
    for (approvers, key, kind) in [
        ("[]", "policy.rules[0].approvers", WrongType),
        ("", "policy.rules[0].approvers", WrongType),
        ("[dana]", "policy.rules[0].approvers", WrongType),
        ("{}", "policy.rules[0].approvers", NobodyDecides),
        ("{roles: []}", "policy.rules[0].approvers.roles", BadValue),
        (
            "{operators: ['']}",
            "policy.rules[0].approvers.operators[0]",
            BadValue,
        ),
        (
            "{operators: ['*']}",
            "policy.rules[0].approvers.operators[0]",
            UnknownName,
        ),
        (
            "{roles: ['@removed-group']}",
            "policy.rules[0].approvers.roles[0]",
            UnknownName,
        ),
    ] {
        let text = spoilt(
            RULE,
            &format!("      effect: confirm\n      approvers: {approvers}\n"),
        );
        let problem = refusals(&text).swap_remove(0);
        assert_eq!((problem.kind, problem.key.as_str()), (kind, key), "{problem}");
        assert_eq!(line_of(&problem), 37, "{problem}");
    }
    let nowhere = spoilt(", approvers: {roles: [finance]}", "");
    let problem = refusal(&nowhere);
    assert_eq!(
        (problem.kind, problem.key.as_str(), line_of(&problem)),
        (NobodyDecides, "policy.rules[0].approvers", 34)
    );
    let nowhere = spoilt("channels: [ops, desk], ", "");
    assert_eq!(refusal(&nowhere).key, "policy.rules[0].channels");
    // The default asks persons as well.
    let unsettled = BASE
        .replace("  default: deny\n", "  default: confirm\n")
        .replace("channels: [ops, desk], ", "");
    let keys: Vec<String> = refusals(&unsettled)
        .into_iter()
        .map(|problem| problem.key)
        .collect();
    assert_eq!(keys, ["policy.confirm.channels", "policy.rules[0].channels"]);
}

#[test]
fn the_quorum_is_counted_within_each_organisation() {
    let text = "\
operators:
  - {id: dana, orgs: [acme], roles: [finance]}
  - {id: noor, orgs: [acme, initech], roles: [finance]}
channels:
  - {name: a, kind: local, org: acme}
  - {name: i, kind: local, org: initech}
policy:
  default: deny
  rules:
    - {name: r, tools: [x], effect: confirm, channels: [a, i], approvers: {roles: [finance]}, quorum: 2}
";
    let problem = refusal(text);
    assert_eq!(
        (problem.kind, problem.key.as_str(), line_of(&problem)),
        (BadValue, "policy.rules[0].quorum", 10)
    );
    assert!(
        problem.message.contains("`initech`") && problem.message.contains("noor"),
        "{problem}"
    );
    // The rule may hold for one of the two only.
    assert!(parse(&text.replace("quorum: 2", "quorum: 2, orgs: [acme]")).is_ok());
    let nobody = text
        .replace("quorum: 2", "quorum: 1")
        .replace("orgs: [acme, initech]", "orgs: [acme]");
    let problem = refusal(&nobody);
    assert_eq!(
        (problem.kind, problem.key.as_str()),
        (NobodyDecides, "policy.rules[0].approvers")
    );
}

#[test]
fn a_condition_or_glob_that_does_not_compile_names_its_line() {
    for (key, value, place) in [
        ("when", "'args.amount >='", "when"),
        ("when", "'nobody.knows == 1'", "when"),
        ("tools", "[\"a[\"]", "tools[0]"),
    ] {
        let (from, to) = match key {
            "tools" => (
                "      tools: [read_*]\n".to_owned(),
                format!("      tools: {value}\n"),
            ),
            _ => (
                "      tools: [read_*]\n".to_owned(),
                format!("      tools: [read_*]\n      {key}: {value}\n"),
            ),
        };
        let problem = refusal(&spoilt(&from, &to));
        assert_eq!(
            (problem.kind, problem.key),
            (Policy, format!("policy.rules[1].{place}"))
        );
        assert_eq!(
            problem.at.map(|at| at.line),
            Some(if key == "tools" { 39 } else { 40 })
        );
    }
    // An allow rule must not believe what the agent says of itself.
    let asserted = "      tools: [read_*]\n      when: agent == 'a'\n";
    assert_eq!(
        refusal(&spoilt("      tools: [read_*]\n", asserted)).key,
        "policy.rules[1].when"
    );
    loaded(&spoilt(
        "      tools: [read_*]\n",
        &format!("{asserted}      trust_asserted: true\n"),
    ));
}

#[test]
fn a_stricter_rule_behind_a_catch_all_is_refused() {
    let catch_all = "  rules:\n    - {name: all, tools: ['*'], effect: allow}\n";
    let problem = refusal(&spoilt("  rules:\n", catch_all));
    assert_eq!(
        (problem.kind, problem.key.as_str(), line_of(&problem)),
        (Unsafe, "policy.rules[1].name", 35)
    );
    // With a condition, or for another organisation, it does not match everything.
    loaded(&spoilt(
        "  rules:\n",
        "  rules:\n    - {name: all, tools: ['*'], when: 'args.x == 1', effect: allow}\n",
    ));
    // A rule that is no stricter is only told of.
    let deny_all = "  rules:\n    - {name: all, tools: ['*'], effect: deny}\n";
    assert_eq!(loaded(&spoilt("  rules:\n", deny_all)).warnings.len(), 2);
}

#[test]
fn all_problems_are_told_in_one_go_in_the_order_of_the_file() {
    let text = BASE
        .replace("127.0.0.1:8460", "nowhere")
        .replace("agent-secret-0123456789", "short")
        .replace("      quorum: 2\n", "      quorum: 0\n      timeot: 5m\n")
        .replace("U061F7AUR", "U024BE7LH");
    let keys: Vec<(String, usize)> = refusals(&text)
        .into_iter()
        .map(|problem| (problem.key.clone(), line_of(&problem)))
        .collect();
    let expected = [
        ("server.listen", 1),
        ("auth.tokens[0].secret", 5),
        ("operators[1].identities.slack", 15),
        ("policy.rules[0].quorum", 37),
        ("policy.rules[0].timeot", 38),
    ];
    assert_eq!(keys, expected.map(|(key, line)| (key.to_owned(), line)));
}

#[test]
fn a_problem_says_what_was_found_what_is_accepted_and_what_to_do() {
    let told = refusals(&spoilt("      quorum: 2\n", "      approver: [dana]\n"))[0].to_string();
    assert!(
        told.starts_with(
            "gatepost.yaml:37:7: policy.rules[0].approver: the key `approver` is not known here"
        )
    );
    assert!(
        told.contains("\n  accepted: name, tools, when")
            && told.contains("remedy: did you mean `approvers`?")
    );
    let told = refusals(&spoilt("default: deny", "default: dney"))[0].to_string();
    assert!(
        told.contains("found the text `dney`") && told.contains("allow, deny or confirm"),
        "{told}"
    );
    assert!(told.contains("did you mean `deny`?"), "{told}");
    let told = refusals(&spoilt("127.0.0.1:8460", "'::8080'"))[0].to_string();
    assert!(told.contains("brackets") && told.contains("[::]:8460"), "{told}");
    let problems = parse(&spoilt("default: deny", "default: dney")).unwrap_err();
    let json = serde_json::to_value(&problems).unwrap();
    assert_eq!(json[0]["kind"], "bad_value");
    assert_eq!(
        (&json[0]["line"], &json[0]["key"]),
        (&31.into(), &"policy.default".into())
    );
}

#[test]
fn bad_indentation_names_its_line() {
    let text = "channels:\n  feishu:\n    encrypt_key_env: A\n   verification_token_env: B\n";
    let problem = refusals(text).swap_remove(0);
    assert_eq!(problem.kind, Syntax);
    assert_eq!(line_of(&problem), 4, "{problem}");
}

fn run(cases: &[Case]) {
    for (from, to, kind, key, line) in cases {
        let problem = refusal(&spoilt(from, to));
        assert_eq!(
            (problem.kind, problem.key.as_str(), line_of(&problem)),
            (*kind, *key, *line),
            "`{from}` replaced by `{to}`: {problem}"
        );
        assert!(problem.remedy.is_some(), "{problem}");
    }
}
