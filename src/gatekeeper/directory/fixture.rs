//! A platform that knows a few people, for tests of this room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::{
    AppKey, Card, CardForm, Channel, Directory, Failure, Group, Health, MessageRef, Pace, PlatformUser,
    PostKey, Posted, Profile, Unfound, UtcMillis,
};

use super::{Directories, GroupRoles};
use crate::clock::{Clock, ManualClock};
use crate::delivery::card::Voice;
use crate::delivery::registry::{Listed, Registry};
use crate::gatekeeper::People;
use crate::gatekeeper::people::{Identity, Person};
use crate::ids::{ChannelName, Org};
use crate::lifecycle::Tasks;

pub(super) const ORG: &str = "acme";

/// What a platform says, and what it was asked.
#[derive(Default)]
pub(super) struct Said {
    pub people: BTreeMap<String, Profile>,
    pub groups: BTreeMap<Group, Vec<String>>,
    /// Who is in a group without being listed.
    pub departments: BTreeMap<String, String>,
    /// Answers every question about accounts, addresses or groups, in this order.
    pub instead: [Option<Unfound>; 3],
    pub asked: Vec<String>,
    /// Answers every question about this account.
    pub refused: BTreeMap<String, Unfound>,
}

/// A channel of the fake platform.
pub(super) struct Fake {
    kind: &'static str,
    pub said: Mutex<Said>,
}

impl Fake {
    pub(super) fn new(kind: &'static str) -> Arc<Self> {
        Arc::new(Self {
            kind,
            said: Mutex::default(),
        })
    }

    pub(super) fn knows(&self, id: &str, email: Option<&str>) {
        self.change(id, |_| {});
        self.change(id, |profile| profile.email = email.map(str::to_owned));
    }

    pub(super) fn change(&self, id: &str, change: impl FnOnce(&mut Profile)) {
        let mut said = self.said.lock().unwrap();
        let profile = said.people.entry(id.to_owned()).or_insert_with(|| Profile {
            id: id.to_owned(),
            bar: None,
            email: None,
            name: Some(format!("name of {id}")),
        });
        change(profile);
    }

    pub(super) fn group(&self, id: &str, members: &[&str]) {
        let members = members.iter().copied().map(str::to_owned).collect();
        let group = Group::Named(id.to_owned());
        self.said.lock().unwrap().groups.insert(group, members);
    }

    pub(super) fn asked(&self) -> usize {
        self.said.lock().unwrap().asked.len()
    }

    fn ask(&self, kind: usize, what: String) -> Result<(), Unfound> {
        let mut said = self.said.lock().unwrap();
        said.asked.push(what);
        said.instead[kind].clone().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl Directory for Fake {
    fn is_id(&self, text: &str) -> bool {
        text.starts_with('U')
    }

    async fn person(&self, id: &str) -> Result<Profile, Unfound> {
        self.ask(0, format!("person {id}"))?;
        if let Some(why) = self.said.lock().unwrap().refused.get(id) {
            return Err(why.clone());
        }
        self.said
            .lock()
            .unwrap()
            .people
            .get(id)
            .cloned()
            .ok_or(Unfound::NoSuch)
    }

    async fn by_email(&self, email: &str) -> Result<String, Unfound> {
        self.ask(1, format!("address {email}"))?;
        let said = self.said.lock().unwrap();
        let found = said
            .people
            .values()
            .find(|profile| profile.email.as_deref() == Some(email));
        found.map(|profile| profile.id.clone()).ok_or(Unfound::NoSuch)
    }

    async fn members(&self, group: &Group) -> Result<Vec<String>, Unfound> {
        self.ask(2, format!("members {group:?}"))?;
        self.said
            .lock()
            .unwrap()
            .groups
            .get(group)
            .cloned()
            .ok_or(Unfound::NoSuch)
    }

    async fn belongs(&self, group: &Group, id: &str) -> Result<Option<bool>, Unfound> {
        let said = self.said.lock().unwrap();
        let of = said.departments.get(id).map(|of| Group::Named(of.clone()));
        Ok(of.map(|of| of == *group))
    }
}

#[async_trait]
impl Channel for Fake {
    fn name(&self) -> &str {
        self.kind
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn app(&self) -> AppKey {
        AppKey {
            kind: self.kind.into(),
            id: "app".into(),
        }
    }

    fn chat(&self) -> &'static str {
        "room"
    }

    fn admits(&self, _: &PlatformUser) -> bool {
        true
    }

    fn shows_all(&self, _: &Card) -> bool {
        true
    }

    async fn post(&self, _: &Card, _: &PostKey) -> Posted {
        unreachable!("people are looked up, nothing is posted")
    }

    async fn edit(&self, _: &MessageRef, _: &Card) -> Result<CardForm, Failure> {
        unreachable!("people are looked up, nothing is edited")
    }

    async fn check(&self) -> Health {
        unreachable!("people are looked up")
    }

    fn pace(&self) -> Pace {
        Pace {
            burst: 1,
            every: Duration::from_secs(1),
        }
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }
}

/// An installation: its platforms, its clock, and who looks people up.
pub(super) struct World {
    pub clock: ManualClock,
    pub directories: Directories,
    pub people: Arc<People>,
    pub registry: Registry,
}

/// Operators: id, e-mail address, identities by kind.
pub(super) type Entry = (
    &'static str,
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
);

pub(super) fn world(platforms: &[&Arc<Fake>], operators: &[Entry], groups: &[(&str, &str, &str)]) -> World {
    let listed = platforms.iter().map(|fake| Listed {
        name: ChannelName(fake.kind.to_owned()),
        org: Org::from(ORG),
        voice: Voice::default(),
        channel: Arc::clone(*fake) as Arc<dyn Channel>,
    });
    let registry = Registry::new(listed);
    let people = operators.iter().map(|(id, email, identities)| Person {
        id: (*id).into(),
        orgs: vec![Org::from(ORG)],
        email: email.map(str::to_owned),
        identities: identities
            .iter()
            .map(|(scope, id)| Identity {
                scope: (*scope).to_owned(),
                id: (*id).to_owned(),
            })
            .collect(),
    });
    let people = Arc::new(People::new(people));
    let groups = groups.iter().map(|(channel, group, role)| GroupRoles {
        name: (*role).to_owned(),
        channel: (*channel).into(),
        group: Group::Named((*group).to_owned()),
        roles: vec![(*role).to_owned()],
    });
    let clock = ManualClock::at(UtcMillis::from_secs(1_795_953_600));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    World {
        clock,
        directories: Directories::new(
            registry.clone(),
            Arc::clone(&people),
            groups.collect(),
            &shared,
            &Tasks::new(),
        ),
        people,
        registry,
    }
}
