//! People who are not the ones answering: who else may answer by being in a group, and by what id an operator is known on a
//! platform. For notices and mentions; nothing is decided by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tracing::info;

use super::ask::within;
use super::look::{Known, Roles};
use super::{Directories, Listed, Parts};
use crate::delivery::mention::{Acquaintance, Member};
use crate::ids::OperatorId;

/// Accounts of groups that are looked at for one notice: the platforms' limits are there for those who decide.
const MOST: usize = 30;
/// How long one question may take: whoever breaks the glass is in a hurry, and who is not found in time is not told.
const FOR_A_NOTICE: Duration = Duration::from_millis(1_500);

#[async_trait]
impl Acquaintance for Directories {
    async fn members(&self, home: &Listed, roles: &BTreeSet<String>) -> Vec<Member> {
        match &self.0 {
            Some(parts) => parts.company(home, roles).await,
            None => Vec::new(),
        }
    }

    async fn id_on(&self, home: &Listed, person: &OperatorId) -> Option<String> {
        let parts = self.0.as_ref().filter(|_| home.channel.directory().is_some())?;
        let email = parts.people.email(&home.org, person)?;
        let id = within(FOR_A_NOTICE, parts.address(home, email)).await.ok()?;
        let profile = within(FOR_A_NOTICE, parts.person(home, &id)).await.ok()?;
        profile.bar.is_none().then_some(id)
    }
}

impl Parts {
    /// Who is listed in a group of the app that gives one of these roles, in order of id. Who is in it by department only is not
    /// listed, and an account that may not decide is nobody.
    async fn company(self: &Arc<Self>, home: &Listed, roles: &BTreeSet<String>) -> Vec<Member> {
        let wanted = self
            .groups_of(home)
            .filter(|(_, group)| group.roles.iter().any(|role| roles.contains(role)));
        let asked = wanted.map(|(listed, group)| async move {
            let listing = within(FOR_A_NOTICE, self.members(listed, &group.group)).await;
            (listing, group)
        });
        let mut held: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (listing, group) in join_all(asked).await {
            for id in listing.iter().flat_map(|ids| ids.iter()) {
                let roles = held.entry(id.clone()).or_default();
                roles.extend(group.roles.iter().cloned());
            }
        }
        if held.len() > MOST {
            info!(
                channel = %home.name, listed = held.len(), most = MOST,
                "more people are in the groups than are told or mentioned"
            );
        }
        let people = held.into_iter().take(MOST);
        let looked = people.map(|(id, held)| self.companion(home, id, held));
        join_all(looked).await.into_iter().flatten().collect()
    }

    async fn companion(self: &Arc<Self>, home: &Listed, id: String, held: Vec<String>) -> Option<Member> {
        let profile = within(FOR_A_NOTICE, self.person(home, &id)).await.ok()?;
        if profile.bar.is_some() {
            return None;
        }
        let roles = Roles {
            held,
            perhaps: Vec::new(),
        };
        let ids = [id.clone()];
        let (name, kind) = (home.name.as_str(), home.channel.kind());
        let vouched = self.people.clicker(&home.org, name, kind, &ids);
        let Known { found, .. } = self
            .named(home, &ids, (vouched, &profile), roles, FOR_A_NOTICE)
            .await
            .ok()?;
        Some(Member { found: found?, id })
    }
}
