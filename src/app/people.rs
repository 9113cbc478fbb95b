//! From the configured operators to the roll of voters and the map of who is who.

use crate::config::{Config, IdentityScope};
use crate::confirmation::roll::{Roll, Voter};
use crate::gatekeeper::people::{Identity, People, Person};
use crate::ids::{OperatorId, Org};

/// Who may decide.
pub fn roll(config: &Config) -> Roll {
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
