//! Intake of platform callbacks: find the verifier by the address, verify the raw bytes, find the channel from what was
//! verified, decide in one transaction, answer within the platform's deadline. [`command`] does the same for words to the bot.
//!
//! Nothing here knows a platform's form, and nothing decides who may do what: the deciding transaction does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatepost_channel::{
    Answer, Click, Decision, HttpAnswer, Inert, MessageRef, Opened, PlatformUser, RawRequest, Refusal, Reply,
    ReplyTone, UtcMillis, Vantage, Verified,
};
use tracing::{debug, info, warn};

use crate::clock::Clock;
use crate::confirmation::decide::{Backing, Clicked, Decide, Decided, Surface, Target};
use crate::confirmation::{Dossier, Status};
use crate::delivery::button::token_hash;
use crate::delivery::notice::QueueNotice;
use crate::delivery::registry::Listed;
use crate::gatekeeper::attend::{About, Attended};
use crate::gatekeeper::{Gatekeeper, Unfit};
use crate::ids::{ChannelName, OutboxId};
use crate::lifecycle::Tasks;
use crate::storage::{ReplayKey, StoreError};

mod all;
mod command;
mod edited;
mod form;
pub mod reply;
pub mod socket;

/// The platforms give 3 s for the whole answer; the decision must be stored well before.
const DECIDE_WITHIN: Duration = Duration::from_millis(2_200);

/// Takes callbacks in. Clones share its parts.
#[derive(Clone)]
pub struct Intake {
    gatekeeper: Gatekeeper,
    clock: Arc<dyn Clock>,
    last_click: Arc<Mutex<BTreeMap<ChannelName, UtcMillis>>>,
    words_pace: Arc<command::pace::Pace>,
    tasks: Tasks,
}

impl Intake {
    /// An intake for all channels. What opens for a person is opened in one of `tasks`, beside the answer to the press.
    pub fn new(gatekeeper: Gatekeeper, clock: Arc<dyn Clock>, tasks: Tasks) -> Self {
        Self {
            gatekeeper,
            clock,
            last_click: Arc::default(),
            words_pace: Arc::default(),
            tasks,
        }
    }

    /// When somebody last clicked on a channel, by this process.
    pub fn last_click(&self, channel: &ChannelName) -> Option<UtcMillis> {
        self.last_click
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(channel)
            .copied()
    }

    /// Answers one callback that came to the address of this channel. The body is already capped.
    pub async fn receive(&self, channel: &str, request: &RawRequest) -> HttpAnswer {
        let Some(listed) = self.gatekeeper.registry().get(channel) else {
            return status(404);
        };
        let Some(webhook) = listed.channel.webhook() else {
            return status(401);
        };
        let now = self.clock.now();
        match Verified::check(webhook, request, now) {
            Err(refusal) => {
                self.refuse(listed, &refusal, now);
                match refusal.kind {
                    gatepost_channel::RefusalKind::Inauthentic => status(401),
                    gatepost_channel::RefusalKind::Unreadable => status(400),
                }
            }
            Ok(verified) => match verified.open() {
                Opened::Answered { answer, ignored } => {
                    if let Some(why) = ignored {
                        debug!(%channel, why, "a callback had no effect");
                    }
                    answer
                }
                Opened::Click(click) => {
                    let answer = self.rule(listed, click.get()).await;
                    let on_a_card = click.get().vantage == Vantage::Card;
                    if !answer.stored && on_a_card && listed.channel.private_notice().is_some() {
                        // This platform shows a failed answer to the person, who then presses again.
                        return status(503);
                    }
                    webhook.answer(click.get(), &answer.reply)
                }
                Opened::Command(command) => {
                    let answer = self.obey(listed, command.get()).await;
                    if !answer.stored {
                        // A command is shown as failed, a message comes again.
                        return status(503);
                    }
                    webhook.answer_command(command.get(), &answer.reply)
                }
                Opened::Ask(ask) => {
                    let answer = self.open_for(listed, ask.get()).await;
                    webhook.answer_ask(ask.get(), &answer.reply)
                }
            },
        }
    }

    /// A callback that could not even be read whole.
    pub fn too_large(&self, channel: &str) -> HttpAnswer {
        let Some(listed) = self.gatekeeper.registry().get(channel) else {
            return status(404);
        };
        self.gatekeeper
            .journal()
            .refused_callback(&listed.org, channel, "too_large", self.clock.now());
        status(413)
    }

    /// Writes down that something was refused at this channel.
    fn refuse(&self, listed: &Listed, refusal: &Refusal, now: UtcMillis) {
        let channel = listed.name.as_str();
        metrics::counter!("gatepost_callbacks_refused_total", "reason" => refusal.reason).increment(1);
        let noted = self
            .gatekeeper
            .journal()
            .refused_callback(&listed.org, channel, refusal.reason, now);
        // A flood fills the log no more than the audit.
        if noted {
            warn!(%channel, reason = refusal.reason, hint = refusal.hint, "a callback was refused");
        }
    }

    /// Decides a verified click, whatever it came in by. `listed` is a channel of the app that vouches for it.
    async fn rule(&self, listed: &Listed, click: &Click) -> Answer {
        let app = listed.channel.app();
        let replay = ReplayKey {
            app: app.clone(),
            key: click.replay_key.clone(),
        };
        let home = self.home(listed, click.app.as_ref(), &click.chat);
        // What was opened for one person may stand in a chat of their own; what it carries then names the channel.
        let home = match home.or_else(|reason| self.home_of_seen(listed, click).ok_or(reason)) {
            Ok(home) => home,
            Err(reason) => return self.nowhere(listed, &click.user, reason),
        };
        self.note_click(home);
        // Changed arguments are those of one request; as an answer to several they are none to the card that is there.
        if let (Some(set), None) = (click.button.and_then(|button| button.set), &click.edited) {
            return self.rule_all(home, click, replay, set).await;
        }
        let deciding = async {
            let (decide, unfit) = self.decide(home, click, replay).await?;
            Ok::<_, StoreError>((self.gatekeeper.store().run(decide).await?, unfit))
        };
        match tokio::time::timeout(DECIDE_WITHIN, deciding).await {
            Ok(Ok((decided, unfit))) => {
                self.gatekeeper.tell_vote(&decided);
                Answer {
                    reply: self.answer(home, click, decided, unfit).await,
                    stored: true,
                }
            }
            failed => self.not_stored(home, failed.err().map(|_| "too slow")),
        }
    }

    /// Nothing was decided; the person may press again.
    fn not_stored(&self, home: &Listed, why: Option<&'static str>) -> Answer {
        warn!(channel = %home.name, error = ?why, "a click could not be stored in time");
        metrics::counter!("gatepost_callbacks_unstored_total").increment(1);
        Answer {
            reply: self.say(home, "try_again", ReplyTone::Warning, true, None),
            stored: false,
        }
    }

    /// The channel of a press: of the app that vouches for it, in its organisation, by its chat. `Err` says why there is none.
    fn home<'a>(
        &'a self,
        listed: &Listed,
        claimed: Option<&String>,
        chat: &str,
    ) -> Result<&'a Listed, &'static str> {
        let app = listed.channel.app();
        if claimed.is_some_and(|claimed| *claimed != app.id) {
            return Err("other_app");
        }
        self.gatekeeper
            .registry()
            .of_click(&app, &listed.org, chat)
            .ok_or("unknown_chat")
    }

    /// A press in a chat that is none of ours, or of another app's.
    fn nowhere(&self, listed: &Listed, user: &PlatformUser, reason: &'static str) -> Answer {
        let draft = crate::audit::Draft::new(
            &listed.org,
            "callback.refused",
            crate::audit::Actor::Platform(who(user)),
        );
        self.gatekeeper
            .journal()
            .write(draft.on(listed.name.as_str()).with("reason", reason));
        Answer {
            reply: self.say(listed, "unknown_chat", ReplyTone::Error, true, None),
            stored: true,
        }
    }

    fn note_click(&self, home: &Listed) {
        self.last_click
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(home.name.clone(), self.clock.now());
    }

    async fn decide(
        &self,
        home: &Listed,
        click: &Click,
        replay: ReplayKey,
    ) -> Result<(Decide, Option<Unfit>), StoreError> {
        let token = click.button.map(|button| token_hash(&button.token));
        let of = token.as_ref().map_or(About::Nothing, About::Button);
        let Attended {
            ballot,
            roll,
            insight,
        } = self.gatekeeper.attend(home, &click.user, of).await?;
        let (edit, unfit) = self.edit_of(home, click, &ballot, token.as_ref()).await?;
        let decide = Decide {
            target: Target::Card(Clicked {
                channel: home.name.clone(),
                org: home.org.clone(),
                at: MessageRef {
                    chat: click.chat.clone(),
                    message: click.message.clone(),
                },
                token,
                revision: click.button.map_or(0, |button| button.revision),
                replay,
                asks_back: home.channel.dialogs().is_some() && click.opener.is_some(),
                alone: click.vantage != Vantage::Card,
                set: None,
            }),
            ballot,
            decision: click.decision,
            reason: self.gatekeeper.text(click.reason.as_deref()),
            grant: self.gatekeeper.wish(click.grant.as_deref()),
            edit,
            seen: None,
            surface: if self.has_seen(home, click) {
                Surface::FullView
            } else {
                Surface::Card
            },
            backing: Backing::default(),
            roll,
            insight,
        };
        Ok((decide, unfit))
    }

    async fn answer(&self, home: &Listed, click: &Click, decided: Decided, unfit: Option<Unfit>) -> Reply {
        let said = reply::of(&decided, click.decision);
        info!(channel = %home.name, request = decided.dossier.as_ref().map(|d| d.confirmation.id.as_str()), ruling = said.key, "a click was decided");
        metrics::counter!("gatepost_clicks_total", "ruling" => said.key).increment(1);
        let asked_back = self.ask_back(home, click, &decided);
        // A dialogue says itself why it stays open.
        let told_there = click.vantage != Vantage::Card && said.refused;
        if said.tell && !said.replayed && !asked_back && !told_there {
            let text = self.words(home, said.key, Some(&decided));
            self.tell_clicker(home, click, decided.dossier.as_ref(), text)
                .await;
        }
        // What is shown to one person is brought up to date where it stands; the group's card is no answer to it until that is over.
        let settled = decided
            .dossier
            .as_ref()
            .is_some_and(|dossier| dossier.confirmation.state.status() != Status::Pending);
        let shown = Some(&decided).filter(|_| click.vantage == Vantage::Card || settled);
        let reply = self.say(home, said.key, said.tone, said.refused, shown);
        Self::explain(reply, &decided, unfit.as_ref())
    }

    /// Queues a private notice to who clicked, on platforms that cannot say it in the answer.
    async fn tell_clicker(&self, home: &Listed, click: &Click, about: Option<&Dossier>, text: String) {
        let (Some(_), Some(user)) = (home.channel.private_notice(), click.user.ids.first()) else {
            return;
        };
        let notice = QueueNotice {
            id: OutboxId::fresh(&**self.gatekeeper.ids()),
            confirmation: about.map(|dossier| dossier.confirmation.id.clone()),
            channel: home.name.clone(),
            user: user.clone(),
            chat: click.chat.clone(),
            text,
        };
        if let Err(error) = self.gatekeeper.store().run(notice).await {
            warn!(%error, channel = %home.name, "a private notice could not be queued");
        }
    }

    fn say(
        &self,
        home: &Listed,
        key: &str,
        tone: ReplyTone,
        refused: bool,
        decided: Option<&Decided>,
    ) -> Reply {
        let maker = self.gatekeeper.maker();
        let card = decided.filter(|_| home.channel.takes_card()).and_then(|decided| {
            let dossier = decided.dossier.as_ref()?;
            // Only the channel that shows the card may see the request.
            let delivery = dossier
                .deliveries
                .iter()
                .find(|delivery| delivery.asks() && delivery.channel == home.name)
                // Where the platform refused the content of the card, it would refuse it with the answer as well.
                .filter(|delivery| delivery.standing.iter().all(|message| !message.minimal))?;
            Some(maker.message(dossier, &decided.fellows, delivery, &home.voice, self.clock.now()))
        });
        Reply {
            tone,
            text: Inert::new(&self.words(home, key, decided)),
            refused,
            field: reply::field(key),
            card,
        }
    }

    /// Our words; behind those that send a person on, where the request can be seen whole.
    fn words(&self, home: &Listed, key: &str, decided: Option<&Decided>) -> String {
        let maker = self.gatekeeper.maker();
        let said = maker.phrases(home.voice.language).reply(key);
        let row = decided
            .and_then(|decided| decided.dossier.as_ref())
            .map(|dossier| &dossier.confirmation);
        let place = row
            .filter(|_| reply::leads_to_console(key))
            .and_then(|row| maker.full_view(row));
        match place {
            Some(place) => format!("{said} {place}"),
            None => said.to_owned(),
        }
    }
}

/// The clicker for the log and the audit: platform ids are no secret and no text of theirs.
fn who(user: &PlatformUser) -> String {
    user.ids.first().cloned().unwrap_or_default()
}

const fn status(status: u16) -> HttpAnswer {
    HttpAnswer {
        status,
        content_type: None,
        body: Vec::new(),
    }
}

/// The word of a decision that settled or counted.
const fn counted(decision: Decision, settled: bool) -> &'static str {
    match (decision, settled) {
        (Decision::Approve, true) => "settled_approve",
        (Decision::Reject, true) => "settled_reject",
        (Decision::Approve, false) => "counted_approve",
        (Decision::Reject, false) => "counted_reject",
    }
}
