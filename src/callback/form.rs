//! What opens for one person: a form for words, or everything there is to see. On platforms with dialogues it opens beside the answer
//! to the press, since the leave to open it lasts seconds; on others the messages go through the outbox.
//!
//! Whoever may not decide is told so and sees nothing. What is answered from there comes back as a click like any other.

use std::time::Duration;

use gatepost_channel::{
    Answer, Ask, Click, Dialog, Failure, Field, FullView, Inert, MessageRef, Opener, Reply, ReplyTone,
    Vantage, Wants, same_bytes,
};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{DECIDE_WITHIN, Intake, reply, who};
use crate::confirmation::clicked::Clicked;
use crate::confirmation::decide::{Decided, Refusal, Ruling};
use crate::confirmation::look::{Look, Looked};
use crate::confirmation::{Confirmation, Delivery, Dossier, Status};
use crate::delivery::button::token_hash;
use crate::delivery::dialog::Sight;
use crate::delivery::notice::QueueNotice;
use crate::delivery::registry::Listed;
use crate::delivery::view::QueueView;
use crate::gatekeeper::attend::{About, Attended};
use crate::ids::{ConfirmationId, DeliveryId, OutboxId};
use crate::storage::ReplayKey;

/// What is ready by then is opened at once; else a placeholder is, before the leave to open anything is gone.
const AT_ONCE: Duration = Duration::from_millis(400);
/// How long a placeholder waits for what takes its place.
const IN_THE_END: Duration = Duration::from_secs(10);

/// Who pressed, and where.
#[derive(Debug, Clone)]
struct Place {
    at: MessageRef,
    user: String,
}

/// What is to be opened, and what the person is told where that fails.
struct Prepared {
    dialog: Dialog,
    otherwise: Otherwise,
    /// The request, when the person may know of it.
    about: Option<ConfirmationId>,
}

/// What a person is told instead of what did not open.
struct Otherwise {
    /// It came too late: another press may do.
    late: String,
    /// The platform does not open it, however often they press.
    never: String,
}

impl Otherwise {
    fn after(self, failure: &Failure) -> String {
        match failure {
            Failure::Retry { .. } | Failure::Gone { .. } => self.late,
            Failure::Target { .. } | Failure::Setup { .. } | Failure::Content { .. } => self.never,
        }
    }
}

impl Intake {
    /// Shows what was asked for, or begins to. `listed` is a channel of the app that vouches for the ask.
    pub(super) async fn open_for(&self, listed: &Listed, ask: &Ask) -> Answer {
        let home = match self.home(listed, ask.app.as_ref(), &ask.chat) {
            Ok(home) => home,
            Err(reason) => return self.nowhere(listed, &ask.user, reason),
        };
        self.note_click(home);
        let place = Place {
            at: place(&ask.chat, &ask.message),
            user: who(&ask.user),
        };
        if let (Some(_), Some(opener)) = (home.channel.dialogs(), ask.opener.clone()) {
            let (intake, home, ask) = (self.clone(), home.clone(), ask.clone());
            self.tasks.spawn(async move {
                let ready = intake.prepare(&home, &ask, &place);
                intake.open(&home, &opener, &place, ready).await;
            });
            return said("", ReplyTone::Info, false);
        }
        let (text, tone, about) = match self.look(home, ask).await {
            Err(()) => {
                return Answer {
                    stored: false,
                    ..said(self.phrase_of(home, "try_again"), ReplyTone::Warning, true)
                };
            }
            Ok(Looked::Repeated) => return said("", ReplyTone::Info, false),
            Ok(Looked::Refused(refusal)) => {
                let said = reply::refused(refusal, None);
                (self.phrase_of(home, said.key).to_owned(), said.tone, None)
            }
            Ok(Looked::At(dossier, card)) => {
                let (text, tone) = self.send(home, ask, &place, &dossier, &card).await;
                (text, tone, Some(dossier.confirmation.id))
            }
        };
        if home.channel.private_notice().is_some() {
            self.notify(home, &place, about, text.clone()).await;
        }
        said(&text, tone, tone == ReplyTone::Error)
    }

    /// Opens the form for the words that an answer lacks; tells whether it does.
    pub(super) fn ask_back(&self, home: &Listed, click: &Click, decided: &Decided) -> bool {
        let (Some(dossier), Some(card), Some(opener)) = (&decided.dossier, &decided.card, &click.opener)
        else {
            return false;
        };
        let delivery = dossier.deliveries.iter().find(|delivery| delivery.id == *card);
        let Some(delivery) = delivery.filter(|_| {
            decided.ruling == Ruling::Refused(Refusal::ReasonRequired) && home.channel.dialogs().is_some()
        }) else {
            return false;
        };
        let place = Place {
            at: place(&click.chat, &click.message),
            user: who(&click.user),
        };
        let answer = (click.decision, click.grant.as_deref());
        let maker = self.gatekeeper.maker();
        let dialog = maker.reason_form(
            dossier,
            delivery,
            &place.at,
            answer,
            (&home.voice, self.clock.now()),
        );
        let prepared = self.prepared(home, dialog, &dossier.confirmation);
        let (intake, home, opener) = (self.clone(), home.clone(), opener.clone());
        self.tasks.spawn(async move {
            intake
                .open(&home, &opener, &place, std::future::ready(Some(prepared)))
                .await;
        });
        true
    }

    /// Whether a click comes from where this very person could see everything of this revision, on this channel.
    pub(super) fn has_seen(&self, home: &Listed, click: &Click) -> bool {
        let (Vantage::Alone { seen: Some(seen) }, Some(button), Some(user)) =
            (click.vantage, click.button, click.user.ids.first())
        else {
            return false;
        };
        let key = self.gatekeeper.maker().key();
        let made = key.seen(&button.token, button.revision, user, &home.name);
        same_bytes(made.as_bytes(), seen.as_bytes())
    }

    /// The channel, of the app that vouches for the click, in which this person was shown everything.
    pub(super) fn home_of_seen(&self, listed: &Listed, click: &Click) -> Option<&Listed> {
        let app = listed.channel.app();
        let ours = click.app.as_ref().is_none_or(|claimed| *claimed == app.id);
        let mut channels = self.gatekeeper.registry().all();
        channels.find(|other| {
            ours && other.org == listed.org && other.channel.app() == app && self.has_seen(other, click)
        })
    }

    /// Opens what `coming` comes to: at once if it is there at once, else in place of a placeholder. Where nothing opens, the person is
    /// told by a notice.
    async fn open(
        &self,
        home: &Listed,
        opener: &Opener,
        at: &Place,
        coming: impl Future<Output = Option<Prepared>>,
    ) {
        let Some(dialogs) = home.channel.dialogs() else {
            return;
        };
        tokio::pin!(coming);
        let (failure, prepared) = match timeout(AT_ONCE, &mut coming).await {
            Ok(None) => return,
            Ok(Some(prepared)) => (dialogs.open(opener, &prepared.dialog).await.err(), prepared),
            Err(_) => {
                let maker = self.gatekeeper.maker();
                let words = &maker.phrases(home.voice.language).dialog.wait;
                let wait = Dialog::Wait(maker.say(words, None, &home.voice));
                let (placed, rest) =
                    tokio::join!(dialogs.open(opener, &wait), timeout(IN_THE_END, &mut coming));
                let rest = rest.unwrap_or_else(|_| Some(self.telling(home, "try_again")));
                let Some(prepared) = rest else { return };
                let changed = match placed {
                    Ok(at) => dialogs.change(&at, &prepared.dialog).await,
                    Err(failure) => Err(failure),
                };
                (changed.err(), prepared)
            }
        };
        let Some(failure) = failure else { return };
        warn!(channel = %home.name, %failure, "a dialogue was not opened");
        metrics::counter!("gatepost_dialogs_not_opened_total").increment(1);
        let otherwise = prepared.otherwise.after(&failure);
        self.notify(home, at, prepared.about, otherwise).await;
    }

    /// What an ask leads to, as the request stands.
    async fn prepare(&self, home: &Listed, ask: &Ask, at: &Place) -> Option<Prepared> {
        let (dossier, card) = match self.look(home, ask).await {
            Err(()) => return Some(self.telling(home, "try_again")),
            Ok(Looked::Repeated) => return None,
            Ok(Looked::Refused(refusal)) => {
                return Some(self.telling(home, reply::refused(refusal, None).key));
            }
            Ok(Looked::At(dossier, card)) => (dossier, card),
        };
        let delivery = dossier.deliveries.iter().find(|delivery| delivery.id == card)?;
        let maker = self.gatekeeper.maker();
        let dialog = match ask.wants {
            Wants::Reason(decision) => maker.reason_form(
                &dossier,
                delivery,
                &at.at,
                (decision, None),
                (&home.voice, self.clock.now()),
            ),
            Wants::Everything => self.everything(home, &dossier, delivery, at),
        };
        Some(self.prepared(home, dialog, &dossier.confirmation))
    }

    /// Everything, if it fits, with the proof that it could be seen; else where it can be.
    fn everything(&self, home: &Listed, dossier: &Dossier, delivery: &Delivery, at: &Place) -> Dialog {
        let maker = self.gatekeeper.maker();
        let view = maker.everything(dossier, delivery, &at.at, (&home.voice, self.clock.now()));
        let sight = Sight {
            user: &at.user,
            channel: &home.name,
            at: &at.at,
        };
        let view = FullView {
            seen: maker.seen(&view, sight),
            ..view
        };
        if home.channel.dialogs().is_some_and(|dialogs| dialogs.holds(&view)) {
            return Dialog::Everything(Box::new(view));
        }
        let words = &maker.phrases(home.voice.language).dialog.too_large;
        let row = &dossier.confirmation;
        let text = format!("{words} {}", maker.elsewhere(row, &home.voice));
        Dialog::Tell(maker.say(&text, Some(row), &home.voice))
    }

    /// Sends everything in messages to this person alone, or says where else it can be seen.
    async fn send(
        &self,
        home: &Listed,
        ask: &Ask,
        at: &Place,
        dossier: &Dossier,
        card: &DeliveryId,
    ) -> (String, ReplyTone) {
        let maker = self.gatekeeper.maker();
        let row = &dossier.confirmation;
        if row.state.status() != Status::Pending {
            let said = reply::refused(Refusal::AlreadySettled, Some(dossier));
            return (self.phrase_of(home, said.key).to_owned(), said.tone);
        }
        let words = &maker.phrases(home.voice.language).dialog;
        let elsewhere = maker.elsewhere(row, &home.voice);
        let (Wants::Everything, Some(pages)) = (ask.wants, home.channel.pages()) else {
            return (format!("{} {elsewhere}", words.never_opened), ReplyTone::Warning);
        };
        let delivery = dossier.deliveries.iter().find(|delivery| delivery.id == *card);
        let count = delivery.and_then(|delivery| {
            pages.count(&maker.everything(dossier, delivery, &at.at, (&home.voice, self.clock.now())))
        });
        let Some(count) = count else {
            return (format!("{} {elsewhere}", words.too_large), ReplyTone::Warning);
        };
        let queue = QueueView {
            id: OutboxId::fresh(&**self.gatekeeper.ids()),
            confirmation: row.id.clone(),
            channel: home.name.clone(),
            delivery: card.clone(),
            user: at.user.clone(),
            revision: row.revision,
            otherwise: format!("{} {elsewhere}", words.not_sent),
        };
        match self.gatekeeper.store().run(queue).await {
            Ok(()) => (format!("{} {elsewhere}", words.sent(count)), ReplyTone::Info),
            Err(error) => {
                warn!(%error, channel = %home.name, "a full view could not be queued");
                (self.phrase_of(home, "try_again").to_owned(), ReplyTone::Warning)
            }
        }
    }

    /// Judges an ask; `Err` when that could not be stored in time.
    async fn look(&self, home: &Listed, ask: &Ask) -> Result<Looked, ()> {
        let looked = async {
            let token = ask.button.map(|button| token_hash(&button.token));
            let of = token.as_ref().map_or(About::Nothing, About::Button);
            let attended = self.gatekeeper.attend(home, &ask.user, of).await?;
            let look = Self::looking(home, ask, attended);
            self.gatekeeper.store().run(look).await
        };
        if let Ok(Ok(looked)) = timeout(DECIDE_WITHIN, looked).await {
            debug!(channel = %home.name, wants = ask.wants.as_str(), "something was asked for");
            return Ok(looked);
        }
        warn!(channel = %home.name, "an ask could not be stored in time");
        metrics::counter!("gatepost_callbacks_unstored_total").increment(1);
        Err(())
    }

    fn looking(home: &Listed, ask: &Ask, attended: Attended) -> Look {
        Look {
            clicked: Clicked {
                channel: home.name.clone(),
                org: home.org.clone(),
                at: place(&ask.chat, &ask.message),
                token: ask.button.map(|button| token_hash(&button.token)),
                revision: ask.button.map_or(0, |button| button.revision),
                replay: ReplayKey {
                    app: home.channel.app(),
                    key: ask.replay_key.clone(),
                },
                asks_back: false,
                alone: false,
                set: None,
            },
            ballot: attended.ballot,
            wants: ask.wants,
            roll: attended.roll,
        }
    }

    fn phrase_of(&self, home: &Listed, key: &str) -> &str {
        self.gatekeeper.maker().phrases(home.voice.language).reply(key)
    }

    fn prepared(&self, home: &Listed, dialog: Dialog, row: &Confirmation) -> Prepared {
        let maker = self.gatekeeper.maker();
        let words = &maker.phrases(home.voice.language).dialog;
        let elsewhere = maker.elsewhere(row, &home.voice);
        Prepared {
            dialog,
            otherwise: Otherwise {
                late: format!("{} {elsewhere}", words.not_opened),
                never: format!("{} {elsewhere}", words.never_opened),
            },
            about: Some(row.id.clone()),
        }
    }

    /// One of our replies as a dialogue, for somebody who may not know of the request.
    fn telling(&self, home: &Listed, key: &str) -> Prepared {
        let words = self.phrase_of(home, key);
        Prepared {
            dialog: Dialog::Tell(self.gatekeeper.maker().say(words, None, &home.voice)),
            otherwise: Otherwise {
                late: words.to_owned(),
                never: words.to_owned(),
            },
            about: None,
        }
    }

    /// Tells the person privately.
    async fn notify(&self, home: &Listed, to: &Place, about: Option<ConfirmationId>, text: String) {
        let notice = QueueNotice {
            id: OutboxId::fresh(&**self.gatekeeper.ids()),
            confirmation: about,
            channel: home.name.clone(),
            user: to.user.clone(),
            chat: to.at.chat.clone(),
            text,
        };
        if let Err(error) = self.gatekeeper.store().run(notice).await {
            warn!(%error, channel = %home.name, "a private notice could not be queued");
        }
    }
}

fn place(chat: &str, message: &str) -> MessageRef {
    MessageRef {
        chat: chat.to_owned(),
        message: message.to_owned(),
    }
}

fn said(text: &str, tone: ReplyTone, refused: bool) -> Answer {
    Answer {
        reply: Reply {
            tone,
            text: Inert::new(text),
            refused,
            field: Field::Answer,
            card: None,
        },
        stored: true,
    }
}
