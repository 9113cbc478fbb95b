//! The grants of a batch.

use super::{Held, Workspace};
use crate::confirmation::grant::Grant;
use crate::ids::{GrantId, Org, TokenName};

/// Finds the grants that have not ended of one token and tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantKey {
    /// The organisation.
    pub org: Org,
    /// The token that asks.
    pub token: TokenName,
    /// The tool's name.
    pub tool: String,
}

impl Workspace {
    /// A grant.
    pub fn grant(&self, id: &GrantId) -> Option<&Grant> {
        self.grants.get(id).map(|held| &held.value)
    }

    /// All grants that were read or made.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values().map(|held| &held.value)
    }

    /// Adds a grant.
    pub fn insert_grant(&mut self, grant: Grant) {
        let held = Held {
            value: grant,
            stored: None,
            was_pending: false,
            dirty: true,
        };
        self.grants.insert(held.value.id.clone(), held);
    }

    /// Changes a grant.
    pub fn change_grant(&mut self, id: &GrantId, change: impl FnOnce(&mut Grant)) {
        if let Some(held) = self.grants.get_mut(id) {
            change(&mut held.value);
            held.dirty = true;
        }
    }

    /// Takes grants in as they were read.
    pub(super) fn hold_grants(&mut self, grants: Vec<Grant>) {
        for grant in grants {
            let held = Held {
                stored: Some(grant.version),
                value: grant,
                was_pending: false,
                dirty: false,
            };
            self.grants.insert(held.value.id.clone(), held);
        }
    }

    /// What must be written of them: the new ones, and the changed ones with the version that was read.
    pub(super) fn changed_grants(&mut self) -> (Vec<Grant>, Vec<(Grant, i64)>) {
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for (_, mut held) in std::mem::take(&mut self.grants) {
            match held.stored {
                _ if !held.dirty => {}
                None => new.push(held.value),
                Some(version) => {
                    held.value.version = version + 1;
                    changed.push((held.value, version));
                }
            }
        }
        (new, changed)
    }
}
