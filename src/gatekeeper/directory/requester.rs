//! The person whom a call names as its requester: by an address or an account that only a platform knows.
//!
//! What an agent says can only make a verdict stricter, so a name that leads nowhere is nobody. How often agents may have
//! somebody looked up is bounded: a platform's limits are there for those who decide.

use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::future::join_all;
use gatepost_channel::{AppKey, Failure, Profile, Unfound};

use super::ask::{Whose, within};
use super::look::TryAgain;
use super::{Directories, Listed, Parts, account_id};
use crate::ids::{OperatorId, Org};

/// Look-ups for the sake of agents, in a minute and organisation.
const IN_A_MINUTE: u32 = 20;
const MINUTE: Duration = Duration::from_mins(1);
/// Longest text that may be an address or an id.
const LONGEST: usize = 254;

/// The persons behind a stated requester.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// Every id that the person may have as a voter.
    pub persons: Vec<OperatorId>,
    /// Whether a look-up failed, so that there may be more.
    pub unsure: bool,
    /// Where it cannot be told who they are.
    pub untold: Vec<Untold>,
}

/// An app that does not tell who is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// The app.
    app: AppKey,
    /// Whether the name is an address; else it is an id of this app.
    is_address: bool,
}

impl Stated {
    /// Whether somebody who answers through this app may be meant, although it does not seem so: who shows an address is told
    /// apart from another address, and who has an account of the app from another account of it.
    pub fn may_be(&self, home: &AppKey, has_address: bool) -> bool {
        let open = |untold: &Untold| {
            if untold.is_address {
                !has_address
            } else {
                untold.app != *home
            }
        };
        self.untold.iter().any(open)
    }
}

/// For whose sake somebody is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// An agent asks.
    Agent,
    /// A person decides.
    Person,
}

impl Directories {
    /// Who is meant by this name, where people are known otherwise than by the configuration.
    pub async fn requester(&self, org: &Org, name: &str, sake: For, patience: Duration) -> Stated {
        let name = name.trim();
        match &self.0 {
            Some(parts) if parts.is_in_use(org) && (1..=LONGEST).contains(&name.len()) => {
                parts.requester(org, name, sake, patience).await
            }
            _ => Stated::default(),
        }
    }
}

impl Parts {
    async fn requester(self: &Arc<Self>, org: &Org, name: &str, sake: For, patience: Duration) -> Stated {
        let is_address = name.contains('@') && !name.contains(char::is_whitespace);
        let asked = self.apps(org).into_iter().map(|home| async move {
            let id = if is_address {
                let key = (home.channel.app(), name.to_lowercase());
                if !self.addresses.holds(&key) {
                    self.spend(org, sake)?;
                }
                within(patience, self.address_for(home, name, Whose::Agents)).await?
            } else if home
                .channel
                .directory()
                .is_some_and(|directory| directory.is_id(name))
            {
                name.to_owned()
            } else {
                return Err(Unfound::NoSuch);
            };
            if !self.persons.holds(&(home.channel.app(), id.clone())) {
                self.spend(org, sake)?;
            }
            let profile = within(patience, self.person_for(home, &id, Whose::Agents)).await?;
            let mut ids = self.ids(home, &id, &profile);
            let told = ids
                .iter()
                .any(|known| self.people.of_org(org).any(|person| person == known));
            if profile.email.is_some() || told {
                return Ok((ids, true));
            }
            // As for a click: the addresses of operators may lead to the account that shows none.
            for (email, _) in self
                .people
                .addresses(org, home.name.as_str(), home.channel.kind())
            {
                if !self.addresses.holds(&(home.channel.app(), email.to_lowercase())) {
                    self.spend(org, sake)?;
                }
            }
            let person = self.by_address(home, &[id], &profile, patience).await;
            let person = person.map_err(|TryAgain| failed("a look-up failed"))?;
            let told = person.is_some() || is_address || !self.several.contains(org);
            ids.extend(person);
            Ok((ids, told))
        });
        let mut stated = Stated::default();
        for (found, home) in join_all(asked).await.into_iter().zip(self.apps(org)) {
            let untold = match found {
                Ok((ids, told)) => {
                    stated.persons.extend(ids);
                    !told
                }
                Err(Unfound::Failed(_)) => {
                    stated.unsure = true;
                    false
                }
                Err(Unfound::MayNotAsk { .. } | Unfound::Hidden { .. }) => true,
                Err(Unfound::NoSuch) => false,
            };
            let app = home.channel.app();
            stated.untold.extend(untold.then_some(Untold { app, is_address }));
        }
        stated.persons.sort();
        stated.persons.dedup();
        stated
    }

    /// Every id that somebody with this account may have as a voter.
    fn ids(&self, home: &Listed, id: &str, profile: &Profile) -> Vec<OperatorId> {
        let kind = home.channel.kind();
        let known = self
            .people
            .clicker(&home.org, home.name.as_str(), kind, &[id.to_owned()]);
        let email = profile.email.as_deref();
        let by_email = email.and_then(|email| self.people.by_email(&home.org, email));
        known
            .into_iter()
            .chain(by_email)
            .cloned()
            .chain([account_id(home, id)])
            .chain(email.map(OperatorId::from))
            .collect()
    }

    /// Takes one look-up out of what agents may have.
    fn spend(&self, org: &Org, sake: For) -> Result<(), Unfound> {
        if sake == For::Person {
            return Ok(());
        }
        let now = self.clock.now();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = spent.entry(org.clone()).or_insert((now, 0));
        if now.since(*since) >= MINUTE {
            (*since, *count) = (now, 0);
        }
        if *count >= IN_A_MINUTE {
            return Err(failed("too many look-ups for agents"));
        }
        *count += 1;
        Ok(())
    }
}

fn failed(why: &str) -> Unfound {
    Unfound::Failed(Failure::Retry {
        after: None,
        why: why.to_owned(),
    })
}
