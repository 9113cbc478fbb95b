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
    by_name: HashMap<(Org, String), Vec<OperatorId>>,
}

impl People {
    /// The map over these persons.
    pub fn new(people: impl IntoIterator<Item = Person>) -> Self {
        let mut map = Self::default();
        for person in people {
            for org in &person.orgs {
                let names = [&person.id.0].into_iter().chain(&person.email);
                let names = names.chain(person.identities.iter().map(|identity| &identity.id));
                for name in names {
                    let namesakes = map.by_name.entry((org.clone(), folded(name))).or_default();
                    if !namesakes.contains(&person.id) {
                        namesakes.push(person.id.clone());
                    }
                }
                for identity in &person.identities {
                    map.by_identity
                        .insert((org.clone(), identity.clone()), person.id.clone());
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

    /// The persons that a stated requester may be: by an operator's id, e-mail address or platform identity, in any case. Free
    /// text is nobody. A name that differs from another only in case stands for both: whoever may be behind a call may not
    /// approve it.
    pub fn named(&self, org: &Org, requester: &str) -> &[OperatorId] {
        self.by_name
            .get(&(org.clone(), folded(requester.trim())))
            .map_or(&[], Vec::as_slice)
    }
}

fn folded(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_found_in_any_case_and_namesakes_are_all_meant() {
        let org = Org::from("acme");
        let person = |id: &str, identity: &str| Person {
            id: id.into(),
            orgs: vec![org.clone()],
            email: Some(format!("{id}@example.com")),
            identities: vec![Identity {
                scope: "chat".into(),
                id: identity.into(),
            }],
        };
        let people = People::new([
            person("Dana", "U01"),
            person("mira", "u01"),
            person("MIRA", "U02"),
        ]);
        let named = |requester: &str| -> Vec<&str> {
            let found = people.named(&org, requester);
            found.iter().map(|id| id.0.as_str()).collect()
        };
        for spelling in ["Dana", "dana", " DANA ", "dana@Example.COM"] {
            assert_eq!(named(spelling), ["Dana"], "{spelling}");
        }
        assert_eq!(named("Mira"), ["mira", "MIRA"]);
        assert_eq!(named("U01"), ["Dana", "mira"]);
        assert_eq!(named("somebody"), [""; 0]);
        assert_eq!(people.named(&Org::from("globex"), "Dana"), []);
        // A click is no assertion: its identity is compared whole.
        let clicks = |id: &str| {
            people
                .clicker(&org, "chat", "chat", &[id.to_owned()])
                .map(|id| id.0.as_str())
        };
        assert_eq!(
            (clicks("U01"), clicks("u01"), clicks("u02")),
            (Some("Dana"), Some("mira"), None)
        );
    }
}
