//! Who is who: platform identities, e-mail addresses and ids, mapped to persons, per organisation.

use std::collections::HashMap;

use crate::ids::{OperatorId, Org};

/// What a person is known by on a platform: the kind of a channel or the name of one, and the id there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// `feishu`, `slack`, … or a channel's name.
    pub scope: String,
    /// The id, compared whole.
    pub id: String,
}

/// A person with everything they are known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The operator.
    pub id: OperatorId,
    /// Their organisations.
    pub orgs: Vec<Org>,
    /// Their e-mail address.
    pub email: Option<String>,
    /// Their identities.
    pub identities: Vec<Identity>,
}

/// The map.
#[derive(Debug, Clone, Default)]
pub struct People {
    by_identity: HashMap<(Org, Identity), OperatorId>,
    by_name: HashMap<(Org, String), OperatorId>,
}

impl People {
    /// The map over these persons.
    pub fn new(people: impl IntoIterator<Item = Person>) -> Self {
        let mut map = Self::default();
        for person in people {
            for org in &person.orgs {
                map.by_name
                    .insert((org.clone(), person.id.0.clone()), person.id.clone());
                if let Some(email) = &person.email {
                    map.by_name
                        .insert((org.clone(), email.to_lowercase()), person.id.clone());
                }
                for identity in &person.identities {
                    map.by_identity
                        .insert((org.clone(), identity.clone()), person.id.clone());
                    map.by_name
                        .entry((org.clone(), identity.id.clone()))
                        .or_insert_with(|| person.id.clone());
                }
            }
        }
        map
    }

    /// The person behind a verified platform identity: by the channel's name first, then by its kind.
    pub fn clicker(&self, org: &Org, channel: &str, kind: &str, ids: &[String]) -> Option<&OperatorId> {
        [channel, kind].into_iter().find_map(|scope| {
            ids.iter().find_map(|id| {
                let identity = Identity {
                    scope: scope.to_owned(),
                    id: id.clone(),
                };
                self.by_identity.get(&(org.clone(), identity))
            })
        })
    }

    /// The person that a stated requester names: an operator's id, e-mail address or platform identity. Free text is nobody.
    pub fn named(&self, org: &Org, requester: &str) -> Option<&OperatorId> {
        let requester = requester.trim();
        self.by_name
            .get(&(org.clone(), requester.to_owned()))
            .or_else(|| self.by_name.get(&(org.clone(), requester.to_lowercase())))
    }
}
