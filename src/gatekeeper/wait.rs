//! Waiting for people: subscribe, read, wait, read again. A wait holds a little memory and nothing else.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Gatekeeper;
use crate::confirmation::{Dossier, Status};
use crate::ids::ConfirmationId;
use crate::storage::StoreError;

/// The slow poll behind the wake-ups: a decision of another process is seen after this at the latest.
const POLL: Duration = Duration::from_secs(1);

impl Gatekeeper {
    /// The request once it is decided, or as it stands when `patience` ends.
    pub async fn decided(
        &self,
        id: &ConfirmationId,
        patience: Duration,
    ) -> Result<Option<Dossier>, StoreError> {
        let end = Instant::now() + patience;
        let mut watch = self.store().wakes().confirmation(id);
        loop {
            let dossier = self.store().read().dossier(id).await?;
            let open = dossier
                .as_ref()
                .is_some_and(|d| d.confirmation.state.status() == Status::Pending);
            if !open || Instant::now() >= end {
                return Ok(dossier);
            }
            let poll = end.min(Instant::now() + POLL);
            // Either way the row is read again: the wake-up is only a hint.
            let _ = timeout_at(poll, watch.changed()).await;
        }
    }
}
