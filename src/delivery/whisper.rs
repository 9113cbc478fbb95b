//! Answering one person's words apart from the request that brought them, on platforms that do not take the answer there.

use std::time::Duration;

use gatepost_channel::{Field, Inert, Listener, PostKey, Reply, ReplyTone};
use sha2::{Digest as _, Sha256};

use super::record::Sent;
use super::registry::Listed;
use super::sender::Sender;
use super::{Errand, OutboxItem};
use crate::confirmation::Dossier;
use crate::ids::{ChannelName, ConfirmationId, OutboxId};
use crate::storage::{ReplayKey, ReplayRow, Touches, Transaction, Workspace};

/// How long it is remembered that a question was answered: longer than a late repetition of it counts at all.
const REMEMBERED: Duration = Duration::from_hours(2);
/// What stands in the replay memory for a question.
const ANSWERED: &str = "answered";

/// Queues an answer, once for each command.
#[derive(Debug, Clone)]
pub struct QueueWhisper {
    /// Names the command; the answer's row has its name from it.
    pub replay: ReplayKey,
    /// Whether the command was a question, remembered by this alone. What decided something was remembered when it did.
    pub question: bool,
    /// About which request, when the person may know of it.
    pub confirmation: Option<ConfirmationId>,
    /// Through which channel.
    pub channel: ChannelName,
    /// For whom.
    pub to: Listener,
    /// Its colour.
    pub tone: ReplyTone,
    /// See [`Errand::Whisper`].
    pub text: String,
    /// See [`Errand::Whisper`].
    pub shows: Option<String>,
}

impl QueueWhisper {
    /// The one row of the answer: the same for a repetition of the command, so that the platform too can tell that it is one.
    fn row(&self) -> Option<OutboxId> {
        let named = format!(
            "{}|{}|{}",
            self.replay.app.kind, self.replay.app.id, self.replay.key
        );
        let digest = hex::encode(Sha256::digest(named));
        OutboxId::parse(&format!("ob_{}", digest.get(..32)?)).ok()
    }
}

impl Transaction for QueueWhisper {
    type Answer = ();
    const NAME: &'static str = "queue_whisper";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.extend(self.confirmation.clone());
        touches.replays.insert(self.replay.clone());
        touches.outbox.extend(self.row());
    }

    fn apply(&self, workspace: &mut Workspace) {
        let Some(id) = self.row() else { return };
        let answered = self.question && workspace.replay(&self.replay).is_some();
        if answered || workspace.outbox(&id).is_some() {
            return;
        }
        let now = workspace.now();
        if self.question {
            workspace.insert_replay(ReplayRow {
                key: self.replay.clone(),
                confirmation: None,
                answer: ANSWERED.to_owned(),
                forget_at: now.plus(REMEMBERED),
            });
        }
        workspace.put_outbox(OutboxItem {
            id,
            confirmation: self.confirmation.clone(),
            channel: self.channel.clone(),
            errand: Errand::Whisper {
                to: self.to.clone(),
                tone: self.tone,
                text: self.text.clone(),
                shows: self.shows.clone(),
            },
            attempts: 0,
            not_before: now,
            lease: None,
            fence: 0,
            created_at: now,
        });
    }
}

impl Sender {
    /// Sends a claimed answer.
    pub(super) async fn whisper(
        &self,
        listed: &Listed,
        item: &OutboxItem,
        dossier: Option<&Dossier>,
    ) -> Sent {
        let Errand::Whisper {
            to,
            tone,
            text,
            shows,
        } = &item.errand
        else {
            return Sent::Told;
        };
        let Some(whisper) = listed.channel.whisper() else {
            return Sent::Told;
        };
        let card = shows.as_ref().zip(dossier).map(|(called, dossier)| {
            self.maker()
                .show(dossier, (&listed.voice, self.now()), called, |card| {
                    listed.channel.shows_all(card)
                })
                .card
        });
        let reply = Reply {
            refused: false,
            field: Field::Answer,
            tone: *tone,
            text: Inert::new(text),
            card,
        };
        let aloud = Inert::new(&self.maker().phrases(listed.voice.language).command.not_aloud);
        let key = PostKey(item.id.to_string());
        match whisper.whisper(to, &reply, &aloud, &key).await {
            Ok(()) => Sent::Told,
            Err(failure) => Sent::TellFailed(failure),
        }
    }
}
