//! From the configured operators to the roll of voters and the map of who is who.

use std::sync::Arc;

use crate::config::{Config, IdentityScope, Operator};
use crate::confirmation::roll::{Roll, Voter};
use crate::gate::duty::Absences;
use crate::gatekeeper::meter::Meter;
use crate::gatekeeper::people::{Identity, People, Person};
use crate::ids::{OperatorId, Org, TokenName};
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

/// What counts the calls of tokens and of the known persons behind them.
pub fn meter(config: &Config, store: &Store, people: &Arc<People>) -> Meter {
    let owners = config.tokens.iter().filter_map(|token| {
        let owner = people.owner(&Org(token.org.clone()), token.owner.as_deref()?)?;
        Some((TokenName(token.name.clone()), owner.clone()))
    });
    Meter::new(store.clone(), Arc::clone(people), owners.collect())
}
