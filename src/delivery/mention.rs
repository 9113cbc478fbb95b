//! By what id a person is mentioned on a platform: one that the configuration gives, or that the platform gives for an operator
//! of the configuration or for somebody in a group that it names. Nobody else's word names anybody.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::registry::Listed;
use crate::confirmation::roll::Found;
use crate::ids::OperatorId;

/// Somebody who may answer by being in a group of a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The person, with the roles that the groups give.
    pub found: Found,
    /// The id of their account there.
    pub id: String,
}

/// Knows people beyond what the configuration says. Whatever cannot be found out is left out.
#[async_trait]
pub trait Acquaintance: Send + Sync {
    /// People who hold one of these roles by being in a group of the app behind the channel; a bounded number.
    async fn members(&self, home: &Listed, roles: &BTreeSet<String>) -> Vec<Member>;

    /// The id on the channel of an operator whom the configuration knows by an address.
    async fn id_on(&self, home: &Listed, person: &OperatorId) -> Option<String>;
}

/// The ids of everybody.
#[derive(Clone, Default)]
pub struct Mentions {
    known: HashMap<OperatorId, Vec<(String, String)>>,
    acquaintance: Option<Arc<dyn Acquaintance>>,
}

impl fmt::Debug for Mentions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mentions({} persons)", self.known.len())
    }
}

impl Mentions {
    /// Persons with what they are known by: the kind or the name of a channel, and the id there.
    pub fn new(people: impl IntoIterator<Item = (OperatorId, Vec<(String, String)>)>) -> Self {
        Self {
            known: people.into_iter().collect(),
            acquaintance: None,
        }
    }

    /// The same, asking about people of whom the configuration does not say it.
    #[must_use]
    pub fn asking(self, acquaintance: Arc<dyn Acquaintance>) -> Self {
        Self {
            acquaintance: Some(acquaintance),
            ..self
        }
    }

    /// The id of a person on a channel: by the channel's name first, then by its kind.
    pub fn on(&self, person: &OperatorId, channel: &str, kind: &str) -> Option<&str> {
        let known = self.known.get(person)?;
        [channel, kind].into_iter().find_map(|scope| {
            let mut of_scope = known.iter().filter(|(of, _)| of == scope);
            of_scope.next().map(|(_, id)| id.as_str())
        })
    }

    /// People who hold one of these roles by being in a group there.
    pub async fn members(&self, home: &Listed, roles: &BTreeSet<String>) -> Vec<Member> {
        match &self.acquaintance {
            Some(acquaintance) => acquaintance.members(home, roles).await,
            None => Vec::new(),
        }
    }

    /// The id of a person on a channel, by whoever knows it.
    pub async fn find(&self, person: &OperatorId, home: &Listed) -> Option<String> {
        if let Some(id) = self.on(person, home.name.as_str(), home.channel.kind()) {
            return Some(id.to_owned());
        }
        self.acquaintance.as_ref()?.id_on(home, person).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_channel_goes_before_its_kind() {
        let known = |scope: &str, id: &str| (scope.to_owned(), id.to_owned());
        let mentions = Mentions::new([(
            "dana".into(),
            vec![known("chat", "U1"), known("ops", "U2"), known("mail", "m1")],
        )]);
        let dana = OperatorId::from("dana");
        assert_eq!(mentions.on(&dana, "ops", "chat"), Some("U2"));
        assert_eq!(mentions.on(&dana, "other", "chat"), Some("U1"));
        assert_eq!(mentions.on(&dana, "desk", "local"), None);
        assert_eq!(mentions.on(&"mira".into(), "ops", "chat"), None);
    }
}
