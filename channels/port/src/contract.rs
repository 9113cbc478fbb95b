//! The port as a contract: what `docs/CHANNEL-CONTRACT.md` asks of every adapter, as checks that an adapter's tests run on its own fake
//! platform. Compiled only with the feature `contract`, which is for dev-dependencies. A check panics with the rule that was broken.
//!
//! An adapter implements [`Platform`] once and calls every `check_*` beside; [`check_channel`] is for channels without a platform too.
//! Knows no platform; what only the adapter can judge (its markup, its limits) it asks of [`Platform::assert_ours`].

use std::time::Duration;

use crate::{
    Card, CardForm, Channel, Decision, Dialog, DialogRef, Failure, FullView, Health, MessageRef, Note,
    Posted, RawRequest, UtcMillis, Wants,
};

mod call;
mod callback;
mod card;
mod command;
mod log;
mod opening;
mod thread;
mod view;

pub use call::{check_channel, check_fallback, check_outcomes, check_silence};
pub use callback::{check_answers, check_clicks, check_refusals};
pub use card::{check_cards, check_sets, check_text};
pub use command::check_commands;
pub use thread::check_threads;
pub use view::{check_view_hostile, check_view_text, check_views};

/// One answer of the fake platform to the next call of the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is done.
    Done,
    /// Too many calls; the platform asks for [`WAIT`].
    RateLimited,
    /// The platform broke and says so (5xx).
    ServerError,
    /// The content of the card is refused.
    ContentRefused,
    /// To a post: the group is not there, or the bot is not in it. To an edit: the message is not there. To what opens something: the
    /// leave to do so is over. To a page: the person cannot be written to.
    NotThere,
    /// The request is read, and the connection closed without an answer.
    HangUp,
    /// A yes with nothing in it.
    Nothing,
}

/// What [`Next::RateLimited`] asks for.
pub const WAIT: Duration = Duration::from_secs(7);

/// Stands in arguments, names, facts and secrets of the checks: it may be in a posted card, and in no error or log line. A fixture
/// writes it into its secrets and into the error messages of its fake.
pub const CANARY: &str = "canary";

/// Texts that try to be more than text, on one platform or another; to be mixed into generated ones.
pub const HOSTILE: &[&str] = &[
    "<!channel> <@U024BE7LH> <https://evil.example|ok>",
    "<at id=all></at><at user_id=\"all\">all</at>",
    "[Approve](https://evil.example) **done** `x` ~y~ :white_check_mark:",
    "\",\"tag\":\"button\",\"value\":{\"decision\":\"approve\"},\"x\":\"",
    "\"}]},{\"type\":\"button\",\"action_id\":\"approve\"}",
    "| a |\n|---|\n# heading\n> quote\n```\ncode",
    "\u{202E}evorppA\u{200B}\u{0}\u{1b}[31m\u{2028}",
    "&lt;!here&gt; &amp; {{name}} ${x} %s",
];

/// A press on a button, in the adapter's neutral words.
#[derive(Debug, Clone)]
pub struct Press {
    /// What the button carries.
    pub value: String,
    /// Which button.
    pub decision: Decision,
    /// The most specific id of who pressed.
    pub user: String,
    /// Where the card stands.
    pub at: MessageRef,
    /// Which press of this person it is; another one is another press.
    pub serial: u32,
}

/// How the request of a press is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// As the platform makes it, now.
    Authentic,
    /// Without any proof.
    Unsigned,
    /// Signed with a secret that is not ours.
    OtherSecret,
    /// Signed rightly, this many seconds from now.
    At(i64),
    /// Signed rightly, but speaking of another app.
    OtherApp,
}

/// What somebody types into the field of an [`EditForm`](crate::EditForm).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed<'a> {
    /// They answer without touching it, or there is none.
    Nothing,
    /// They send it as it was given, by a button of its own where there is one.
    AsGiven,
    /// This, in place of what stands there.
    Text(&'a str),
}

/// A request that the adapter made to post or edit, as the fake saw it.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The card, as JSON.
    pub card: serde_json::Value,
    /// How large the body of the request was, in bytes.
    pub bytes: usize,
}

/// An adapter and its fake platform. Methods block; each starts its own fake.
pub trait Platform {
    /// A channel whose clicks come in over HTTP.
    fn channel(&self) -> &dyn Channel;
    /// When authentic requests are made.
    fn now(&self) -> UtcMillis;
    /// The request of a press.
    fn request(&self, press: &Press, made: Made) -> RawRequest;
    /// The request that brings words of this person to the bot, in their own conversation with it; another serial is another
    /// time that they say them. Nothing where the platform brings no words.
    fn words(&self, _words: &str, _user: &str, _serial: u32, _made: Made) -> Option<RawRequest> {
        None
    }
    /// Posts while the fake answers so, and gives what it was sent. A call too many is a failure of the test.
    fn post(&self, script: &[Next], card: &Card) -> (Posted, Vec<Sent>);
    /// Edits the same way.
    fn edit(&self, script: &[Next], card: &Card) -> (Result<CardForm, Failure>, Vec<Sent>);
    /// What the channel says of itself while nothing listens at the platform's address.
    fn health_when_down(&self) -> Health;
    /// Panics unless the card holds only elements that the adapter lays out, none of which reads markup, within the platform's limits.
    fn assert_ours(&self, sent: &Sent);
    /// The deciding buttons of a card and what they carry.
    fn buttons(&self, sent: &Sent) -> Vec<(Decision, String)>;
    /// An id of a person, in the form in which the platform mentions people.
    fn person(&self) -> &'static str {
        ""
    }
    /// Answers below a card while the fake answers so; only asked of a channel with threads. [`Next::NotThere`]: the message is not there.
    fn reply(&self, _script: &[Next], _note: &Note) -> (Posted, Vec<Sent>) {
        let why = "no threads".to_owned();
        (Posted::Unknown { why }, Vec::new())
    }
    /// The request of a press on a button that opens something, where the platform has such buttons for this.
    fn asks(&self, _press: &Press, _wants: Wants, _made: Made) -> Option<RawRequest> {
        None
    }
    /// Opens a dialogue while the fake answers so; only asked of a channel with dialogues.
    fn open(&self, _script: &[Next], _dialog: &Dialog) -> (Result<DialogRef, Failure>, Vec<Sent>) {
        (Err(absent("no dialogues")), Vec::new())
    }
    /// Replaces what one shows, the same way. [`Next::NotThere`]: it was closed.
    fn change(&self, _script: &[Next], _dialog: &Dialog) -> (Result<(), Failure>, Vec<Sent>) {
        (Err(absent("no dialogues")), Vec::new())
    }
    /// Sends the page with this number to [`Platform::person`]; only asked of a channel with pages.
    fn page(&self, _script: &[Next], _view: &FullView, _number: u32) -> (Posted, Vec<Sent>) {
        (Posted::NotSent(absent("no pages")), Vec::new())
    }
    /// Replaces the last page, the same way.
    fn edit_page(&self, _script: &[Next], _view: &FullView) -> (Result<(), Failure>, Vec<Sent>) {
        (Err(absent("no pages")), Vec::new())
    }
    /// Panics unless a dialogue or page holds only elements that the adapter lays out, none of which reads markup, within the
    /// platform's limits as they are measured on what was sent.
    fn assert_view(&self, _sent: &Sent) {}
    /// The arguments as a dialogue or page shows them, put together; nothing of a page that holds none.
    fn literally(&self, _sent: &Sent) -> String {
        String::new()
    }
    /// The request of this person's answer in a dialogue or on a page, as the platform makes it of what stands there. Nothing where
    /// nothing can be answered so.
    fn answer(
        &self,
        _sent: &Sent,
        _decision: Decision,
        _typed: Typed<'_>,
        _user: &str,
    ) -> Option<RawRequest> {
        None
    }
    /// Panics unless the note holds mentions, literal text and nothing else, within the platform's limits.
    fn assert_note(&self, _sent: &Sent) {}
}

fn absent(why: &str) -> Failure {
    Failure::Setup { why: why.to_owned() }
}
