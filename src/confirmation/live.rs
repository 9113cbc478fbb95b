//! The roll as it stands now: the configuration's, with the absences that people set themselves as they were read last. What decides
//! reads them first; what only shows takes what was read.

use std::sync::{Arc, PoisonError, RwLock};

use super::away;
use super::roll::Roll;
use crate::storage::Note;

/// See the module. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LiveRoll(Arc<Both>);

#[derive(Debug, Default)]
struct Both {
    configured: Arc<Roll>,
    /// What was read, and the roll with it.
    now: RwLock<(Vec<Note>, Arc<Roll>)>,
}

impl From<Arc<Roll>> for LiveRoll {
    fn from(configured: Arc<Roll>) -> Self {
        Self(Arc::new(Both {
            now: RwLock::new((Vec::new(), Arc::clone(&configured))),
            configured,
        }))
    }
}

impl LiveRoll {
    /// The roll with what was read last.
    pub fn get(&self) -> Arc<Roll> {
        let now = self.0.now.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&now.1)
    }

    /// Whether anybody may set an absence themselves. Where nobody may, none need be read.
    pub fn takes_absences(&self) -> bool {
        self.0.configured.absences().may_be_set()
    }

    /// Takes over what was just read, of all organisations.
    pub fn lay(&self, notes: Vec<Note>) -> Arc<Roll> {
        let mut now = self.0.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.0 != notes {
            now.1 = Arc::new(away::laid(&self.0.configured, &notes));
            now.0 = notes;
        }
        Arc::clone(&now.1)
    }
}
