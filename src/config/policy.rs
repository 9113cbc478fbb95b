//! The `policy` section, decoded to what the gate compiles. Whether globs and conditions compile is the gate's word.

use std::time::Duration;

use gatepost_channel::Risk;

use crate::gate::collapse::{self, Collapse};
use crate::gate::decision::{RequireReason, Stage};
use crate::gate::edit::EditScope;
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::policy::{Approvers, ConfirmSource, Effect, PartialView, PolicySource, RuleSource};

use super::authority::{decode_break_glass, decode_step_up};
use super::{
    context::{Complaint, Context},
    node::{MapReader, Reader, describe},
    problem::ProblemKind,
    yaml::Value,
};

const EFFECTS: [(&str, Effect); 3] = [
    ("allow", Effect::Allow),
    ("deny", Effect::Deny),
    ("confirm", Effect::Confirm),
];
const REASONS: [(&str, RequireReason); 3] = [
    ("reject", RequireReason::Reject),
    ("approve", RequireReason::Approve),
    ("both", RequireReason::Both),
];
/// The longest span of a policy.
pub(super) const LONGEST: Duration = Duration::from_hours(366 * 24);
const LONGEST_WINDOW: Duration = Duration::from_hours(1);
/// What only a rule may say: it cannot be the same for all of them.
const OF_RULES: [&str; 13] = [
    "name",
    "tools",
    "when",
    "effect",
    "reason",
    "orgs",
    "redact",
    "trust_asserted",
    "verified_requester",
    "stages",
    "grants",
    "accepts_edits",
    "break_glass",
];

/// The section as it was read. What could not be read is `None`, so that rules keep their places.
pub(super) struct PolicyDraft {
    /// `None` when it was left out; it is then confirm.
    pub(super) default: Option<Effect>,
    pub(super) confirm: Option<ConfirmSource>,
    pub(super) rules: Vec<Option<RuleSource>>,
    /// Whether everything of it could be read.
    pub(super) whole: bool,
}

impl PolicyDraft {
    /// The section when it is left out: everything needs a person.
    pub(super) fn absent() -> Self {
        Self {
            default: None,
            confirm: Some(ConfirmSource::default()),
            rules: Vec::new(),
            whole: true,
        }
    }

    /// Whether nothing at all is said: as good as left out.
    pub(super) fn is_absent(&self) -> bool {
        self.whole
            && self.default.is_none()
            && self.rules.is_empty()
            && self.confirm == Some(ConfirmSource::default())
    }

    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let before = reader.context().count();
        let mut map = reader.map()?;
        let default = map
            .optional("default")
            .and_then(|default| default.choice(&EFFECTS));
        let confirm = map.optional("confirm").map(|confirm| {
            let mut map = confirm.map()?;
            let source = decode_confirm(&mut map, confirm.context());
            map.finish_beside(&OF_RULES, "it is a key of a rule; move it under policy.rules[]");
            source
        });
        let rules = map
            .optional("rules")
            .and_then(|rules| Some(rules.list()?.iter().map(decode_rule).collect()))
            .unwrap_or_default();
        map.finish();
        Some(Self {
            default,
            confirm: confirm.unwrap_or_else(|| Some(ConfirmSource::default())),
            rules,
            whole: reader.context().count() == before,
        })
    }

    /// The policy, when all of it could be read.
    pub(super) fn source(&self) -> Option<PolicySource> {
        if !self.whole {
            return None;
        }
        Some(PolicySource {
            default: self.default.unwrap_or(Effect::Confirm),
            confirm: self.confirm.clone()?,
            rules: self.rules.iter().cloned().collect::<Option<_>>()?,
        })
    }
}

/// The keys that a rule shares with `policy.confirm`.
fn decode_confirm(map: &mut MapReader<'_>, cx: &Context<'_>) -> Option<ConfirmSource> {
    let before = cx.count();
    let span = |reader: Reader<'_>| reader.span(Duration::from_millis(1), LONGEST);
    let source = ConfirmSource {
        channels: map.optional("channels").and_then(|channels| channels.texts()),
        approvers: map
            .optional("approvers")
            .and_then(|approvers| decode_approvers(&approvers)),
        quorum: map.optional("quorum").and_then(|quorum| quorum.integer(1, 1000)),
        deny_threshold: map
            .optional("deny_threshold")
            .and_then(|threshold| threshold.integer(1, 1000)),
        self_approval: map
            .optional("self_approval")
            .and_then(|allowed| allowed.boolean()),
        timeout: map.optional("timeout").and_then(span),
        permit_ttl: map.optional("permit_ttl").and_then(span),
        partial_view: map.optional("partial_view").and_then(|view| {
            view.choice(&[("reject", PartialView::Reject), ("approve", PartialView::Approve)])
        }),
        risk: map.optional("risk").and_then(|risk| risk.choice(&Risk::ALL)),
        require_reason: map
            .optional("require_reason")
            .and_then(|needed| needed.choice(&REASONS)),
        confirm_step: map.optional("confirm_step").and_then(|asked| asked.boolean()),
        stages: None,
        grants: None,
        edits: None,
        collapse: map
            .optional("collapse")
            .and_then(|collapse| decode_collapse(&collapse)),
        after: super::after::decode(map),
        step_up: map.optional("step_up").and_then(|asked| decode_step_up(&asked)),
        break_glass: None,
    };
    (cx.count() == before).then_some(source)
}

pub(super) fn decode_approvers(reader: &Reader<'_>) -> Option<Approvers> {
    let mut map = reader.map()?;
    let (roles, operators) = (map.optional("roles"), map.optional("operators"));
    let on_call = map.optional("on_call");
    let nobody = roles.is_none() && operators.is_none() && on_call.is_none();
    let roles = roles.map(|roles| roles.texts());
    let operators = operators.map(|operators| operators.texts());
    let on_call = on_call.map(|lists| lists.texts());
    map.finish();
    if nobody {
        reader.complain(
            Complaint::new(
                ProblemKind::NobodyDecides,
                "names no role, no operator and no list of people on call: nobody could decide",
            )
            .accepted("{roles: [ROLE], operators: [ID], on_call: [LIST]}, at least one of them")
            .remedy("name who may decide"),
        );
        return None;
    }
    Some(Approvers {
        roles: roles.unwrap_or(Some(Vec::new()))?,
        operators: operators.unwrap_or(Some(Vec::new()))?,
        on_call: on_call.unwrap_or(Some(Vec::new()))?,
    })
}

fn decode_rule(reader: &Reader<'_>) -> Option<RuleSource> {
    let cx = reader.context();
    let before = cx.count();
    let mut map = reader.map()?;
    let name = map.required("name").and_then(|name| name.line(128));
    let tools = map
        .required_as(
            "tools",
            "write `tools: [NAME]`, globs over the names of the tools that the rule is about; `[\"*\"]` is all",
        )
        .and_then(|tools| tools.texts());
    let when = map.optional("when").and_then(|when| when.text());
    let effect = map
        .required_as(
            "effect",
            "write `effect: confirm` where a person decides, or `allow` or `deny`",
        )
        .and_then(|effect| effect.choice(&EFFECTS));
    let reason = map.optional("reason").and_then(|reason| reason.prose());
    let orgs = map.optional("orgs").and_then(|orgs| orgs.texts());
    let redact = map.optional("redact").and_then(|redact| decode_pointers(&redact));
    let trust_asserted = map.optional("trust_asserted").and_then(|trust| trust.boolean());
    let verified_requester = map
        .optional("verified_requester")
        .and_then(|verified| verified.boolean());
    let stages = map.optional("stages").and_then(|stages| decode_stages(&stages));
    let grants = map.optional("grants").and_then(|grants| decode_grants(&grants));
    let edits = map
        .optional("accepts_edits")
        .and_then(|edits| decode_edits(&edits));
    let break_glass = map
        .optional("break_glass")
        .and_then(|glass| decode_break_glass(&glass));
    let confirm = decode_confirm(&mut map, cx).map(|confirm| ConfirmSource {
        stages,
        grants,
        edits,
        break_glass,
        ..confirm
    });
    map.finish();
    if cx.count() != before {
        return None;
    }
    Some(RuleSource {
        name: name?,
        tools: tools?,
        when,
        effect: effect?,
        reason,
        orgs,
        redact: redact.unwrap_or_default(),
        trust_asserted: trust_asserted.unwrap_or(false),
        verified_requester: verified_requester.unwrap_or(false),
        confirm: confirm?,
    })
}

/// The stages of a rule, in order.
fn decode_stages(reader: &Reader<'_>) -> Option<Vec<Stage>> {
    let decode = |reader: &Reader<'_>| {
        let mut map = reader.map()?;
        let name = map.required("name").and_then(|name| name.line(64));
        let approvers = map
            .required("approvers")
            .and_then(|approvers| decode_approvers(&approvers));
        let quorum = map.optional("quorum").map(|quorum| quorum.integer(1, 1000));
        map.finish();
        Some(Stage {
            name: name?,
            approvers: approvers?,
            quorum: quorum.unwrap_or(Some(1))?,
        })
    };
    reader.list()?.iter().map(decode).collect()
}

/// When like requests share a card.
fn decode_collapse(reader: &Reader<'_>) -> Option<Collapse> {
    let mut map = reader.map()?;
    let window = map
        .required("window")
        .and_then(|window| window.span(Duration::from_secs(1), LONGEST_WINDOW));
    let most = map.optional("most").map(|most| most.integer(1, collapse::MOST));
    map.finish();
    Some(Collapse {
        window_ms: i64::try_from(window?.as_millis()).unwrap_or(i64::MAX),
        most: most.unwrap_or(Some(collapse::MOST))?,
    })
}

/// What an approval may let run beside the call.
fn decode_grants(reader: &Reader<'_>) -> Option<GrantTerms> {
    let mut map = reader.map()?;
    let scopes = map.required("scopes").and_then(|scopes| {
        let scope = |reader: &Reader<'_>| {
            let scope = GrantScope::parse(&reader.text()?);
            if scope.is_none() {
                reader.bad_value(
                    "`session`, or a span of at most 7d such as 1h or 30m",
                    "write `session` or a span of whole seconds, minutes, hours or days",
                );
            }
            scope
        };
        scopes.list()?.iter().map(scope).collect::<Option<Vec<_>>>()
    });
    let max_uses = map.optional("max_uses").map(|uses| uses.integer(1, 1_000_000));
    let arguments = map
        .optional("arguments")
        .map(|arguments| match arguments.value() {
            Value::List(_) => decode_pointers(&arguments)?
                .iter()
                .map(|pointer| pointer.parse().ok())
                .collect::<Option<_>>()
                .map(GrantArguments::At),
            _ => arguments.choice(&[("same", true), ("any", false)]).map(|same| {
                if same {
                    GrantArguments::Same
                } else {
                    GrantArguments::Any
                }
            }),
        });
    map.finish();
    Some(GrantTerms {
        scopes: scopes?,
        max_uses: max_uses.map_or(Some(None), |uses| uses.map(Some))?,
        arguments: arguments.unwrap_or(Some(GrantArguments::Same))?,
    })
}

/// What people may change of a call: all of its arguments, or what stands at some places; nothing when it is `false`.
fn decode_edits(reader: &Reader<'_>) -> Option<EditScope> {
    match reader.value() {
        Value::List(_) => decode_pointers(reader)?
            .iter()
            .map(|pointer| pointer.parse().ok())
            .collect::<Option<_>>()
            .map(EditScope::At),
        Value::Bool(any) => any.then_some(EditScope::Any),
        other => {
            reader.wrong_type(&describe(other), "true, false, or a list of JSON pointers");
            None
        }
    }
}

/// JSON pointers (RFC 6901) below the root: a pointer that is misspelt would hide nothing.
fn decode_pointers(reader: &Reader<'_>) -> Option<Vec<String>> {
    let pointers = reader.texts_or_none()?;
    let well_formed = |pointer: &str| {
        pointer.starts_with('/')
            && pointer
                .split('~')
                .skip(1)
                .all(|tail| tail.starts_with(['0', '1']))
    };
    let mut good = true;
    for (item, pointer) in reader.list()?.iter().zip(&pointers) {
        if !well_formed(pointer) {
            good = false;
            item.bad_value(
                "a JSON pointer such as /card/number",
                "begin it with /; write ~ as ~0 and / in a name as ~1",
            );
        }
    }
    good.then_some(pointers)
}
