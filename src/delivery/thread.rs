//! Lines below a card: reminders while people are asked, and notes about what came of it. Each is an errand of its own; what it
//! says is taken from the request as it stands when it is sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use gatepost_channel::{Decision, Failure, Inert, Mention, Note, PostKey, Posted, Threads, UtcMillis};
use serde::{Deserialize, Serialize};

use super::authority::{broken, to_the_group, voice};
use super::card::CardMaker;
use super::mention::Member;
use super::phrase::Phrases;
use super::record::Sent;
use super::registry::Listed;
use super::shared::in_message;
use super::{Errand, OutboxItem};
use crate::confirmation::roll::Roll;
use crate::confirmation::{Basis, Confirmation, Delivery, Dossier, OutcomeStatus, Status, Vote, stage};
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OperatorId, OutboxId};
use crate::storage::Workspace;

/// The most persons that one line names.
const MOST_NAMES: usize = 10;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The request still waits.
    Reminder {
        /// The step of the escalation, from 0.
        step: u32,
        /// Whether those who may answer are mentioned.
        mention: bool,
    },
    /// One person approved alone, past everybody who would have been asked.
    BrokenGlass,
    /// The request was decided, or ended otherwise.
    Settled,
    /// The call ended.
    Outcome,
}

impl Line {
    /// Tells the lines of one card apart.
    fn name(self) -> String {
        match self {
            Self::Reminder { step, .. } => format!("reminder {step}"),
            Self::BrokenGlass => "broken glass".to_owned(),
            Self::Settled => "settled".to_owned(),
            Self::Outcome => "outcome".to_owned(),
        }
    }

    /// Whether it still makes sense to say it about a request in this state.
    pub fn is_wanted(self, row: &Confirmation) -> bool {
        let pending = row.state.status() == Status::Pending;
        match self {
            Self::Reminder { .. } => pending,
            Self::BrokenGlass => row.progress.basis.as_ref().and_then(Basis::broken).is_some(),
            Self::Settled => !pending,
            Self::Outcome => row.ledger.outcome.is_some(),
        }
    }
}

/// Queues a line below a card.
pub fn queue(
    workspace: &mut Workspace,
    request: &ConfirmationId,
    card: &DeliveryId,
    channel: ChannelName,
    line: Line,
) {
    let now = workspace.now();
    workspace.put_outbox(OutboxItem {
        id: OutboxId::of_line(card, &line.name()),
        confirmation: Some(request.clone()),
        channel,
        errand: Errand::Line {
            delivery: card.clone(),
            line,
            begun: 0,
        },
        attempts: 0,
        not_before: now,
        lease: None,
        fence: 0,
        created_at: now,
    });
}

/// Queues a note below every card on which people were asked, where the rule wants notes.
pub fn queue_notes(workspace: &mut Workspace, request: &ConfirmationId, line: Line) {
    let wanted = workspace
        .confirmation(request)
        .is_some_and(|row| row.terms.after.thread_notes);
    if wanted {
        queue_below(workspace, request, line, Delivery::asks);
    }
}

/// Queues a line below every card that stands, whether the rule wants notes or not: in groups that are only told too.
pub fn queue_everywhere(workspace: &mut Workspace, request: &ConfirmationId, line: Line) {
    queue_below(workspace, request, line, |_| true);
}

fn queue_below(
    workspace: &mut Workspace,
    request: &ConfirmationId,
    line: Line,
    wanted: impl Fn(&Delivery) -> bool,
) {
    let cards: Vec<_> = workspace
        .deliveries(request)
        .filter(|card| card.stands() && wanted(card))
        .map(|card| (card.id.clone(), card.channel.clone()))
        .collect();
    for (card, channel) in cards {
        queue(workspace, request, &card, channel, line);
    }
}

/// Says it; `fellows` is the whole set of the request. A line is worth less than the peace of a group: what may stand already is not said again, unless the platform itself
/// sees to it that nothing stands twice.
pub async fn say(
    maker: &CardMaker,
    listed: &Listed,
    (item, line): (&OutboxItem, Line),
    (dossier, card): (&Dossier, &Delivery),
    fellows: &[Dossier],
    now: UtcMillis,
) -> Sent {
    let (Some(threads), Some(under)) = (listed.channel.threads(), card.in_group()) else {
        return Sent::Told;
    };
    let begun = match &item.errand {
        Errand::Line { begun, .. } => *begun,
        _ => 0,
    };
    let safely = listed.channel.repeats_safely();
    let repeatable = safely.is_some_and(|span| now.since(item.created_at) < span);
    if begun > 1 && !repeatable {
        return Sent::PostUnknown("begun before, and nobody told what came of it".to_owned());
    }
    let roll = match line {
        Line::Reminder { mention: true, .. } | Line::BrokenGlass => {
            Known::of_groups(maker, listed, dossier).await
        }
        Line::Reminder { .. } | Line::Settled | Line::Outcome => Known::of_configuration(maker),
    };
    let together: Vec<&Dossier> = in_message((dossier, card), fellows)
        .into_iter()
        .map(|(dossier, _)| dossier)
        .collect();
    let about = about(line, dossier, &together);
    let mut note = note(maker, listed, (dossier, &about), (line, &roll), now).await;
    if together.len() > 1 {
        // Below a card of several requests nobody would know which of them is meant.
        let ids: Vec<_> = about.iter().map(|one| one.confirmation.id.as_str()).collect();
        note.text = Inert::new(&format!("{}: {}", ids.join(", "), note.text));
    }
    let key = PostKey(item.id.to_string());
    match threads.reply(&under.at, &note, &key).await {
        Posted::At(_) | Posted::Minimal(_) => Sent::Told,
        Posted::NotSent(failure @ Failure::Gone { .. }) => Sent::MessageGone {
            at: under.at.clone(),
            failure,
        },
        Posted::NotSent(failure) => Sent::TellFailed(failure),
        Posted::Unknown { why } if repeatable => Sent::TellFailed(Failure::Retry { after: None, why }),
        Posted::Unknown { why } => Sent::PostUnknown(why),
    }
}

/// The requests that a line names: a reminder all of the message that wait, any other line its own.
fn about<'a>(line: Line, dossier: &'a Dossier, together: &[&'a Dossier]) -> Vec<&'a Dossier> {
    match line {
        Line::Reminder { .. } => {
            let waits = |one: &&&Dossier| one.confirmation.state.status() == Status::Pending;
            together.iter().filter(waits).copied().collect()
        }
        Line::BrokenGlass | Line::Settled | Line::Outcome => vec![dossier],
    }
}

/// Who there is to be mentioned.
struct Known {
    roll: Arc<Roll>,
    members: Vec<Member>,
}

impl Known {
    fn of_configuration(maker: &CardMaker) -> Self {
        Self {
            roll: maker.roll(),
            members: Vec::new(),
        }
    }

    /// Those too who may answer by being in a group of the platform.
    async fn of_groups(maker: &CardMaker, listed: &Listed, dossier: &Dossier) -> Self {
        let roles = stage::roles(&dossier.confirmation.in_force());
        let members = maker.mentions().members(listed, &roles).await;
        if members.is_empty() {
            return Self::of_configuration(maker);
        }
        let found = members.iter().map(|member| member.found.clone());
        Self {
            roll: Arc::new(maker.roll().with(found)),
            members,
        }
    }

    async fn mention(&self, maker: &CardMaker, listed: &Listed, person: &OperatorId) -> Mention {
        let mut members = self.members.iter();
        let member = members.find(|member| self.roll.is_same(&member.found.voter.id, person));
        Mention {
            id: match member {
                Some(member) => Some(member.id.clone()),
                None => maker.mentions().find(person, listed).await,
            },
            name: Inert::new(self.roll.name(person)).one_line(),
        }
    }
}

/// What the line says, and whom it mentions.
async fn note(
    maker: &CardMaker,
    listed: &Listed,
    (dossier, about): (&Dossier, &[&Dossier]),
    (line, known): (Line, &Known),
    now: UtcMillis,
) -> Note {
    let phrases = maker.phrases(listed.voice.language);
    let row = &dossier.confirmation;
    let (text, persons) = match line {
        Line::Reminder { mention, .. } => {
            let ends = about.iter().map(|one| one.confirmation.expires_at);
            let until = listed.voice.zone.show(ends.min().unwrap_or(row.expires_at));
            let text = phrases.thread.reminder.replace("{until}", &until);
            let asked = about.iter().filter(|_| mention);
            let persons: BTreeSet<_> = asked.flat_map(|one| may_answer(&known.roll, one, now)).collect();
            (text, persons.into_iter().collect())
        }
        Line::BrokenGlass => {
            let told = to_the_group(row, &maker.roll(), &phrases.authority);
            let passed = broken(row).map(|broken| broken.passed_over.clone());
            (told.unwrap_or_default(), passed.unwrap_or_default())
        }
        Line::Settled => (settled(maker, listed, dossier), behind(maker, dossier)),
        Line::Outcome => {
            let words = &phrases.facts;
            let text = match row.ledger.outcome.as_ref().map(|outcome| outcome.status) {
                Some(OutcomeStatus::Succeeded) => &words.succeeded,
                Some(OutcomeStatus::Failed) | None => &words.failed,
            };
            (format!("{text}."), behind(maker, dossier))
        }
    };
    let named = persons.iter().take(MOST_NAMES);
    let mentions = join_all(named.map(|person| known.mention(maker, listed, person))).await;
    Note {
        request_id: row.id.to_string(),
        text: Inert::new(&text),
        preview: format!("{} · {}", phrases.title(row.state.status()), row.id),
        mentions,
        // A reminder that only those see who look into the thread reminds nobody, and breaking the glass is never quiet.
        aloud: matches!(line, Line::Reminder { .. } | Line::BrokenGlass),
    }
}

/// Who may still answer at this instant, in order of id: in the stage that is open, without those who answered, and without
/// those who stand behind the call.
fn may_answer(roll: &Roll, dossier: &Dossier, now: UtcMillis) -> Vec<OperatorId> {
    let row = &dossier.confirmation;
    let terms = row.in_force();
    let stage = stage::current(&terms, &row.progress);
    let barred = row.barred();
    let votes = dossier.standing_votes();
    let answered = |person: &OperatorId| votes.iter().any(|vote| roll.is_same(&vote.person, person));
    let stands_behind = |person: &OperatorId| barred.iter().any(|barred| roll.is_same(barred, person));
    let seated = |person: &OperatorId| !stage.seats(roll, person, &row.org, now, barred).is_empty();
    roll.deciders(&row.org, &terms, now)
        .map(|voter| &voter.id)
        .filter(|id| seated(id) && !answered(id) && !stands_behind(id))
        .cloned()
        .collect()
}

/// Who stands behind the call and did not decide it.
fn behind(maker: &CardMaker, dossier: &Dossier) -> Vec<OperatorId> {
    let same = |one: &OperatorId, other: &OperatorId| maker.roll().is_same(one, other);
    let voted = |person: &&OperatorId| dossier.votes.iter().any(|vote| same(&vote.person, person));
    let persons = dossier.confirmation.asked.persons.iter();
    persons.filter(|person| !voted(person)).cloned().collect()
}

/// Who decided, when, and through what.
fn settled(maker: &CardMaker, listed: &Listed, dossier: &Dossier) -> String {
    let phrases = maker.phrases(listed.voice.language);
    let row = &dossier.confirmation;
    let status = row.state.status();
    let decision = match status {
        Status::Approved => Some(Decision::Approve),
        Status::Rejected => Some(Decision::Reject),
        Status::Pending | Status::Expired | Status::Cancelled | Status::Undeliverable => None,
    };
    let votes = dossier
        .votes
        .iter()
        .filter(|vote| Some(vote.decision) == decision);
    let who: Vec<_> = votes
        .map(|vote| {
            format!(
                "{} ({})",
                voice(vote, &maker.roll(), &phrases.authority),
                through(phrases, vote)
            )
        })
        .collect();
    let words = &phrases.thread;
    let text = if who.is_empty() {
        &words.ended
    } else {
        &words.decided
    };
    let at = row
        .state
        .decided_at()
        .map(|at| listed.voice.zone.show(at))
        .unwrap_or_default();
    text.replace("{what}", phrases.title(status))
        .replace("{at}", &at)
        .replace("{who}", &who.join(", "))
}

fn through<'a>(phrases: &'a Phrases, vote: &'a Vote) -> std::borrow::Cow<'a, str> {
    let words = &phrases.thread;
    match &vote.channel {
        Some(channel) => words.by_card.replace("{channel}", channel.as_str()).into(),
        None => match vote.surface.as_str() {
            "console" => words.by_console.as_str().into(),
            "terminal" => words.by_terminal.as_str().into(),
            _ => words.by_api.as_str().into(),
        },
    }
}

/// Whether a platform shows lines below its cards.
pub fn has_threads(listed: &Listed) -> bool {
    let threads: Option<&dyn Threads> = listed.channel.threads();
    threads.is_some()
}
