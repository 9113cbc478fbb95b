//! Showing one person more than the group sees: a form for words, or all there is to see with the answers below it.
//!
//! Platforms differ in how: [`Dialogs`] are windows that a press opens at once (Slack's modals); [`Pages`] are messages of the bot to
//! this one person, sent one after the other (Feishu). What is shown, to whom, and whether an answer stands on it, the core decides.

use async_trait::async_trait;

use crate::ask::Opener;
use crate::button::Seen;
use crate::card::Card;
use crate::channel::{MessageRef, PostKey, Posted};
use crate::failure::Failure;
use crate::inbound::Decision;
use crate::text::Inert;

/// What is shown in a dialogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// Keeps the place until the rest is there.
    Wait(Say),
    /// Tells something; nothing can be answered.
    Tell(Say),
    /// Asks for the words of one answer.
    Reason(Box<ReasonForm>),
    /// All there is to see.
    Everything(Box<FullView>),
}

/// A sentence or two of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// The heading; own words.
    pub title: String,
    /// What is said.
    pub text: Inert,
    /// Where more can be seen.
    pub link: Option<Link>,
    /// Words for the layout.
    pub words: DialogWords,
}

/// An address of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Own words.
    pub label: String,
    /// `https` or `http`.
    pub url: String,
}

/// Asks for the words of one answer to the request on a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonForm {
    /// The card as the request stands; its token and revision travel with the form.
    pub card: Card,
    /// Where the card stands from which it was opened; travels with the form.
    pub at: MessageRef,
    /// The answer.
    pub decision: Decision,
    /// The offer that was pressed for later calls too.
    pub grant: Option<String>,
    /// Whether the answer counts only with words.
    pub required: bool,
    /// Words for the layout.
    pub words: DialogWords,
}

/// All there is to see of a request, and the answers, for one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullView {
    /// The card as the request stands. Answers are laid out as far as its [`Actions`](crate::Actions) have them.
    pub card: Card,
    /// All of the arguments, redacted. They are shown letter for letter or the view is not shown at all.
    pub arguments: Inert,
    /// Where the card stands from which it was opened; travels with an answer.
    pub at: MessageRef,
    /// Travels with an answer: that this person could see everything. Without it nothing can be answered here.
    pub seen: Option<Seen>,
    /// The arguments to be changed by whoever approves, where that is offered.
    pub edit: Option<EditForm>,
    /// Words for the layout.
    pub words: DialogWords,
}

/// The arguments in a field, for one person to change before they approve. What stands in it when an approval is sent comes back in
/// [`Click::edited`](crate::Click::edited), changed or not; the core judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditForm {
    /// JSON over several lines, whole or not at all: with what stands in the place of hidden values, and with whatever would not be
    /// seen as it is written as an escape. An adapter may write more characters as escapes of JSON, where its platform would change
    /// them on the way.
    pub text: String,
    /// Label of the field; own words.
    pub label: String,
    /// Label of approving what stands in the field, where that is a button of its own.
    pub approve: String,
    /// Where else the arguments can be changed: shown when they do not fit into a field.
    pub elsewhere: String,
}

/// Our own words around a dialogue, in the channel's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogWords {
    /// Label of closing it without an answer.
    pub close: String,
    /// Label of sending the chosen answer.
    pub send: String,
    /// Label of the choice between the answers.
    pub answer: String,
    /// Heads one of several parts; holds `{part}` and `{parts}`.
    pub part: String,
}

impl DialogWords {
    /// The heading of one part, counted from 1.
    pub fn part_line(&self, part: usize, parts: usize) -> String {
        self.part
            .replace("{part}", &part.to_string())
            .replace("{parts}", &parts.to_string())
    }
}

/// An opened dialogue, to be changed while it is open. As short-lived as what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogRef(pub String);

/// Windows that open for the person who pressed.
///
/// What is sent from one MUST come in as a [`Click`](crate::Click) from [`Vantage::Alone`](crate::ask::Vantage) with the token,
/// revision, place and `seen` that it was opened with, kept by the platform and not by whoever fills it in. Closing one changes nothing.
#[async_trait]
pub trait Dialogs: Send + Sync {
    /// Whether the view fits, letter for letter. Pure; agrees with what [`Dialogs::open`] sends.
    fn holds(&self, view: &FullView) -> bool;

    /// Opens a dialogue. The platform gives a few seconds from the press, so nothing slow may come before this. An opener that is
    /// used up or too late is [`Failure::Gone`].
    async fn open(&self, opener: &Opener, dialog: &Dialog) -> Result<DialogRef, Failure>;

    /// Replaces what an open dialogue shows. One that was closed meanwhile is [`Failure::Gone`].
    async fn change(&self, at: &DialogRef, dialog: &Dialog) -> Result<(), Failure>;
}

/// Messages of the bot to one person: the arguments in parts, then one with the answers.
///
/// The parts depend on tool and arguments alone, so that they fit together whenever each of them is sent.
#[async_trait]
pub trait Pages: Send + Sync {
    /// How many messages there are in all; `None` when it would be too many. Pure.
    fn count(&self, view: &FullView) -> Option<u32>;

    /// Sends the message with this number, from 0, to the person. The last one holds the answers. Outcomes are those of
    /// [`Channel::post`](crate::Channel::post), and so is `key`.
    async fn send(&self, user: &str, view: &FullView, number: u32, key: &PostKey) -> Posted;

    /// Replaces the message with the answers. What stood there can be answered no more even if the platform refuses the content that
    /// takes its place: it is left in its barest form then.
    async fn edit(&self, at: &MessageRef, view: &FullView) -> Result<(), Failure>;
}
