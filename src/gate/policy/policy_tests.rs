//! Policies, from one rule each to every combination of voices.

use std::time::{Duration, Instant};

use super::*;
use crate::gate::{
    arguments::ToolName,
    json::{Json, ReadLimits},
    terms::Terms,
};

fn rule(name: &str, effect: Effect) -> RuleSource {
    RuleSource {
        name: name.to_owned(),
        tools: vec!["*".to_owned()],
        when: None,
        effect,
        reason: None,
        orgs: None,
        redact: Vec::new(),
        trust_asserted: false,
        verified_requester: false,
        confirm: ConfirmSource::default(),
    }
}

fn when(name: &str, effect: Effect, condition: &str) -> RuleSource {
    RuleSource {
        when: Some(condition.to_owned()),
        ..rule(name, effect)
    }
}

fn source(default: Effect, rules: Vec<RuleSource>) -> PolicySource {
    let confirm = ConfirmSource {
        channels: Some(vec!["desk".to_owned()]),
        approvers: Some(Approvers {
            roles: vec!["finance".to_owned()],
            operators: Vec::new(),
            ..Approvers::default()
        }),
        ..ConfirmSource::default()
    };
    PolicySource {
        default,
        confirm,
        rules,
    }
}

fn policy(default: Effect, rules: Vec<RuleSource>) -> Policy {
    Policy::compile(&source(default, rules), &Limits::default()).unwrap()
}

fn problems(rules: Vec<RuleSource>) -> Vec<CompileProblem> {
    Policy::compile(&source(Effect::Confirm, rules), &Limits::default()).unwrap_err()
}

/// A call that tests change one fact of.
struct Call {
    tool: ToolName,
    args: Json,
    metadata: Option<Json>,
    agent: Option<&'static str>,
    requester: Option<&'static str>,
    org: &'static str,
    known_person: bool,
}

fn unevaluated(judged: &Judgement) -> Vec<&str> {
    judged.unevaluated.iter().map(|one| one.rule.as_str()).collect()
}

fn json(text: &str) -> Json {
    Json::read(text.as_bytes(), ReadLimits::bytes(8 << 20)).unwrap()
}

fn call(args: &str) -> Call {
    Call {
        tool: "oa__purchase_pay".parse().unwrap(),
        args: json(args),
        metadata: None,
        agent: None,
        requester: None,
        org: "acme",
        known_person: true,
    }
}

impl Call {
    fn tool(tool: &str) -> Self {
        Self {
            tool: tool.parse().unwrap(),
            ..call("{}")
        }
    }

    fn metadata(metadata: &str) -> Self {
        Self {
            metadata: Some(json(metadata)),
            ..call("{}")
        }
    }

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: &self.tool,
            args: &self.args,
            token: "build-agent",
            agent: self.agent,
            requester: self.requester,
            org: self.org,
            metadata: self.metadata.as_ref(),
            known_person: self.known_person,
        }
    }

    fn judged(&self, policy: &Policy) -> Judgement {
        policy.judge(&self.facts(), &Voices::default())
    }

    /// What a condition says: met, not met, or (none) that it cannot be evaluated.
    fn answers(&self, condition: &str) -> Option<bool> {
        let policy = policy(Effect::Allow, vec![when("r", Effect::Deny, condition)]);
        let judged = self.judged(&policy);
        if judged.unevaluated.is_empty() {
            return Some(judged.effect == Effect::Deny);
        }
        assert_eq!(
            (judged.effect, unevaluated(&judged)),
            (Effect::Deny, vec!["r"]),
            "{condition}"
        );
        None
    }
}

const EFFECTS: [Effect; 3] = [Effect::Allow, Effect::Confirm, Effect::Deny];

#[test]
fn the_first_match_decides() {
    let big = when("big", Effect::Confirm, "args.amount >= 50000");
    let pay = RuleSource {
        tools: vec!["oa__*".to_owned()],
        ..rule("pay", Effect::Allow)
    };
    let policy = policy(Effect::Deny, vec![big, pay, rule("rest", Effect::Confirm)]);
    let judged = |call: &Call| {
        let judged = call.judged(&policy);
        (judged.effect, judged.rule)
    };
    assert_eq!(
        judged(&call(r#"{"amount":50000}"#)),
        (Effect::Confirm, Some("big".to_owned()))
    );
    assert_eq!(
        judged(&call(r#"{"amount":49999.99}"#)),
        (Effect::Allow, Some("pay".to_owned()))
    );
    assert_eq!(
        judged(&Call {
            tool: "x".parse().unwrap(),
            ..call(r#"{"amount":1}"#)
        }),
        (Effect::Confirm, Some("rest".to_owned()))
    );
}

#[test]
fn without_a_match_the_default_decides() {
    for default in EFFECTS {
        let policy = policy(default, vec![when("never", Effect::Deny, "false")]);
        let judged = call("{}").judged(&policy);
        assert_eq!(
            (judged.effect, judged.voice, judged.rule),
            (default, Voice::Default, None)
        );
        assert_eq!(judged.terms.is_some(), default == Effect::Confirm);
    }
}

#[test]
fn the_strictest_voice_wins() {
    for rule_effect in EFFECTS {
        for tool in [false, true] {
            for (metadata, asks) in [
                (None, false),
                (Some("true"), true),
                (Some("false"), false),
                (Some("\"true\""), false),
                (Some("1"), false),
                (Some("null"), false),
                (Some("[true]"), false),
            ] {
                for hooks in [
                    None,
                    Some(Effect::Allow),
                    Some(Effect::Confirm),
                    Some(Effect::Deny),
                ] {
                    let policy = policy(Effect::Allow, vec![rule("r", rule_effect)]);
                    let call = match metadata {
                        Some(value) => Call::metadata(&format!(r#"{{"requires_confirmation":{value}}}"#)),
                        None => call("{}"),
                    };
                    let voices = Voices {
                        tool_requires_confirmation: tool,
                        hooks,
                    };
                    let judged = policy.judge(&call.facts(), &voices);
                    let asked = if tool || asks {
                        Effect::Confirm
                    } else {
                        Effect::Allow
                    };
                    let expected = rule_effect.max(asked).max(hooks.unwrap_or(Effect::Allow));
                    assert_eq!(
                        judged.effect, expected,
                        "{rule_effect:?} {tool} {metadata:?} {hooks:?}"
                    );
                    assert_eq!(judged.rule.as_deref(), Some("r"));
                    assert_eq!(judged.terms.is_some(), expected == Effect::Confirm);
                    assert_eq!(judged.voice == Voice::Rule, expected == rule_effect);
                    assert!(!judged.reason.is_empty());
                }
            }
        }
    }
}

#[test]
fn a_condition_that_cannot_be_evaluated_never_weakens() {
    let broken = [
        "args.missing == 1",
        "args.amount",
        "args.amount > \"x\"",
        "args.amount / 0 == 1",
        "1 + 1",
        "'yes'",
    ];
    for condition in broken {
        let mut allow = when("broken", Effect::Allow, condition);
        allow.trust_asserted = true;
        for (rules, effect, named) in [
            (
                vec![
                    when("broken", Effect::Deny, condition),
                    rule("after", Effect::Allow),
                ],
                Effect::Deny,
                "broken",
            ),
            (
                vec![
                    when("broken", Effect::Confirm, condition),
                    rule("after", Effect::Allow),
                ],
                Effect::Confirm,
                "broken",
            ),
            (
                vec![allow.clone(), rule("after", Effect::Allow)],
                Effect::Confirm,
                "after",
            ),
            (
                vec![allow.clone(), rule("after", Effect::Confirm)],
                Effect::Confirm,
                "after",
            ),
            (
                vec![allow.clone(), rule("after", Effect::Deny)],
                Effect::Deny,
                "after",
            ),
        ] {
            let judged = call(r#"{"amount":5}"#).judged(&policy(Effect::Allow, rules));
            assert_eq!(
                (judged.effect, judged.rule.as_deref()),
                (effect, Some(named)),
                "{condition}"
            );
            assert_eq!(unevaluated(&judged), ["broken"], "{condition}");
        }
        let judged = call(r#"{"amount":5}"#).judged(&policy(Effect::Allow, vec![allow]));
        assert_eq!(
            (judged.effect, judged.voice, judged.rule),
            (Effect::Confirm, Voice::Unevaluated, None)
        );
        assert_eq!(judged.terms.unwrap().channels, ["desk"]);
    }
}

#[test]
fn an_unevaluable_confirm_rule_brings_its_own_terms() {
    let mut strict = when("strict", Effect::Confirm, "args.missing");
    strict.confirm.quorum = Some(2);
    strict.confirm.approvers = Some(Approvers {
        roles: Vec::new(),
        operators: vec!["dana".to_owned()],
        ..Approvers::default()
    });
    let terms = call("{}")
        .judged(&policy(Effect::Allow, vec![strict]))
        .terms
        .unwrap();
    assert_eq!(
        (terms.quorum, terms.approvers.operators.as_slice()),
        (2, &["dana".to_owned()][..])
    );
}

#[test]
fn amounts_compare_whatever_their_spelling() {
    let table = [
        ("50000", Some(true)),
        ("50000.0", Some(true)),
        ("5e4", Some(true)),
        ("6e4", Some(true)),
        ("49999.99", Some(false)),
        ("49999.99999999999", Some(false)),
        ("0", Some(false)),
        ("-6e4", Some(false)),
        ("9223372036854775807", Some(true)),
        ("1e20", Some(true)),
        ("1e300", Some(true)),
        ("-1e300", Some(false)),
        // What no double holds is not rounded to the threshold or below it.
        ("49999.999999999999999999", None),
        ("50000.000000000000000001", None),
        ("12345678901234567890123", None),
        ("9223372036854775808", None),
        ("\"60000\"", None),
        ("null", None),
        ("[60000]", None),
    ];
    for (amount, expected) in table {
        let call = call(&format!(r#"{{"amount":{amount}}}"#));
        for condition in [
            "args.amount >= 50000",
            "args.amount >= 50000.0",
            "50000 <= args.amount",
            "!(args.amount < 50000)",
        ] {
            assert_eq!(call.answers(condition), expected, "{amount} {condition}");
        }
    }
}

#[test]
fn comparing_large_numbers_is_exact() {
    let table = [
        (
            r#"{"a":9007199254740993}"#,
            "args.a == 9007199254740993",
            Some(true),
        ),
        (
            r#"{"a":9007199254740993}"#,
            "args.a == 9007199254740992",
            Some(false),
        ),
        (
            r#"{"a":9007199254740993,"b":9007199254740992}"#,
            "args.a > args.b",
            Some(true),
        ),
        (
            r#"{"a":9007199254740993,"b":9007199254740992.5}"#,
            "args.a == args.b",
            Some(false),
        ),
        (
            r#"{"a":9223372036854775807,"b":9223372036854776000}"#,
            "args.a == args.b",
            Some(false),
        ),
        (
            r#"{"a":9223372036854776000}"#,
            "args.a > 9223372036854775807",
            None,
        ),
        (
            r#"{"a":12345678901234567890123,"b":12345678901234567890123.0}"#,
            "args.a == args.b",
            Some(true),
        ),
        (
            r#"{"a":12345678901234567890123,"b":12345678901234567890124}"#,
            "args.a == args.b",
            Some(false),
        ),
        (r#"{"a":0.1}"#, "args.a == 0.1", Some(true)),
        (
            r#"{"a":50000.000000000000000001}"#,
            "args.a == 50000",
            Some(false),
        ),
        (r#"{"a":50000.000000000000000001}"#, "double(args.a) > 1.0", None),
    ];
    for (args, condition, expected) in table {
        assert_eq!(call(args).answers(condition), expected, "{args} {condition}");
    }
    for condition in ["args.a > 9007199254740992.0", "args.a < -1e18", "args.a < 1e999"] {
        assert_eq!(
            problems(vec![when("r", Effect::Deny, condition)])[0].field,
            "when",
            "{condition}"
        );
    }
}

#[test]
fn conditions_read_every_fact() {
    let full = Call {
        metadata: Some(json(r#"{"env":"prod"}"#)),
        agent: Some("builder"),
        requester: Some("dana"),
        ..call(
            r#"{"to":["a@x.example","b@evil.example"],"note":"DROP Table","orders":[{"items":[{"price":7}]}],"n":null}"#,
        )
    };
    let bare = call("{}");
    for condition in [
        "tool == 'oa__purchase_pay' && org == 'acme' && token == 'build-agent'",
        "agent == 'builder' && requester == 'dana' && metadata.env == 'prod'",
        "args.to.exists(t, t.endsWith('@evil.example'))",
        "args.to.all(t, t.contains('@'))",
        "['@evil.example', '@bad.example'].exists(d, args.to.exists(t, t.endsWith(d)))",
        "args.orders.exists(o, o.items.exists(i, i.price > 5))",
        "args.note.lowerAscii().contains('drop table')",
        "size(args.to) == 2 && has(args.note) && !has(args.other)",
        "tool in ['oa__purchase_pay'] && args.n == null && type(args.note) == string",
        "args['to'][1] == 'b@evil.example'",
        "{'acme': true}[org]",
        "has(args.none) ? false : true",
    ] {
        assert_eq!(full.answers(condition), Some(true), "{condition}");
    }
    assert_eq!(
        bare.answers("agent == null && requester == null && metadata == null"),
        Some(true)
    );
    assert_eq!(bare.answers("metadata.env == 'prod'"), None);
}

#[test]
fn asserted_facts_are_found_in_the_expression_not_in_its_text() {
    let allow = |condition: &str| vec![when("r", Effect::Allow, condition)];
    for condition in [
        "agent == 'x'",
        ".agent == 'x'",
        "requester in ['x']",
        "has(metadata.safe)",
        "metadata['safe'] == true",
        "tool == 'x' || [1].exists(i, string(i) == agent)",
        "args.x == {'k': requester}.k",
        "true ? true : metadata == null",
        "[1].exists(agent, agent == 1) && agent == 'x'",
        "[1].exists(agent, .agent == 'x')",
    ] {
        let found = problems(allow(condition));
        assert_eq!(found.len(), 1, "{condition}");
        assert_eq!(found[0].field, "when", "{condition}");
        assert!(found[0].problem.contains("asserts"), "{condition}: {}", found[0]);
        let mut trusted = allow(condition);
        trusted[0].trust_asserted = true;
        assert!(Policy::compile(&source(Effect::Confirm, trusted), &Limits::default()).is_ok());
        let strict = vec![
            when("r", Effect::Confirm, condition),
            when("s", Effect::Deny, condition),
        ];
        assert!(Policy::compile(&source(Effect::Confirm, strict), &Limits::default()).is_ok());
    }
    for condition in [
        "args.agent == 'x'",
        "tool == 'agent'",
        "org == 'x' && token == 'requester'",
        "args.metadata.requester == 1",
        "[1].exists(agent, agent == 1)",
        "{'agent': 1}.agent == 1",
    ] {
        assert!(
            Policy::compile(&source(Effect::Confirm, allow(condition)), &Limits::default()).is_ok(),
            "{condition}"
        );
    }
}

#[test]
fn a_member_of_a_text_is_refused_at_once() {
    for condition in [
        "token.name == 'x'",
        "has(org.id)",
        "agent.id == 'x' || true",
        "[1].exists(i, tool.name == 'x')",
    ] {
        let found = problems(vec![when("r", Effect::Deny, condition)]);
        assert_eq!(found.len(), 1, "{condition}");
        assert!(
            found[0].problem.contains("a text without members"),
            "{condition}: {}",
            found[0]
        );
    }
    for condition in [
        "args.token.name == 'x'",
        "args.list.exists(token, token.name == 'x')",
        "token.startsWith('x')",
    ] {
        // It compiles.
        policy(Effect::Deny, vec![when("r", Effect::Deny, condition)]);
    }
}

#[test]
fn what_an_agent_says_of_itself_weakens_nothing() {
    let as_x = Call {
        agent: Some("x"),
        ..call("{}")
    };
    let mut soft = when("soft", Effect::Confirm, "agent == 'x'");
    let deny = rule("deny", Effect::Deny);
    let judged = as_x.judged(&policy(Effect::Allow, vec![soft.clone(), deny.clone()]));
    assert_eq!(
        (judged.effect, judged.rule.as_deref()),
        (Effect::Deny, Some("deny"))
    );
    assert_eq!(
        as_x.judged(&policy(Effect::Deny, vec![soft.clone()])).effect,
        Effect::Deny
    );
    let judged = as_x.judged(&policy(
        Effect::Deny,
        vec![soft.clone(), rule("allow", Effect::Allow)],
    ));
    assert_eq!(
        (judged.effect, judged.rule.as_deref()),
        (Effect::Confirm, Some("soft"))
    );
    let judged = as_x.judged(&policy(
        Effect::Deny,
        vec![soft.clone(), rule("confirm", Effect::Confirm)],
    ));
    assert_eq!(
        (judged.effect, judged.rule.as_deref()),
        (Effect::Confirm, Some("soft"))
    );
    let harder = when("harder", Effect::Deny, "agent != null");
    let judged = as_x.judged(&policy(Effect::Allow, vec![soft.clone(), harder]));
    assert_eq!(
        (judged.effect, judged.rule.as_deref()),
        (Effect::Deny, Some("harder"))
    );
    soft.trust_asserted = true;
    assert_eq!(
        as_x.judged(&policy(Effect::Allow, vec![soft, deny])).effect,
        Effect::Confirm
    );
}

#[test]
fn what_an_agent_says_of_itself_chooses_no_milder_terms() {
    let as_x = Call {
        agent: Some("x"),
        ..call(r#"{"iban":"DE1"}"#)
    };
    let mut soft = when("soft", Effect::Confirm, "agent == 'x'");
    soft.confirm.quorum = Some(1);
    soft.confirm.deny_threshold = Some(3);
    soft.confirm.self_approval = Some(true);
    soft.confirm.permit_ttl = Some(Duration::from_hours(9));
    soft.confirm.partial_view = Some(PartialView::Approve);
    let mut hard = rule("hard", Effect::Confirm);
    hard.confirm.quorum = Some(2);
    hard.redact = vec!["/iban".to_owned()];
    let judged = as_x.judged(&policy(Effect::Deny, vec![soft.clone(), hard.clone()]));
    assert_eq!(judged.rule.as_deref(), Some("soft"));
    let terms = judged.terms.unwrap();
    assert_eq!(
        (terms.quorum, terms.deny_threshold, terms.self_approval),
        (2, 1, false)
    );
    assert_eq!(terms.permit_ttl_ms, 3_600_000);
    assert_eq!(terms.partial_view, PartialView::Reject);
    assert_eq!((terms.redact.len(), judged.redact.len()), (1, 1));
    // What is trusted, and what is stricter by itself, stands alone.
    soft.trust_asserted = true;
    let judged = as_x.judged(&policy(Effect::Deny, vec![soft.clone(), hard]));
    assert_eq!(judged.terms.unwrap().quorum, 1);
    soft.trust_asserted = false;
    let judged = as_x.judged(&policy(Effect::Allow, vec![soft]));
    assert!(judged.terms.unwrap().self_approval);
}

/// The terms of a judgement, and who may decide under them: every list in which they must be.
fn asked(judged: Judgement) -> (Terms, Vec<Approvers>) {
    let terms = judged.terms.unwrap();
    let lists = [&terms.approvers]
        .into_iter()
        .chain(&terms.also)
        .cloned()
        .collect();
    (terms, lists)
}

fn only(operator: &str) -> Approvers {
    Approvers {
        roles: Vec::new(),
        operators: vec![operator.to_owned()],
        ..Approvers::default()
    }
}

#[test]
fn what_an_agent_says_of_itself_chooses_no_other_persons_and_no_other_groups() {
    let as_x = Call {
        agent: Some("x"),
        ..call("{}")
    };
    let mut mine = when("mine", Effect::Confirm, "agent == 'x'");
    mine.confirm.approvers = Some(only("friend"));
    mine.confirm.channels = Some(vec!["corner".to_owned()]);
    let mut firm = rule("firm", Effect::Confirm);
    firm.confirm.approvers = Some(only("dana"));
    // Beside a rule, beside the default, and beside a tool that asks in any case.
    let asks = Voices {
        tool_requires_confirmation: true,
        hooks: None,
    };
    for (default, rules, voices, beside) in [
        (
            Effect::Deny,
            vec![mine.clone(), firm],
            Voices::default(),
            only("dana"),
        ),
        (
            Effect::Confirm,
            vec![mine.clone()],
            Voices::default(),
            source(Effect::Allow, vec![]).confirm.approvers.unwrap(),
        ),
        (
            Effect::Allow,
            vec![mine.clone()],
            asks,
            source(Effect::Allow, vec![]).confirm.approvers.unwrap(),
        ),
    ] {
        let (terms, lists) = asked(policy(default, rules).judge(&as_x.facts(), &voices));
        assert_eq!(lists, [only("friend"), beside], "whoever decides is among both");
        assert_eq!(
            terms.channels,
            ["corner", "desk"],
            "nobody who would see it is left out"
        );
    }
    // What the agent asks for itself is no ground to be measured by.
    let as_x = Call {
        agent: Some("x"),
        ..Call::metadata(r#"{"requires_confirmation":true}"#)
    };
    let (_, lists) = asked(as_x.judged(&policy(Effect::Allow, vec![mine])));
    assert_eq!(lists, [only("friend")]);
}

#[test]
fn an_agent_cannot_talk_its_way_past_a_rule_about_everybody_else() {
    for (condition, lifting) in [
        ("agent != 'build'", Some(r#"{"a":1}"#)),
        ("!(agent == 'build')", None),
        ("!agent.startsWith('bui')", None),
        ("requester == null || agent != 'build'", None),
        ("metadata.env != 'dev'", Some(r#"{"env":"dev"}"#)),
        ("metadata['env'] != 'dev'", Some(r#"{"env":"dev"}"#)),
        ("!(metadata.a.env in ['dev'])", Some(r#"{"a":{"env":"dev"}}"#)),
        ("!has(metadata.ticket)", Some(r#"{"ticket":"T-1"}"#)),
        (
            "metadata == null || !has(metadata.ticket)",
            Some(r#"{"ticket":"T-1"}"#),
        ),
    ] {
        for effect in [Effect::Confirm, Effect::Deny] {
            let talking = Call {
                agent: Some("build"),
                requester: Some("dana"),
                metadata: lifting.map(json),
                ..call("{}")
            };
            let mut rule = when("others", effect, condition);
            let judged = talking.judged(&policy(Effect::Allow, vec![rule.clone()]));
            assert_eq!(
                (judged.effect, judged.rule.as_deref()),
                (effect, Some("others")),
                "{condition}"
            );
            assert!(judged.reason.contains("does not lift it"), "{}", judged.reason);
            rule.trust_asserted = true;
            let judged = talking.judged(&policy(Effect::Allow, vec![rule]));
            assert_eq!(judged.effect, Effect::Allow, "{condition}");
        }
    }
    // A rule about somebody or something in particular concerns nobody else.
    for condition in [
        "agent == 'intern'",
        "agent.startsWith('intern')",
        "requester in ['mallory', 'eve']",
        "metadata.env == 'prod'",
        "has(metadata.env) && metadata.env == 'prod'",
        "metadata.risk > 7",
        "metadata.tags.exists(t, t == 'prod')",
        "[1].exists(metadata, metadata == 2)",
    ] {
        let other = Call {
            agent: Some("build"),
            requester: Some("dana"),
            metadata: Some(json(r#"{"env":"dev","risk":1,"tags":["dev"]}"#)),
            ..call("{}")
        };
        let judged = other.judged(&policy(
            Effect::Allow,
            vec![when("some", Effect::Deny, condition)],
        ));
        assert_eq!(judged.effect, Effect::Allow, "{condition}");
    }
}

/// Whether what follows is at least as strict: the effect, and where a person is asked, every term.
fn no_weaker(now: &Judgement, before: &Judgement) -> Result<(), String> {
    if now.effect != before.effect {
        return (now.effect > before.effect)
            .then_some(())
            .ok_or_else(|| format!("{:?} became {:?}", before.effect, now.effect));
    }
    let (Some(now), Some(before)) = (&now.terms, &before.terms) else {
        return Ok(());
    };
    let lists = |terms: &Terms| {
        [&terms.approvers]
            .into_iter()
            .chain(&terms.also)
            .cloned()
            .collect::<Vec<_>>()
    };
    let holds = [
        lists(before).iter().all(|list| lists(now).contains(list)),
        before
            .channels
            .iter()
            .all(|channel| now.channels.contains(channel)),
        before.redact.iter().all(|pointer| now.redact.contains(pointer)),
        now.quorum >= before.quorum,
        now.deny_threshold <= before.deny_threshold,
        now.self_approval <= before.self_approval,
        now.timeout_ms <= before.timeout_ms,
        now.permit_ttl_ms <= before.permit_ttl_ms,
        now.partial_view == PartialView::Reject || before.partial_view == PartialView::Approve,
    ];
    match holds.iter().position(|holds| !holds) {
        None => Ok(()),
        Some(at) => Err(format!("term {at}: {before:?} became {now:?}")),
    }
}

mod asserted {
    use proptest::prelude::*;

    use super::*;

    /// Conditions that can be judged of a call that says nothing.
    const CONDITIONS: [&str; 12] = [
        "agent == 'a'",
        "agent != 'a'",
        "agent == null",
        "requester == 'b'",
        "requester != 'b'",
        "requester in ['a', 'b'] || agent == 'b'",
        "metadata == null",
        "metadata != null && has(metadata.k) && metadata.k == 'a'",
        "metadata == null || !has(metadata.k) || metadata.k != 'a'",
        "agent != 'a' && requester != 'b'",
        "args.amount > 5",
        "args.amount > 5 && agent != 'b'",
    ];

    prop_compose! {
        fn a_rule()(
            condition in proptest::option::weighted(0.8, 0..CONDITIONS.len()),
            effect in 0..3_usize,
            redact in any::<bool>(),
            confirm in (
                proptest::option::of(1..4_u32),
                proptest::option::of(1..3_u32),
                proptest::option::of(any::<bool>()),
                proptest::option::of(1..4_u64),
                proptest::option::of(0..3_usize),
                proptest::option::of(any::<bool>()),
            ),
        ) -> RuleSource {
            let effect = EFFECTS[effect];
            let when = condition.map(|at| CONDITIONS[at].to_owned());
            // An allow rule may not read what is asserted.
            let when = when.filter(|when| effect != Effect::Allow || when == "args.amount > 5");
            let (quorum, deny_threshold, self_approval, timeout, who, partial) = confirm;
            RuleSource {
                when,
                redact: redact.then(|| "/iban".to_owned()).into_iter().collect(),
                confirm: ConfirmSource {
                    channels: who.map(|who| vec![format!("c{who}")]),
                    approvers: who.map(|who| only(&format!("o{who}"))),
                    quorum,
                    deny_threshold,
                    self_approval,
                    timeout: timeout.map(Duration::from_secs),
                    permit_ttl: timeout.map(Duration::from_mins),
                    partial_view: partial.map(|yes| if yes { PartialView::Approve } else { PartialView::Reject }),
                    ..ConfirmSource::default()
                },
                ..rule("", effect)
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_asserted_weakens(
            rules in proptest::collection::vec(a_rule(), 0..6),
            default in 0..3_usize,
            amount in 0..10_i64,
            agent in proptest::option::of(prop_oneof![Just("a"), Just("b"), Just("c")]),
            requester in proptest::option::of(prop_oneof![Just("a"), Just("b"), Just("c")]),
            metadata in proptest::option::of(prop_oneof![
                Just("{}"), Just(r#"{"k":"a"}"#), Just(r#"{"k":"b"}"#), Just(r#"{"requires_confirmation":true}"#)
            ]),
            tool_asks in any::<bool>(),
            hook in proptest::option::of(0..3_usize),
        ) {
            let rules = rules.into_iter().enumerate();
            let rules = rules.map(|(at, rule)| RuleSource { name: format!("r{at}"), ..rule }).collect();
            let policy = policy(EFFECTS[default], rules);
            let voices = Voices {
                tool_requires_confirmation: tool_asks,
                hooks: hook.map(|at| EFFECTS[at]),
            };
            let silent = call(&format!(r#"{{"amount":{amount},"iban":"DE1"}}"#));
            let before = policy.judge(&silent.facts(), &voices);
            let talking = Call { agent, requester, metadata: metadata.map(json), ..silent };
            let now = policy.judge(&talking.facts(), &voices);
            prop_assert_eq!(no_weaker(&now, &before), Ok(()));
        }
    }
}

#[test]
fn what_one_rule_hides_of_a_tool_no_other_rule_shows() {
    let hiding = |name: &str, effect, pointer: &str, condition: &str| RuleSource {
        redact: vec![pointer.to_owned()],
        ..when(name, effect, condition)
    };
    let other_tool = RuleSource {
        tools: vec!["mail__*".to_owned()],
        ..hiding("mail", Effect::Confirm, "/amount", "true")
    };
    let other_org = RuleSource {
        orgs: Some(vec!["globex".to_owned()]),
        ..hiding("globex", Effect::Confirm, "/amount", "true")
    };
    for effect in EFFECTS {
        for default in EFFECTS {
            let judged = call(r#"{"amount":1,"iban":"DE1","pin":"1"}"#).judged(&policy(
                default,
                vec![
                    other_tool.clone(),
                    other_org.clone(),
                    hiding("big", Effect::Confirm, "/iban", "args.amount > 100"),
                    when("first", effect, "args.amount < 100"),
                    hiding("later", Effect::Deny, "/pin", "true"),
                ],
            ));
            assert_eq!((judged.effect, judged.rule.as_deref()), (effect, Some("first")));
            let hidden: Vec<String> = judged.redact.iter().map(ToString::to_string).collect();
            assert_eq!(hidden, ["/iban", "/pin"]);
            if let Some(terms) = judged.terms {
                assert_eq!(terms.redact, judged.redact, "the card shows no more than the log");
            }
        }
    }
    // The default hides it too.
    let judged = call(r#"{"iban":"DE1"}"#).judged(&policy(
        Effect::Confirm,
        vec![hiding("big", Effect::Confirm, "/iban", "false")],
    ));
    assert_eq!((judged.rule, judged.redact.len()), (None, 1));
    assert_eq!(judged.terms.unwrap().redact.len(), 1);
    // And what cannot be hidden is not let through.
    let judged = call(r#"{"iban":{"a":1}}"#).judged(&policy(
        Effect::Allow,
        vec![hiding("big", Effect::Confirm, "/iban", "false")],
    ));
    assert_eq!((judged.effect, judged.voice), (Effect::Deny, Voice::Redaction));
}

#[test]
fn a_reason_says_when_its_condition_could_not_be_evaluated_and_why() {
    for (condition, args, why) in [
        ("args.iban == 'x'", "{}", Unevaluable::Missing),
        ("args.list[3] == 1", r#"{"list":[1]}"#, Unevaluable::Missing),
        ("args.a > args.b", r#"{"a":"hunter2","b":5}"#, Unevaluable::Types),
        ("args.a.startsWith('x')", r#"{"a":31337}"#, Unevaluable::Types),
        ("5 / args.a == 1", r#"{"a":0}"#, Unevaluable::Arithmetic),
        (
            "args.a + 9223372036854775807 > 0",
            r#"{"a":31337}"#,
            Unevaluable::Arithmetic,
        ),
        ("args.a", r#"{"a":"hunter2"}"#, Unevaluable::NotBoolean),
    ] {
        for effect in [Effect::Confirm, Effect::Deny] {
            let mut said = when("odd", effect, condition);
            said.reason = Some("Large payments need a person.".to_owned());
            let judged = call(args).judged(&policy(Effect::Allow, vec![said]));
            let [found] = &judged.unevaluated[..] else {
                panic!("{condition}")
            };
            assert_eq!(found.why, why, "{condition}");
            let reason = &judged.reason;
            assert!(reason.starts_with("Large payments need a person. "), "{reason}");
            assert!(
                reason.contains("could not be evaluated") && reason.contains(&why.to_string()),
                "{reason}"
            );
            assert!(
                !reason.contains("hunter2") && !reason.contains("31337"),
                "{reason}"
            );
        }
        let allow = when("odd", Effect::Allow, condition);
        let judged = call(args).judged(&policy(Effect::Allow, vec![allow]));
        assert_eq!(
            (judged.effect, judged.voice),
            (Effect::Confirm, Voice::Unevaluated)
        );
        assert!(
            judged.reason.contains("odd") && judged.reason.contains(&why.to_string()),
            "{}",
            judged.reason
        );
    }
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(600 << 10));
    let judged = call(&large).judged(&policy(
        Effect::Allow,
        vec![when("r", Effect::Deny, "args.a == 'x'")],
    ));
    assert_eq!(judged.unevaluated[0].why, Unevaluable::TooLarge);
}

#[test]
fn an_organisation_and_a_known_person_can_be_required() {
    let ours = RuleSource {
        orgs: Some(vec!["acme".to_owned()]),
        ..rule("ours", Effect::Deny)
    };
    let ours = policy(Effect::Allow, vec![ours]);
    assert_eq!(call("{}").judged(&ours).effect, Effect::Deny);
    assert_eq!(
        Call {
            org: "other",
            ..call("{}")
        }
        .judged(&ours)
        .effect,
        Effect::Allow
    );
    for effect in EFFECTS {
        let verified = RuleSource {
            verified_requester: true,
            ..rule("verified", effect)
        };
        let policy = policy(Effect::Allow, vec![verified]);
        assert_eq!(call("{}").judged(&policy).effect, effect);
        let unknown = Call {
            known_person: false,
            ..call("{}")
        }
        .judged(&policy);
        assert_eq!(unknown.effect, Effect::Deny);
        assert_eq!(unknown.voice == Voice::Unverified, effect != Effect::Deny);
    }
}

#[test]
fn globs_match_whole_names_in_their_case() {
    let table = [
        ("*", "a/b.c", true),
        ("oa__*", "oa__pay", true),
        ("oa__*", "OA__pay", false),
        ("oa__*", "xoa__pay", false),
        ("mcp__*__read", "mcp__files/x__read", true),
        ("{read,list}_*", "list_all", true),
        ("pay", "pay2", false),
        ("pay?", "pay2", true),
        ("[ab]x", "bx", true),
        (r"a\*", "a*", true),
        (r"a\*", "ab", false),
        ("審*", "審批", true),
    ];
    for (glob, tool, expected) in table {
        let rule = RuleSource {
            tools: vec![glob.to_owned()],
            ..rule("r", Effect::Deny)
        };
        let judged = Call::tool(tool).judged(&policy(Effect::Allow, vec![rule]));
        assert_eq!(judged.effect == Effect::Deny, expected, "{glob} {tool}");
    }
}

#[test]
fn terms_come_from_the_rule_then_the_policy_then_the_defaults() {
    let mut own = rule("own", Effect::Confirm);
    own.tools = vec!["own".to_owned()];
    own.redact = vec!["/card/number".to_owned()];
    own.confirm = ConfirmSource {
        channels: Some(vec!["ops".to_owned()]),
        approvers: Some(Approvers {
            roles: Vec::new(),
            operators: vec!["dana".to_owned()],
            ..Approvers::default()
        }),
        quorum: Some(3),
        deny_threshold: Some(2),
        self_approval: Some(true),
        timeout: Some(Duration::from_hours(2)),
        permit_ttl: Some(Duration::from_mins(1)),
        partial_view: Some(PartialView::Approve),
        ..ConfirmSource::default()
    };
    let policy = policy(Effect::Deny, vec![own, rule("rest", Effect::Confirm)]);
    let terms = Call::tool("own").judged(&policy).terms.unwrap();
    let stored = serde_json::to_string(&terms).unwrap();
    assert_eq!(
        stored,
        concat!(
            r#"{"channels":["ops"],"approvers":{"operators":["dana"]},"quorum":3,"deny_threshold":2,"#,
            r#""self_approval":true,"timeout_ms":7200000,"permit_ttl_ms":60000,"partial_view":"approve","redact":["/card/number"]}"#
        )
    );
    assert_eq!(serde_json::from_str::<Terms>(&stored).unwrap(), terms);
    let terms = Call::tool("rest").judged(&policy).terms.unwrap();
    assert_eq!(
        (terms.channels, terms.approvers.roles),
        (vec!["desk".to_owned()], vec!["finance".to_owned()])
    );
    assert_eq!(
        (terms.quorum, terms.deny_threshold, terms.self_approval),
        (1, 1, false)
    );
    assert_eq!(
        (terms.timeout_ms, terms.permit_ttl_ms, terms.partial_view),
        (120_000, 3_600_000, PartialView::Reject)
    );
}

#[test]
fn a_redaction_that_meets_a_structure_denies() {
    for effect in EFFECTS {
        let hiding = RuleSource {
            redact: vec!["/card/number".to_owned()],
            ..rule("r", effect)
        };
        let policy = policy(Effect::Allow, vec![hiding]);
        for (args, denied) in [
            (r#"{"card":{"number":"4111"}}"#, false),
            (r#"{"card":{}}"#, false),
            (r#"{"card":{"number":["4111"]}}"#, true),
            (r#"{"card":{"number":{}}}"#, true),
        ] {
            let judged = call(args).judged(&policy);
            assert_eq!(
                judged.effect,
                if denied { Effect::Deny } else { effect },
                "{args}"
            );
            assert_eq!(judged.redact.len(), 1);
        }
    }
}

#[test]
fn consuming_asks_policy_again() {
    let deny = policy(Effect::Allow, vec![when("now", Effect::Deny, "args.amount > 5")]);
    assert_eq!(
        deny.now_denies(&call(r#"{"amount":6}"#).facts())
            .unwrap()
            .rule
            .as_deref(),
        Some("now")
    );
    assert!(deny.now_denies(&call(r#"{"amount":5}"#).facts()).is_none());
    assert!(deny.now_denies(&call("{}").facts()).is_some());
    assert!(
        policy(Effect::Confirm, Vec::new())
            .now_denies(&call("{}").facts())
            .is_none()
    );
}

#[test]
fn every_problem_names_rule_field_and_remedy() {
    let mut bad = rule("bad", Effect::Confirm);
    bad.tools = vec!["ok".to_owned(), "[".to_owned(), String::new(), "x".repeat(257)];
    bad.when = Some("args.amount >".to_owned());
    bad.redact = vec![
        "/ok".to_owned(),
        "card".to_owned(),
        String::new(),
        "/a~".to_owned(),
    ];
    bad.orgs = Some(Vec::new());
    bad.confirm = ConfirmSource {
        channels: Some(Vec::new()),
        approvers: Some(Approvers::default()),
        quorum: Some(0),
        deny_threshold: Some(0),
        timeout: Some(Duration::ZERO),
        permit_ttl: Some(Duration::MAX),
        ..ConfirmSource::default()
    };
    let nothing = RuleSource {
        tools: Vec::new(),
        ..rule("bad", Effect::Allow)
    };
    let found = problems(vec![rule("fine", Effect::Allow), bad, nothing]);
    let fields: Vec<_> = found
        .iter()
        .map(|problem| (problem.rule.as_ref().unwrap().index, problem.field.as_str()))
        .collect();
    assert_eq!(
        fields,
        [
            (1, "tools[1]"),
            (1, "tools[2]"),
            (1, "tools[3]"),
            (1, "when"),
            (1, "redact[1]"),
            (1, "redact[2]"),
            (1, "redact[3]"),
            (1, "orgs"),
            (1, "quorum"),
            (1, "deny_threshold"),
            (1, "timeout"),
            (1, "permit_ttl"),
            (1, "channels"),
            (1, "approvers"),
            (2, "name"),
            (2, "tools"),
        ]
    );
    assert!(
        found
            .iter()
            .all(|problem| !problem.problem.is_empty() && !problem.remedy.is_empty())
    );
    let mut written = source(Effect::Confirm, Vec::new());
    written.confirm.quorum = Some(0);
    let found = Policy::compile(&written, &Limits::default()).unwrap_err();
    assert_eq!(
        (found[0].rule.as_ref(), found[0].field.as_str()),
        (None, "confirm.quorum")
    );
}

#[test]
fn refuses_conditions_that_say_too_much() {
    let nested = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    for condition in [
        String::new(),
        " ".to_owned(),
        "nothing == 1".to_owned(),
        "args.a.matches('^a')".to_owned(),
        "args.a.replace('a', 'aaaa') == ''".to_owned(),
        "strings.quote(args.a) == ''".to_owned(),
        "optional.of(1).hasValue()".to_owned(),
        "args.?a.hasValue()".to_owned(),
        "Thing{a: 1} == 1".to_owned(),
        "args.l.map(x, args.l).size() > 1".to_owned(),
        "args.l.filter(x, x > 1).size() > 1".to_owned(),
        "args.l.exists(x, args.t.contains(x))".to_owned(),
        "args.l.exists(x, x in args.m)".to_owned(),
        "args.l.exists(x, metadata.l.exists(y, x == y))".to_owned(),
        "args.l.exists(x, x.l.exists(y, x.t.contains(y)))".to_owned(),
        "[1,2].all(a, [1,2].all(b, true))".to_owned(),
        "args.l.all(a, [1,2].all(b, true))".to_owned(),
        "args.l.all(a, a.all(b, b.all(c, c.all(d, true))))".to_owned(),
        nested("(", "true", ")", 1000),
        nested("[", "1", "]", 1000),
        nested("{'a':", "1", "}", 300),
        nested("true?", "true", ":true", 200),
        nested("size(", "args", ")", 300),
        format!("args{} == 1", ".a".repeat(900)),
        format!("args{} == 1", "[0]".repeat(600)),
        format!("1{} == 1", "+1".repeat(900)),
        format!("args.a == '{}'", "x".repeat(3000)),
        "\u{0}\u{1}".to_owned(),
        "'".to_owned(),
        "\"\\ud800\" == ''".to_owned(),
        "'\u{202e}' == 審".to_owned(),
    ] {
        let found = problems(vec![when("r", Effect::Deny, &condition)]);
        assert_eq!(
            (found.len(), found[0].field.as_str()),
            (1, "when"),
            "{condition:.60}"
        );
    }
}

#[test]
fn long_conditions_are_fine() {
    assert_eq!(
        call("{}").answers(&format!("{}true", "!".repeat(2001))),
        Some(false)
    );
    assert_eq!(
        call("{}").answers(&format!("{}1 == 1", "-".repeat(2001))),
        Some(false)
    );
    let condition: Vec<_> = (0..150).map(|at| format!("org=='{at}'")).collect();
    assert_eq!(call("{}").answers(&condition.join("||")), Some(false));
    let list: Vec<_> = (0..300).map(|at| format!("'{at}'")).collect();
    assert_eq!(
        call("{}").answers(&format!("org in [{}]", list.join(","))),
        Some(false)
    );
}

#[test]
fn hostile_arguments_are_judged_in_bounds() {
    let started = Instant::now();
    let deep = call(&format!("{}1{}", "{\"a\":".repeat(128), "}".repeat(128)));
    assert_eq!(deep.answers("args == args && args.a != args"), Some(true));
    let wide = call(&format!(
        "{{\"l\":[{}],\"t\":\"x\"}}",
        vec!["1"; 20_000].join(",")
    ));
    assert_eq!(wide.answers("args.l.exists(x, x == 2)"), Some(false));
    assert_eq!(wide.answers("['a','b'].exists(x, args.l == args.t)"), Some(false));
    assert_eq!(wide.answers("args.l + args.l + args.l == args.l"), Some(false));
    let huge = call(&format!("{{\"t\":\"{}\"}}", "x".repeat(2 << 20)));
    assert_eq!(huge.answers("args.t == 'x'"), None);
    assert_eq!(huge.answers("tool == 'x'"), Some(false));
    let odd = call(r#"{"":1,"\u0000":2,"a.b":3,"審":4}"#);
    assert_eq!(
        odd.answers(r"args[''] == 1 && args['\u0000'] == 2 && args['a.b'] == 3 && args['審'] == 4"),
        Some(true)
    );
    assert_eq!(odd.answers("args.__proto__ == 1"), None);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_policy_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Policy>();
    shared::<Judgement>();
}
