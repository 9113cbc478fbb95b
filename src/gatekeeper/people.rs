//! Who is who: platform identities, e-mail addresses and ids, mapped to persons, per organisation.

use std::collections::{BTreeSet, HashMap};

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
    persons: Vec<Person>,
}

impl People {
    /// The map over these persons.
    pub fn new(people: impl IntoIterator<Item = Person>) -> Self {
        let mut map = Self {
            persons: people.into_iter().collect(),
            ..Self::default()
        };
        for person in &map.persons {
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

    /// By what id this person is known on a channel: by the channel's name first, then by its kind; of several the first in order.
    pub fn known_as(&self, org: &Org, channel: &str, kind: &str, person: &OperatorId) -> Option<&str> {
        [channel, kind].into_iter().find_map(|scope| {
            self.by_identity
                .iter()
                .filter(|((of, identity), known)| of == org && identity.scope == scope && *known == person)
                .map(|((_, identity), _)| identity.id.as_str())
                .min()
        })
    }

    /// Why a click is nobody's, for the log: of which forms its ids are, of which forms the people of the organisation are known
    /// on the channel, and which of these the click does not carry. Forms only, no ids.
    pub fn why_nobody(&self, org: &Org, channel: &str, kind: &str, ids: &[String]) -> String {
        let carried: BTreeSet<String> = ids.iter().map(|id| form(id)).collect();
        let known: BTreeSet<String> = self
            .by_identity
            .keys()
            .filter(|(of, identity)| of == org && (identity.scope == channel || identity.scope == kind))
            .map(|(_, identity)| form(&identity.id))
            .collect();
        let list = |forms: &BTreeSet<String>| match forms.len() {
            0 => "none at all".to_owned(),
            _ => forms.iter().cloned().collect::<Vec<_>>().join(", "),
        };
        let missing: BTreeSet<String> = known.difference(&carried).cloned().collect();
        let advice = if known.is_empty() {
            "no operator has an identity on this channel".to_owned()
        } else if missing.is_empty() {
            "this person's id is not among them".to_owned()
        } else {
            format!(
                "ids of the form {} are not in the click: give the operators one of the forms that it carries, or let the app see \
                 the missing kind",
                list(&missing)
            )
        };
        format!(
            "it carries {}; operators are known by {}; {advice}",
            list(&carried),
            list(&known)
        )
    }

    /// The persons that a stated requester may be: by an operator's id, e-mail address or platform identity, in any case. Free
    /// text is nobody. A name that differs from another only in case stands for both: whoever may be behind a call may not
    /// approve it.
    pub fn named(&self, org: &Org, requester: &str) -> &[OperatorId] {
        self.by_name
            .get(&(org.clone(), folded(requester.trim())))
            .map_or(&[], Vec::as_slice)
    }

    /// The person with this e-mail address, in any case.
    pub fn by_email<'a>(&'a self, org: &'a Org, email: &str) -> Option<&'a OperatorId> {
        let email = folded(email);
        let mut persons = self.of(org);
        persons
            .find(|person| person.email.as_deref().map(folded).as_ref() == Some(&email))
            .map(|person| &person.id)
    }

    /// The e-mail address of a person.
    pub fn email<'a>(&'a self, org: &'a Org, person: &OperatorId) -> Option<&'a str> {
        self.of(org).find(|known| known.id == *person)?.email.as_deref()
    }

    /// The ids by which the configuration knows a person on a channel.
    pub fn identities<'a>(
        &'a self,
        org: &'a Org,
        person: &'a OperatorId,
        channel: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let scopes = move |identity: &&Identity| identity.scope == channel || identity.scope == kind;
        self.of(org)
            .filter(move |known| known.id == *person)
            .flat_map(move |known| known.identities.iter().filter(scopes))
            .map(|identity| identity.id.as_str())
    }

    /// Who is known by an e-mail address and by no identity on this channel: the platform says who that is there.
    pub fn addresses<'a>(
        &'a self,
        org: &'a Org,
        channel: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a OperatorId)> {
        self.of(org).filter_map(move |person| {
            let mut ids = self.identities(org, &person.id, channel, kind);
            let email = person.email.as_deref()?;
            ids.next().is_none().then_some((email, &person.id))
        })
    }

    fn of<'a>(&'a self, org: &'a Org) -> impl Iterator<Item = &'a Person> {
        self.persons
            .iter()
            .filter(move |person| person.orgs.contains(org))
    }

    /// The person whom the configuration names as the owner of a token.
    pub fn owner(&self, org: &Org, owner: &str) -> Option<&OperatorId> {
        let namesakes = self.named(org, owner);
        let exact = namesakes.iter().find(|id| id.as_str() == owner);
        exact.or(namesakes.first())
    }
}

/// The form of a platform's id, without what makes it somebody's: `ou_…`, `U…`, or a plain word.
fn form(id: &str) -> String {
    const LONGEST: usize = 4;
    let prefix = id.char_indices().take(LONGEST).find(|(_, letter)| *letter == '_');
    match (prefix, id.chars().next()) {
        (Some((at, _)), _) => format!("{}_…", id.get(..at).unwrap_or_default()),
        (None, Some(first)) if first.is_ascii_uppercase() => format!("{first}…"),
        _ => "plain (no prefix)".to_owned(),
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

    #[test]
    fn a_click_of_nobody_is_explained_by_the_forms_of_ids() {
        let org = Org::from("acme");
        let known_by = |ids: &[&str]| {
            People::new([Person {
                id: "mira".into(),
                orgs: vec![org.clone()],
                email: None,
                identities: ids
                    .iter()
                    .map(|id| Identity {
                        scope: "chat".into(),
                        id: (*id).into(),
                    })
                    .collect(),
            }])
        };
        let click = ["ou_secret1".to_owned(), "on_secret2".to_owned()];
        let why = |people: &People| people.why_nobody(&org, "finance", "chat", &click);
        let by_user_id = why(&known_by(&["mira01"]));
        assert!(
            by_user_id.contains("plain (no prefix) are not in the click"),
            "{by_user_id}"
        );
        assert!(by_user_id.contains("carries on_…, ou_…;"), "{by_user_id}");
        let by_same = why(&known_by(&["ou_other"]));
        assert!(by_same.contains("not among them"), "{by_same}");
        assert!(why(&People::default()).contains("no operator has an identity"));
        assert!(!(by_user_id + &by_same).contains("secret"), "no id of a person");
    }
}
