//! The gatekeeper: what callers may do, whatever they come through. The API, agent hosts, jobs, the console and chat callbacks
//! all use it, so that there is one way to ask, one to decide and one to consume.
//!
//! It puts the pure rooms together: policy judges, a transaction stores, cards are planned. [`ask`] is the question, [`council`] who is
//! heard before policy, [`permit`]
//! the way to an execution, [`wait`] the wait for people, [`journal`] what is written behind the answer.

use std::sync::Arc;

use gatepost_channel::Decision;

use crate::audit::Opening;
use crate::confirmation::cancel::{Cancel, Cancelled};
use crate::confirmation::decide::{Backing, Ballot, Decide, Decided, Refusal, Ruling, Surface, Target};
use crate::confirmation::grant::Wish;
use crate::confirmation::outcome::{Report, Reported};
use crate::confirmation::roll::Roll;
use crate::confirmation::{Dossier, Outcome};
use crate::delivery::card::CardMaker;
use crate::delivery::registry::Registry;
use crate::gate::Arguments;
use crate::gate::policy::Policy;
use crate::ids::{ConfirmationId, GrantId, Ids, OperatorId, Org, TokenName};
use crate::storage::{Store, StoreError};

pub mod ask;
pub mod attend;
mod break_glass;
pub mod council;
pub mod directory;
pub mod edit;
pub mod journal;
pub mod meter;
pub mod people;
pub mod permit;
pub mod wait;

pub use ask::{Answer, Question};
pub use break_glass::may_see_all;
pub use council::{Council, Via};
pub use directory::Directories;
pub use edit::{KnownShapes, Shapes, Unfit};
pub use journal::Journal;
pub use people::People;

#[cfg(test)]
mod council_tests;

/// Free text from callers is cut to this many characters before it is stored.
pub const MAX_TEXT: usize = 2_000;

/// A word from outside, such as the scope of a grant, is cut to this many characters.
const MAX_WORD: usize = 32;

/// What an operator says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saying<'a> {
    /// Yes or no.
    pub decision: Decision,
    /// Why, in their words.
    pub reason: Option<&'a str>,
    /// The scope of the grant that they ask for with it.
    pub grant: Option<&'a str>,
    /// The arguments as they changed them.
    pub edited_args: Option<&'a Arguments>,
    /// Which edit of the arguments they saw; nothing where they know of none.
    pub edit: Option<u32>,
    /// The one-time code that they give with it.
    pub code: Option<&'a str>,
    /// That they go past everybody else.
    pub break_glass: bool,
}

impl Saying<'_> {
    /// A plain yes or no.
    pub const fn plain(decision: Decision) -> Self {
        Self {
            decision,
            reason: None,
            grant: None,
            edited_args: None,
            edit: None,
            code: None,
            break_glass: false,
        }
    }
}

/// What came of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// What it did.
    pub decided: Decided,
    /// Why the changed arguments are none that the request takes. It is told only to who may answer: see [`Ruled::unfit`].
    unfit: Option<Unfit>,
}

impl Ruled {
    /// Why the changed arguments were not taken, if that is why nothing was changed.
    pub fn unfit(&self) -> Option<&Unfit> {
        let refused = matches!(self.decided.ruling, Ruling::Refused(Refusal::Edit(_)));
        self.unfit.as_ref().filter(|_| refused)
    }
}

/// An authenticated caller of an agent's kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token, by name.
    pub token: TokenName,
    /// Its organisation.
    pub org: Org,
    /// Who runs it.
    pub owner: Option<OperatorId>,
}

/// What a gatekeeper is made of.
pub struct Parts {
    /// Where everything is.
    pub store: Store,
    /// What the rules say.
    pub policy: Arc<Policy>,
    /// Who may decide.
    pub roll: Arc<Roll>,
    /// Who is who.
    pub people: Arc<People>,
    /// Who is who by what the platforms say.
    pub directories: Directories,
    /// Where cards go.
    pub registry: Registry,
    /// How cards are made.
    pub maker: CardMaker,
    /// Chance.
    pub ids: Arc<dyn Ids>,
    /// What is written behind the answer.
    pub journal: Journal,
    /// Who is heard before policy on calls that no run makes.
    pub council: Arc<dyn Council>,
    /// What tools take.
    pub shapes: KnownShapes,
}

/// See the module. Clones share it.
#[derive(Clone)]
pub struct Gatekeeper(Arc<Parts>);

impl Gatekeeper {
    /// Puts a gatekeeper together.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Who may decide.
    pub fn roll(&self) -> &Arc<Roll> {
        &self.0.roll
    }

    /// Who is who.
    pub fn people(&self) -> &People {
        &self.0.people
    }

    /// Who is who by what the platforms say.
    pub fn directories(&self) -> &Directories {
        &self.0.directories
    }

    /// Where cards go.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// How cards are made.
    pub fn maker(&self) -> &CardMaker {
        &self.0.maker
    }

    /// Chance.
    pub fn ids(&self) -> &Arc<dyn Ids> {
        &self.0.ids
    }

    /// What is written behind the answer.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// What tools take, where that is known.
    pub fn shapes(&self) -> &KnownShapes {
        &self.0.shapes
    }

    /// Who is heard before policy on calls that no run makes.
    pub fn council(&self) -> &dyn Council {
        &*self.0.council
    }

    /// A known operator answers a request that they name by id.
    pub async fn respond(
        &self,
        operator: &OperatorId,
        org: &Org,
        id: &ConfirmationId,
        decision: Decision,
        reason: Option<&str>,
        surface: Surface,
    ) -> Result<Decided, StoreError> {
        let saying = Saying {
            reason,
            ..Saying::plain(decision)
        };
        Ok(self.answer(operator, org, id, saying, surface).await?.decided)
    }

    /// A known operator answers a request that they name by id, with all that can be said.
    pub async fn answer(
        &self,
        operator: &OperatorId,
        org: &Org,
        id: &ConfirmationId,
        saying: Saying<'_>,
        surface: Surface,
    ) -> Result<Ruled, StoreError> {
        let Saying {
            decision,
            reason,
            grant,
            edited_args,
            edit: seen,
            code,
            break_glass,
        } = saying;
        let revised = match edited_args {
            None => None,
            Some(args) => Some(match self.dossier(org, id).await? {
                Some(dossier) => self.revise(&dossier, operator, args),
                None => Err(Unfit::unknown()),
            }),
        };
        let (edit, unfit) = match revised {
            None => (None, None),
            Some(Ok(revised)) => (Some(Ok(revised)), None),
            Some(Err(unfit)) => (Some(Err(unfit.why)), Some(unfit)),
        };
        let (glass, company) = if break_glass {
            let (glass, company) = self.glass(operator, org, id, reason).await?;
            (Some(glass), company)
        } else {
            (None, Vec::new())
        };
        let dossier = if self.directories().is_in_use(org) {
            self.store().read().dossier(id).await?
        } else {
            None
        };
        let (roll, insight) = self.roll_for(org, operator, dossier.as_ref()).await?;
        let roll = if company.is_empty() {
            roll
        } else {
            Arc::new(roll.with(company))
        };
        let decide = Decide {
            target: Target::Request {
                id: id.clone(),
                org: org.clone(),
            },
            ballot: Ballot::Person(operator.clone()),
            decision,
            reason: self.text(reason),
            grant: self.wish(grant),
            edit,
            seen,
            surface,
            backing: Backing {
                code: code.map(|code| code.chars().take(MAX_WORD).collect()),
                glass,
            },
            roll,
            insight,
        };
        let decided = self.0.store.run(decide).await?;
        if break_glass && decided.ruling == Ruling::Settled {
            metrics::counter!("gatepost_break_glass_total").increment(1);
            tracing::warn!(
                request = id.as_str(),
                operator = operator.as_str(),
                "somebody broke the glass"
            );
        }
        self.tell_vote(&decided);
        Ok(Ruled { decided, unfit })
    }

    /// The grant that is asked for by this word, with the id that it gets if it is made.
    pub fn wish(&self, scope: Option<&str>) -> Option<Wish> {
        scope.map(|scope| Wish {
            scope: scope.chars().take(MAX_WORD).collect(),
            id: GrantId::fresh(&**self.ids()),
        })
    }

    /// Who asked withdraws a request.
    pub async fn cancel(&self, caller: &Caller, id: &ConfirmationId) -> Result<Cancelled, StoreError> {
        let cancel = Cancel {
            id: id.clone(),
            org: caller.org.clone(),
            token: caller.token.clone(),
        };
        let cancelled = self.0.store.run(cancel).await?;
        if let Cancelled::Done(dossier) = &cancelled {
            self.tell_decided(dossier);
        }
        Ok(cancelled)
    }

    /// Who executed a call reports what it led to.
    pub async fn report(
        &self,
        via: Via,
        caller: &Caller,
        id: &ConfirmationId,
        outcome: Outcome,
    ) -> Result<Reported, StoreError> {
        let detail = self.text(outcome.detail.as_deref());
        let outcome = Outcome {
            status: outcome.status,
            detail: detail.as_ref().map(|detail| detail.value.clone()),
        };
        let report = Report {
            id: id.clone(),
            org: caller.org.clone(),
            token: caller.token.clone(),
            outcome,
            detail,
        };
        let reported = self.0.store.run(report).await?;
        if let Reported::Done(dossier) = &reported {
            self.tell_reported(via, dossier);
        }
        Ok(reported)
    }

    /// The request, if this organisation may know of it.
    pub async fn dossier(&self, org: &Org, id: &ConfirmationId) -> Result<Option<Dossier>, StoreError> {
        Ok(self
            .0
            .store
            .read()
            .dossier(id)
            .await?
            .filter(|dossier| dossier.confirmation.org == *org))
    }

    /// Free text as it may be stored: cut, without NUL, salted for the audit log. Nothing is made of blank text.
    pub fn text(&self, text: Option<&str>) -> Option<Opening> {
        let text: String = text?
            .trim()
            .replace('\0', "\u{FFFD}")
            .chars()
            .take(MAX_TEXT)
            .collect();
        (!text.is_empty()).then(|| Opening::new(&text, &*self.0.ids))
    }
}
