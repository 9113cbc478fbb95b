//! From the configured operators to the roll of voters and the map of who is who.

use std::sync::Arc;

use gatepost_channel::Group;

use crate::clock::Clock;
use crate::config::{Config, GroupOf, IdentityScope, Operator};
use crate::confirmation::roll::{Roll, Voter};
use crate::delivery::mention::Mentions;
use crate::delivery::registry::Registry;
use crate::gate::duty::Absences;
use crate::gatekeeper::Directories;
use crate::gatekeeper::directory::GroupRoles;
use crate::gatekeeper::meter::Meter;
use crate::gatekeeper::people::{Identity, People, Person};
use crate::ids::{ChannelName, OperatorId, Org, TokenName};
use crate::lifecycle::Tasks;
use crate::storage::Store;

/// Who may decide, and who is on call or away when.
pub fn roll(config: &Config) -> Roll {
    let away = |operator: &Operator| (operator.id.clone(), operator.away.clone());
    let lists = config.on_call.iter();
    voters(config)
        .with_on_call(lists.map(|list| (list.name.clone(), list.rota.clone())))
        .with_absences(Absences::new(config.operators.iter().map(away)))
        .with_codes(config.operators.iter().filter_map(|operator| {
            let key = operator.code_key.clone()?;
            Some((OperatorId(operator.id.clone()), key))
        }))
}

fn voters(config: &Config) -> Roll {
    Roll::new(config.operators.iter().map(|operator| Voter {
        id: OperatorId(operator.id.clone()),
        name: operator.name.clone(),
        orgs: operator.orgs.iter().cloned().map(Org).collect(),
        roles: operator.roles.clone(),
    }))
    .knowing(aliases(config))
}

/// Who is who by what the platforms say.
pub fn directories(
    config: &Config,
    registry: &Registry,
    people: &Arc<People>,
    clock: &Arc<dyn Clock>,
    tasks: &Tasks,
) -> Directories {
    Directories::new(registry.clone(), Arc::clone(people), groups(config), clock, tasks)
}

/// The groups whose members hold roles.
pub fn groups(config: &Config) -> Vec<GroupRoles> {
    let groups = config.operator_groups.iter().map(|group| GroupRoles {
        name: group.name.clone(),
        channel: ChannelName(group.channel.clone()),
        group: match &group.of {
            GroupOf::Usergroup(id) | GroupOf::Group(id) => Group::Named(id.clone()),
            GroupOf::Members => Group::Chat,
        },
        roles: group.roles.clone(),
    });
    groups.collect()
}

/// Under which other ids a configured person may have voted: before they had an entry, or by what only a platform told.
fn aliases(config: &Config) -> Vec<(OperatorId, OperatorId)> {
    let mut aliases = Vec::new();
    for operator in &config.operators {
        let person = OperatorId(operator.id.clone());
        let email = operator.email.iter().cloned();
        let accounts = operator.identities.iter().filter_map(|identity| {
            let kind = match &identity.scope {
                IdentityScope::Kind(kind) => *kind,
                IdentityScope::Channel(name) => config.channel(name)?.kind(),
            };
            Some(format!("{}:{}", kind.as_str(), identity.id.as_str()))
        });
        aliases.extend(
            email
                .chain(accounts)
                .map(|alias| (OperatorId(alias), person.clone())),
        );
    }
    aliases
}

/// Who is who.
pub fn people(config: &Config) -> People {
    People::new(config.operators.iter().map(|operator| {
        Person {
            id: OperatorId(operator.id.clone()),
            orgs: operator.orgs.iter().cloned().map(Org).collect(),
            email: operator.email.clone(),
            identities: operator
                .identities
                .iter()
                .map(|identity| Identity {
                    scope: match &identity.scope {
                        IdentityScope::Kind(kind) => kind.as_str().to_owned(),
                        IdentityScope::Channel(name) => name.clone(),
                    },
                    id: identity.id.as_str().to_owned(),
                })
                .collect(),
        }
    }))
}

/// By what ids people are mentioned on platforms; where the configuration does not say it, these are asked.
pub fn mentions(config: &Config, directories: &Directories) -> Mentions {
    let known = Mentions::new(config.operators.iter().map(|operator| {
        let ids = operator.identities.iter().map(|identity| {
            let scope = match &identity.scope {
                IdentityScope::Kind(kind) => kind.as_str().to_owned(),
                IdentityScope::Channel(name) => name.clone(),
            };
            (scope, identity.id.as_str().to_owned())
        });
        (OperatorId(operator.id.clone()), ids.collect())
    }));
    known.asking(Arc::new(directories.clone()))
}

/// What counts the calls of tokens and of the known persons behind them.
pub fn meter(config: &Config, store: &Store, people: &Arc<People>) -> Meter {
    let owners = config.tokens.iter().filter_map(|token| {
        let owner = people.owner(&Org(token.org.clone()), token.owner.as_deref()?)?;
        Some((TokenName(token.name.clone()), owner.clone()))
    });
    Meter::new(store.clone(), Arc::clone(people), owners.collect())
}
