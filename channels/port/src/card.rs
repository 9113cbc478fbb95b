//! The neutral card: what people must see, before any platform's form.
//!
//! Words of ours are `String`s that come from `templates/cards`; everything that anybody else wrote is [`Inert`]. An adapter
//! lays the card out, keeps the platform's budgets, and shows [`Inert`] text only in places where no markup is read.

use crate::body::Body;
use crate::button::{ButtonToken, ButtonValue};
use crate::text::Inert;
use serde::{Deserialize, Serialize};

/// What the card is about to say at first glance; adapters pick the colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// A person is needed.
    Pending,
    /// Approved.
    Approved,
    /// Rejected.
    Rejected,
    /// The deadline passed, or the request was withdrawn or reached nobody.
    Closed,
}

/// What the rule says is at stake, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
    /// More than can be made good.
    Critical,
}

impl Risk {
    /// All of them with their words, the least first.
    pub const ALL: [(&'static str, Self); 4] = [
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("critical", Self::Critical),
    ];

    /// The word of the configuration and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Whether approving should look as grave as it is.
    pub fn is_grave(self) -> bool {
        self >= Self::High
    }
}

/// One line of facts: our label, somebody's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// In the channel's language.
    pub label: String,
    /// Shown as text.
    pub value: Inert,
}

/// Our own words that an adapter needs for its layout, in the channel's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// Label of the approving button.
    pub approve: String,
    /// Label of the rejecting button.
    pub reject: String,
    /// Label of the link or button to the full view.
    pub show_everything: String,
    /// Heading above the arguments.
    pub arguments: String,
    /// Placed where arguments were left out; holds `{shown}` and `{total}`.
    pub cut: String,
    /// Why there is no Approve on a card that cannot show everything.
    pub approve_in_full_view: String,
    /// Label of the field for a reason.
    pub reason: String,
    /// Label of the button that opens a form for a reason to reject.
    pub reject_with_reason: String,
    /// Label of the link to the console.
    pub open_console: String,
}

impl Words {
    /// The line that says how much is shown.
    pub fn cut_line(&self, shown: usize, total: usize) -> String {
        self.cut
            .replace("{shown}", &shown.to_string())
            .replace("{total}", &total.to_string())
    }
}

/// What can be pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actions {
    /// A settled card: nothing.
    None,
    /// An open request.
    Decide {
        /// The delivery's token.
        token: ButtonToken,
        /// The revision of this card.
        revision: u32,
        /// Whether Approve stands even when the arguments had to be cut (`partial_view: approve`).
        approve_when_cut: bool,
        /// Where everything can be seen.
        full_view: Option<String>,
        /// What an answer needs, and what else can be answered.
        asks: Asks,
    },
}

/// Several like requests in one card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSet {
    /// Each request as a card of its own, in the order in which they were asked: id, title, facts, arguments and buttons. What is
    /// the same for all of them (tool, facts) stands on the outer card and only there. None holds a set itself.
    pub items: Vec<Card>,
    /// Answering all that are open at once; nothing once none is. An adapter leaves it out where an item is not shown whole.
    pub all: Option<All>,
}

/// Answering all requests of a card at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct All {
    /// What both buttons carry.
    pub value: ButtonValue,
    /// Label of approving all; it says how many.
    pub approve: String,
    /// Label of rejecting all; it says how many.
    pub reject: String,
    /// Approve is asked once more before it is sent.
    pub once_more: Option<OnceMore>,
}

/// What an answer needs beside the press, and what can be answered beside a plain yes or no. The default is the plain card.
///
/// An adapter that cannot lay one of these out leaves it out: the core refuses what lacks something, and tells the person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asks {
    /// Approve needs words of the person: it opens a field for them instead of counting at once.
    pub reason_to_approve: bool,
    /// Reject needs words of the person.
    pub reason_to_reject: bool,
    /// Approve is asked once more before it is sent (Slack: the button's `confirm` object; Feishu: its `confirm` dialogue).
    pub once_more: Option<OnceMore>,
    /// Ways to approve that let later calls run too. Each is sent back in [`Click::grant`](crate::Click::grant).
    pub grants: Vec<GrantOffer>,
    /// The arguments may be changed by whoever approves, where everything is shown to them alone ([`EditForm`](crate::EditForm)).
    pub edits: bool,
}

impl Asks {
    /// The offers to lay out: the first `most`, each scope once, since platforms want every control to have a name of its own.
    pub fn distinct(&self, most: usize) -> Vec<&GrantOffer> {
        let mut offers: Vec<&GrantOffer> = Vec::new();
        for offer in &self.grants {
            if offers.len() < most && offers.iter().all(|other| other.scope != offer.scope) {
                offers.push(offer);
            }
        }
        offers
    }
}

/// The question before Approve is sent; own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceMore {
    /// Its heading.
    pub title: String,
    /// What is asked.
    pub text: String,
    /// Label of going on.
    pub yes: String,
    /// Label of going back.
    pub no: String,
}

/// One way to approve this call and later ones like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantOffer {
    /// The word that a click sends back: `session`, `1h`.
    pub scope: String,
    /// Own words; they say for how long.
    pub label: String,
}

impl Card {
    /// Whether anything can be decided on it.
    pub fn is_open(&self) -> bool {
        let decides = |card: &Self| matches!(card.actions, Actions::Decide { .. });
        decides(self) || self.set.as_ref().is_some_and(|set| set.items.iter().any(decides))
    }
}

/// One card, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The request's id, `cr_…`.
    pub request_id: String,
    /// At first glance.
    pub tone: Tone,
    /// What is at stake, where the rule says so: adapters colour an open card by it. Its words stand among the facts.
    pub risk: Option<Risk>,
    /// Own words: what is asked or what happened.
    pub title: String,
    /// Own words and ids only, for push messages and lists: never arguments, never names.
    pub preview: String,
    /// The tool, as asked.
    pub tool: Inert,
    /// Who asks, for whom, until when, why, votes so far, outcome: in reading order.
    pub facts: Vec<Fact>,
    /// The arguments for people, redacted, laid out in parts.
    pub arguments: Body,
    /// What can be pressed.
    pub actions: Actions,
    /// Words for the layout.
    pub words: Words,
    /// On a card of several requests: these. Its own arguments and actions are empty then.
    pub set: Option<CardSet>,
}
