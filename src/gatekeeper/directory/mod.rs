//! Who somebody is by what the platforms say: operators known by an e-mail address, people who hold roles by being in a group,
//! and whether the account behind an answer may decide at all.
//!
//! [`shelf`] keeps answers, `ask` puts the questions, [`look`] makes a person of an account, `again` asks anew about those who
//! voted. Everything happens before the deciding transaction, within a time that fits the caller; what was found travels in it.
//! Knows no platform and no store.
//!
//! What a look-up that fails means, in one place:
//! - an account that may not decide is refused, whatever the configuration says of it;
//! - a platform that does not answer refuses, and says to try again: no vote is cast and nothing is remembered;
//! - an app that may not ask: an identity that stands in the configuration is vouched for by it, and people known by an address
//!   or a group are nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatepost_channel::{Group, Profile, UtcMillis};

use self::ask::Asked;
use self::shelf::Shelf;
use super::People;
use crate::clock::Clock;
use crate::delivery::registry::{Listed, Registry};
use crate::ids::{ChannelName, OperatorId, Org};
use crate::lifecycle::Tasks;

pub mod again;
mod ask;
mod company;
pub mod look;
pub mod requester;
mod shelf;

#[cfg(test)]
mod behind_tests;
#[cfg(test)]
mod directory_tests;
#[cfg(test)]
mod fixture;

pub use look::Who;

/// How long it is believed that an account is as it was.
const STANDING: Duration = Duration::from_mins(5);
/// How long it is believed that an address leads to an account.
const ADDRESS: Duration = Duration::from_hours(1);
/// How long it is believed that somebody is in a group, or is not.
const MEMBERSHIP: Duration = Duration::from_mins(1);

/// How long each of the two rounds of questions may take while somebody waits in front of a card: the platforms give 3 s for
/// the whole answer, and the decision must be stored within it.
pub const AT_A_CLICK: Duration = Duration::from_millis(700);
/// The same where nobody counts seconds: an agent that consumes, a person at the console.
pub const AT_LEISURE: Duration = Duration::from_secs(3);

/// People of a platform who hold roles by being in a group there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRoles {
    /// The name that the configuration gives.
    pub name: String,
    /// The channel whose app is asked; the roles hold in its organisation.
    pub channel: ChannelName,
    /// Which people.
    pub group: Group,
    /// The roles.
    pub roles: Vec<String>,
}

/// See the module. Clones share it.
#[derive(Clone, Default)]
pub struct Directories(Option<Arc<Parts>>);

/// The ids of a group's members.
type Listing = Arc<BTreeSet<String>>;

struct Parts {
    registry: Registry,
    people: Arc<People>,
    groups: Vec<GroupRoles>,
    /// Organisations whose people are known to more than one app: there an address tells who is who.
    several: BTreeSet<Org>,
    clock: Arc<dyn Clock>,
    persons: Arc<Shelf<(gatepost_channel::AppKey, String), Profile>>,
    addresses: Arc<Shelf<(gatepost_channel::AppKey, String), String>>,
    members: Arc<Shelf<(ChannelName, Group), Listing>>,
    belongs: Arc<Shelf<(ChannelName, Group, String), Option<bool>>>,
    asked: Asked,
    /// What agents had looked up lately, by organisation: since when, and how often.
    spent: Mutex<BTreeMap<Org, (UtcMillis, u32)>>,
}

impl Directories {
    /// Asks nobody: people are who the configuration says.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Asks the apps behind these channels.
    pub fn new(
        registry: Registry,
        people: Arc<People>,
        groups: Vec<GroupRoles>,
        clock: &Arc<dyn Clock>,
        tasks: &Tasks,
    ) -> Self {
        let mut apps: BTreeMap<Org, BTreeSet<_>> = BTreeMap::new();
        for listed in registry
            .all()
            .filter(|listed| listed.channel.directory().is_some())
        {
            let of_org = apps.entry(listed.org.clone()).or_default();
            of_org.insert(listed.channel.app());
        }
        let several = apps.into_iter().filter(|(_, apps)| apps.len() > 1);
        Self(Some(Arc::new(Parts {
            several: several.map(|(org, _)| org).collect(),
            persons: Shelf::new(STANDING, clock, tasks),
            addresses: Shelf::new(ADDRESS, clock, tasks),
            members: Shelf::new(MEMBERSHIP, clock, tasks),
            belongs: Shelf::new(MEMBERSHIP, clock, tasks),
            asked: Asked::default(),
            spent: Mutex::default(),
            clock: Arc::clone(clock),
            registry,
            people,
            groups,
        })))
    }

    /// Whether anybody of this organisation is known otherwise than by an identity in the configuration.
    pub fn is_in_use(&self, org: &Org) -> bool {
        self.0.as_ref().is_some_and(|parts| parts.is_in_use(org))
    }

    /// What the app behind a channel may not ask, in one line, since this process found out.
    pub fn missing(&self, listed: &Listed) -> Option<String> {
        self.0.as_ref()?.asked.missing(&listed.channel.app())
    }
}

impl Parts {
    /// The groups of the channel's app in its organisation.
    fn groups_of<'a>(&'a self, home: &'a Listed) -> impl Iterator<Item = (&'a Listed, &'a GroupRoles)> {
        let app = home.channel.app();
        self.groups.iter().filter_map(move |group| {
            let listed = self.registry.get(group.channel.as_str())?;
            (listed.org == home.org && listed.channel.app() == app).then_some((listed, group))
        })
    }

    /// Whether anybody of this organisation is known otherwise than by an identity in the configuration.
    fn is_in_use(&self, org: &Org) -> bool {
        let mut channels = self.registry.all().filter(|listed| listed.org == *org);
        channels.any(|listed| {
            self.groups_of(listed).next().is_some()
                || (listed.channel.directory().is_some()
                    && self
                        .people
                        .addresses(org, listed.name.as_str(), listed.channel.kind())
                        .next()
                        .is_some())
        })
    }

    /// One channel for each app of the organisation that can be asked.
    fn apps(&self, org: &Org) -> Vec<&Listed> {
        let mut seen = BTreeSet::new();
        let channels = self.registry.all().filter(|listed| listed.org == *org);
        channels
            .filter(|listed| listed.channel.directory().is_some() && seen.insert(listed.channel.app()))
            .collect()
    }
}

/// The id of a person who has no entry of their own, made of their account.
fn account_id(listed: &Listed, id: &str) -> OperatorId {
    OperatorId(format!("{}:{id}", listed.channel.kind()))
}
