//! Telling one person privately what came of their click, on platforms that cannot say it in the answer.

use super::{Errand, OutboxItem};
use crate::ids::{ChannelName, ConfirmationId, OutboxId};
use crate::storage::{Touches, Transaction, Workspace};

/// Queues a notice.
#[derive(Debug, Clone)]
pub struct QueueNotice {
    /// The row's id.
    pub id: OutboxId,
    /// About which request, when the person may know of it.
    pub confirmation: Option<ConfirmationId>,
    /// Through which channel.
    pub channel: ChannelName,
    /// The platform's id of the person.
    pub user: String,
    /// The chat where they clicked.
    pub chat: String,
    /// Own words.
    pub text: String,
}

impl Transaction for QueueNotice {
    type Answer = ();
    const NAME: &'static str = "queue_notice";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.extend(self.confirmation.clone());
    }

    fn apply(&self, workspace: &mut Workspace) {
        let now = workspace.now();
        workspace.put_outbox(OutboxItem {
            id: self.id.clone(),
            confirmation: self.confirmation.clone(),
            channel: self.channel.clone(),
            errand: Errand::Notice {
                user: self.user.clone(),
                chat: self.chat.clone(),
                text: self.text.clone(),
            },
            attempts: 0,
            not_before: now,
            lease: None,
            fence: 0,
            created_at: now,
        });
    }
}
