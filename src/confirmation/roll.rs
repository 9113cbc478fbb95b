//! Who may decide: the operators as the configuration has them now, asked inside the deciding transaction.

use std::collections::BTreeMap;

use crate::gate::Terms;
use crate::gate::policy::Approvers;
use crate::ids::{OperatorId, Org};

/// One operator, as far as authority goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// The person.
    pub id: OperatorId,
    /// Their name, for people who read cards and logs.
    pub name: String,
    /// The organisations they belong to.
    pub orgs: Vec<Org>,
    /// The roles they hold.
    pub roles: Vec<String>,
}

impl Voter {
    /// Whether a list of approvers means this person: by id, or by a role that they hold.
    fn is_among(&self, approvers: &Approvers) -> bool {
        approvers.operators.iter().any(|id| id == self.id.as_str())
            || approvers.roles.iter().any(|role| self.roles.contains(role))
    }
}

/// All operators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roll(BTreeMap<OperatorId, Voter>);

impl Roll {
    /// A roll of these operators.
    pub fn new(voters: impl IntoIterator<Item = Voter>) -> Self {
        Self(
            voters
                .into_iter()
                .map(|voter| (voter.id.clone(), voter))
                .collect(),
        )
    }

    /// An operator.
    pub fn voter(&self, id: &OperatorId) -> Option<&Voter> {
        self.0.get(id)
    }

    /// The name to show for an operator; their id when they are no longer known.
    pub fn name<'a>(&'a self, id: &'a OperatorId) -> &'a str {
        self.voter(id).map_or(id.as_str(), |voter| &voter.name)
    }

    /// Whether this person may vote on a request of this organisation under these terms, in whatever stage. An empty list means
    /// nobody.
    pub fn may_decide(&self, id: &OperatorId, org: &Org, terms: &Terms) -> bool {
        let named = [&terms.approvers].into_iter().chain(&terms.also);
        named
            .into_iter()
            .all(|approvers| self.is_among(id, org, approvers))
    }

    /// Whether this person of the organisation is one of these approvers.
    pub fn is_among(&self, id: &OperatorId, org: &Org, approvers: &Approvers) -> bool {
        self.voter(id)
            .is_some_and(|voter| voter.orgs.contains(org) && voter.is_among(approvers))
    }

    /// Everybody who may vote.
    pub fn deciders<'a>(&'a self, org: &'a Org, terms: &'a Terms) -> impl Iterator<Item = &'a Voter> {
        self.0
            .values()
            .filter(move |voter| self.may_decide(&voter.id, org, terms))
    }
}
