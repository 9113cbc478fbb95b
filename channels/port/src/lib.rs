//! What a channel is: the contract between Gatepost and a chat platform.
//!
//! An adapter is a crate of its own that depends on this one and on nothing else of ours: it knows its platform, and neither
//! store nor gate nor web server. Read in this order:
//!
//! 1. [`channel`]: the verbs every channel has (post, edit, check) and the capabilities it may have beside them.
//! 2. [`card`] and [`body`]: the neutral card that an adapter lays out in the platform's own form, and its arguments in parts.
//! 3. [`inbound`] and [`verify`]: how bytes from outside become a [`Verified`] click, and the only way they can.
//!    [`command`]: words to the bot, which come in the same way and are answered to one person alone.
//!    [`ask`] and [`dialog`]: a press that opens something for one person first, and what opens.
//! 4. [`connection`]: clicks without a public address, over connections that the adapter opens and the core's intake answers.
//! 5. [`text`]: how untrusted text becomes [`Inert`]; [`threads`]: lines below a card.
//! 6. [`failure`]: what can go wrong when a platform is called, in classes that say what to do next.
//! 7. [`exam`]: the close look of `gatepost doctor`.
//! 8. [`directory`]: who somebody is on the platform, and who is in a group.
//! 9. `contract` (feature `contract`, for tests): what is asked of every adapter, as checks; in words: `docs/CHANNEL-CONTRACT.md`.
//!
//! Authority is never decided here: an adapter says who clicked and on what, the core says whether it counts.

pub mod ask;
pub mod body;
pub mod button;
pub mod card;
pub mod channel;
pub mod command;
pub mod connection;
#[cfg(feature = "contract")]
pub mod contract;
pub mod dialog;
pub mod directory;
pub mod exam;
pub mod failure;
pub mod inbound;
mod lookalike;
mod pieces;
pub mod secret;
pub mod share;
pub mod text;
pub mod threads;
pub mod time;
pub mod verify;

pub use ask::{Ask, Opener, Vantage, Wants};
pub use body::{Body, Content, Fate, Line, Part, Row};
pub use button::{ButtonToken, ButtonValue, Seen, SetCode};
pub use card::{Actions, All, Asks, Card, CardSet, Fact, GrantOffer, OnceMore, Risk, Tone, Words};
pub use channel::{
    AppKey, CardForm, Channel, Field, Health, MessageRef, Pace, PostKey, Posted, PrivateNotice, Reply,
    ReplyTone, Webhook,
};
pub use command::{Answered, Command, Listener, Place, Whisper};
pub use connection::{Answer, Connection, ConnectionState, ConnectionStatus, Intake, Means, Stop};
pub use dialog::{Dialog, DialogRef, DialogWords, Dialogs, EditForm, FullView, Link, Pages, ReasonForm, Say};
pub use directory::{Bar, Directory, Group, Profile, Unfound};
pub use exam::{Finding, FindingState, Needs};
pub use failure::Failure;
pub use inbound::{Click, Decision, HttpAnswer, Inbound, PlatformUser, Rewritten};
pub use secret::{EmptySecret, Secret};
pub use share::even_share;
pub use text::{Clip, Inert};
pub use threads::{Mention, Note, Threads};
pub use time::UtcMillis;
pub use verify::{FrameVerifier, Opened, RawRequest, Refusal, RefusalKind, Verified, Verifier, same_bytes};
