//! Whether the platforms know the people of the configuration: operators by identity and by address, and groups.

use std::sync::Arc;

use futures_util::future::join_all;
use gatepost_channel::{Directory, Unfound};

use super::finding::{Finding, State};
use crate::app::{channels, people};
use crate::clock::Clock;
use crate::config::{ChannelConfig, Config, Kind, Operator};
use crate::delivery::registry::{Listed, Registry};
use crate::gatekeeper::directory::GroupRoles;

/// Operators that are looked up on one channel; a platform's limits are there for those who decide.
const MOST: usize = 50;

/// Looks everybody up.
pub(super) async fn ask(config: &Config, http: &reqwest::Client, clock: &Arc<dyn Clock>) -> Vec<Finding> {
    // What keeps channels from being built is told where they are asked.
    let Ok(registry) = channels::build(&config.channels, http, clock) else {
        return Vec::new();
    };
    let operators = config.channels.iter().filter_map(|channel| {
        let listed = registry.get(&channel.name)?;
        let directory = listed.channel.directory()?;
        Some(operators_on(config, channel, directory))
    });
    let mut found: Vec<Finding> = join_all(operators).await.into_iter().flatten().collect();
    let groups = people::groups(config);
    found.extend(join_all(groups.iter().map(|group| members(&registry, group))).await);
    found
}

/// How one operator stands on a channel.
enum Seen {
    Fine,
    /// Not found by their address, which may be fine: they may be known elsewhere.
    Absent(String),
    Ill(String),
    Unasked(String),
}

async fn operators_on(
    config: &Config,
    channel: &ChannelConfig,
    directory: &dyn Directory,
) -> Option<Finding> {
    let operators: Vec<_> = config
        .operators_of(&channel.org)
        .filter(|operator| {
            let mut ids = operator.identities_on(channel.kind(), &channel.name);
            ids.next().is_some() || operator.email.is_some()
        })
        .collect();
    if operators.is_empty() {
        return None;
    }
    let (mut fine, mut state, mut told) = (0_usize, State::Ok, Vec::new());
    for operator in operators.iter().take(MOST) {
        let (worse, line) = match look(channel, operator, directory).await {
            Seen::Fine => {
                fine += 1;
                continue;
            }
            Seen::Absent(line) => (State::Note, line),
            Seen::Ill(line) => (State::Ill, line),
            // Nothing else will be answered either.
            Seen::Unasked(why) => {
                let detail = format!(
                    "the app cannot look people up ({why}): identities in the configuration count all the same, people \
                     known by an address or a group do not"
                );
                return Some(Finding::of(name(channel), State::Note, detail));
            }
        };
        state = state.max(worse);
        told.push(line);
    }
    let mut detail = format!("{fine} of {} found", operators.len().min(MOST));
    if operators.len() > MOST {
        let more = operators.len() - MOST;
        detail = format!("{detail} ({more} more were not looked up)");
    }
    for line in told {
        detail.push_str("; ");
        detail.push_str(&line);
    }
    Some(Finding::of(name(channel), state, detail))
}

fn name(channel: &ChannelConfig) -> String {
    format!("operators on {}", channel.name)
}

async fn look(channel: &ChannelConfig, operator: &Operator, directory: &dyn Directory) -> Seen {
    let id = &operator.id;
    let identity = operator.identities_on(channel.kind(), &channel.name).next();
    let account = match (identity, &operator.email) {
        (Some(identity), _) => Ok(identity.as_str().to_owned()),
        (None, Some(email)) => directory.by_email(email).await,
        (None, None) => return Seen::Fine,
    };
    let profile = match account {
        Ok(account) => directory.person(&account).await,
        Err(why) => Err(why),
    };
    match profile {
        Ok(profile) => match profile.bar {
            None => Seen::Fine,
            Some(bar) => Seen::Ill(format!("{id}: {}", bar.as_str())),
        },
        Err(Unfound::NoSuch) if identity.is_some() => Seen::Ill(format!("{id}: no account of this id")),
        Err(Unfound::NoSuch) => Seen::Absent(format!("{id}: no account with this address")),
        Err(Unfound::Hidden { why }) => Seen::Absent(format!("{id}: outside what the app may see ({why})")),
        Err(Unfound::MayNotAsk { why }) => Seen::Unasked(why),
        Err(Unfound::Failed(why)) => Seen::Ill(format!("{id}: {why}")),
    }
}

/// A group that cannot be read lets nobody decide.
async fn members(registry: &Registry, group: &GroupRoles) -> Finding {
    let name = format!("operator group {}", group.name);
    let listed = registry.get(group.channel.as_str());
    let Some(directory) = listed.and_then(|listed: &Listed| listed.channel.directory()) else {
        return Finding::of(
            name,
            State::Ill,
            "its channel cannot be asked about people".to_owned(),
        );
    };
    let roles = group.roles.join(", ");
    match directory.members(&group.group).await {
        Ok(members) if members.is_empty() => {
            let detail = format!("nobody is in it, so nobody holds {roles} by it");
            Finding::of(name, State::Note, detail)
        }
        Ok(members) => {
            let count = match members.len() {
                1 => "1 member holds".to_owned(),
                many => format!("{many} members hold"),
            };
            Finding::of(name, State::Ok, format!("{count} {roles}"))
        }
        Err(Unfound::NoSuch) => Finding::of(
            name,
            State::Ill,
            "the platform knows no such group: check the id".to_owned(),
        ),
        Err(why) => Finding::of(name, State::Ill, format!("nobody holds {roles} by it: {why}")),
    }
}

/// Whether an operator of the channel's organisation is known on no platform but by their address.
pub(super) fn known_by_address(config: &Config, org: &str) -> bool {
    let mut operators = config.operators_of(org);
    operators.any(|operator| {
        let mut channels = config
            .channels_of(org)
            .filter(|channel| channel.kind() != Kind::Local);
        let known = channels.any(|channel| {
            operator
                .identities_on(channel.kind(), &channel.name)
                .next()
                .is_some()
        });
        operator.email.is_some() && !known
    })
}
