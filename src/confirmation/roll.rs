//! Who may decide: the operators as the configuration has them now, and what the platforms said of people just before; asked
//! inside the deciding transaction for one instant of its clock. Who is on call and who stands in for whom is resolved here, and
//! nowhere else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gatepost_channel::UtcMillis;

use super::Account;
use crate::gate::Terms;
use crate::gate::code::CodeKey;
use crate::gate::duty::{Absences, Rota};
use crate::gate::policy::Approvers;
use crate::ids::{OperatorId, Org};

/// One operator, as far as authority goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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

    /// Takes what somebody else knows of the same person.
    fn join(&mut self, other: Self) {
        let orgs = other.orgs.into_iter();
        let fresh: Vec<_> = orgs.filter(|org| !self.orgs.contains(org)).collect();
        self.orgs.extend(fresh);
        let roles = other.roles.into_iter();
        let fresh: Vec<_> = roles.filter(|role| !self.roles.contains(role)).collect();
        self.roles.extend(fresh);
    }
}

/// What the platforms said of one person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The person, with the roles that they hold by being in groups.
    pub voter: Voter,
    /// Other ids of the same person.
    pub also: Vec<OperatorId>,
    /// Whether their account may decide.
    pub standing: Standing,
    /// Roles that they perhaps hold: the look-up of the group failed.
    pub perhaps: Vec<String>,
}

/// How an account stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It may decide.
    Good,
    /// It may not, or no longer is this person's.
    Barred,
    /// The look-up failed: it counts for nothing now, and might later.
    Unsure,
}

/// All operators, and who of them answers when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roll {
    voters: BTreeMap<OperatorId, Voter>,
    on_call: BTreeMap<String, Rota>,
    absences: Absences,
    codes: BTreeMap<OperatorId, CodeKey>,
    /// Other ids of persons, such as an e-mail address under which somebody voted before they had an entry.
    known_as: BTreeMap<OperatorId, OperatorId>,
    /// Ids that only a look-up knows: of persons, and other ids of persons.
    looked_up: BTreeSet<OperatorId>,
    /// Whose account may not decide, or of whom nobody can tell which of several operators they are.
    barred: BTreeSet<OperatorId>,
    /// Whose account could not be looked up.
    unsure: BTreeSet<OperatorId>,
    /// Roles that persons perhaps hold.
    perhaps: BTreeMap<OperatorId, BTreeSet<String>>,
}

/// One question about somebody's right: under which lists, of which organisation, at which instant.
#[derive(Debug, Clone, Copy)]
pub struct Right<'a> {
    /// The organisation.
    pub org: &'a Org,
    /// Whoever answers must be among each of these.
    pub lists: &'a [&'a Approvers],
    /// When.
    pub at: UtcMillis,
    /// Nobody acts for one of these, nor through one of them: they stand behind the call.
    pub barred: &'a [OperatorId],
}

impl Roll {
    /// A roll of these operators; nobody is on call or away.
    pub fn new(voters: impl IntoIterator<Item = Voter>) -> Self {
        let voters = voters.into_iter().map(|voter| (voter.id.clone(), voter));
        Self {
            voters: voters.collect(),
            ..Self::default()
        }
    }

    /// With these lists of people on call, by name.
    #[must_use]
    pub fn with_on_call(mut self, lists: impl IntoIterator<Item = (String, Rota)>) -> Self {
        self.on_call = lists.into_iter().collect();
        self
    }

    /// With these absences.
    #[must_use]
    pub fn with_absences(mut self, absences: Absences) -> Self {
        self.absences = absences;
        self
    }

    /// Who is away when.
    pub const fn absences(&self) -> &Absences {
        &self.absences
    }

    /// With these secrets of one-time codes.
    #[must_use]
    pub fn with_codes(mut self, codes: impl IntoIterator<Item = (OperatorId, CodeKey)>) -> Self {
        self.codes = codes.into_iter().collect();
        self
    }

    /// The secret of a person's one-time codes.
    pub fn code_key(&self, id: &OperatorId) -> Option<&CodeKey> {
        self.codes.get(id)
    }

    /// The same, with other ids of its persons: each leads to the person after it.
    #[must_use]
    pub fn knowing(mut self, also: impl IntoIterator<Item = (OperatorId, OperatorId)>) -> Self {
        for (alias, person) in also {
            if !self.voters.contains_key(&alias) {
                self.known_as.entry(alias).or_insert(person);
            }
        }
        self
    }

    /// The same, with what the platforms said of these persons, in whatever order they said it. Ids that belong to one person are
    /// one person from here on, over however many steps they are connected: an operator of the configuration before anybody whom
    /// only a look-up knows. Two operators of the configuration stay two; whoever might be either of them is neither, and decides
    /// nothing.
    #[must_use]
    pub fn with(&self, found: impl IntoIterator<Item = Found>) -> Self {
        let mut found: Vec<Found> = found.into_iter().collect();
        found.sort();
        let mut roll = self.clone();
        roll.merge(&found);
        for Found {
            mut voter,
            standing,
            perhaps,
            ..
        } in found
        {
            let id = roll.person(&voter.id).clone();
            voter.id.clone_from(&id);
            match standing {
                Standing::Good => {}
                Standing::Barred => {
                    roll.barred.insert(id.clone());
                }
                Standing::Unsure => {
                    roll.unsure.insert(id.clone());
                }
            }
            if standing != Standing::Barred && !perhaps.is_empty() {
                roll.perhaps.entry(id.clone()).or_default().extend(perhaps);
            }
            roll.admit(id, voter);
        }
        roll
    }

    /// Adds what is known of a person.
    fn admit(&mut self, id: OperatorId, voter: Voter) {
        match self.voters.get_mut(&id) {
            Some(known) => known.join(voter),
            None => {
                self.voters.insert(id, voter);
            }
        }
    }

    /// Makes one person of ids that belong together.
    fn merge(&mut self, found: &[Found]) {
        for Found { voter, also, .. } in found {
            for id in [&voter.id].into_iter().chain(also) {
                if !self.is_entered(id) {
                    self.looked_up.insert(id.clone());
                }
            }
        }
        let aliases = self
            .known_as
            .iter()
            .map(|(alias, id)| (alias.clone(), id.clone()));
        let told = found.iter().flat_map(|found| {
            let also = found.also.iter();
            also.map(|alias| (found.voter.id.clone(), alias.clone()))
        });
        let pairs: Vec<_> = aliases.chain(told).collect();
        for group in groups(&pairs) {
            let entered: BTreeSet<OperatorId> = group
                .iter()
                .filter(|id| self.is_entered(id))
                .map(|id| self.person(id).clone())
                .collect();
            let mut entered = entered.into_iter();
            let person = match (entered.next(), entered.next()) {
                (Some(person), None) => person,
                (Some(_), Some(_)) => {
                    let several = group.into_iter().filter(|id| self.looked_up.contains(id));
                    self.barred.extend(several.collect::<Vec<_>>());
                    continue;
                }
                (None, _) => {
                    let is_person = |id: &&OperatorId| found.iter().any(|found| found.voter.id == **id);
                    let named = |id: &&OperatorId| (!is_person(id), !id.as_str().contains('@'));
                    let Some(person) = group.iter().min_by_key(named) else {
                        continue;
                    };
                    person.clone()
                }
            };
            for id in group.into_iter().filter(|id| *id != person) {
                if self.looked_up.contains(&id) {
                    self.move_to(&id, &person);
                }
            }
        }
    }

    /// From here on an id that only a look-up knows is another id of this person, with all that is known of it.
    fn move_to(&mut self, id: &OperatorId, person: &OperatorId) {
        self.known_as.remove(person);
        self.known_as.insert(id.clone(), person.clone());
        if let Some(voter) = self.voters.remove(id) {
            let voter = Voter {
                id: person.clone(),
                ..voter
            };
            self.admit(person.clone(), voter);
        }
        for set in [&mut self.barred, &mut self.unsure] {
            if set.remove(id) {
                set.insert(person.clone());
            }
        }
        if let Some(roles) = self.perhaps.remove(id) {
            self.perhaps.entry(person.clone()).or_default().extend(roles);
        }
    }

    /// Whether the configuration knows this id, as an operator or as another id of one: whoever has an entry of their own is told
    /// apart from everybody else who has one.
    pub fn is_entered(&self, id: &OperatorId) -> bool {
        let known = self.voters.contains_key(id) || self.known_as.contains_key(id);
        known && !self.looked_up.contains(id)
    }

    /// The roll as it would be if every look-up that failed had said yes; nothing when none failed.
    pub fn hopeful(&self) -> Option<Self> {
        if self.unsure.is_empty() && self.perhaps.is_empty() {
            return None;
        }
        let mut roll = self.clone();
        roll.unsure.clear();
        for (id, perhaps) in std::mem::take(&mut roll.perhaps) {
            if let Some(voter) = roll.voters.get_mut(&id) {
                voter.roles.extend(perhaps);
            }
        }
        Some(roll)
    }

    /// The person behind an id, who may be known by several.
    pub fn person<'a>(&'a self, id: &'a OperatorId) -> &'a OperatorId {
        self.known_as.get(id).unwrap_or(id)
    }

    /// Whether two ids are one person's.
    pub fn is_same(&self, one: &OperatorId, other: &OperatorId) -> bool {
        self.person(one) == self.person(other)
    }

    /// All operators, in order of id.
    pub fn voters(&self) -> impl Iterator<Item = &Voter> {
        self.voters.values()
    }

    /// An operator.
    pub fn voter(&self, id: &OperatorId) -> Option<&Voter> {
        self.voters.get(self.person(id))
    }

    /// The name to show for an operator; their id when they are not known. Of an address only what stands before the @: cards are
    /// read by whole groups, and some platforms refuse those with addresses in them.
    pub fn name<'a>(&'a self, id: &'a OperatorId) -> &'a str {
        match self.voter(id) {
            Some(voter) => &voter.name,
            None => id.as_str().split_once('@').map_or(id.as_str(), |(name, _)| name),
        }
    }

    /// The name to show for somebody who answered through an account. A name that only a platform tells is chosen by its owner,
    /// so the account stands beside it.
    pub fn name_of<'a>(&'a self, id: &'a OperatorId, account: Option<&'a Account>) -> Cow<'a, str> {
        match account.filter(|_| self.voter(id).is_none()) {
            None => Cow::Borrowed(self.name(id)),
            Some(Account { id, name: None, .. }) => Cow::Borrowed(id),
            Some(Account {
                id, name: Some(name), ..
            }) => Cow::Owned(format!("{name} ({id})")),
        }
    }

    /// Whether this person may vote at this instant on a request of this organisation under these terms, in whatever stage: by a
    /// right of their own, or in somebody's place. An empty list means nobody.
    pub fn may_decide(&self, id: &OperatorId, org: &Org, terms: &Terms, at: UtcMillis) -> bool {
        let lists: Vec<&Approvers> = [&terms.approvers].into_iter().chain(&terms.also).collect();
        let right = Right {
            org,
            lists: &lists,
            at,
            barred: &[],
        };
        !self.seats(id, right).is_empty()
    }

    /// Whether this person of the organisation is one of these approvers at this instant, by a right of their own.
    pub fn is_among(&self, id: &OperatorId, org: &Org, approvers: &Approvers, at: UtcMillis) -> bool {
        self.voter(id).is_some_and(|voter| {
            voter.orgs.contains(org) && (voter.is_among(approvers) || self.is_on_call(id, approvers, at))
        })
    }

    fn is_on_call(&self, id: &OperatorId, approvers: &Approvers, at: UtcMillis) -> bool {
        let lists = approvers.on_call.iter().filter_map(|list| self.on_call.get(list));
        lists
            .flat_map(|list| list.on_call(at))
            .any(|person| person == self.person(id).as_str())
    }

    /// In whose places this person may answer: nobody's but their own (`None`) comes first, then those of absent people. A
    /// substitute acts only for what the absent may do by a right of their own.
    pub fn seats(&self, id: &OperatorId, right: Right<'_>) -> Vec<Option<OperatorId>> {
        [None]
            .into_iter()
            .chain(self.absent(id, right.org, right.at).into_iter().map(Some))
            .filter(|seat| self.holds(id, seat.as_ref(), right))
            .collect()
    }

    /// Who is away at this instant in this organisation and has this person act for them, directly or through somebody who is away as
    /// well.
    pub fn absent(&self, id: &OperatorId, org: &Org, at: UtcMillis) -> BTreeSet<OperatorId> {
        let steads = self
            .absences
            .steads(org.as_str(), self.person(id).as_str(), at)
            .into_iter();
        steads.map(|stead| OperatorId::from(stead.absent)).collect()
    }

    /// Whether anybody ever names this person as who acts for them.
    pub fn is_a_substitute(&self, id: &OperatorId) -> bool {
        self.absences.names(self.person(id).as_str())
    }

    /// Whether this person may answer in their own place, or in that of somebody absent.
    pub fn holds(&self, id: &OperatorId, acting_for: Option<&OperatorId>, right: Right<'_>) -> bool {
        let Right {
            org,
            lists,
            at,
            barred,
        } = right;
        let id = self.person(id);
        if self.barred.contains(id) || self.unsure.contains(id) {
            return false;
        }
        let among = |person: &OperatorId| {
            !lists.is_empty()
                && lists
                    .iter()
                    .all(|approvers| self.is_among(person, org, approvers, at))
        };
        let Some(absent) = acting_for else {
            return among(id);
        };
        let ours = |person: &str| {
            let person = OperatorId::from(person);
            self.voter(&person).is_some_and(|voter| voter.orgs.contains(org))
        };
        let clear = |person: &str| {
            let person = OperatorId::from(person);
            barred.iter().all(|barred| !self.is_same(barred, &person))
        };
        let mut steads = self.absences.steads(org.as_str(), id.as_str(), at).into_iter();
        let stands_in = steads.any(|stead| {
            stead.absent == absent.as_str()
                && clear(stead.absent)
                && stead
                    .through
                    .is_none_or(|through| clear(through) && ours(through))
        });
        ours(id.as_str()) && stands_in && among(absent)
    }

    /// Everybody who may vote at this instant.
    pub fn deciders<'a>(
        &'a self,
        org: &'a Org,
        terms: &'a Terms,
        at: UtcMillis,
    ) -> impl Iterator<Item = &'a Voter> {
        self.voters
            .values()
            .filter(move |voter| self.may_decide(&voter.id, org, terms, at))
    }
}

/// Ids that are connected by these pairs, in whatever number of steps.
fn groups(pairs: &[(OperatorId, OperatorId)]) -> Vec<BTreeSet<OperatorId>> {
    let mut groups: Vec<BTreeSet<OperatorId>> = Vec::new();
    for (one, other) in pairs {
        let mut joined = BTreeSet::from([one.clone(), other.clone()]);
        groups.retain_mut(|group| {
            let apart = group.is_disjoint(&joined);
            if !apart {
                joined.append(group);
            }
            apart
        });
        groups.push(joined);
    }
    groups
}
