//! Asking again about those who voted: by the accounts through which they did, before their votes are counted once more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gatepost_channel::Unfound;

use super::ask::within;
use super::look::Known;
use super::{Directories, Listed, Parts, Who};
use crate::confirmation::Account;
use crate::confirmation::decide::Refusal;
use crate::confirmation::insight::Doubt;
use crate::confirmation::roll::{Found, Standing, Voter};
use crate::ids::{OperatorId, Org};

/// A vote, as far as it says who cast it.
#[derive(Debug, Clone, Copy)]
pub struct Cast<'a> {
    /// The person.
    pub person: &'a OperatorId,
    /// The account through which it came; none for the API, the console and the command line.
    pub account: Option<&'a Account>,
}

impl<'a> Cast<'a> {
    /// Somebody who is known, whatever the account.
    pub const fn without_account(person: &'a OperatorId) -> Self {
        Self {
            person,
            account: None,
        }
    }
}

impl Directories {
    /// What the platforms say by now of those who voted; nothing of those of whom only the configuration speaks.
    pub async fn again(&self, org: &Org, votes: &[Cast<'_>], patience: Duration) -> Vec<Found> {
        let Some(parts) = &self.0 else {
            return Vec::new();
        };
        let asked = votes.iter().map(|cast| parts.cast(org, *cast, patience));
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// What the platforms say by now of persons behind a call: by what other ids they may answer it.
    pub async fn behind(&self, org: &Org, persons: &[&OperatorId], patience: Duration) -> Behind {
        let Some(parts) = self.0.as_ref().filter(|parts| parts.is_in_use(org)) else {
            return Behind::default();
        };
        let asked = persons.iter().map(|person| parts.operator(org, person, patience));
        let mut behind = Behind::default();
        for one in join_all(asked).await {
            behind.found.extend(one.found);
            behind.doubt = behind.doubt.max(one.doubt);
        }
        behind
    }
}

/// What platforms say of persons of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Behind {
    /// What they add to the roll.
    pub found: Vec<Found>,
    /// Whether there may be accounts of theirs of which nobody can tell.
    pub doubt: Option<Doubt>,
}

impl Parts {
    async fn cast(self: &Arc<Self>, org: &Org, cast: Cast<'_>, patience: Duration) -> Vec<Found> {
        let Some(account) = cast.account else {
            return self.operator(org, cast.person, patience).await.found;
        };
        let home = self.registry.get(account.channel.as_str());
        let Some(home) = home.filter(|listed| listed.org == *org) else {
            // The channel is gone: nobody vouches for the account, and the configuration for those who stand in it.
            return Vec::new();
        };
        let (name, kind) = (home.name.as_str(), home.channel.kind());
        let vouched = self.people.identities(org, cast.person, name, kind).next();
        let vouched = vouched.map(|_| cast.person);
        let ids = [account.id.clone()];
        match self.look(home, &ids, vouched, patience).await {
            Who::Person(known) if is_same(&known, cast.person) => known.found.into_iter().collect(),
            Who::Kept(Refusal::LookUpFailed) => {
                let roles = self
                    .groups_of(home)
                    .flat_map(|(_, group)| group.roles.iter().cloned());
                vec![unseen(org, cast.person, Standing::Unsure, roles.collect())]
            }
            Who::Person(_) | Who::Kept(_) | Who::Nobody => {
                vec![unseen(org, cast.person, Standing::Barred, Vec::new())]
            }
        }
    }

    /// What the apps of the organisation say of an operator of the configuration: the roles that they hold by being in groups,
    /// and, where there are several apps, by what other ids the same person is known there.
    async fn operator(self: &Arc<Self>, org: &Org, person: &OperatorId, patience: Duration) -> Behind {
        let several = self.several.contains(org) && self.is_in_use(org);
        let apps = self.apps(org).into_iter();
        let asked = apps
            .filter(|home| several || self.groups_of(home).next().is_some())
            .map(|home| self.operator_at(home, person, patience));
        let (mut behind, mut missing, mut addressed) = (Behind::default(), false, false);
        for at in join_all(asked).await {
            match at {
                At::Seen(found) => {
                    let mut also = found.iter().flat_map(|found| &found.also);
                    addressed |= also.any(|id| id.as_str().contains('@'));
                    behind.found.extend(found);
                }
                At::Failed(found) => {
                    behind.doubt = Some(Doubt::LookUpFailed);
                    behind.found.push(found);
                }
                At::Missing => missing = true,
            }
        }
        // By an address anybody can be told apart who answers through another app.
        let known = self.people.of_org(org).any(|known| known == person);
        if known && several && missing && !addressed && self.people.email(org, person).is_none() {
            behind.doubt = behind.doubt.max(Some(Doubt::NotToldApart));
        }
        behind
    }

    async fn operator_at(self: &Arc<Self>, home: &Listed, person: &OperatorId, patience: Duration) -> At {
        let (org, name, kind) = (&home.org, home.name.as_str(), home.channel.kind());
        let identity = self.people.identities(org, person, name, kind).next();
        let id = match (identity, self.people.email(org, person)) {
            (Some(id), _) => Ok(id.to_owned()),
            (None, Some(email)) => within(patience, self.address(home, email)).await,
            (None, None) => return At::Missing,
        };
        let who = match id {
            Ok(id) => self.look(home, &[id], Some(person), patience).await,
            Err(Unfound::Failed(_)) => Who::Kept(Refusal::LookUpFailed),
            Err(_) => Who::Nobody,
        };
        match who {
            Who::Person(known) => At::Seen(known.found),
            Who::Kept(Refusal::LookUpFailed) => {
                let groups = self.groups_of(home);
                let roles = groups.flat_map(|(_, group)| group.roles.iter().cloned());
                At::Failed(unseen(org, person, Standing::Good, roles.collect()))
            }
            // A dead account gives no roles; what the configuration gives stands.
            Who::Kept(_) | Who::Nobody => At::Missing,
        }
    }
}

/// What one app says of an operator of the configuration.
enum At {
    /// This, of the account that is theirs.
    Seen(Option<Found>),
    /// The look-up failed.
    Failed(Found),
    /// No account of theirs is known there.
    Missing,
}

/// A person of whom the platform shows nothing.
fn unseen(org: &Org, person: &OperatorId, standing: Standing, perhaps: Vec<String>) -> Found {
    Found {
        voter: Voter {
            id: person.clone(),
            name: person.0.clone(),
            orgs: vec![org.clone()],
            roles: Vec::new(),
        },
        also: Vec::new(),
        standing,
        perhaps,
    }
}

/// Whether an account still leads to the person who voted through it, by one of their ids.
fn is_same(known: &Known, person: &OperatorId) -> bool {
    let also = known.found.iter().flat_map(|found| &found.also);
    known.id == *person || also.into_iter().any(|alias| alias == person)
}
