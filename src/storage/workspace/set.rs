//! The sets of like requests of a batch.

use super::Workspace;
use crate::confirmation::Confirmation;
use crate::confirmation::set::Alike;
use crate::ids::ConfirmationId;

impl Workspace {
    /// The newest request that has this in common with others.
    pub fn newest_alike(&self, alike: &Alike) -> Option<&Confirmation> {
        self.confirmations
            .values()
            .map(|held| &held.value)
            .filter(|row| row.set.as_ref().is_some_and(|set| set.alike == *alike))
            .max_by_key(|row| (row.created_at, &row.id))
    }

    /// The requests of the same set in the order in which they were asked; a request without a set is alone.
    pub fn set_of(&self, id: &ConfirmationId) -> Vec<ConfirmationId> {
        let Some(set) = self.confirmation(id).and_then(|row| row.set.as_ref()) else {
            return vec![id.clone()];
        };
        let rows = self.confirmations.values().map(|held| &held.value);
        let mut fellows: Vec<_> = rows
            .filter(|row| row.set.as_ref().is_some_and(|other| other.first == set.first))
            .collect();
        // The first stays in front, whatever ids those of the same instant have.
        fellows.sort_by_key(|row| (row.id != set.first, row.created_at, &row.id));
        fellows.into_iter().map(|row| row.id.clone()).collect()
    }
}
