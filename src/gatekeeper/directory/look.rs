//! From an account to a person: by an identity in the configuration, by an e-mail address, by a group.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use gatepost_channel::{Bar, Inert, Profile, Unfound};
use tracing::warn;

use super::ask::within;
use super::{Directories, Parts, account_id};
use crate::confirmation::Account;
use crate::confirmation::decide::Refusal;
use crate::confirmation::roll::{Found, Standing, Voter};
use crate::delivery::registry::Listed;
use crate::ids::OperatorId;

/// Who is behind an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// This person.
    Person(Box<Known>),
    /// Somebody who may not answer now, and why.
    Kept(Refusal),
    /// Nobody among the operators.
    Nobody,
}

/// A person behind an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The person.
    pub id: OperatorId,
    /// The account.
    pub account: Account,
    /// What the platform adds to the roll; nothing where the configuration says it all.
    pub found: Option<Found>,
    /// What the person is called.
    pub handles: Vec<String>,
}

impl Directories {
    /// Who clicked on a channel. `vouched` is the person whose identity the configuration holds.
    pub async fn look(
        &self,
        home: &Listed,
        ids: &[String],
        vouched: Option<&OperatorId>,
        patience: Duration,
    ) -> Who {
        match &self.0 {
            Some(parts) => parts.look(home, ids, vouched, patience).await,
            None => unasked(home, ids, vouched),
        }
    }
}

/// The configuration's word alone.
fn unasked(home: &Listed, ids: &[String], vouched: Option<&OperatorId>) -> Who {
    vouched.map_or(Who::Nobody, |person| {
        Who::Person(Box::new(known(home, ids, person, None, None)))
    })
}

fn known(
    home: &Listed,
    ids: &[String],
    person: &OperatorId,
    seen: Option<&Profile>,
    found: Option<Found>,
) -> Known {
    let mut handles = vec![person.0.clone()];
    handles.extend(ids.iter().cloned());
    handles.extend(seen.and_then(|profile| profile.email.clone()));
    Known {
        id: person.clone(),
        account: Account {
            channel: home.name.clone(),
            id: ids.first().cloned().unwrap_or_default(),
            name: seen
                .and_then(|profile| profile.name.as_deref())
                .map(|name| Inert::new(name).one_line().to_string()),
        },
        found,
        handles,
    }
}

/// What groups give to one person.
#[derive(Default)]
pub(super) struct Roles {
    /// Whoever holds them is in a group.
    pub(super) held: Vec<String>,
    /// Whether the person is in the group could not be found out.
    pub(super) perhaps: Vec<String>,
}

impl Parts {
    pub(super) async fn look(
        self: &Arc<Self>,
        home: &Listed,
        ids: &[String],
        vouched: Option<&OperatorId>,
        patience: Duration,
    ) -> Who {
        let kind = home.channel.kind();
        let may_be_found = self.groups_of(home).next().is_some()
            || self
                .people
                .addresses(&home.org, home.name.as_str(), kind)
                .next()
                .is_some();
        let Some(id) = ids.first().filter(|_| home.channel.directory().is_some()) else {
            return unasked(home, ids, vouched);
        };
        if vouched.is_none() && !may_be_found {
            return Who::Nobody;
        }
        let (profile, roles) = join(
            within(patience, self.person(home, id)),
            self.roles(home, ids, patience),
        )
        .await;
        let profile = match (profile, vouched) {
            (Ok(profile), _) => profile,
            (Err(Unfound::Failed(_)), _) => return Who::Kept(Refusal::LookUpFailed),
            (Err(Unfound::NoSuch), Some(_)) => return Who::Kept(Refusal::Barred(Bar::Unknown)),
            // The configuration vouches for an identity of its own; nobody does for anybody else.
            (Err(_), _) => return unasked(home, ids, vouched),
        };
        if let Some(bar) = profile.bar {
            return Who::Kept(Refusal::Barred(bar));
        }
        match self.named(home, ids, (vouched, &profile), roles, patience).await {
            Ok(known) => Who::Person(Box::new(known)),
            Err(who) => who,
        }
    }

    /// The person behind an account that may decide: of the configuration, or by being in a group.
    pub(super) async fn named(
        self: &Arc<Self>,
        home: &Listed,
        ids: &[String],
        (vouched, profile): (Option<&OperatorId>, &Profile),
        roles: Roles,
        patience: Duration,
    ) -> Result<Known, Who> {
        let person = match vouched {
            Some(person) => Ok(Some(person.clone())),
            None => self.by_address(home, ids, profile, patience).await,
        };
        match person {
            Ok(Some(person)) => {
                let id = ids.first().map_or("", String::as_str);
                let found = self.found(home, id, &person, profile, roles);
                Ok(known(home, ids, &person, Some(profile), found))
            }
            Ok(None) if !roles.held.is_empty() => self.member(home, ids, profile, roles),
            Ok(None) if roles.perhaps.is_empty() => Err(Who::Nobody),
            Ok(None) | Err(TryAgain) => Err(Who::Kept(Refusal::LookUpFailed)),
        }
    }

    /// Somebody who is an operator only by being in a group.
    fn member(&self, home: &Listed, ids: &[String], profile: &Profile, roles: Roles) -> Result<Known, Who> {
        let id = ids.first().map_or("", String::as_str);
        let person = match &profile.email {
            Some(email) => OperatorId(email.clone()),
            // Without an address nobody could tell that the same person answers on another platform too.
            None if self.several.contains(&home.org) => return Err(Who::Kept(Refusal::NotToldApart)),
            None => account_id(home, id),
        };
        let found = self.found(home, id, &person, profile, roles);
        Ok(known(home, ids, &person, Some(profile), found))
    }

    /// The operator with the account's address, or whose address leads to the account.
    pub(super) async fn by_address(
        self: &Arc<Self>,
        home: &Listed,
        ids: &[String],
        profile: &Profile,
        patience: Duration,
    ) -> Result<Option<OperatorId>, TryAgain> {
        let (name, kind) = (home.name.as_str(), home.channel.kind());
        if let Some(email) = &profile.email {
            let Some(person) = self.people.by_email(&home.org, email) else {
                return Ok(None);
            };
            if self
                .people
                .identities(&home.org, person, name, kind)
                .next()
                .is_some()
            {
                warn!(
                    channel = name, %person,
                    "an account with this operator's address is not the one that the configuration names: it is nobody"
                );
                return Ok(None);
            }
            return Ok(Some(person.clone()));
        }
        let asked = self
            .people
            .addresses(&home.org, name, kind)
            .map(
                |(email, person)| async move { (within(patience, self.address(home, email)).await, person) },
            );
        let mut failed = false;
        for (answer, person) in join_all(asked).await {
            match answer {
                Ok(id) if ids.contains(&id) => return Ok(Some(person.clone())),
                Err(Unfound::Failed(_)) => failed = true,
                Ok(_) | Err(_) => {}
            }
        }
        if failed { Err(TryAgain) } else { Ok(None) }
    }

    /// The roles that the groups of the app give to an account.
    async fn roles(self: &Arc<Self>, home: &Listed, ids: &[String], patience: Duration) -> Roles {
        let asked = self.groups_of(home).map(|(listed, group)| async move {
            let listed_in = within(patience, self.members(listed, &group.group)).await;
            let is_in = match listed_in {
                Ok(members) if ids.iter().any(|id| members.contains(id)) => Ok(true),
                Err(failed @ Unfound::Failed(_)) => Err(failed),
                Ok(_) | Err(_) => {
                    let id = ids.first().map_or("", String::as_str);
                    let told = within(patience, self.belongs(listed, &group.group, id)).await;
                    told.map(|told| told == Some(true))
                }
            };
            (is_in, group)
        });
        let mut roles = Roles::default();
        for (is_in, group) in join_all(asked).await {
            match is_in {
                Ok(true) => roles.held.extend(group.roles.iter().cloned()),
                Err(Unfound::Failed(_)) => roles.perhaps.extend(group.roles.iter().cloned()),
                Ok(false) | Err(_) => {}
            }
        }
        roles
    }

    /// What this adds to the roll: nothing in organisations without groups, where the configuration says it all.
    fn found(
        &self,
        home: &Listed,
        id: &str,
        person: &OperatorId,
        profile: &Profile,
        roles: Roles,
    ) -> Option<Found> {
        if !self.groups.iter().any(|group| {
            let listed = self.registry.get(group.channel.as_str());
            listed.is_some_and(|listed| listed.org == home.org)
        }) {
            return None;
        }
        let mut also = vec![account_id(home, id)];
        also.extend(profile.email.clone().map(OperatorId));
        Some(Found {
            voter: Voter {
                id: person.clone(),
                name: profile.name.clone().unwrap_or_else(|| id.to_owned()),
                orgs: vec![home.org.clone()],
                roles: roles.held,
            },
            also,
            standing: Standing::Good,
            perhaps: roles.perhaps,
        })
    }
}

/// A look-up failed that would have told.
pub(super) struct TryAgain;
