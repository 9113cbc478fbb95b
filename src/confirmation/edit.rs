//! Edits: a person changed the arguments when they approved. From then on the edited call is what people vote on: a vote is for one
//! digest, so who approved before has to look again, and only what all approve alike can run.
//!
//! What was proposed stays in [`Asked`](super::Asked), what is voted on, and once approved runs, in [`Progress::edit`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use gatepost_channel::{Decision, Inert, UtcMillis};
use serde::{Deserialize, Serialize};

use super::decide::Decide;
use super::roll::Roll;
use super::settle::refresh_cards;
use super::{Confirmation, Dossier, Progress, Vote};
use crate::audit::{Actor, Draft, Opening};
use crate::gate::edit::changes;
use crate::gate::json::ReadLimits;
use crate::gate::{Digest, Json, shown_canonical, without_hidden};
use crate::ids::{ConfirmationId, DeliveryId, OperatorId};
use crate::storage::Workspace;

/// The most edits of one request: people who undo each other's changes for ever are no decision.
pub const MAX_EDITS: u32 = 16;

/// The arguments as a person changed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Counts the edits of the request, from 1. What was proposed has the number 0.
    pub number: u32,
    /// Who changed them.
    pub by: OperatorId,
    /// When.
    pub at: UtcMillis,
    /// The arguments in canonical form, complete.
    pub args: String,
    /// Over tool and arguments.
    pub digest: Digest,
}

/// The call that people vote on now, and that runs once they approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its arguments in canonical form.
    pub args: &'a str,
    /// Over tool and arguments.
    pub digest: Digest,
    /// Which edit it is; 0 is the call as it was proposed.
    pub edit: u32,
}

impl Confirmation {
    /// The call that people vote on now, and that runs once they approved.
    pub fn call(&self) -> Call<'_> {
        match &self.progress.edit {
            Some(edit) => Call {
                args: &edit.args,
                digest: edit.digest,
                edit: edit.number,
            },
            None => Call {
                args: &self.asked.args,
                digest: self.asked.digest,
                edit: 0,
            },
        }
    }

    /// Free text of somebody who may have seen the arguments whole, without what the rule hides of them.
    pub fn without_hidden(&self, text: &str) -> String {
        let hidden = &self.terms.redact;
        let asked = without_hidden(text, &self.asked.args, hidden);
        match &self.progress.edit {
            None => asked,
            Some(edit) => without_hidden(&asked, &edit.args, hidden),
        }
    }

    /// Whether a call of this digest is the one that was approved, or that one as it was proposed: who asked may not have heard of the
    /// edit.
    pub fn is_about(&self, digest: &Digest) -> bool {
        self.asked.digest == *digest || self.call().digest == *digest
    }

    /// Whether people may change the arguments: the rule lets them, and whoever asked takes what they make of them.
    pub fn takes_edits(&self) -> bool {
        self.terms
            .decision
            .edits
            .as_ref()
            .is_some_and(|edits| edits.carried)
    }
}

impl Dossier {
    /// The votes on the call that stands: see [`standing`].
    pub fn standing_votes(&self) -> Cow<'_, [Vote]> {
        standing(&self.votes, &self.confirmation.progress)
    }
}

/// The votes that count for the call that stands: approvals of it, and of everybody the last answer if it was a rejection. Who
/// rejected the call as it was before is against it until they say otherwise; who approved it has not seen this one.
pub fn standing<'v>(votes: &'v [Vote], progress: &Progress) -> Cow<'v, [Vote]> {
    let Some(edit) = &progress.edit else {
        return Cow::Borrowed(votes);
    };
    let last = |vote: &Vote| {
        let later = |other: &Vote| other.person == vote.person && other.content.edit > vote.content.edit;
        !votes.iter().any(later)
    };
    let counts = |vote: &&Vote| match vote.decision {
        Decision::Approve => vote.content.edit == edit.number,
        Decision::Reject => last(vote),
    };
    Cow::Owned(votes.iter().filter(counts).cloned().collect())
}

/// What a person changed, in one line for whoever asked: redacted, inert, and cut where it is long. Nothing where the call is as it
/// was proposed.
pub fn in_words(row: &Confirmation, roll: &Roll) -> Option<String> {
    let edit = row.progress.edit.as_ref()?;
    let hidden = &row.terms.redact;
    let read = |args: &str| {
        let shown = shown_canonical(args, hidden);
        Json::read(shown.as_bytes(), ReadLimits::bytes(shown.len())).ok()
    };
    let value = |value: &Option<Json>| match value {
        Some(value) => clipped(&value.canonical(), MAX_VALUE),
        None => "nothing".to_owned(),
    };
    let changes = changes(&read(&row.asked.args)?, &read(&edit.args)?);
    let told: Vec<String> = changes
        .iter()
        .take(MAX_TOLD)
        .map(|change| {
            let at = clipped(&change.at, MAX_VALUE);
            format!("{at} from {} to {}", value(&change.before), value(&change.after))
        })
        .collect();
    let more = changes.len().saturating_sub(told.len());
    let name = clipped(roll.name(&edit.by), MAX_VALUE);
    Some(match (told.is_empty(), more) {
        // Changed there and back again.
        (true, _) => return None,
        (false, 0) => format!("{name} changed {}", told.join("; ")),
        (false, more) => format!("{name} changed {}; and {more} more", told.join("; ")),
    })
}

/// So many changes are told one by one.
const MAX_TOLD: usize = 20;
/// The most characters that are told of a value or of its place.
const MAX_VALUE: usize = 200;

fn clipped(text: &str, most: usize) -> String {
    let text = Inert::new(text).one_line();
    let head = text.head(most, |piece| piece.chars().count());
    if head.len() < text.as_str().len() {
        format!("{head}…")
    } else {
        head.to_owned()
    }
}

/// Changed arguments, ready to be put in place of those that people vote on. Everything of it was judged before: the rule, the
/// tool's schema and policy took them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revised {
    /// In canonical form, complete: hidden values are as they were proposed.
    pub args: String,
    /// Over tool and arguments.
    pub digest: Digest,
    /// The edited arguments as people may see them, for the audit log.
    pub shown: Opening,
    /// The proposed arguments as people may see them, for the audit log.
    pub shown_before: Opening,
    /// Which cards can show all of the edited call, so that Approve stands on them. A card that is not named cannot.
    pub approvable: BTreeMap<DeliveryId, bool>,
}

/// Why changed arguments are not taken. The words of the details are for whoever sent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EditRefusal {
    /// The rule lets nobody change arguments.
    NotOffered,
    /// Whoever asked cannot be told other arguments.
    NotCarried,
    /// They come from where this person was not shown what they change.
    NotShown,
    /// They differ in what the rule lets nobody change.
    OutOfScope,
    /// They change what is hidden.
    Hidden,
    /// They are not what the tool takes.
    Misfit,
    /// A rule denies the edited call.
    DeniedByRule,
    /// Other or more people would have to be asked about the edited call.
    Stricter,
    /// The request was edited too often.
    TooMany,
}

impl EditRefusal {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NotOffered,
        Self::NotCarried,
        Self::NotShown,
        Self::OutOfScope,
        Self::Hidden,
        Self::Misfit,
        Self::DeniedByRule,
        Self::Stricter,
        Self::TooMany,
    ];

    /// The stable word of the audit log and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotOffered => "edit_not_offered",
            Self::NotCarried => "edit_not_carried",
            Self::NotShown => "edit_not_shown",
            Self::OutOfScope => "edit_out_of_scope",
            Self::Hidden => "edit_of_hidden",
            Self::Misfit => "edit_misfit",
            Self::DeniedByRule => "edit_denied_by_rule",
            Self::Stricter => "edit_needs_others",
            Self::TooMany => "edited_too_often",
        }
    }
}

/// The edit that an answer asks for, or why it is none; nothing where the answer leaves the call as it stands.
pub(super) fn of_answer<'a>(
    answer: &'a Decide,
    row: &Confirmation,
) -> Option<Result<&'a Revised, EditRefusal>> {
    let revised = match answer.edit.as_ref()? {
        Ok(revised) => revised,
        Err(why) => return Some(Err(*why)),
    };
    if answer.decision != Decision::Approve || !row.takes_edits() {
        return Some(Err(EditRefusal::NotOffered));
    }
    if revised.digest == row.call().digest {
        return None;
    }
    Some(if row.call().edit >= MAX_EDITS {
        Err(EditRefusal::TooMany)
    } else {
        Ok(revised)
    })
}

/// Puts edited arguments in place: what is voted on from here on. Cards show it, their buttons are renewed, and everybody is asked
/// again from the first stage on.
pub(super) fn adopt(workspace: &mut Workspace, id: &ConfirmationId, by: &OperatorId, revised: &Revised) {
    let now = workspace.now();
    let Some(row) = workspace.confirmation(id) else {
        return;
    };
    let edit = Edit {
        number: row.call().edit.saturating_add(1),
        by: by.clone(),
        at: now,
        args: revised.args.clone(),
        digest: revised.digest,
    };
    let mut draft = Draft::new(&row.org, "confirmation.edited", Actor::Operator(by.0.clone()))
        .about(id)
        .with("edit", edit.number)
        .with_private("proposed_args", Some(revised.shown_before.clone()))
        .with_private("edited_args", Some(revised.shown.clone()));
    draft.job.clone_from(&row.asked.job);
    workspace.audit(draft);
    workspace.change_confirmation(id, |row| {
        row.progress.edit = Some(edit);
        row.progress.stage = 0;
        row.revision += 1;
        row.edition += 1;
    });
    let cards: Vec<_> = workspace.deliveries(id).map(|card| card.id.clone()).collect();
    for card in cards {
        let approvable = revised.approvable.get(&card).copied().unwrap_or(false);
        workspace.change_delivery(&card, |card| card.approvable = approvable);
    }
    refresh_cards(workspace, id);
}
