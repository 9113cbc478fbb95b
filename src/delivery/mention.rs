//! By what id a person is mentioned on a platform. Only ids that the configuration gives: nobody else's word names anybody.

use std::collections::HashMap;

use crate::ids::OperatorId;

/// The ids of everybody.
#[derive(Debug, Clone, Default)]
pub struct Mentions(HashMap<OperatorId, Vec<(String, String)>>);

impl Mentions {
    /// Persons with what they are known by: the kind or the name of a channel, and the id there.
    pub fn new(people: impl IntoIterator<Item = (OperatorId, Vec<(String, String)>)>) -> Self {
        Self(people.into_iter().collect())
    }

    /// The id of a person on a channel: by the channel's name first, then by its kind.
    pub fn on(&self, person: &OperatorId, channel: &str, kind: &str) -> Option<&str> {
        let known = self.0.get(person)?;
        [channel, kind].into_iter().find_map(|scope| {
            let mut of_scope = known.iter().filter(|(of, _)| of == scope);
            of_scope.next().map(|(_, id)| id.as_str())
        })
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
