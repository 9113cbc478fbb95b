//! Policy: every name stands for something, and wherever a person is needed there are enough who could answer.

use std::collections::BTreeSet;

use gatepost_channel::UtcMillis;

use super::{Complaint, ProblemKind, View, after, code, collapse, duty, one_of, shown};
use crate::{
    config::{ChannelConfig, Kind, Operator, Role, policy::PolicyDraft},
    gate::{
        decision::can_be_filled,
        policy::{Approvers, ConfirmSource, Effect, RuleSource},
    },
};

/// One place of the policy that asks persons.
struct Asking<'a> {
    /// The path of the rule, or `policy.confirm`.
    path: &'a str,
    own: &'a ConfirmSource,
    fallback: &'a ConfirmSource,
    orgs: Option<&'a [String]>,
    /// Whether the persons can be counted: not while a name that counts stands for nothing.
    countable: bool,
}

pub(super) fn check(view: &View<'_>, policy: &PolicyDraft) {
    let name = |rule: &'_ Option<RuleSource>| rule.as_ref().map(|rule| rule.name.clone());
    let names: Vec<Option<String>> = policy.rules.iter().map(name).collect();
    view.unique("policy.rules", "name", "rule", names.iter().map(Option::as_deref));
    let fallback_stands = policy
        .confirm
        .as_ref()
        .is_some_and(|confirm| names_stand(view, "policy.confirm", confirm));
    if let Some(confirm) = &policy.confirm {
        collapse::takes_effect(view, "policy.confirm", confirm, &ConfirmSource::default());
        after::times_fit(view, "policy.confirm", confirm, &ConfirmSource::default());
    }
    let mut catch_alls = Vec::new();
    for (index, rule) in policy.rules.iter().enumerate() {
        let Some(rule) = rule else { continue };
        let path = format!("policy.rules[{index}]");
        let stands = names_stand(view, &path, &rule.confirm) & orgs_stand(view, &path, rule);
        reachable(view, &catch_alls, index, rule);
        if rule.when.is_none() && rule.tools.iter().any(|glob| matches!(glob.as_str(), "*" | "**")) {
            catch_alls.push(rule);
        }
        let Some(confirm) = &policy.confirm else { continue };
        after::times_fit(view, &path, &rule.confirm, confirm);
        let own = rule.confirm.summed();
        let asking = Asking {
            path: &path,
            own: &own,
            fallback: confirm,
            orgs: rule.orgs.as_deref(),
            countable: view.whole() && stands && fallback_stands,
        };
        collapse::takes_effect(view, &path, &rule.confirm, confirm);
        match rule.effect {
            Effect::Confirm => someone_decides(view, &asking),
            // A hook or the tool may still ask for a person: then the rule's own settings hold.
            Effect::Allow | Effect::Deny if asks_by_itself(&rule.confirm) => quorum_is_met(view, &asking),
            Effect::Allow | Effect::Deny => {}
        }
    }
    default_decides(view, policy, fallback_stands);
}

fn asks_by_itself(confirm: &ConfirmSource) -> bool {
    confirm.quorum.is_some()
        || confirm.deny_threshold.is_some()
        || confirm.approvers.is_some()
        || confirm.channels.is_some()
}

/// What no rule matches is confirmed unless the policy says otherwise.
fn default_decides(view: &View<'_>, policy: &PolicyDraft, stands: bool) {
    let Some(confirm) = &policy.confirm else { return };
    let nothing = ConfirmSource::default();
    let countable = view.whole() && stands;
    let asking = Asking {
        path: "policy.confirm",
        own: confirm,
        fallback: &nothing,
        orgs: None,
        countable,
    };
    let settled = confirm.channels.is_some() && confirm.approvers.is_some();
    match policy.default {
        Some(Effect::Confirm) => someone_decides(view, &asking),
        None if !settled && policy.is_absent() => view.warn(
            "policy",
            "there is no `policy`: every call needs a person, but nobody is named to be asked, so every call is denied; name channels and approvers under `policy.confirm`, and rules under `policy.rules`",
        ),
        None if !settled => view.warn(
            "policy",
            "what no rule matches needs a person, but `policy.confirm` does not name both channels and approvers: such calls are denied",
        ),
        Some(Effect::Allow | Effect::Deny) | None => quorum_is_met(view, &asking),
    }
}

/// Every channel, operator and role that is named is there.
fn names_stand(view: &View<'_>, path: &str, confirm: &ConfirmSource) -> bool {
    let before = view.cx.count();
    if view.channels_whole {
        let known: Vec<&str> = view.channels().map(|channel| channel.name.as_str()).collect();
        for (index, name) in confirm.channels.iter().flatten().enumerate() {
            if !known.contains(&name.as_str()) {
                view.unknown(&format!("{path}.channels[{index}]"), "channel", name, &known);
            }
        }
    }
    let stages = confirm.stages.iter().flatten().enumerate();
    let stages = stages.map(|(index, stage)| (format!("{path}.stages[{index}]"), &stage.approvers));
    let own = confirm
        .approvers
        .iter()
        .map(|approvers| (path.to_owned(), approvers));
    let glass = confirm.break_glass.iter().flat_map(|glass| &glass.lists);
    let glass: Vec<_> = glass
        .map(|approvers| (format!("{path}.break_glass"), approvers))
        .collect();
    for (path, approvers) in own.chain(stages).chain(glass.clone()) {
        duty::lists_stand(view, &path, approvers);
    }
    if view.operators_whole {
        for (path, approvers) in glass {
            approvers_stand(view, &path, approvers);
        }
    }
    if let Some(approvers) = &confirm.approvers
        && view.operators_whole
    {
        approvers_stand(view, path, approvers);
    }
    if view.operators_whole {
        for (index, stage) in confirm.stages.iter().flatten().enumerate() {
            approvers_stand(view, &format!("{path}.stages[{index}]"), &stage.approvers);
        }
    }
    after::names_stand(view, path, confirm);
    view.cx.count() == before
}

pub(super) fn approvers_stand(view: &View<'_>, path: &str, approvers: &Approvers) {
    let known: Vec<&str> = view.operators().map(|operator| operator.id.as_str()).collect();
    for (index, id) in approvers.operators.iter().enumerate() {
        if !known.contains(&id.as_str()) {
            view.unknown(
                &format!("{path}.approvers.operators[{index}]"),
                "operator",
                id,
                &known,
            );
        }
    }
    let groups = view.groups().flat_map(|group| &group.roles);
    let roles: BTreeSet<&str> = view
        .operators()
        .flat_map(|operator| &operator.roles)
        .chain(groups)
        .map(String::as_str)
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    for (index, role) in approvers.roles.iter().enumerate() {
        if !roles.contains(&role.as_str()) {
            view.unknown(
                &format!("{path}.approvers.roles[{index}]"),
                "operator with the role",
                role,
                &roles,
            );
        }
    }
}

/// A rule for an organisation that does not exist would hold for nobody: a deny rule would deny nothing.
fn orgs_stand(view: &View<'_>, path: &str, rule: &RuleSource) -> bool {
    if !view.whole() || rule.orgs.is_none() {
        return true;
    }
    let before = view.cx.count();
    let known = view.orgs();
    for (index, org) in rule.orgs.iter().flatten().enumerate() {
        if !known.contains(&org.as_str()) {
            view.unknown(&format!("{path}.orgs[{index}]"), "organisation", org, &known);
        }
    }
    view.cx.count() == before
}

/// The first match decides: behind a rule that matches everything, a stricter one never speaks.
fn reachable(view: &View<'_>, catch_alls: &[&RuleSource], index: usize, rule: &RuleSource) {
    let covers = |earlier: &&&RuleSource| match (&earlier.orgs, &rule.orgs) {
        (None, _) => true,
        (Some(theirs), Some(ours)) => ours.iter().all(|org| theirs.contains(org)),
        (Some(_), None) => false,
    };
    let Some(earlier) = catch_alls.iter().find(covers) else {
        return;
    };
    let key = format!("policy.rules[{index}].name");
    let message = format!(
        "the rule `{}` is never reached: `{}` before it matches every call",
        shown(&rule.name),
        shown(&earlier.name)
    );
    if rule.effect > earlier.effect {
        view.complain(
            &key,
            Complaint::new(ProblemKind::Unsafe, message)
                .remedy(format!("move it before `{}`", shown(&earlier.name))),
        );
    } else {
        view.warn(&key, message);
    }
}

/// A place that needs a person names channels and approvers, and enough of them.
fn someone_decides(view: &View<'_>, asking: &Asking<'_>) {
    let channels = asking.own.channels.is_some() || asking.fallback.channels.is_some();
    let approvers = asking.own.approvers.is_some() || asking.fallback.approvers.is_some();
    for (found, what, remedy) in [
        (
            channels,
            "channels",
            "name the channels here or in policy.confirm",
        ),
        (
            approvers,
            "approvers",
            "name roles or operators here or in policy.confirm",
        ),
    ] {
        if !found {
            let message = format!("needs a person, but names no {what}, and neither does policy.confirm");
            view.complain(
                &format!("{}.{what}", asking.path),
                Complaint::new(ProblemKind::NobodyDecides, message).remedy(remedy),
            );
        }
    }
    quorum_is_met(view, asking);
}

/// In each organisation whose channels are named, the quorum can be reached.
fn quorum_is_met(view: &View<'_>, asking: &Asking<'_>) {
    let Some(channels) = asking.own.channels.as_ref().or(asking.fallback.channels.as_ref()) else {
        return;
    };
    let Some(approvers) = asking
        .own
        .approvers
        .as_ref()
        .or(asking.fallback.approvers.as_ref())
    else {
        return;
    };
    if !asking.countable {
        return;
    }
    let quorum = asking.own.quorum.or(asking.fallback.quorum).unwrap_or(1);
    let threshold = asking
        .own
        .deny_threshold
        .or(asking.fallback.deny_threshold)
        .unwrap_or(1);
    let named: Vec<&ChannelConfig> = view
        .channels()
        .filter(|channel| channels.contains(&channel.name))
        .collect();
    let orgs: BTreeSet<&str> = named
        .iter()
        .map(|channel| channel.org.as_str())
        .filter(|org| asking.orgs.is_none_or(|orgs| orgs.iter().any(|mine| mine == org)))
        .collect();
    for org in &orgs {
        // Who is on call changes: the quorum must be in reach at some time, and is told of where it is not always.
        let moments = duty::moments(view, &[approvers]);
        let at = |at: &UtcMillis| named_at(view, org, approvers, *at);
        let persons = moments.iter().map(at).max_by_key(Vec::len).unwrap_or_default();
        // How many a platform's group holds, only the platform knows.
        let open = is_open(view, asking, org, approvers);
        let enough = if open {
            u32::MAX
        } else {
            u32::try_from(persons.len()).unwrap_or(u32::MAX)
        };
        for (key, needed, what) in [
            ("quorum", quorum, "approve"),
            ("deny_threshold", threshold, "reject"),
        ] {
            let key = if key == "quorum" && asking.own.stages.is_some() {
                "stages"
            } else {
                key
            };
            if needed > enough {
                too_few(view, asking, org, key, (needed, what), &persons);
            }
            if enough == 0 {
                break;
            }
        }
        step_up_is_possible(view, asking, org, quorum, (&persons, open));
        code::others_have_one(view, asking.path, (asking.own, asking.fallback), org);
        glass_can_be_broken(view, asking, org);
        if !open && quorum <= enough {
            stages_are_filled(view, asking, org, (approvers, &moments));
            at_times_too_few(view, asking, org, quorum, (approvers, &moments));
        }
        if !open {
            owners_leave_enough(view, asking, org, quorum, &persons);
        }
        for person in persons {
            if !can_answer(view, person, org, &named) {
                let message = format!(
                    "the operator `{}` could decide for {org}, but has no identity on {} and no token of the role operator: add `identities` or `email` to the operator, or a token",
                    shown(&person.id),
                    one_of(
                        &named
                            .iter()
                            .map(|channel| channel.name.as_str())
                            .collect::<Vec<_>>()
                    )
                );
                view.warn(&format!("{}.approvers", asking.path), message);
            }
        }
    }
    for org in asking
        .orgs
        .into_iter()
        .flatten()
        .filter(|org| !orgs.contains(org.as_str()))
    {
        let message = format!(
            "names no channel of the organisation `{}`: its calls are denied; name one, or take the organisation out of `orgs`",
            shown(org)
        );
        view.warn(&format!("{}.channels", asking.path), message);
    }
}

/// Who is asked has a code where the rule wants one, and there is a second person where it wants that.
fn step_up_is_possible(
    view: &View<'_>,
    asking: &Asking<'_>,
    org: &str,
    quorum: u32,
    (persons, open): (&[&Operator], bool),
) {
    let step = asking.own.step_up.or(asking.fallback.step_up).unwrap_or_default();
    let key = format!("{}.step_up", asking.path);
    let many = |persons: usize| u32::try_from(persons).unwrap_or(u32::MAX);
    let needed = if step.second_person { quorum.max(2) } else { quorum };
    if !open && step.second_person && quorum <= many(persons.len()) && many(persons.len()) < needed {
        let message = format!(
            "a second person confirms each approval, but in the organisation `{org}` only {} could",
            persons.len()
        );
        view.complain(
            &key,
            Complaint::new(ProblemKind::BadValue, message)
                .remedy("name another approver, or leave `second_person` out"),
        );
    }
    if !step.code {
        return;
    }
    let without: Vec<&str> = persons
        .iter()
        .filter(|person| person.code_key.is_none())
        .map(|person| person.id.as_str())
        .collect();
    let names = shown(&without.join(", "));
    if !open && many(persons.len() - without.len()) < needed && needed <= many(persons.len()) {
        let message = format!(
            "asks for one-time codes, and in the organisation `{org}` too few have `totp` set up for the {needed} needed; without are {names}"
        );
        view.complain(
            &key,
            Complaint::new(ProblemKind::NobodyDecides, message)
                .remedy("add `totp` to their entries under `operators`"),
        );
    } else if !without.is_empty() {
        view.warn(
            &key,
            format!("asks for one-time codes, which these have not set up under `operators[].totp`: {names}"),
        );
    }
}

/// Somebody may break the glass where the rule offers it.
fn glass_can_be_broken(view: &View<'_>, asking: &Asking<'_>, org: &str) {
    let Some(glass) = &asking.own.break_glass else {
        return;
    };
    let may = |operator: &&Operator| glass.lists.iter().all(|list| is_named(view, operator, list));
    if view
        .operators()
        .filter(|operator| operator.is_of(org))
        .any(|operator| may(&operator))
    {
        return;
    }
    let message = format!("nobody of the organisation `{org}` could break the glass");
    view.complain(
        &format!("{}.break_glass.approvers", asking.path),
        Complaint::new(ProblemKind::NobodyDecides, message).remedy(format!(
            "name approvers among the operators of `{org}`, or leave `break_glass` out"
        )),
    );
}

/// Whether a group of the organisation gives a role that is asked, here or in a stage: then nobody can count beforehand.
fn is_open(view: &View<'_>, asking: &Asking<'_>, org: &str, approvers: &Approvers) -> bool {
    let stages = asking.own.stages.iter().flatten().map(|stage| &stage.approvers);
    let asked: Vec<&Approvers> = stages.chain([approvers]).collect();
    super::operator_group::of_org(view, org).any(|group| {
        let gives = |approvers: &&Approvers| group.roles.iter().any(|role| approvers.roles.contains(role));
        asked.iter().any(gives)
    })
}

/// Nobody counts in two stages: enough persons together may still be the same ones in each.
fn stages_are_filled(
    view: &View<'_>,
    asking: &Asking<'_>,
    org: &str,
    (approvers, moments): (&Approvers, &BTreeSet<UtcMillis>),
) {
    let stages = asking.own.stages.as_deref().unwrap_or_default();
    let filled = |at: &UtcMillis| {
        let persons = named_at(view, org, approvers, *at);
        let may = |person: &&Operator, approvers: &Approvers| is_named_at(view, person, approvers, *at);
        can_be_filled(stages, &persons, may)
    };
    if moments.iter().any(filled) {
        return;
    }
    let message = format!(
        "nobody counts in two stages, and in the organisation `{org}` there are not enough distinct persons for all of them"
    );
    view.complain(
        &format!("{}.stages", asking.path),
        Complaint::new(ProblemKind::BadValue, message)
            .remedy("name more approvers in the stages, or ask fewer people in one"),
    );
}

/// While these people are on call, the quorum is out of reach.
fn at_times_too_few(
    view: &View<'_>,
    asking: &Asking<'_>,
    org: &str,
    quorum: u32,
    (approvers, moments): (&Approvers, &BTreeSet<UtcMillis>),
) {
    let somebody = |at: &UtcMillis| {
        view.operators()
            .any(|operator| duty::is_on_call(view, operator, approvers, *at))
    };
    let fewest = moments
        .iter()
        .filter(|at| somebody(at))
        .map(|at| named_at(view, org, approvers, *at))
        .min_by_key(Vec::len);
    let Some(persons) = fewest.filter(|persons| u32::try_from(persons.len()).unwrap_or(u32::MAX) < quorum)
    else {
        return;
    };
    let names: Vec<&str> = persons.iter().map(|person| person.id.as_str()).collect();
    let message = format!(
        "{quorum} must approve, but there are times at which in the organisation `{org}` only {} could: {}",
        names.len(),
        if names.is_empty() {
            "nobody".to_owned()
        } else {
            shown(&names.join(", "))
        }
    );
    view.warn(&format!("{}.approvers.on_call", asking.path), message);
}

/// Whoever runs an agent may not approve its calls: without that person the quorum must still be in reach.
fn owners_leave_enough(view: &View<'_>, asking: &Asking<'_>, org: &str, quorum: u32, persons: &[&Operator]) {
    let allowed = asking
        .own
        .self_approval
        .or(asking.fallback.self_approval)
        .unwrap_or(false);
    let others = u32::try_from(persons.len()).unwrap_or(u32::MAX).saturating_sub(1);
    if allowed || quorum <= others || persons.is_empty() {
        return;
    }
    for token in view.tokens.iter().flatten().filter(|token| token.org == org) {
        if let Some(owner) = &token.owner
            && persons.iter().any(|person| person.is_called(owner))
        {
            let message = format!(
                "the owner of the token `{}` may not approve its calls, and without that person only {others} of the {quorum} needed could; name another approver, or set self_approval",
                token.name
            );
            view.warn(&format!("{}.quorum", asking.path), message);
        }
    }
}

fn too_few(
    view: &View<'_>,
    asking: &Asking<'_>,
    org: &str,
    key: &str,
    (needed, what): (u32, &str),
    persons: &[&Operator],
) {
    let names: Vec<&str> = persons.iter().map(|person| person.id.as_str()).collect();
    let who = if names.is_empty() {
        "nobody".to_owned()
    } else {
        shown(&names.join(", "))
    };
    let kind = if names.is_empty() {
        ProblemKind::NobodyDecides
    } else {
        ProblemKind::BadValue
    };
    let message = format!(
        "{needed} must {what}, but in the organisation `{org}` only {} could: {who}",
        names.len()
    );
    let key = if names.is_empty() { "approvers" } else { key };
    view.complain(
        &format!("{}.{key}", asking.path),
        Complaint::new(kind, message).remedy(format!(
            "lower the number, or name more approvers among the operators of `{org}`"
        )),
    );
}

/// Whether the approvers ever mean this person.
pub(super) fn is_named(view: &View<'_>, operator: &Operator, approvers: &Approvers) -> bool {
    is_always_named(operator, approvers) || duty::is_ever_on_call(view, operator, approvers)
}

/// Whether the approvers mean this person at this instant.
fn is_named_at(view: &View<'_>, operator: &Operator, approvers: &Approvers, at: UtcMillis) -> bool {
    is_always_named(operator, approvers) || duty::is_on_call(view, operator, approvers, at)
}

/// The operators of an organisation whom the approvers mean at this instant.
fn named_at<'v>(view: &'v View<'_>, org: &str, approvers: &Approvers, at: UtcMillis) -> Vec<&'v Operator> {
    view.operators()
        .filter(|operator| operator.is_of(org) && is_named_at(view, operator, approvers, at))
        .collect()
}

fn is_always_named(operator: &Operator, approvers: &Approvers) -> bool {
    approvers.operators.contains(&operator.id)
        || operator.roles.iter().any(|role| approvers.roles.contains(role))
}

/// Whether a person could click on one of the channels, or answer by the console or the command line.
fn can_answer(view: &View<'_>, person: &Operator, org: &str, named: &[&ChannelConfig]) -> bool {
    // Where the platform can be asked, an e-mail address is as good as an identity.
    let clicks = named.iter().filter(|channel| channel.org == org).any(|channel| {
        let mut ids = person.identities_on(channel.kind(), &channel.name);
        ids.next().is_some() || (person.email.is_some() && channel.kind() != Kind::Local)
    });
    let token = view.tokens.iter().flatten().any(|token| {
        token.org == org && matches!(&token.role, Role::Operator { operator } if *operator == person.id)
    });
    clicks || token
}
