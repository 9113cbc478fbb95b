//! What opens for one person: the same request and words as on the card, and all of the arguments.
//!
//! A view carries the proof that its person could see everything only if it was asked whether all of it fits where it is shown.

use gatepost_channel::{
    Actions, Decision, Dialog, DialogWords, EditForm, FullView, Inert, Link, MessageRef, ReasonForm, Say,
    Seen, UtcMillis,
};
use serde::Deserialize;

use super::card::{CardMaker, Voice};
use crate::confirmation::{Confirmation, Delivery, Dossier, Status};
use crate::gate::editable;
use crate::ids::ChannelName;

/// Words of what opens for one person.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is the text that its name says")]
pub struct DialogPhrases {
    pub close: String,
    pub send: String,
    pub answer: String,
    pub part: String,
    pub wait: String,
    pub too_large: String,
    pub not_opened: String,
    /// The form cannot be opened, now or later; said before where else the request can be answered.
    pub never_opened: String,
    pub sent: String,
    pub in_console: String,
    pub on_command_line: String,
    /// Label of the field for changed arguments.
    pub change: String,
    /// Label of approving them.
    pub approve_changed: String,
    /// Said before where else they can be changed.
    pub change_elsewhere: String,
    /// Everything could not be sent; said before where else it can be seen.
    pub not_sent: String,
}

impl DialogPhrases {
    /// The words that an adapter lays out.
    pub fn words(&self) -> DialogWords {
        DialogWords {
            close: self.close.clone(),
            send: self.send.clone(),
            answer: self.answer.clone(),
            part: self.part.clone(),
        }
    }

    /// That so many messages are on their way to one person.
    pub fn sent(&self, count: u32) -> String {
        self.sent.replace("{count}", &count.to_string())
    }
}

/// Where a person is shown something, and who.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// The platform's id of the person.
    pub user: &'a str,
    /// On which channel.
    pub channel: &'a ChannelName,
    /// The card from which it was asked.
    pub at: &'a MessageRef,
}

impl CardMaker {
    /// Everything there is of a request as it stands, without a proof: nothing can be answered on it yet.
    pub fn everything(
        &self,
        dossier: &Dossier,
        delivery: &Delivery,
        at: &MessageRef,
        (voice, now): (&Voice, UtcMillis),
    ) -> FullView {
        let card = self.card(dossier, delivery, voice, now);
        FullView {
            // The neutral card holds all of them; only a platform's layout cuts.
            arguments: card.arguments.whole().clone(),
            card,
            at: at.clone(),
            seen: None,
            edit: self.edit_form(&dossier.confirmation, voice),
            words: self.phrases(voice.language).dialog.words(),
        }
    }

    /// The arguments for one person to change, where the request takes that.
    fn edit_form(&self, row: &Confirmation, voice: &Voice) -> Option<EditForm> {
        if !row.takes_edits() || row.state.status() != Status::Pending {
            return None;
        }
        let words = &self.phrases(voice.language).dialog;
        Some(EditForm {
            text: editable(row.call().args, &row.terms.redact)?,
            label: words.change.clone(),
            approve: words.approve_changed.clone(),
            elsewhere: format!("{} {}", words.change_elsewhere, self.elsewhere(row, voice)),
        })
    }

    /// What proves that everything of this view could be seen; nothing where nothing can be answered. For views that are known to
    /// be shown whole.
    pub fn seen(&self, view: &FullView, sight: Sight<'_>) -> Option<Seen> {
        match &view.card.actions {
            Actions::None => None,
            Actions::Decide { token, revision, .. } => {
                Some(self.key().seen(token, *revision, sight.user, sight.channel))
            }
        }
    }

    /// The form for the words of one answer.
    pub fn reason_form(
        &self,
        dossier: &Dossier,
        delivery: &Delivery,
        at: &MessageRef,
        answer: (Decision, Option<&str>),
        (voice, now): (&Voice, UtcMillis),
    ) -> Dialog {
        let (decision, grant) = answer;
        Dialog::Reason(Box::new(ReasonForm {
            card: self.card(dossier, delivery, voice, now),
            at: at.clone(),
            decision,
            grant: grant.map(str::to_owned),
            required: dossier.confirmation.terms.decision.require_reason.of(decision),
            words: self.phrases(voice.language).dialog.words(),
        }))
    }

    /// A sentence of ours, and the way to the console where a request is known.
    pub fn say(&self, text: &str, row: Option<&Confirmation>, voice: &Voice) -> Say {
        let phrases = self.phrases(voice.language);
        let words = phrases.words();
        Say {
            title: words.show_everything,
            text: Inert::new(text),
            link: row.and_then(|row| self.full_view(row)).map(|url| Link {
                label: words.open_console,
                url,
            }),
            words: phrases.dialog.words(),
        }
    }

    /// Where else everything of a request can be seen, in words.
    pub fn elsewhere(&self, row: &Confirmation, voice: &Voice) -> String {
        let words = &self.phrases(voice.language).dialog;
        match self.full_view(row) {
            Some(url) => words.in_console.replace("{url}", &url),
            None => words.on_command_line.replace("{id}", row.id.as_str()),
        }
    }
}
