//! Deciding: the one function behind every surface. Card, API, console, command line, terminal and words in a chat all end here;
//! nothing else casts a vote.

use std::borrow::Cow;
use std::sync::Arc;

use gatepost_channel::{Decision, SetCode, UtcMillis};

use crate::audit::{Actor, Draft, Opening};
use crate::delivery::OutboxItem;
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OperatorId, Org};
use crate::storage::{ReplayKey, ReplayRow, Touches, Transaction, Workspace};

use super::break_glass::{self, Glass};
use super::cast::Allowed;
use super::edit::{self, EditRefusal, Revised};
use super::grant::{self, Wish};
pub use super::insight::Insight;
pub use super::refusal::Refusal;
use super::roll::Roll;
pub use super::spoken::Spoken;
use super::step_up::{self, Waiting};
use super::{Confirmation, Delivery, Dossier, Status, Vote, proof, set, stage};
use crate::gate::decision::says_something;
use crate::gate::grant::GrantScope;

pub use super::clicked::Clicked;

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
    /// A dialogue or messages that showed this very person everything: it can be approved there although the card was cut.
    FullView,
}

impl Surface {
    /// All of them: a test walks through every one.
    pub const ALL: [Self; 6] = [
        Self::Card,
        Self::Api,
        Self::Console,
        Self::Terminal,
        Self::Command,
        Self::FullView,
    ];

    /// Whether it is on a chat platform, where no code is given: whoever holds the account there would hold both.
    pub const fn is_chat(self) -> bool {
        matches!(self, Self::Card | Self::Command | Self::FullView)
    }

    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Api => "api",
            Self::Console => "console",
            Self::Terminal => "terminal",
            Self::Command => "command",
            Self::FullView => "full_view",
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
    /// What backs the answer beside the person's word.
    pub backing: Backing,
    /// Who may decide, as the configuration and the platforms have it now.
    pub roll: Arc<Roll>,
    /// What else was found out about people.
    pub insight: Insight,
}

/// What backs an answer beside the person's word. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backing {
    /// The one-time code that was given with it, as it was typed.
    pub code: Option<String>,
    /// That it goes past everybody else.
    pub glass: Option<Glass>,
}

/// What an answer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The vote counts; more are needed.
    Counted,
    /// The approval counts nothing yet: it waits for what completes it.
    Armed(Waiting),
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

impl Transaction for Decide {
    type Answer = Decided;
    const NAME: &'static str = "decide";

    fn touches(&self, touches: &mut Touches) {
        match &self.target {
            Target::Request { id, org } => {
                touches.orgs.insert(org.clone());
                touches.confirmations.insert(id.clone());
                if let Some(glass) = &self.backing.glass {
                    touches
                        .tallies
                        .insert(break_glass::uses(org, glass.rule.as_deref()));
                }
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
        if let (Some(_), Ballot::Person(person)) = (&self.backing.code, &self.ballot) {
            proof::touches(person, touches);
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> Decided {
        if let (_, _, Some(replay)) = self.target.of()
            && let Some(row) = workspace.replay(replay)
        {
            let (answer, request) = (row.answer.clone(), row.confirmation.clone());
            self.audit_refusal(workspace, request.as_ref(), "replayed");
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
                let ruling = match &self.backing.glass {
                    Some(glass) => self.break_glass(workspace, &id, glass),
                    None => self.vote(workspace, &id, card.as_ref()),
                };
                (Some((id, card)), ruling)
            }
            Err((known, refusal)) => {
                self.audit_refusal(workspace, known.as_ref(), refusal.as_str());
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
    /// The set that was answered at once, if it was.
    pub(super) fn set(&self) -> Option<SetCode> {
        match &self.target {
            Target::Card(clicked) => clicked.set,
            Target::Request { .. } | Target::Command(_) => None,
        }
    }

    /// The channel through which the person answered.
    pub(super) fn channel(&self) -> Option<ChannelName> {
        self.target.of().1.cloned()
    }

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
        let (id, card) = clicked.find(workspace)?;
        Ok((id, Some(card)))
    }

    /// Which edit the person saw, where that must be the one that stands. A card says by its revision what the person saw;
    /// arguments of one's own need not be about what stands.
    fn saw(&self) -> Option<u32> {
        match self.target {
            Target::Card(_) => None,
            _ if self.decision == Decision::Reject => None,
            _ => self.seen.or(self.edit.is_none().then_some(0)),
        }
    }

    /// Whether the answer says what the rule asks for, and the grant that it asks for.
    fn content(
        &self,
        row: &Confirmation,
        who: (&OperatorId, Option<&OperatorId>),
        now: UtcMillis,
    ) -> Result<Option<GrantScope>, Refusal> {
        let said = |reason: &Opening| says_something(&reason.value);
        // Where an approval takes more than one act, the reason may have come with another of them.
        let in_one_act = self.decision == Decision::Reject || row.terms.decision.step_up.is_none();
        if in_one_act
            && row.terms.decision.require_reason.of(self.decision)
            && !self.reason.as_ref().is_some_and(said)
        {
            return Err(Refusal::ReasonRequired);
        }
        match &self.grant {
            None => Ok(None),
            Some(wish) if self.decision == Decision::Approve && self.edit.is_none() => {
                // Later calls are asked for by the rule alone, without any step: who was let in by one could let none of them run.
                let stage = stage::current(&row.terms, &row.progress);
                grant::offered(row, wish)
                    .filter(|_| stage.entitles(&self.roll, who, &row.org, now, row.barred()))
                    .map(Some)
                    .ok_or(Refusal::GrantNotOffered)
            }
            Some(_) => Err(Refusal::GrantNotOffered),
        }
    }

    pub(super) fn may_vote(
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
        let terms = row.in_force();
        let may_decide = |roll: &Roll| roll.may_decide(person, &row.org, &terms, now);
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
            |vote: &&Vote| self.roll.is_same(&vote.person, person) && vote.content.edit == call.edit;
        let before = workspace
            .votes(id)
            .iter()
            .find(answered)
            .filter(|_| edit.is_none());
        // Who has approved may still confirm what somebody else approves.
        let confirms = |vote: &Vote| {
            [vote.decision, self.decision] == [Decision::Approve; 2]
                && step_up::somebody_waits(row, person, &self.roll, now)
        };
        if before.is_some_and(|vote| !confirms(vote)) {
            return Err(Refusal::AlreadyVoted);
        }
        let stage = stage::current(&terms, &row.progress);
        // Nobody has answered to an edit before it is made.
        let votes = match edit {
            None => edit::standing(workspace.votes(id), &row.progress),
            Some(_) => Cow::Borrowed(&[][..]),
        };
        let seats = |roll: &Roll| !stage.seats(roll, person, &row.org, now, &[]).is_empty();
        if !seats(&self.roll) && perhaps(&seats) {
            return Err(Refusal::LookUpFailed);
        }
        let other = |vote: &&Vote| !self.roll.is_same(&vote.person, person);
        let others: Vec<&Vote> = votes.iter().filter(other).collect();
        let acting_for = self.seat(row, &others, &stage, (person, now))?;
        if self.decision == Decision::Approve
            && self.surface != Surface::FullView
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
        if self.saw().is_some_and(|saw| saw != call.edit) {
            return Err(Refusal::EditUnseen);
        }
        let wished = self.content(row, (person, acting_for.as_ref()), now)?;
        if let Some(Err(why)) = edit {
            return Err(Refusal::Edit(why));
        }
        Ok(Allowed {
            person: person.clone(),
            acting_for,
            wished,
            edit: edit.and_then(Result::ok),
            voted: before.is_some(),
        })
    }

    /// In whose place the person answers. To reject, any is good; to approve, one that nobody approved in before, and that of
    /// nobody who stands behind the call.
    fn seat(
        &self,
        row: &Confirmation,
        others: &[&Vote],
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
                |vote: &&Vote| vote.decision == Decision::Approve && self.roll.is_same(vote.seat(), seat);
            !others.iter().any(takes)
        };
        clear.into_iter().find(free).ok_or(Refusal::AlreadyRepresented)
    }

    /// Who stands behind the call, and may not approve it; the person is none of them.
    pub(super) fn behind(&self, row: &Confirmation, person: &OperatorId) -> Result<Vec<OperatorId>, Refusal> {
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
        // Whoever has an entry of their own is told apart by it.
        let doubt = self.insight.doubt.filter(|_| {
            let person = self.roll.person(person);
            !self.roll.is_entered(person)
        });
        doubt.map_or(Ok(behind), |doubt| Err(doubt.refusal()))
    }

    /// Whether the message that was pressed shows ids only, since the platform refused the rest.
    fn on_minimal(&self, card: &Delivery) -> bool {
        let Target::Card(clicked) = &self.target else {
            return false;
        };
        let mut standing = card.standing.iter();
        standing.any(|message| message.at == clicked.at && message.minimal)
    }

    pub(super) fn audit_refusal(&self, workspace: &mut Workspace, id: Option<&ConfirmationId>, reason: &str) {
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
            .with_some("set", self.set().map(|set| set.to_string()));
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
            Ruling::Armed(Waiting::Code) => "armed_code",
            Ruling::Armed(Waiting::SecondPerson) => "armed_second_person",
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
