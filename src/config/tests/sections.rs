//! Sections that other rooms use: what is decoded, what is refused, what is only told of.

use std::time::Duration;

use super::super::{
    ProblemKind,
    agent::{ToolConfig, ToolMethod},
    hook::{Builtin, HookPoint, OnFailure},
    mcp::McpReach,
};
use super::{BASE, loaded, refusal};

fn with(section: &str) -> String {
    format!("{BASE}{section}")
}

#[test]
fn hooks_are_decoded() {
    let text = with(
        "hooks:
  defaults: {interceptor_timeout_ms: 250}
  builtins: {result_truncate: {config: {limit: 8000}}, read_only_guard: {enabled: false, priority: -5}}
  processes: {review: {command: [python3, review_gate.py, 3], intercept: [before_tool, pre_tool_use, approve_tool]}}
  commands: [{event: before_tool, tools: ['files_*'], command: [./check.sh], timeout: 5s, on_failure: continue}]
",
    );
    let hooks = loaded(&text).config.hooks;
    assert_eq!(hooks.defaults.interceptor_timeout, Duration::from_millis(250));
    assert_eq!(hooks.defaults.approval_timeout, Duration::from_mins(1));
    assert_eq!(hooks.builtins[&Builtin::ResultTruncate].config["limit"], 8000);
    assert!(!hooks.builtins[&Builtin::ReadOnlyGuard].enabled);
    let review = &hooks.processes["review"];
    assert_eq!(review.child.args, ["review_gate.py", "3"]);
    assert_eq!(review.intercept, [HookPoint::PreToolUse, HookPoint::ApproveTool]);
    assert_eq!(review.on_failure, OnFailure::Deny);
    assert!(review.child.env.is_empty());
    assert_eq!(hooks.commands[0].on_failure, OnFailure::Continue);
    assert_eq!(hooks.commands[0].event, HookPoint::PreToolUse);
}

#[test]
fn a_hook_that_would_not_guard_is_refused() {
    for (section, key, kind) in [
        (
            "builtins: {confirmation_gate: {enabled: false}}",
            "hooks.builtins.confirmation_gate.enabled",
            ProblemKind::Unsafe,
        ),
        (
            "builtins: {read_only_gard: {}}",
            "hooks.builtins.read_only_gard",
            ProblemKind::UnknownName,
        ),
        (
            "processes: {a: {command: [x]}}",
            "hooks.processes.a",
            ProblemKind::MissingKey,
        ),
        (
            "processes: {a: {command: [], observe: ['*']}}",
            "hooks.processes.a.command",
            ProblemKind::BadValue,
        ),
        (
            "processes: {a: {command: x y, observe: ['*']}}",
            "hooks.processes.a.command",
            ProblemKind::WrongType,
        ),
        (
            "processes: {a: {command: [x], intercept: [before_tol]}}",
            "hooks.processes.a.intercept[0]",
            ProblemKind::BadValue,
        ),
        (
            "commands: [{event: pre_tool, command: [x]}]",
            "hooks.commands[0].event",
            ProblemKind::BadValue,
        ),
        (
            "commands: [{event: pre_tool_use, tools: ['a[']  , command: [x]}]",
            "hooks.commands[0].tools[0]",
            ProblemKind::BadValue,
        ),
        (
            "commands: [{event: pre_tool_use, match: 'files_*', command: [x]}]",
            "hooks.commands[0].match",
            ProblemKind::UnknownKey,
        ),
        (
            "commands: [{event: pre_tool_use, command: [x], timeout: 2 sec}]",
            "hooks.commands[0].timeout",
            ProblemKind::BadValue,
        ),
        (
            "commands: [{event: pre_tool_use, command: [x], on_failure: allow}]",
            "hooks.commands[0].on_failure",
            ProblemKind::BadValue,
        ),
    ] {
        let problem = refusal(&with(&format!("hooks:\n  {section}\n")));
        assert_eq!((problem.kind, problem.key.as_str()), (kind, key), "{problem}");
        assert_eq!(problem.at.map(|at| at.line), Some(42), "{problem}");
    }
}

#[test]
fn tools_are_decoded() {
    let text = with(
        "agent:
  model: {base_url: 'http://127.0.0.1:9001/v1', model: any}
  pieces: ./pieces
  tools:
    - {name: pay, parameters: {type: object, maximum: 1e3}, http: {url: 'http://127.0.0.1:9002/pay'}, requires_confirmation: true}
    - {name: disk_usage, command: [df, -h], idempotent: true, timeout: 1s}
    - {mcp: {name: files, command: [server]}}
    - {mcp: {name: crm, url: 'https://crm.example.com/mcp', headers: {Authorization: a-secret}, allow: ['read_*']}, timeout: 5s, requires_confirmation: false}
",
    );
    let agent = loaded(&text).config.agent;
    assert_eq!(agent.pieces.unwrap().to_str(), Some("./pieces"));
    let [
        ToolConfig::Http(pay, http),
        ToolConfig::Command(disk, child),
        ToolConfig::Mcp(files),
        ToolConfig::Mcp(crm),
    ] = &agent.tools[..]
    else {
        panic!("{:?}", agent.tools)
    };
    assert!(pay.requires_confirmation && !pay.idempotent);
    assert_eq!(pay.parameters["maximum"].to_string(), "1000.0");
    assert_eq!(http.method, ToolMethod::Post);
    assert_eq!(
        (disk.timeout, disk.idempotent, child.program.as_str()),
        (Duration::from_secs(1), true, "df")
    );
    assert_eq!(disk.parameters["type"], "object");
    assert_eq!(files.name, "files");
    assert!(matches!(&files.reach, McpReach::Child(child) if child.program == "server"));
    assert!(
        files.terms.requires_confirmation && files.may_ask(),
        "people are asked by default"
    );
    assert_eq!(files.timeout, Duration::from_mins(1));
    let McpReach::Http { url, headers } = &crm.reach else {
        panic!("{crm:?}")
    };
    assert_eq!((url.as_str(), headers.len()), ("https://crm.example.com/mcp", 1));
    assert!(!crm.may_ask() && crm.terms.allow == ["read_*"]);
    assert_eq!(crm.timeout, Duration::from_secs(5));
}

#[test]
fn a_tool_that_is_not_clear_is_refused() {
    for (section, key, kind) in [
        (
            "model: {base_url: 'http://models.example.com/v1', model: a}",
            "agent.model.base_url",
            ProblemKind::Unsafe,
        ),
        ("tools: [{name: a}]", "agent.tools[0]", ProblemKind::MissingKey),
        (
            "tools: [{name: a, command: [x], http: {url: 'https://x'}}]",
            "agent.tools[0]",
            ProblemKind::MissingKey,
        ),
        (
            "tools: [{name: a, command: [x]}, {name: a, command: [y]}]",
            "agent.tools[1]",
            ProblemKind::Conflict,
        ),
        (
            "tools: [{name: complete, command: [x]}]",
            "agent.tools[0].name",
            ProblemKind::Conflict,
        ),
        (
            "tools: [{name: mcp__a__b, command: [x]}]",
            "agent.tools[0].name",
            ProblemKind::Conflict,
        ),
        (
            "tools: [{mcp: {name: a__b, command: [x]}}]",
            "agent.tools[0].mcp.name",
            ProblemKind::BadValue,
        ),
        (
            "tools: [{mcp: {name: a_, command: [x]}}]",
            "agent.tools[0].mcp.name",
            ProblemKind::BadValue,
        ),
        (
            "tools: [{mcp: {name: a}}]",
            "agent.tools[0].mcp",
            ProblemKind::MissingKey,
        ),
        (
            "tools: [{mcp: {name: a, url: 'http://crm.example.com/mcp'}}]",
            "agent.tools[0].mcp.url",
            ProblemKind::Unsafe,
        ),
        (
            "tools: [{mcp: {name: a, url: 'https://x', env: {A: b}}}]",
            "agent.tools[0].mcp.env",
            ProblemKind::UnknownKey,
        ),
        (
            "tools: [{mcp: {name: a, command: [x], headers: {A: b}}}]",
            "agent.tools[0].mcp.headers",
            ProblemKind::Conflict,
        ),
        (
            "tools: [{mcp: {name: a, command: [x], timeout: 1s}, timeout: 2s}]",
            "agent.tools[0].mcp.timeout",
            ProblemKind::Conflict,
        ),
        (
            "tools: [{mcp: {name: a, command: [x], allow: ['[']}}]",
            "agent.tools[0].mcp.allow[0]",
            ProblemKind::BadValue,
        ),
        (
            "tools: [{mcp: {name: a, command: [x]}, idempotent: true}]",
            "agent.tools[0].idempotent",
            ProblemKind::UnknownKey,
        ),
        (
            "tools: [{name: a, command: [x], requires_confirmation: 'yes'}]",
            "agent.tools[0].requires_confirmation",
            ProblemKind::WrongType,
        ),
        (
            "tools: [{name: a, http: {url: 'https://x', headers: {Idempotency-Key: x}}}]",
            "agent.tools[0].http.headers.Idempotency-Key",
            ProblemKind::BadValue,
        ),
        (
            "tools: [{name: a, http: {url: 'https://x/?q=1'}}]",
            "agent.tools[0].http.url",
            ProblemKind::BadValue,
        ),
        (
            "tools: [{name: a, command: [x], parameters: []}]",
            "agent.tools[0].parameters",
            ProblemKind::WrongType,
        ),
    ] {
        let problem = refusal(&with(&format!("agent:\n  {section}\n")));
        assert_eq!((problem.kind, problem.key.as_str()), (kind, key), "{problem}");
    }
}

#[test]
fn what_is_odd_is_told_of() {
    for (from, to, key) in [
        (
            "      role: agent\n",
            "      role: agent\n      owner: somebody\n",
            "auth.tokens[0].owner",
        ),
        (
            "      role: agent\n",
            "      role: auditor\n      pieces: [a]\n",
            "auth.tokens[0].pieces",
        ),
        ("cli_a1b2c3d4e5f60718", "a1b2c3d4e5f60718", "channels[1].app_id"),
        ("U061F7AUR", "noor", "operators[1].identities.slack"),
        (
            "127.0.0.1:8460, public_url: 'https://gate.example.com'",
            "0.0.0.0:8460",
            "server",
        ),
        (
            "https://gate.example.com",
            "http://gate.example.com",
            "server.public_url",
        ),
        (
            "      role: agent\n",
            "      role: agent\n      owner: Dana@example.com\n",
            "policy.rules[0].quorum",
        ),
        (
            "      role: agent\n",
            "      role: agent\n      org: default\n      owner: noor\n",
            "policy.rules[0].quorum",
        ),
        (
            "    channel: C0123456789\n",
            "    channel: C0123456789\n    app_token: {env: UNSET}\n",
            "channels[0].app_token",
        ),
        ("[ops, desk]", "[pay]", "policy.confirm.approvers"),
        (", public_url: 'https://gate.example.com'", "", "channels[0].mode"),
        (", public_url: 'https://gate.example.com'", "", "channels[1].mode"),
        ("xoxb-bot-of-ops", "xapp-bot-of-ops", "channels[0].bot_token"),
        (
            "    signing_secret: d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e\n",
            "    mode: socket\n    app_token: xoxb-of-ops\n",
            "channels[0].app_token",
        ),
        (
            "chat_id: oc_84983ff6",
            "chat_id: x84983ff6",
            "channels[1].chat_id",
        ),
        (
            "timeout: 2m}",
            "timeout: 2m, collapse: {window: 30s}, require_reason: reject}",
            "policy.confirm.collapse",
        ),
    ] {
        let warnings = loaded(&super::spoilt(from, to)).warnings;
        assert!(
            warnings.iter().any(|warning| warning.key == key),
            "{to}: {warnings:#?}"
        );
    }
    let implicit = BASE
        .replace("  default: deny\n", "")
        .replace(
            "  confirm: {channels: [ops, desk], approvers: {roles: [finance]}, timeout: 2m}\n",
            "",
        )
        .replace(
            "      quorum: 2\n",
            "      channels: [ops]\n      approvers: {roles: [finance]}\n",
        );
    assert_eq!(loaded(&implicit).warnings[0].key, "policy");
}

#[test]
fn the_public_address_has_no_slash_at_its_end() {
    for (written, shown, base, joined) in [
        (
            "https://gate.example.com",
            "https://gate.example.com",
            "",
            "https://gate.example.com/api/x",
        ),
        (
            "https://bot.example/hooks/",
            "https://bot.example/hooks",
            "/hooks",
            "https://bot.example/hooks/api/x",
        ),
        (
            "https://bot.example:8443/a/b",
            "https://bot.example:8443/a/b",
            "/a/b",
            "https://bot.example:8443/a/b/api/x",
        ),
    ] {
        let text = super::spoilt("https://gate.example.com", written);
        let url = loaded(&text).config.server.public_url.unwrap();
        assert_eq!(
            (
                url.to_string().as_str(),
                url.base_path(),
                url.join("/api/x").as_str()
            ),
            (shown, base, joined)
        );
    }
    for bad in [
        "https://a.example//x",
        "https://a.example/x?y=1",
        "https://a.example/#x",
        "https://a.example/%2e",
        "gate.example.com",
        "https://u@a.example",
    ] {
        let text = super::spoilt("https://gate.example.com", bad);
        assert_eq!(refusal(&text).key, "server.public_url", "{bad}");
    }
}

#[test]
fn an_open_id_holds_in_one_app() {
    let two = super::spoilt(
        "  - {name: desk, kind: local}\n",
        "  - {name: desk, kind: local}\n  - {name: b, kind: feishu, mode: long_connection, app_id: cli_b, app_secret: s, chat_id: oc_b}\n",
    );
    let warned = |id: &str| {
        let text = two.replace(
            "{slack: U024BE7LH}",
            &format!("{{slack: U024BE7LH, feishu: {id}}}"),
        );
        loaded(&text)
            .warnings
            .iter()
            .any(|warning| warning.key == "operators[0].identities.feishu")
    };
    assert!(warned("ou_1") && !warned("on_1") && !warned("dana01"));
}

#[test]
fn an_organisation_that_only_operators_name_is_told_of() {
    let text = BASE
        .replace("  - id: dana\n", "  - id: dana\n    orgs: [default]\n")
        .replace("  - id: noor\n", "  - id: noor\n    orgs: [default, acne]\n");
    let keys: Vec<String> = loaded(&text)
        .warnings
        .into_iter()
        .map(|warning| warning.key)
        .collect();
    assert_eq!(keys, ["operators[1].orgs"]);
}

#[test]
fn a_platform_that_cannot_be_reached_is_told_of_and_one_on_this_machine_is_not() {
    let without = super::spoilt(", public_url: 'https://gate.example.com'", "");
    let warned: Vec<String> = loaded(&without)
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(
        warned[0].contains("https://…/api/channels/ops/callback")
            && warned[0].contains("`server.public_url`")
            && warned[0].contains("`mode: socket`"),
        "{warned:?}"
    );
    assert!(warned[1].contains("`mode: long_connection`"), "{warned:?}");
    let here = without.replace(
        "    app_id: cli_",
        "    base_url: http://127.0.0.1:9\n    app_id: cli_",
    );
    assert_eq!(loaded(&here).warnings.len(), 1);
    // Nothing else of the kind tells a secret.
    for (from, odd) in [("xoxb-bot-of-ops", "hunter2-of-ops"), ("oc_84983ff6", "hunter2")] {
        let warned = loaded(&super::spoilt(from, odd)).warnings;
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert!(!warned[0].to_string().contains("hunter2"), "{warned:?}");
    }
}

#[test]
fn a_key_in_the_wrong_place_or_missing_says_what_to_write() {
    let remedy = |from: &str, to: &str| {
        let problem = refusal(&super::spoilt(from, to));
        (problem.key.clone(), problem.remedy.unwrap_or_default())
    };
    for key in [
        "break_glass",
        "accepts_edits",
        "grants",
        "stages",
        "redact",
        "when",
    ] {
        let (at, says) = remedy("timeout: 2m}", &format!("timeout: 2m, {key}: 1}}"));
        assert_eq!(at, format!("policy.confirm.{key}"));
        assert_eq!(says, "it is a key of a rule; move it under policy.rules[]");
    }
    let (at, says) = remedy("      effect: confirm\n", "");
    assert!(
        at == "policy.rules[0].effect" && says.contains("`effect: confirm`"),
        "{says}"
    );
    let (at, says) = remedy("      tools: [pay_*]\n", "");
    assert!(
        at == "policy.rules[0].tools" && says.contains("tools: [NAME]"),
        "{says}"
    );
    let (at, says) = remedy(
        "    signing_secret: d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e\n",
        "    app_token: xapp-of-ops\n",
    );
    assert!(
        at == "channels[0].signing_secret" && says.contains("`mode: socket`"),
        "{says}"
    );
}
