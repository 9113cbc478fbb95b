//! Groups of operators: a channel that is there and can be asked, and people who can be told apart from the configured ones.

use super::{Complaint, ProblemKind, View, shown};
use crate::config::{ChannelConfig, GroupOf, Kind, OperatorGroup};

pub(super) fn check(view: &View<'_>) {
    let names = view
        .groups
        .iter()
        .map(|group| group.map(|group| group.name.as_str()));
    view.unique("operator_groups", "name", "group of operators", names);
    for (index, group) in view.groups.iter().enumerate() {
        let Some(group) = group else { continue };
        let Some(channel) = view.channels().find(|channel| channel.name == group.channel) else {
            if view.channels_whole {
                let known: Vec<&str> = view.channels().map(|channel| channel.name.as_str()).collect();
                let key = format!("operator_groups[{index}].channel");
                view.unknown(&key, "channel", &group.channel, &known);
            }
            continue;
        };
        is_of_its_platform(view, index, group, channel);
        operators_can_be_told_apart(view, index, channel);
    }
    ids_are_free(view);
}

/// The groups whose roles hold in this organisation.
pub(super) fn of_org<'a>(view: &'a View<'_>, org: &'a str) -> impl Iterator<Item = &'a OperatorGroup> {
    view.groups().filter(move |group| {
        let mut channels = view.channels();
        channels.any(|channel| channel.name == group.channel && channel.org == org)
    })
}

fn is_of_its_platform(view: &View<'_>, index: usize, group: &OperatorGroup, channel: &ChannelConfig) {
    let fits = match (&group.of, channel.kind()) {
        (GroupOf::Usergroup(_), kind) => kind == Kind::Slack,
        (GroupOf::Group(_), kind) => kind == Kind::Feishu,
        (GroupOf::Members, kind) => kind != Kind::Local,
    };
    let key = format!("operator_groups[{index}].{}", group.of.key());
    if !fits {
        let message = format!(
            "the channel `{}` is of kind {}, which has no such group",
            shown(&channel.name),
            channel.kind().as_str()
        );
        view.complain(
            &key,
            Complaint::new(ProblemKind::Conflict, message)
                .accepted(
                    "usergroup with a Slack channel, group with a Feishu channel, members: true with either",
                )
                .remedy("name a channel of the group's platform"),
        );
    }
    match &group.of {
        GroupOf::Usergroup(id) if !is_id(id) || !id.starts_with('S') => view.complain(
            &key,
            Complaint::new(ProblemKind::BadValue, format!("found the text `{}`", shown(id)))
                .accepted("the id of a user group, S…")
                .remedy(
                    "copy the id from the address of the group's page; its handle (@name) can change hands",
                ),
        ),
        GroupOf::Group(id) if !is_id(id) => view.complain(
            &key,
            Complaint::new(ProblemKind::BadValue, format!("found the text `{}`", shown(id)))
                .accepted("the id of a user group")
                .remedy(
                    "list the groups with contact/v3/group/simplelist, or ask an administrator for the id",
                ),
        ),
        GroupOf::Usergroup(_) | GroupOf::Group(_) | GroupOf::Members => {}
    }
}

fn is_id(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Members are found to be a configured operator by an identity or an e-mail address. Who has neither on this platform would
/// be a second person there, and could count twice.
fn operators_can_be_told_apart(view: &View<'_>, index: usize, channel: &ChannelConfig) {
    for operator in view.operators().filter(|operator| operator.is_of(&channel.org)) {
        let mut ids = operator.identities_on(channel.kind(), &channel.name);
        if operator.email.is_none() && ids.next().is_none() {
            let message = format!(
                "the operator `{}` has neither an e-mail address nor an identity on {}: as a member of the group the same person would count as another one; add `email` to the operator",
                shown(&operator.id),
                channel.name
            );
            view.warn(&format!("operator_groups[{index}].channel"), message);
        }
    }
}

/// Members without an entry of their own are named after their account, and no operator may be named so.
fn ids_are_free(view: &View<'_>) {
    for (index, operator) in view.operators.iter().enumerate() {
        let Some(operator) = operator else { continue };
        let kind = operator
            .id
            .split_once(':')
            .and_then(|(word, _)| Kind::named(word));
        if kind.is_some() {
            let message = format!(
                "the id `{}` is how a person without an entry is named",
                shown(&operator.id)
            );
            view.complain(
                &format!("operators[{index}].id"),
                Complaint::new(ProblemKind::Conflict, message).remedy(
                    "choose an id without the name of a platform, and put the account under `identities`",
                ),
            );
        }
    }
}
