//! Channels: a click must lead to one channel, and an app or secret to one organisation.

use std::collections::BTreeSet;

use super::{Complaint, ProblemKind, View};
use crate::config::address::is_loopback;
use crate::config::{
    ChannelConfig, FeishuConfig, FeishuMode, IdentityScope, Kind, Platform, PlatformId, Secret, SlackConfig,
    SlackMode, operator::identity_path,
};

pub(super) fn check(view: &View<'_>) {
    one_open_id_for_two_apps(view);
    view.unique(
        "channels",
        "name",
        "channel",
        view.channels
            .iter()
            .map(|channel| channel.map(|c| c.name.as_str())),
    );
    for (index, channel) in view.channels.iter().enumerate() {
        let Some(channel) = channel else { continue };
        named_like_another_kind(view, index, channel);
        keys_differ(view, index, channel);
        for other in view.channels.iter().take(index).copied().flatten() {
            match (&other.platform, &channel.platform) {
                (Platform::Feishu(a), Platform::Feishu(b)) => {
                    feishu_pair(view, (other, a), (index, channel, b));
                }
                (Platform::Slack(a), Platform::Slack(b)) => {
                    slack_pair(view, (other, a), (index, channel, b));
                }
                _ => {}
            }
        }
    }
}

/// A platform that calls us needs an address, and without `server.public_url` nobody here knows which.
pub(super) fn nobody_knows_the_way(view: &View<'_>) {
    for (index, channel) in view.channels.iter().enumerate() {
        let Some(channel) = channel.filter(|channel| channel.is_called()) else {
            continue;
        };
        // A platform on this machine, as in tests, calls the listen address.
        if channel.base_url().is_none_or(is_loopback) {
            continue;
        }
        let socket = match channel.platform {
            Platform::Slack(_) => "socket",
            Platform::Feishu(_) | Platform::Local => "long_connection",
        };
        let name = &channel.name;
        view.warn(
            &format!("channels[{index}].mode"),
            format!(
                "clicks come by webhook, so the platform must reach https://…/api/channels/{name}/callback, and there is no `server.public_url`: set it to this server's address on the internet, or write `mode: {socket}`, which needs none"
            ),
        );
    }
}

/// Feishu gives a person another open_id in each app (reference of the platform: user identity), so one that stands for
/// every channel of the kind matches on the channels of one app only.
fn one_open_id_for_two_apps(view: &View<'_>) {
    let app = |channel: &'_ ChannelConfig| match &channel.platform {
        Platform::Feishu(feishu) => Some(feishu.app_id.clone()),
        Platform::Slack(_) | Platform::Local => None,
    };
    let apps: BTreeSet<String> = view.channels().filter_map(app).collect();
    if apps.len() < 2 {
        return;
    }
    for (index, operator) in view.operators.iter().enumerate() {
        for identity in operator.iter().flat_map(|operator| &operator.identities) {
            if identity.scope == IdentityScope::Kind(Kind::Feishu)
                && matches!(identity.id, PlatformId::FeishuOpen(_))
            {
                view.warn(
                    &identity_path(index, "feishu"),
                    "an open_id (`ou_…`) holds in one app, and there are several: write it under the name of a channel, or use the union_id (`on_…`)",
                );
            }
        }
    }
}

/// An identity under `slack` must not be read as one on a Feishu channel named `slack`.
fn named_like_another_kind(view: &View<'_>, index: usize, channel: &ChannelConfig) {
    if let Some(kind) = Kind::named(&channel.name)
        && kind != channel.kind()
    {
        let message = format!(
            "a channel of kind {} cannot be named `{}`, which is another kind",
            channel.kind().as_str(),
            channel.name
        );
        view.complain(
            &format!("channels[{index}].name"),
            Complaint::new(ProblemKind::Conflict, message).remedy("choose another name"),
        );
    }
}

/// The verification token stands in every callback: as the encrypt key it would be no secret.
fn keys_differ(view: &View<'_>, index: usize, channel: &ChannelConfig) {
    if let Platform::Feishu(FeishuConfig {
        mode: FeishuMode::Webhook {
            encrypt_key,
            verification_token,
        },
        ..
    }) = &channel.platform
        && encrypt_key.same_as(verification_token)
    {
        view.complain(
            &format!("channels[{index}].encrypt_key"),
            Complaint::new(
                ProblemKind::Unsafe,
                "the encrypt key is the verification token, which is no secret",
            )
            .remedy("copy both from the app's page; they differ"),
        );
    }
}

type One<'a, T> = (usize, &'a ChannelConfig, &'a T);

fn feishu_pair(
    view: &View<'_>,
    (other, a): (&ChannelConfig, &FeishuConfig),
    (index, channel, b): One<'_, FeishuConfig>,
) {
    let same_app = a.app_id == b.app_id;
    if other.org != channel.org {
        if same_app {
            across_orgs(view, index, "app_id", "app", other, channel);
        }
        let mut pairs = vec![("app_secret", &a.app_secret, &b.app_secret)];
        if let (
            FeishuMode::Webhook {
                encrypt_key: ka,
                verification_token: ta,
            },
            FeishuMode::Webhook {
                encrypt_key: kb,
                verification_token: tb,
            },
        ) = (&a.mode, &b.mode)
        {
            pairs.push(("encrypt_key", ka, kb));
            pairs.push(("verification_token", ta, tb));
        }
        for (key, mine, theirs) in pairs {
            if mine.same_as(theirs) {
                across_orgs(view, index, key, "secret", other, channel);
            }
        }
        return;
    }
    if !same_app {
        return;
    }
    if a.chat_id == b.chat_id {
        one_group(view, index, "chat_id", other);
    }
    let same_mode = match (&a.mode, &b.mode) {
        (
            FeishuMode::Webhook {
                encrypt_key: ka,
                verification_token: ta,
            },
            FeishuMode::Webhook {
                encrypt_key: kb,
                verification_token: tb,
            },
        ) => ka.same_as(kb) && ta.same_as(tb),
        (FeishuMode::LongConnection { .. }, FeishuMode::LongConnection { .. }) => true,
        _ => false,
    };
    if !same_mode || !a.app_secret.same_as(&b.app_secret) || a.base_url != b.base_url {
        let message = format!(
            "the channel `{}` uses the same app with other settings",
            other.name
        );
        view.complain(
            &format!("channels[{index}].app_id"),
            Complaint::new(ProblemKind::Conflict, message)
                .accepted("the same mode, base_url and secrets for every channel of one app")
                .remedy("make the settings equal, or use another app"),
        );
    }
}

fn slack_pair(
    view: &View<'_>,
    (other, a): (&ChannelConfig, &SlackConfig),
    (index, channel, b): One<'_, SlackConfig>,
) {
    let same_id = a.app_id.is_some() && a.app_id == b.app_id;
    let same_bot = a.bot_token.same_as(&b.bot_token);
    if other.org != channel.org {
        if same_id {
            across_orgs(view, index, "app_id", "app", other, channel);
        }
        if same_bot {
            across_orgs(view, index, "bot_token", "secret", other, channel);
        }
        let (key, shared) = match (&a.mode, &b.mode) {
            (SlackMode::Webhook { signing_secrets: a }, SlackMode::Webhook { signing_secrets: b }) => {
                ("signing_secret", any_same(a, b))
            }
            (SlackMode::Socket { app_token: a }, SlackMode::Socket { app_token: b }) => {
                ("app_token", a.same_as(b))
            }
            _ => return,
        };
        if shared {
            across_orgs(view, index, key, "secret", other, channel);
        }
        return;
    }
    if !same_bot {
        return;
    }
    if a.channel == b.channel {
        one_group(view, index, "channel", other);
    }
    let same_mode = match (&a.mode, &b.mode) {
        (SlackMode::Webhook { signing_secrets: a }, SlackMode::Webhook { signing_secrets: b }) => {
            any_same(a, b)
        }
        (SlackMode::Socket { app_token: a }, SlackMode::Socket { app_token: b }) => a.same_as(b),
        _ => false,
    };
    if !same_mode || a.base_url != b.base_url {
        let message = format!(
            "the channel `{}` uses the same bot with other settings",
            other.name
        );
        view.complain(
            &format!("channels[{index}].bot_token"),
            Complaint::new(ProblemKind::Conflict, message)
                .accepted("the same mode, base_url and secrets for every channel of one app")
                .remedy("make the settings equal, or use another app"),
        );
    }
}

fn any_same(a: &[Secret], b: &[Secret]) -> bool {
    a.iter().any(|mine| b.iter().any(|theirs| mine.same_as(theirs)))
}

fn across_orgs(
    view: &View<'_>,
    index: usize,
    key: &str,
    what: &str,
    other: &ChannelConfig,
    channel: &ChannelConfig,
) {
    let message = format!(
        "this {what} is used in two organisations: by `{}` in {} and by `{}` in {}",
        other.name, other.org, channel.name, channel.org
    );
    view.complain(
        &format!("channels[{index}].{key}"),
        Complaint::new(ProblemKind::Conflict, message)
            .remedy("give each organisation its own app; a click must lead to one organisation"),
    );
}

fn one_group(view: &View<'_>, index: usize, key: &str, other: &ChannelConfig) {
    let message = format!("the channel `{}` is the same group of the same app", other.name);
    view.complain(
        &format!("channels[{index}].{key}"),
        Complaint::new(ProblemKind::Conflict, message)
            .remedy("keep one channel for one group; a click must lead to one channel"),
    );
}
