//! Operators: one person behind each name, e-mail and identity; every person in an organisation.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, hash_map::Entry},
};

use super::{Complaint, Context, ProblemKind, SourceMap, View, did_you_mean, one_of, orgs_of, shown};
use crate::config::{
    ChannelConfig, Identity, IdentityScope, Kind, Operator, PlatformId, TokenConfig,
    auth::DEFAULT_ORG,
    operator::{OperatorDraft, identity_path},
};

/// Gives the operators their organisations and sorts their identities out, now that the channels are known.
/// `sure` says whether all tokens and channels could be read.
pub(super) fn settle(
    cx: &Context<'_>,
    source: &SourceMap,
    drafts: Vec<Option<OperatorDraft>>,
    tokens: &[Option<TokenConfig>],
    channels: &[Option<ChannelConfig>],
    sure: bool,
) -> Vec<Option<Operator>> {
    let named: Vec<String> = orgs_of(
        tokens.iter().flatten().map(|token| token.org.as_str()),
        channels.iter().flatten().map(|channel| channel.org.as_str()),
        drafts
            .iter()
            .flatten()
            .flat_map(|draft| draft.operator.orgs.iter().map(String::as_str)),
    )
    .into_iter()
    .map(str::to_owned)
    .collect();
    let settle_one = |(index, draft): (usize, Option<OperatorDraft>)| {
        let OperatorDraft {
            mut operator,
            identities,
        } = draft?;
        if operator.orgs.is_empty() {
            match named.as_slice() {
                [only] => operator.orgs.push(only.clone()),
                _ if sure => without_orgs(cx, source, index, &operator.id, &named),
                _ => {}
            }
        }
        operator.identities = identities
            .iter()
            .filter_map(|(key, id)| identity(cx, source, index, (key, id), channels, sure))
            .collect();
        Some(operator)
    };
    drafts.into_iter().enumerate().map(settle_one).collect()
}

fn without_orgs(cx: &Context<'_>, source: &SourceMap, index: usize, id: &str, named: &[String]) {
    let key = format!("operators[{index}].orgs");
    let mut message = format!(
        "the operator `{}` names no organisation, and there are {}",
        shown(id),
        named.join(", ")
    );
    if named.iter().any(|org| org == DEFAULT_ORG) {
        message.push_str(" (`default` is that of every token and channel without `org`)");
    }
    cx.complain(
        source.locate(&key),
        &key,
        Complaint::new(ProblemKind::MissingKey, message)
            .remedy(format!("add `orgs: [{}]` or some of them", named.join(", "))),
    );
}

/// The key of an identity is a kind or the name of a channel.
fn identity(
    cx: &Context<'_>,
    source: &SourceMap,
    index: usize,
    (key, id): (&str, &str),
    channels: &[Option<ChannelConfig>],
    sure: bool,
) -> Option<Identity> {
    let path = identity_path(index, key);
    let (scope, kind) = if let Some(kind) = Kind::named(key) {
        (IdentityScope::Kind(kind), kind)
    } else if let Some(channel) = channels.iter().flatten().find(|channel| channel.name == key) {
        (IdentityScope::Channel(key.to_owned()), channel.kind())
    } else {
        if sure {
            let known: Vec<&str> = Kind::ALL
                .iter()
                .map(|(word, _)| *word)
                .chain(channels.iter().flatten().map(|channel| channel.name.as_str()))
                .collect();
            let message = format!(
                "`{}` is neither a kind of channel nor the name of one",
                shown(key)
            );
            cx.complain(
                source.locate(&path),
                &path,
                Complaint::new(ProblemKind::UnknownName, message)
                    .accepted(one_of(&known))
                    .remedy(did_you_mean(key, &known).unwrap_or_else(|| "choose one of these".into())),
            );
        }
        return None;
    };
    let id = PlatformId::of(kind, id);
    let slack_shape = |id: &str| {
        id.starts_with(['U', 'W']) && id.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    let odd = match &id {
        PlatformId::Slack(id) => !slack_shape(id),
        PlatformId::FeishuUser(id) => id.contains('@') || id.starts_with("oc_") || id.starts_with("cli_"),
        PlatformId::FeishuOpen(_) | PlatformId::FeishuUnion(_) | PlatformId::Local(_) => false,
    };
    if odd {
        cx.warn(
            source.locate(&path),
            &path,
            format!(
                "does not look like the id of a person on {}, which is {}",
                kind.as_str(),
                match kind {
                    Kind::Slack =>
                        "U or W and capital letters and digits (in the person's profile: Copy member ID)",
                    Kind::Feishu | Kind::Local =>
                        "an open_id (`ou_…`), a union_id (`on_…`) or a user_id of the tenant",
                }
            ),
        );
    }
    Some(Identity { scope, id })
}

pub(super) fn check(view: &View<'_>) {
    view.unique(
        "operators",
        "id",
        "operator",
        view.operators
            .iter()
            .map(|operator| operator.map(|o| o.id.as_str())),
    );
    one_person_each(view);
    orgs_are_used(view);
}

/// A misspelt organisation leaves its people out of every decision.
fn orgs_are_used(view: &View<'_>) {
    if !view.whole() {
        return;
    }
    let used: BTreeSet<&str> = (view
        .tokens
        .iter()
        .copied()
        .flatten()
        .map(|token| token.org.as_str()))
    .chain(view.channels().map(|channel| channel.org.as_str()))
    .collect();
    for (index, operator) in view.operators.iter().enumerate() {
        let orgs = operator.map_or(&[][..], |operator| operator.orgs.as_slice());
        for org in orgs
            .iter()
            .filter(|org| !used.is_empty() && !used.contains(org.as_str()))
        {
            let message = format!(
                "no token and no channel is of the organisation `{}`: look at its spelling, or take it out",
                shown(org)
            );
            view.warn(&format!("operators[{index}].orgs"), message);
        }
    }
}

/// No handle (id, e-mail, identity) may lead to two persons: votes and self-approval are counted by person.
fn one_person_each(view: &View<'_>) {
    let mut seen: HashMap<Cow<'_, str>, Held<'_>> = HashMap::new();
    for (index, operator) in view.operators.iter().enumerate() {
        let Some(operator) = operator else { continue };
        for (handle, path) in handles(index, operator) {
            let mine = Held {
                what: handle.what,
                operator,
                index,
                path,
            };
            match seen.entry(handle.text) {
                Entry::Vacant(free) => {
                    free.insert(mine);
                }
                // Two equal ids are told as a name that stands twice.
                Entry::Occupied(first)
                    if first.get().index != index && (mine.what, first.get().what) != ("id", "id") =>
                {
                    clash(view, first.get(), &mine);
                }
                Entry::Occupied(_) => {}
            }
        }
    }
}

/// Who holds a handle, and where it stands.
struct Held<'a> {
    what: &'static str,
    operator: &'a Operator,
    index: usize,
    path: String,
}

fn clash(view: &View<'_>, first: &Held<'_>, second: &Held<'_>) {
    let line = view.source.locate(&first.path).map_or(0, |at| at.line);
    let message = format!(
        "this {} is also the {} of the operator `{}` on line {line}: two persons could not be told apart",
        second.what,
        first.what,
        shown(&first.operator.id)
    );
    view.complain(
        &second.path,
        Complaint::new(ProblemKind::Conflict, message)
            .remedy("keep one operator for one person; list several organisations in its `orgs`"),
    );
}

struct Handle<'a> {
    what: &'static str,
    text: Cow<'a, str>,
}

fn handles(index: usize, operator: &Operator) -> Vec<(Handle<'_>, String)> {
    let mut handles = vec![(
        Handle {
            what: "id",
            text: operator.id.as_str().into(),
        },
        format!("operators[{index}].id"),
    )];
    if let Some(email) = &operator.email {
        handles.push((
            Handle {
                what: "e-mail",
                text: email.as_str().into(),
            },
            format!("operators[{index}].email"),
        ));
    }
    for identity in &operator.identities {
        let key = match &identity.scope {
            IdentityScope::Kind(kind) => kind.as_str(),
            IdentityScope::Channel(name) => name,
        };
        handles.push((
            Handle {
                what: "identity",
                text: identity.id.as_str().into(),
            },
            identity_path(index, key),
        ));
    }
    handles
}
