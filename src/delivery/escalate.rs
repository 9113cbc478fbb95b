//! Escalation: what a rule wants to happen while nobody decides. One outbox row waits for the next step of a request; whoever
//! claims it plans the cards of new channels outside, and takes the step in one transaction, once, by the store's clock.

use gatepost_channel::UtcMillis;

use super::plan::Planned;
use super::thread::{self, Line};
use super::{Errand, OutboxItem};
use crate::audit::{Actor, Draft};
use crate::confirmation::settle::refresh_cards;
use crate::confirmation::{Confirmation, Status, set};
use crate::gate::after::Escalation;
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OutboxId};
use crate::storage::{Touches, Transaction, Workspace};

/// When a step of this request falls due.
pub const fn due(row: &Confirmation, step: &Escalation) -> UtcMillis {
    UtcMillis(row.created_at.0.saturating_add(step.after_ms))
}

/// When the last step that was taken fell due.
pub fn last_taken(row: &Confirmation) -> Option<UtcMillis> {
    let at = row.progress.escalated.checked_sub(1)?;
    step_at(row, at).map(|step| due(row, step))
}

/// Queues the next step of a request, if there is one before its end. Whatever settles the request leaves the row behind; it
/// does nothing then.
pub fn queue_next(workspace: &mut Workspace, request: &ConfirmationId) {
    let id = OutboxId::of_escalation(request);
    let next = workspace.confirmation(request).and_then(|row| {
        let at = row.progress.escalated;
        let step = step_at(row, at)?;
        let due = due(row, step);
        (due < row.expires_at).then_some((at, due))
    });
    let Some((step, not_before)) = next else {
        workspace.remove_outbox(&id);
        return;
    };
    // The row belongs to no channel: its steps may bring in several.
    let (fence, created_at) = workspace
        .outbox(&id)
        .map_or((0, workspace.now()), |item| (item.fence + 1, item.created_at));
    workspace.put_outbox(OutboxItem {
        id,
        confirmation: Some(request.clone()),
        channel: ChannelName(String::new()),
        errand: Errand::Escalate { step },
        attempts: 0,
        not_before,
        lease: None,
        fence,
        created_at,
    });
}

fn step_at(row: &Confirmation, at: u32) -> Option<&Escalation> {
    row.terms.after.escalate.get(usize::try_from(at).ok()?)
}

/// Whether the row of an escalation still has something to do.
pub fn is_wanted(row: &Confirmation, step: u32, now: UtcMillis) -> bool {
    row.state.status() == Status::Pending && row.progress.escalated == step && now < row.expires_at
}

/// The step that this row waits for, for whoever plans its cards.
pub fn step_of(row: &Confirmation, errand: &Errand) -> Option<Escalation> {
    match errand {
        Errand::Escalate { step } => step_at(row, *step).cloned(),
        Errand::Card { .. }
        | Errand::Notice { .. }
        | Errand::Whisper { .. }
        | Errand::View { .. }
        | Errand::Line { .. } => None,
    }
}

/// Takes one step.
#[derive(Debug, Clone)]
pub struct Escalate {
    /// The row as it was claimed.
    pub item: OutboxItem,
    /// Cards for the channels that the step brings in.
    pub planned: Planned,
}

impl Transaction for Escalate {
    /// Whether the step was taken now.
    type Answer = bool;
    const NAME: &'static str = "escalate";

    fn touches(&self, touches: &mut Touches) {
        touches.outbox.insert(self.item.id.clone());
        touches.confirmations.extend(self.item.confirmation.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let held = workspace.outbox(&self.item.id);
        let (Errand::Escalate { step: at }, Some(request), true) = (
            &self.item.errand,
            &self.item.confirmation,
            held.is_some_and(|row| row.lease == self.item.lease),
        ) else {
            return false;
        };
        let now = workspace.now();
        let wanted = workspace
            .confirmation(request)
            .filter(|row| is_wanted(row, *at, now))
            .and_then(|row| step_at(row, *at).filter(|step| due(row, step) <= now).cloned());
        let Some(step) = wanted else {
            queue_or_drop(workspace, request, &self.item);
            return false;
        };
        take(workspace, request, *at, &step, &self.planned);
        true
    }
}

/// Another one took the step, or the request has ended.
fn queue_or_drop(workspace: &mut Workspace, request: &ConfirmationId, item: &OutboxItem) {
    let pending = workspace
        .confirmation(request)
        .is_some_and(|row| row.state.status() == Status::Pending);
    if pending {
        queue_next(workspace, request);
    } else {
        workspace.remove_outbox(&item.id);
    }
}

/// Whether the reminder of this step of another request of the same message names this one, too: a group is not written to once for
/// each row of a card. Only what is certain counts; a line too many is better than none.
fn is_named_already(workspace: &Workspace, request: &ConfirmationId, card: &DeliveryId, step: u32) -> bool {
    let Some(asked) = workspace.confirmation(request).map(|row| row.created_at) else {
        return false;
    };
    let others = set::sharing(workspace, request, card).into_iter();
    let taken: Vec<(&Confirmation, UtcMillis)> = others
        .filter(|(other, _)| other != request)
        .filter_map(|(other, _)| workspace.confirmation(&other))
        .filter(|row| row.progress.escalated > step)
        .filter_map(|row| Some((row, due(row, step_at(row, step)?))))
        .collect();
    // Whoever was there when an earlier one fell due may have been named by that, and have said nothing.
    let said = |at: usize, row: &Confirmation| taken[..at].iter().all(|(_, due)| *due < row.created_at);
    taken
        .iter()
        .enumerate()
        .any(|(at, (row, due))| row.state.status() == Status::Pending && *due >= asked && said(at, row))
}

fn take(workspace: &mut Workspace, request: &ConfirmationId, at: u32, step: &Escalation, planned: &Planned) {
    let Some((org, job)) = workspace
        .confirmation(request)
        .map(|row| (row.org.clone(), row.asked.job.clone()))
    else {
        return;
    };
    let now = workspace.now();
    // After a pause of the server several steps may be due at once: one reminder is enough for all of them.
    let later = workspace.confirmation(request).and_then(|row| {
        let next = step_at(row, at + 1)?;
        Some(next.remind && due(row, next) <= now)
    });
    let reminds = step.remind && later != Some(true);
    let lines: Vec<_> = workspace
        .deliveries(request)
        .filter(|card| reminds && card.asks() && card.stands())
        .filter(|card| !is_named_already(workspace, request, &card.id, at))
        .map(|card| (card.id.clone(), card.channel.clone()))
        .collect();
    let mut added = Vec::new();
    for card in &planned.cards {
        let there = workspace
            .deliveries(request)
            .any(|other| other.asks() && other.channel == card.channel);
        let fit = workspace
            .confirmation(request)
            .map(|row| Planned::fit_for(card, planned.revision, row));
        if let Some(fit) = fit.filter(|_| !there) {
            workspace.insert_delivery(request, fit);
            added.push(card.channel.0.clone());
        }
    }
    let draft = |kind: &'static str| {
        let mut draft = Draft::new(&org, kind, Actor::System)
            .about(request)
            .with("step", at + 1);
        draft.job.clone_from(&job);
        draft
    };
    if reminds {
        workspace.audit(draft("confirmation.reminded").with("mention", step.mention));
    }
    if !step.channels.is_empty() || step.approvers.is_some() {
        let mut draft = draft("confirmation.escalated").with("channels", added);
        if let Some(approvers) = &step.approvers {
            draft = draft
                .with("roles", approvers.roles.clone())
                .with("operators", approvers.operators.clone());
        }
        workspace.audit(draft);
    }
    workspace.change_confirmation(request, |row| {
        row.progress.escalated = at + 1;
        row.edition += 1;
    });
    refresh_cards(workspace, request);
    for (card, channel) in lines {
        let line = Line::Reminder {
            step: at,
            mention: step.mention,
        };
        thread::queue(workspace, request, &card, channel, line);
    }
    queue_next(workspace, request);
}
