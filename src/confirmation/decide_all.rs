//! Deciding all requests of a card at once. Each is voted on by itself, with every rule of a single press; one that refuses stops
//! none of the others. The press counts only for the set that was on the screen.

use gatepost_channel::SetCode;
use serde::{Deserialize, Serialize};

use super::decide::{Clicked, Decide, REPLAY_GRACE, Refusal, Ruling, Target, let_the_answer_show};
use super::step_up::Waiting;
use super::{Dossier, set};
use crate::delivery::button::ServerKey;
use crate::ids::{ConfirmationId, DeliveryId};
use crate::storage::{ReplayRow, Touches, Transaction, Workspace};

/// One answer to all open requests of a card.
#[derive(Debug, Clone)]
pub struct DecideAll {
    pub(super) press: Decide,
    /// The set that was on the screen.
    set: SetCode,
    /// Under which the set's code was made.
    key: ServerKey,
}

/// What the answer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllRuling {
    /// It was judged for each request.
    Judged(Tally),
    /// The same callback came before: this was its answer.
    Replayed(String),
    /// It was judged for none.
    Refused(Refusal),
}

/// How the requests of a set took one answer. Stored in the replay memory as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The vote settled so many.
    pub settled: usize,
    /// The vote counts for so many, which need more.
    pub counted: usize,
    /// The press alone approves so many not: each waits for what completes it.
    #[serde(default)]
    pub armed: usize,
    /// Some of those wait for a one-time code of the person, and not for somebody else.
    #[serde(default)]
    pub waits_for_code: bool,
    /// These refused it, each with the word of its reason.
    pub refused: Vec<(ConfirmationId, String)>,
}

impl Tally {
    /// For how many requests the answer did something.
    pub const fn done(&self) -> usize {
        self.settled + self.counted + self.armed
    }

    /// What the approvals wait for that the press alone did not complete.
    pub const fn waits_for(&self) -> Option<Waiting> {
        match (self.armed, self.waits_for_code) {
            (0, _) => None,
            (_, true) => Some(Waiting::Code),
            (_, false) => Some(Waiting::SecondPerson),
        }
    }
}

/// The ruling, and the set as it stands after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedAll {
    /// What the answer did.
    pub ruling: AllRuling,
    /// The whole set, in its order; none when the card is not known here.
    pub dossiers: Vec<Dossier>,
    /// Those that the answer settled.
    pub settled: Vec<ConfirmationId>,
    /// The card that was clicked.
    pub card: Option<DeliveryId>,
}

impl Transaction for DecideAll {
    type Answer = DecidedAll;
    const NAME: &'static str = "decide_all";

    fn touches(&self, touches: &mut Touches) {
        self.press.touches(touches);
    }

    fn apply(&self, workspace: &mut Workspace) -> DecidedAll {
        let nothing = |ruling| DecidedAll {
            ruling,
            dossiers: Vec::new(),
            settled: Vec::new(),
            card: None,
        };
        let Target::Card(clicked) = &self.press.target else {
            return nothing(AllRuling::Refused(Refusal::UnknownCard));
        };
        if let Some(row) = workspace.replay(&clicked.replay) {
            let (answer, request) = (row.answer.clone(), row.confirmation.clone());
            self.press.audit_refusal(workspace, request.as_ref(), "replayed");
            return DecidedAll {
                dossiers: request.map_or_else(Vec::new, |id| set::fellows(workspace, &id)),
                ..nothing(AllRuling::Replayed(answer))
            };
        }
        let (first, card) = match self.press.find(workspace) {
            Ok((first, Some(card))) => (first, card),
            Ok((known, None)) => return self.refuse(workspace, Some(known), None, Refusal::UnknownCard),
            Err((known, refusal)) => return self.refuse(workspace, known, None, refusal),
        };
        let members = set::sharing(workspace, &first, &card);
        let shown = members.iter().filter_map(|(id, _)| workspace.confirmation(id));
        if set::code(&self.key, shown) != self.set {
            return self.refuse(workspace, Some(first), Some(card), Refusal::OutdatedCard);
        }
        let (mut tally, mut settled) = (Tally::default(), Vec::new());
        for (id, card) in &members {
            let Some((row, delivery)) = workspace.confirmation(id).zip(workspace.delivery(card)) else {
                continue;
            };
            let one = Decide {
                target: Target::Card(Clicked {
                    token: Some(delivery.token_hash),
                    // The set's code says that it is the one on the screen.
                    revision: row.revision,
                    ..clicked.clone()
                }),
                ..self.press.clone()
            };
            match one.vote(workspace, id, Some(card)) {
                Ruling::Settled => {
                    tally.settled += 1;
                    settled.push(id.clone());
                }
                Ruling::Counted => tally.counted += 1,
                Ruling::Armed(waiting) => {
                    tally.armed += 1;
                    tally.waits_for_code |= waiting == Waiting::Code;
                }
                Ruling::Refused(refusal) => tally.refused.push((id.clone(), refusal.as_str().to_owned())),
                Ruling::Replayed(word) => tally.refused.push((id.clone(), word)),
            }
        }
        let_the_answer_show(workspace, &card);
        // What a second try may answer otherwise is no answer.
        let unsure = |(_, word): &(ConfirmationId, String)| word == Refusal::LookUpFailed.as_str();
        if tally.done() > 0 || !tally.refused.iter().any(unsure) {
            let answer = serde_json::to_string(&tally).unwrap_or_default();
            self.remember(workspace, Some(&first), &answer);
        }
        DecidedAll {
            ruling: AllRuling::Judged(tally),
            dossiers: set::fellows(workspace, &first),
            settled,
            card: Some(card),
        }
    }
}

impl DecideAll {
    /// Of a press on the card of the set's first request; `set` was on the screen, and `key` makes codes of sets.
    pub fn new(mut press: Decide, set: SetCode, key: ServerKey) -> Self {
        if let Target::Card(clicked) = &mut press.target {
            clicked.set = Some(set);
        }
        // Neither is on the buttons for all.
        (press.grant, press.edit) = (None, None);
        Self { press, set, key }
    }

    /// Nothing was judged. The set is told all the same where the card is its own: the new card is the answer.
    fn refuse(
        &self,
        workspace: &mut Workspace,
        known: Option<ConfirmationId>,
        card: Option<DeliveryId>,
        refusal: Refusal,
    ) -> DecidedAll {
        self.press
            .audit_refusal(workspace, known.as_ref(), refusal.as_str());
        self.remember(workspace, known.as_ref(), refusal.as_str());
        let known = known.filter(|_| card.is_some());
        DecidedAll {
            ruling: AllRuling::Refused(refusal),
            dossiers: known.map_or_else(Vec::new, |first| set::fellows(workspace, &first)),
            settled: Vec::new(),
            card,
        }
    }

    /// Keeps the answer as long as any of the set can live.
    fn remember(&self, workspace: &mut Workspace, first: Option<&ConfirmationId>, answer: &str) {
        let Target::Card(clicked) = &self.press.target else {
            return;
        };
        let now = workspace.now();
        let fellows = first.map_or_else(Vec::new, |first| workspace.set_of(first));
        let ends = fellows.iter().filter_map(|id| workspace.confirmation(id));
        let lives = ends
            .map(|row| row.expires_at)
            .max()
            .map_or(now, |end| end.max(now));
        workspace.insert_replay(ReplayRow {
            key: clicked.replay.clone(),
            confirmation: first.cloned(),
            answer: answer.to_owned(),
            forget_at: lives.plus(REPLAY_GRACE),
        });
    }
}
