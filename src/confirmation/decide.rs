//! Deciding: the one function behind every surface. Card, API, console, command line, terminal and words in a chat all end here;
//! nothing else casts a vote.

use std::borrow::Cow;
use std::sync::Arc;

use gatepost_channel::{Decision, MessageRef, SetCode, UtcMillis};

use crate::audit::{Actor, Draft, Opening};
use crate::delivery::OutboxItem;
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OperatorId, Org};
use crate::storage::{ReplayKey, ReplayRow, TokenHash, Touches, Transaction, Workspace};

use super::count::count;
use super::edit::{self, EditRefusal, Revised};
use super::grant::{self, Wish};
pub use super::insight::Insight;
pub use super::refusal::Refusal;
use super::roll::Roll;
use super::settle::refresh_cards;
pub use super::spoken::Spoken;
use super::{
    Confirmation, Delivery, DeliveryState, Dossier, Standing, Status, Vote, VoteContent, expire, set, stage,
};
use crate::gate::decision::says_something;
use crate::gate::grant::GrantScope;

/// How long an accepted callback is remembered at least, beyond the life of its request: the freshness window of the
/// platforms with room to spare.
pub(super) const REPLAY_GRACE: std::time::Duration = std::time::Duration::from_hours(1);

/// How long the clicked card is left alone: its platform is still showing the answer to the press, and an edit that comes in
/// between is refused or rolled back (Feishu: message card update, error 11310).
const LET_THE_ANSWER_SHOW: std::time::Duration = std::time::Duration::from_millis(300);

/// Through what the answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Surface {
    /// A button on a card.
    Card,
    /// The HTTP API and the command line.
    Api,
    /// The web console.
    Console,
    /// The one-time address of the local channel.
    Terminal,
    /// Words to the bot in a chat.
    Command,
}

impl Surface {
    /// All of them: a test walks through every one.
    pub const ALL: [Self; 5] = [
        Self::Card,
        Self::Api,
        Self::Console,
        Self::Terminal,
        Self::Command,
    ];

    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Api => "api",
            Self::Console => "console",
            Self::Terminal => "terminal",
            Self::Command => "command",
        }
    }
}

/// What was answered: a request named by an authenticated caller, or the card on which a verified person clicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By id; the caller's organisation must be the request's.
    Request {
        /// The request.
        id: ConfirmationId,
        /// The caller's organisation.
        org: Org,
    },
    /// By the card that was clicked.
    Card(Clicked),
    /// By words to the bot.
    Command(Spoken),
}

impl Target {
    /// The organisation of who answers, the channel through which they did, and the name of this answer for the replay memory.
    const fn of(&self) -> (&Org, Option<&ChannelName>, Option<&ReplayKey>) {
        match self {
            Self::Request { org, .. } => (org, None, None),
            Self::Card(clicked) => (&clicked.org, Some(&clicked.channel), Some(&clicked.replay)),
            Self::Command(spoken) => (&spoken.org, Some(&spoken.channel), Some(&spoken.replay)),
        }
    }
}

/// The card that was clicked, all of it from the verified callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clicked {
    /// The channel found from the verified app, tenant and chat.
    pub channel: ChannelName,
    /// That channel's organisation.
    pub org: Org,
    /// The message that was clicked.
    pub at: MessageRef,
    /// SHA-256 of the button's token; `None` when the button was not ours.
    pub token: Option<TokenHash>,
    /// The revision on the button.
    pub revision: u32,
    /// Names the press.
    pub replay: ReplayKey,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ballot {
    /// A known operator.
    Person(OperatorId),
    /// Somebody the platform vouches for, but no operator of ours; by platform id.
    Stranger(String),
    /// Somebody from a workspace or tenant that may not click here; by platform id.
    Foreigner(String),
    /// Somebody whom a look-up keeps from answering; by platform id, and why.
    Kept(String, Refusal),
}

/// One answer to one request.
#[derive(Debug, Clone)]
pub struct Decide {
    /// To what.
    pub target: Target,
    /// By whom.
    pub ballot: Ballot,
    /// What.
    pub decision: Decision,
    /// Why, in the person's words.
    pub reason: Option<Opening>,
    /// The grant that is asked for with an Approve.
    pub grant: Option<Wish>,
    /// The arguments as the person changed them, with an Approve.
    pub edit: Option<Result<Revised, EditRefusal>>,
    /// Which edit of the arguments the person saw, where no card says so: an edited call is approved only by who names the edit.
    pub seen: Option<u32>,
    /// Through what.
    pub surface: Surface,
    /// Who may decide, as the configuration and the platforms have it now.
    pub roll: Arc<Roll>,
    /// What else was found out about people.
    pub insight: Insight,
}

/// What an answer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The vote counts; more are needed.
    Counted,
    /// The vote counts and settled the request.
    Settled,
    /// The same callback came before: this was its answer.
    Replayed(String),
    /// Nothing changed.
    Refused(Refusal),
}

/// The ruling, and the request as it stands after it (when the caller may know of it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What the answer did.
    pub ruling: Ruling,
    /// The request.
    pub dossier: Option<Dossier>,
    /// The whole set that the request is in, in its order; empty when it is alone.
    pub fellows: Vec<Dossier>,
    /// The card that was clicked.
    pub card: Option<DeliveryId>,
}

/// What a person may do with their answer.
struct Allowed<'a> {
    person: OperatorId,
    /// In whose place they answer.
    acting_for: Option<OperatorId>,
    /// The grant that they ask for.
    wished: Option<GrantScope>,
    /// The arguments in place of those that stand.
    edit: Option<&'a Revised>,
}

impl Transaction for Decide {
    type Answer = Decided;
    const NAME: &'static str = "decide";

    fn touches(&self, touches: &mut Touches) {
        match &self.target {
            Target::Request { id, org } => {
                touches.orgs.insert(org.clone());
                touches.confirmations.insert(id.clone());
            }
            Target::Card(clicked) => {
                touches.orgs.insert(clicked.org.clone());
                touches.tokens.extend(clicked.token);
                touches.replays.insert(clicked.replay.clone());
            }
            Target::Command(spoken) => {
                touches.orgs.insert(spoken.org.clone());
                touches.confirmations.insert(spoken.id.clone());
                touches.replays.insert(spoken.replay.clone());
            }
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> Decided {
        if let (_, _, Some(replay)) = self.target.of()
            && let Some(row) = workspace.replay(replay)
        {
            let (answer, request) = (row.answer.clone(), row.confirmation.clone());
            self.audit_refusal(workspace, request.as_ref(), "replayed", None);
            let fellows = request
                .as_ref()
                .map_or_else(Vec::new, |id| set::fellows(workspace, id));
            let dossier = request.and_then(|id| workspace.dossier(&id));
            return Decided {
                ruling: Ruling::Replayed(answer),
                dossier,
                fellows,
                card: None,
            };
        }
        let (found, ruling) = match self.find(workspace) {
            Ok((id, card)) => {
                let ruling = self.vote(workspace, &id, card.as_ref(), None);
                (Some((id, card)), ruling)
            }
            Err((known, refusal)) => {
                self.audit_refusal(workspace, known.as_ref(), refusal.as_str(), None);
                (None, Ruling::Refused(refusal))
            }
        };
        if let Some((_, Some(card))) = &found {
            let_the_answer_show(workspace, card);
        }
        let dossier = found.as_ref().and_then(|(id, _)| workspace.dossier(id));
        let fellows = found
            .as_ref()
            .map_or_else(Vec::new, |(id, _)| set::fellows(workspace, id));
        self.remember(workspace, dossier.as_ref(), &ruling);
        Decided {
            ruling,
            dossier,
            fellows,
            card: found.and_then(|(_, card)| card),
        }
    }
}

impl Decide {
    /// The request that was answered, and the card if it was one. Channel, organisation, message and request must match.
    pub(super) fn find(
        &self,
        workspace: &mut Workspace,
    ) -> Result<(ConfirmationId, Option<DeliveryId>), (Option<ConfirmationId>, Refusal)> {
        let clicked = match &self.target {
            Target::Request { id, org } | Target::Command(Spoken { id, org, .. }) => {
                let ours = workspace.confirmation(id).is_some_and(|row| row.org == *org);
                return if ours {
                    Ok((id.clone(), None))
                } else {
                    Err((None, Refusal::NotFound))
                };
            }
            Target::Card(clicked) => clicked,
        };
        let Some((id, card)) = clicked.token.as_ref().and_then(|hash| workspace.by_token(hash)) else {
            return Err((None, Refusal::UnknownCard));
        };
        let (id, card) = (id.clone(), card.clone());
        let Some((row, delivery)) = workspace.confirmation(&id).zip(workspace.delivery(&card)) else {
            return Err((None, Refusal::UnknownCard));
        };
        if row.org != clicked.org || delivery.channel != clicked.channel {
            // Another organisation's chain does not name this one's request.
            let known = (row.org == clicked.org).then_some(id);
            return Err((known, Refusal::OtherChannel));
        }
        if !delivery.standing.iter().any(|message| message.at == clicked.at) {
            // Only while a post has an unknown outcome may a card stand that we have not heard of; it is recorded.
            // Nor may it be the message of another card that was once shared with this one.
            let doubtful = delivery.state == DeliveryState::Sending || delivery.unheard;
            if !doubtful || set::is_of_another(workspace, &id, &card, &clicked.at) {
                return Err((Some(id), Refusal::OtherMessage));
            }
            // All cards that were in that post are heard of.
            for (_, card) in set::sharing(workspace, &id, &card) {
                let standing = Standing {
                    at: clicked.at.clone(),
                    edition: 0,
                    minimal: false,
                };
                workspace.change_delivery(&card, |delivery| {
                    if delivery.unheard || delivery.state == DeliveryState::Sending {
                        delivery.standing.push(standing);
                        delivery.state = DeliveryState::Posted;
                        delivery.unheard = false;
                    }
                });
            }
            refresh_cards(workspace, &id);
            // The press told what the sender still waits for, or died waiting for.
            let row = set::outbox_row(workspace, &card);
            if let Some(item) = workspace.outbox(&row).cloned() {
                let not_before = workspace.now();
                workspace.put_outbox(OutboxItem {
                    lease: None,
                    not_before,
                    ..item
                });
            }
        }
        Ok((id, Some(card)))
    }

    /// Judges the answer to one request, and casts the vote if it may. `all` is the set that was answered at once, if it was.
    pub(super) fn vote(
        &self,
        workspace: &mut Workspace,
        id: &ConfirmationId,
        card: Option<&DeliveryId>,
        all: Option<SetCode>,
    ) -> Ruling {
        let Allowed {
            person,
            acting_for,
            wished,
            edit,
        } = match self.may_vote(workspace, id, card) {
            Ok(allowed) => allowed,
            Err(refusal) => {
                if refusal == Refusal::Expired {
                    expire::expire(workspace, id);
                }
                self.audit_refusal(workspace, Some(id), refusal.as_str(), all);
                return Ruling::Refused(refusal);
            }
        };
        let now = workspace.now();
        // A vote stands in the stage in which it was cast; an edit has all of them asked again.
        let cast_in = workspace.confirmation(id).map_or(0, |row| row.progress.stage);
        if let Some(revised) = edit {
            edit::adopt(workspace, id, &person, revised);
        }
        let Some(row) = workspace.confirmation(id) else {
            return Ruling::Refused(Refusal::NotFound);
        };
        let (org, job, edit) = (row.org.clone(), row.asked.job.clone(), row.call().edit);
        let cast_in = stage::at(&row.terms, cast_in);
        let channel = self.target.of().1.cloned();
        let mut draft = Draft::new(&org, "vote.cast", Actor::Operator(person.0.clone()))
            .about(id)
            .with("decision", self.decision.as_str())
            .with("surface", self.surface.as_str())
            .with_private("reason", self.reason.clone())
            .with_some("grant", wished.map(|scope| scope.to_string()))
            .with_some("stage", cast_in.name)
            .with_some("acting_for", acting_for.as_ref().map(OperatorId::as_str))
            .with_some("edit", (edit > 0).then_some(edit))
            .with_some("set", all.map(|all| all.to_string()));
        draft.job.clone_from(&job);
        draft.channel = channel.as_ref().map(|channel| channel.0.clone());
        let vote = Vote {
            person: person.clone(),
            decision: self.decision,
            channel,
            surface: self.surface.as_str().to_owned(),
            reason: self.reason.as_ref().map(|reason| reason.value.clone()),
            at: now,
            content: VoteContent {
                stage: cast_in.at,
                grant: wished,
                acting_for,
                edit,
                account: self.insight.account.clone(),
            },
        };
        workspace.audit(draft);
        workspace.insert_vote(id, vote);
        count(workspace, id, self, person)
    }

    fn may_vote(
        &self,
        workspace: &Workspace,
        id: &ConfirmationId,
        card: Option<&DeliveryId>,
    ) -> Result<Allowed<'_>, Refusal> {
        let row = workspace.confirmation(id).ok_or(Refusal::NotFound)?;
        let person = match &self.ballot {
            Ballot::Person(person) => person,
            Ballot::Stranger(_) => return Err(Refusal::UnknownOperator),
            Ballot::Foreigner(_) => return Err(Refusal::ForeignTenant),
            Ballot::Kept(_, refusal) => return Err(*refusal),
        };
        let now = workspace.now();
        let hopeful = self.roll.hopeful();
        let perhaps = |may: &dyn Fn(&Roll) -> bool| hopeful.as_ref().is_some_and(may);
        let may_decide = |roll: &Roll| roll.may_decide(person, &row.org, &row.terms, now);
        if !may_decide(&self.roll) {
            return Err(if perhaps(&may_decide) {
                Refusal::LookUpFailed
            } else {
                Refusal::NotAuthorised
            });
        }
        match row.state.status() {
            Status::Pending => {}
            Status::Expired => return Err(Refusal::Expired),
            _ => return Err(Refusal::AlreadySettled),
        }
        if now >= row.expires_at {
            return Err(Refusal::Expired);
        }
        if let Target::Card(clicked) = &self.target
            && clicked.revision != row.revision
        {
            return Err(Refusal::OutdatedCard);
        }
        let edit = edit::of_answer(self, row);
        let call = row.call();
        let answered =
            |vote: &Vote| self.roll.is_same(&vote.person, person) && vote.content.edit == call.edit;
        if edit.is_none() && workspace.votes(id).iter().any(answered) {
            return Err(Refusal::AlreadyVoted);
        }
        let stage = stage::current(&row.terms, &row.progress);
        // Nobody has answered to an edit before it is made.
        let votes = match edit {
            None => edit::standing(workspace.votes(id), &row.progress),
            Some(_) => Cow::Borrowed(&[][..]),
        };
        let seats = |roll: &Roll| !stage.seats(roll, person, &row.org, now, &[]).is_empty();
        if !seats(&self.roll) && perhaps(&seats) {
            return Err(Refusal::LookUpFailed);
        }
        let acting_for = self.seat(row, &votes, &stage, (person, now))?;
        if self.decision == Decision::Approve
            && card
                .and_then(|card| workspace.delivery(card))
                .is_some_and(|card| !card.approvable || self.on_minimal(card))
        {
            return Err(Refusal::PartialView);
        }
        if let (Target::Command(spoken), Decision::Approve) = (&self.target, self.decision) {
            spoken.may_approve(row)?;
        }
        // Who voted before and cannot be looked up now: with them this answer may settle the request, and without it would not.
        let lacks = |roll: &Roll| match self.decision {
            Decision::Approve => {
                let have = stage::standing(&votes, Decision::Approve, &stage, row, roll);
                have.saturating_add(1) < stage.quorum
            }
            Decision::Reject => {
                let have = stage::rejections(&votes, row, roll);
                have.saturating_add(1) < row.terms.deny_threshold.max(1)
            }
        };
        if lacks(&self.roll) && perhaps(&|roll| !lacks(roll)) {
            return Err(Refusal::LookUpFailed);
        }
        // A card says by its revision what the person saw. Arguments of one's own need not be about what stands.
        let saw = match self.target {
            Target::Card(_) => None,
            _ if self.decision == Decision::Reject => None,
            _ => self.seen.or(self.edit.is_none().then_some(0)),
        };
        if saw.is_some_and(|saw| saw != call.edit) {
            return Err(Refusal::EditUnseen);
        }
        let said = |reason: &Opening| says_something(&reason.value);
        if row.terms.decision.require_reason.of(self.decision) && !self.reason.as_ref().is_some_and(said) {
            return Err(Refusal::ReasonRequired);
        }
        let wished = match &self.grant {
            None => None,
            Some(wish) if self.decision == Decision::Approve && self.edit.is_none() => {
                Some(grant::offered(row, wish).ok_or(Refusal::GrantNotOffered)?)
            }
            Some(_) => return Err(Refusal::GrantNotOffered),
        };
        if let Some(Err(why)) = edit {
            return Err(Refusal::Edit(why));
        }
        Ok(Allowed {
            person: person.clone(),
            acting_for,
            wished,
            edit: edit.and_then(Result::ok),
        })
    }

    /// In whose place the person answers. To reject, any is good; to approve, one that nobody approved in before, and that of
    /// nobody who stands behind the call.
    fn seat(
        &self,
        row: &Confirmation,
        votes: &[Vote],
        stage: &stage::Current<'_>,
        (person, now): (&OperatorId, UtcMillis),
    ) -> Result<Option<OperatorId>, Refusal> {
        let seats = |barred: &[OperatorId]| stage.seats(&self.roll, person, &row.org, now, barred);
        let any = seats(&[]);
        let Some(first) = any.first() else {
            return Err(Refusal::NotThisStage);
        };
        if self.decision == Decision::Reject {
            return Ok(first.clone());
        }
        let barred = self.behind(row, person)?;
        let clear = seats(&barred);
        if clear.is_empty() {
            return Err(Refusal::SelfApproval);
        }
        let free = |seat: &Option<OperatorId>| {
            let seat = seat.as_ref().unwrap_or(person);
            let takes =
                |vote: &Vote| vote.decision == Decision::Approve && self.roll.is_same(vote.seat(), seat);
            !votes.iter().any(takes)
        };
        clear.into_iter().find(free).ok_or(Refusal::AlreadyRepresented)
    }

    /// Who stands behind the call, and may not approve it; the person is none of them.
    fn behind(&self, row: &Confirmation, person: &OperatorId) -> Result<Vec<OperatorId>, Refusal> {
        if row.terms.self_approval {
            return Ok(Vec::new());
        }
        let behind = [row.barred(), &self.insight.behind].concat();
        let stated = row.asked.requester.as_deref();
        if behind.iter().any(|other| self.roll.is_same(other, person))
            || stated.is_some_and(|requester| self.insight.is_called(requester))
        {
            return Err(Refusal::SelfApproval);
        }
        if self.insight.requester_unsure {
            return Err(Refusal::LookUpFailed);
        }
        Ok(behind)
    }

    /// Whether the message that was pressed shows ids only, since the platform refused the rest.
    fn on_minimal(&self, card: &Delivery) -> bool {
        let Target::Card(clicked) = &self.target else {
            return false;
        };
        let mut standing = card.standing.iter();
        standing.any(|message| message.at == clicked.at && message.minimal)
    }

    pub(super) fn audit_refusal(
        &self,
        workspace: &mut Workspace,
        id: Option<&ConfirmationId>,
        reason: &str,
        all: Option<SetCode>,
    ) {
        let actor = match &self.ballot {
            Ballot::Person(person) => Actor::Operator(person.0.clone()),
            Ballot::Stranger(user) | Ballot::Foreigner(user) | Ballot::Kept(user, _) => {
                Actor::Platform(user.clone())
            }
        };
        let (org, channel, _) = self.target.of();
        let kind = channel.map_or("vote.refused", |_| "callback.refused");
        let mut draft = Draft::new(org, kind, actor)
            .with("reason", reason)
            .with("decision", self.decision.as_str())
            .with("surface", self.surface.as_str())
            .with_some("set", all.map(|all| all.to_string()));
        draft.confirmation = id.cloned();
        draft.channel = channel.map(|channel| channel.0.clone());
        workspace.audit(draft);
    }

    fn remember(&self, workspace: &mut Workspace, dossier: Option<&Dossier>, ruling: &Ruling) {
        let (_, _, Some(replay)) = self.target.of() else {
            return;
        };
        // What a second try may answer otherwise is no answer.
        if *ruling == Ruling::Refused(Refusal::LookUpFailed) {
            return;
        }
        let now = workspace.now();
        let lives = dossier.map_or(now, |dossier| dossier.confirmation.expires_at.max(now));
        let answer = match ruling {
            Ruling::Counted => "counted",
            Ruling::Settled => "settled",
            Ruling::Replayed(_) => return,
            Ruling::Refused(refusal) => refusal.as_str(),
        };
        workspace.insert_replay(ReplayRow {
            key: replay.clone(),
            confirmation: dossier.map(|dossier| dossier.confirmation.id.clone()),
            answer: answer.to_owned(),
            forget_at: lives.plus(REPLAY_GRACE),
        });
    }
}

/// Leaves the clicked message alone while its platform shows the answer to the press.
pub(super) fn let_the_answer_show(workspace: &mut Workspace, card: &DeliveryId) {
    let row = set::outbox_row(workspace, card);
    if let Some(item) = workspace.outbox(&row).filter(|item| item.lease.is_none()) {
        let not_before = item.not_before.max(workspace.now().plus(LET_THE_ANSWER_SHOW));
        let item = OutboxItem {
            not_before,
            ..item.clone()
        };
        workspace.put_outbox(item);
    }
}
