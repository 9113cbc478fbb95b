//! The sender: takes what is due from the outbox and calls the platforms, never inside a transaction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gatepost_channel::{Card, CardForm, Failure, FullView, Inert, MessageRef, PostKey, Posted, UtcMillis};
use tracing::{debug, info, warn};

use super::bucket::Bucket;
use super::card::CardMaker;
use super::claim::{Claim, Claimed};
use super::dialog::Sight;
use super::escalate::{self, Escalate};
use super::health::{Fate, Health, Trouble};
use super::plan::{Planned, Spares};
use super::record::{Record, Sent};
use super::registry::{Listed, Registry};
use super::shared::{self, Shows};
use super::{Errand, OutboxItem, plan, thread, view};
use crate::clock::Clock;
use crate::confirmation::{Delivery, Dossier};
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, Ids, WorkerId};
use crate::lifecycle::Tasks;
use crate::storage::{Store, StoreError};

/// Rows claimed in one transaction.
const BATCH: usize = 64;
/// How long a claim is believed; a platform call takes 10 s at most, with one repetition.
const LEASE: Duration = Duration::from_secs(45);
/// The slow poll behind the wake-ups.
const POLL: Duration = Duration::from_secs(1);
/// After a claim that found nothing to send, whoever wakes it: under a burst, putting cards off must not take the writer from
/// the decisions.
const REST: Duration = Duration::from_millis(20);
/// The longest such rest, while no channel has room: a private notice needs none.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// Looks on while cards are sent. It must not wait.
pub trait Onlooker: Send + Sync {
    /// This came of an errand to a channel.
    fn sent(&self, channel: &ChannelName, request: Option<&ConfirmationId>, sent: &Sent);
}

/// See the module.
pub struct Sender {
    onlooker: OnceLock<Arc<dyn Onlooker>>,
    store: Store,
    registry: Registry,
    maker: CardMaker,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    worker: WorkerId,
    pace: Mutex<BTreeMap<ChannelName, Bucket>>,
    last_post: Mutex<BTreeMap<ChannelName, UtcMillis>>,
    health: Health,
}

impl Sender {
    /// A sender for all channels.
    pub fn new(
        store: Store,
        registry: Registry,
        maker: CardMaker,
        clock: Arc<dyn Clock>,
        ids: &Arc<dyn Ids>,
    ) -> Arc<Self> {
        let now = clock.now();
        let pace = registry
            .all()
            .map(|listed| {
                let pace = listed.channel.pace();
                (
                    listed.name.clone(),
                    Bucket {
                        pace,
                        free: pace.burst.max(1),
                        filled_at: now,
                    },
                )
            })
            .collect();
        Arc::new(Self {
            onlooker: OnceLock::new(),
            store,
            registry,
            maker,
            clock,
            worker: WorkerId::fresh(&**ids),
            ids: Arc::clone(ids),
            pace: Mutex::new(pace),
            last_post: Mutex::default(),
            health: Health::default(),
        })
    }

    /// Lets somebody look on; the first stays.
    pub fn look_on(&self, onlooker: Arc<dyn Onlooker>) {
        let _first = self.onlooker.set(onlooker);
    }

    /// The time.
    pub(super) fn now(&self) -> UtcMillis {
        self.clock.now()
    }

    /// How cards are made.
    pub(super) const fn maker(&self) -> &CardMaker {
        &self.maker
    }

    /// When a channel last took a card, by this process.
    pub fn last_post(&self, channel: &ChannelName) -> Option<UtcMillis> {
        self.last_post
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(channel)
            .copied()
    }

    /// Why channels take no cards, by name, as all processes know it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn troubles(&self) -> Result<BTreeMap<ChannelName, Trouble>, StoreError> {
        self.health.read(&self.store, self.clock.now()).await
    }

    /// Remembers how a channel took a card.
    pub async fn fared(&self, listed: &Listed, posted: &Posted) {
        self.put_down(listed, Fate::from(posted)).await;
    }

    async fn put_down(&self, listed: &Listed, fate: Fate<'_>) {
        let whose = (&listed.org, &listed.name);
        let now = self.clock.now();
        if let Err(error) = self.health.fared(&self.store, whose, fate, now).await {
            warn!(%error, channel = %listed.name, "how a channel takes cards could not be put down");
        }
    }

    /// Sends until the server stops. What was claimed is sent and recorded before the task ends.
    ///
    /// Claiming takes the store's writer, so whether anything is due is asked of a reader first: a decision does not pay for
    /// the card that is edited a moment after it.
    pub async fn run(self: Arc<Self>, tasks: Tasks) {
        loop {
            let woken = self.store.wakes().outbox();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if tasks.is_stopping() {
                return;
            }
            let pause = self.until_next().await;
            if !pause.is_zero() {
                tokio::select! {
                    () = woken => {}
                    () = tokio::time::sleep(pause) => {}
                    () = tasks.stopping() => return,
                }
                continue;
            }
            let rest = match self.store.run(self.claim()).await {
                // Due, but nothing to be had: the channels are full, or other processes are at it.
                Ok(claimed) if claimed.is_empty() => self.rest(),
                Ok(claimed) => {
                    for one in claimed {
                        // Before the next claim: what is taken must not be counted as free once more.
                        if one.item.errand.is_message() {
                            self.spend(&one.item.channel);
                        }
                        let sender = Arc::clone(&self);
                        tasks.spawn(async move { sender.send(one).await });
                    }
                    continue;
                }
                Err(error) => {
                    warn!(%error, "the outbox could not be read");
                    POLL
                }
            };
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = tasks.stopping() => return,
            }
        }
    }

    /// How long nothing is due, at most [`POLL`].
    async fn until_next(&self) -> Duration {
        match self.store.read().next_outbox().await {
            Ok(Some(at)) => at.since(self.clock.now()).min(POLL),
            _ => POLL,
        }
    }

    /// How long the first of the channels will be full.
    fn rest(&self) -> Duration {
        let now = self.clock.now();
        let pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let full = pace.values().map(|bucket| bucket.full(now)).min();
        full.unwrap_or(REST).clamp(REST, LONGEST_REST)
    }

    fn claim(&self) -> Claim {
        let now = self.clock.now();
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let room = pace
            .iter_mut()
            .map(|(name, bucket)| {
                bucket.refill(now);
                (name.clone(), (bucket.free, bucket.pace))
            })
            .collect();
        Claim {
            worker: self.worker.clone(),
            lease: LEASE,
            limit: BATCH,
            room,
        }
    }

    /// Sends one claimed row and records what came of it.
    pub async fn send(&self, claimed: Claimed) {
        let Claimed {
            item,
            dossier,
            fellows,
        } = claimed;
        if let Errand::Escalate { .. } = item.errand {
            return self.escalate(item, dossier).await;
        }
        let sent = match self.registry.get(item.channel.as_str()) {
            None => no_channel(&item.errand),
            Some(listed) => match self.carry_out(listed, &item, dossier.as_ref(), &fellows).await {
                Some(sent) => sent,
                None => return,
            },
        };
        debug!(channel = %item.channel, request = item.confirmation.as_ref().map(ConfirmationId::as_str), what = word(&sent), "sent");
        if let Some(onlooker) = self.onlooker.get() {
            onlooker.sent(&item.channel, item.confirmation.as_ref(), &sent);
        }
        let channel = item.channel.clone();
        let spares = if sent.needs_spares() {
            self.spares(dossier.as_ref(), &fellows)
        } else {
            Spares::new()
        };
        let beside = beside(&item, dossier.as_ref(), &fellows);
        // A record that is lost (the store is down) is made good by the claim's end: the row is claimed again.
        let record = Record {
            item,
            sent,
            beside,
            spares,
        };
        if let Err(error) = self.store.run(record).await {
            warn!(%error, %channel, "what was sent could not be recorded");
        }
    }

    /// What the errand asks for, on its channel. `None` where there is nothing to be done about a request that is not there.
    async fn carry_out(
        &self,
        listed: &Listed,
        item: &OutboxItem,
        dossier: Option<&Dossier>,
        fellows: &[Dossier],
    ) -> Option<Sent> {
        let card_of = |delivery: &DeliveryId| {
            let dossier = dossier?;
            let mut cards = dossier.deliveries.iter();
            Some((dossier, cards.find(|card| card.id == *delivery)?))
        };
        Some(match &item.errand {
            Errand::Escalate { .. } => return None,
            Errand::Notice { user, chat, text } => match listed.channel.private_notice() {
                None => Sent::Told,
                Some(notice) => match notice.tell(user, chat, &Inert::new(text)).await {
                    Ok(()) => Sent::Told,
                    Err(failure) => Sent::TellFailed(failure),
                },
            },
            Errand::Whisper { .. } => self.whisper(listed, item, dossier).await,
            Errand::View {
                delivery,
                user,
                revision,
                page,
                ..
            } => {
                let dossier = dossier?;
                let key = PostKey(format!("{}:{page}", item.id));
                let part = Part {
                    number: *page,
                    key: &key,
                    again: view::may_stand(item, *page),
                };
                self.view(listed, dossier, delivery, (user, *revision), part)
                    .await
            }
            Errand::Line { delivery, line, .. } => {
                let about = card_of(delivery)?;
                thread::say(
                    &self.maker,
                    listed,
                    (item, *line),
                    about,
                    fellows,
                    self.clock.now(),
                )
                .await
            }
            Errand::Card { delivery, .. } => {
                let (dossier, card) = card_of(delivery)?;
                let edition = dossier.confirmation.edition;
                let now = self.clock.now();
                let looks = self.maker.message(dossier, fellows, card, &listed.voice, now);
                if card.stands() {
                    let sent = self.edit(listed, (dossier, card), fellows, &looks).await;
                    if let Sent::Edited { failed, .. } = &sent {
                        for (_, failure) in failed {
                            self.put_down(listed, Fate::Refused(failure)).await;
                        }
                    }
                    sent
                } else {
                    self.post(listed, &looks, &key(card), edition).await
                }
            }
        })
    }

    /// Cards for the rest of the chain of the request, and of those that share a message with it.
    fn spares(&self, dossier: Option<&Dossier>, fellows: &[Dossier]) -> Spares {
        let all = dossier.into_iter().chain(fellows);
        let planned = all.map(|dossier| {
            let cards = plan::spares(&self.registry, &self.maker, &*self.ids, dossier);
            let revision = dossier.confirmation.revision;
            (dossier.confirmation.id.clone(), Planned { cards, revision })
        });
        planned.collect()
    }

    /// Plans the cards of the channels that the next step brings in, and takes the step.
    async fn escalate(&self, item: OutboxItem, dossier: Option<Dossier>) {
        let Some(dossier) = dossier else { return };
        let step = escalate::step_of(&dossier.confirmation, &item.errand).unwrap_or_default();
        let planned = Planned {
            cards: plan::asking(&self.registry, &self.maker, &*self.ids, &dossier, &step.channels),
            revision: dossier.confirmation.revision,
        };
        let request = dossier.confirmation.id;
        match self.store.run(Escalate { item, planned }).await {
            Ok(true) => {
                info!(%request, "nobody decided, so the next step was taken");
                metrics::counter!("gatepost_escalations_total").increment(1);
            }
            Ok(false) => {}
            // The row is claimed again when the claim's time is over.
            Err(error) => warn!(%error, %request, "a step could not be taken"),
        }
    }

    async fn post(&self, listed: &Listed, card: &Card, key: &PostKey, edition: u32) -> Sent {
        let posted = listed.channel.post(card, key).await;
        self.fared(listed, &posted).await;
        match posted {
            Posted::At(at) => self.posted(listed, at, CardForm::LaidOut, edition),
            Posted::Minimal(at) => self.posted(listed, at, CardForm::Minimal, edition),
            Posted::Unknown { why } => Sent::PostUnknown(why),
            Posted::NotSent(failure) => {
                warn!(channel = %listed.name, %failure, "a card was not posted");
                Sent::PostFailed(failure)
            }
        }
    }

    fn posted(&self, listed: &Listed, at: MessageRef, form: CardForm, edition: u32) -> Sent {
        self.last_post
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(listed.name.clone(), self.clock.now());
        Sent::Posted {
            at,
            form,
            edition,
            alone: listed.channel.repeats_safely().is_some(),
        }
    }

    /// Brings the messages of a card up to date that show an older edition: the group's, and those of people who were shown everything.
    async fn edit(
        &self,
        listed: &Listed,
        of: (&Dossier, &Delivery),
        fellows: &[Dossier],
        looks: &Card,
    ) -> Sent {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        let mut note = |at: &MessageRef, edited: Result<CardForm, Failure>| match edited {
            Ok(form) => done.push((at.clone(), form)),
            Err(failure) => {
                warn!(channel = %listed.name, %failure, "a card was not edited");
                failed.push((at.clone(), failure));
            }
        };
        let shows = Shows::of(of.0, fellows, of.1);
        for at in &shows.stale {
            note(at, listed.channel.edit(at, looks).await);
        }
        for (dossier, card) in shared::in_message(of, fellows) {
            let edition = dossier.confirmation.edition;
            for message in card.standing.iter().filter(|message| message.edition < edition) {
                let Some(reader) = &message.reader else { continue };
                let sight = Sight {
                    user: &reader.user,
                    channel: &listed.name,
                    at: &message.at,
                };
                let view = self.sight(listed, dossier, card, sight, reader.revision);
                let edited = match listed.channel.pages() {
                    Some(pages) => pages.edit(&message.at, &view).await,
                    None => Ok(()),
                };
                note(&message.at, edited.map(|()| CardForm::LaidOut));
            }
        }
        Sent::Edited {
            edition: of.0.confirmation.edition,
            done,
            failed,
        }
    }

    /// Sends the next of the messages that show one person everything. What they were told is of one revision: of another one nothing
    /// more is sent. But the last message, if an earlier try may have left it, is asked for once more under its key: there are buttons
    /// on it, and only who knows where it stands can take them away.
    async fn view(
        &self,
        listed: &Listed,
        dossier: &Dossier,
        delivery: &DeliveryId,
        reader: (&str, u32),
        part: Part<'_>,
    ) -> Sent {
        let (user, revision) = reader;
        let over = dossier.confirmation.revision != revision;
        // Asked twice under one key, the platform answers with what the first try left.
        let before = part.again && listed.channel.repeats_safely().is_some();
        let card = dossier.deliveries.iter().find(|card| card.id == *delivery);
        let (Some(card), Some(pages)) = (card, listed.channel.pages()) else {
            return Sent::Told;
        };
        let Some(first) = card.standing.first().filter(|_| !over || before) else {
            return Sent::Told;
        };
        let sight = Sight {
            user,
            channel: &listed.name,
            at: &first.at,
        };
        let view = self.sight(listed, dossier, card, sight, revision);
        let Some(count) = pages.count(&view) else {
            return Sent::Told;
        };
        let last = part.number + 1 >= count;
        if over && !last {
            return Sent::Told;
        }
        let edition = if before { 0 } else { dossier.confirmation.edition };
        match pages.send(user, &view, part.number, part.key).await {
            Posted::At(at) | Posted::Minimal(at) => Sent::Page {
                last: last.then_some((at, edition)),
            },
            Posted::Unknown { why } => Sent::PostUnknown(why),
            Posted::NotSent(failure) if over && !failure.is_temporary() => {
                warn!(channel = %listed.name, %failure, "whether a full view stands could not be found out");
                Sent::Told
            }
            Posted::NotSent(failure) => {
                warn!(channel = %listed.name, %failure, "a full view was not sent");
                Sent::PostFailed(failure)
            }
        }
    }

    /// Everything as it stands, for a person who was shown this revision. Once there is another one, they have not seen everything.
    fn sight(
        &self,
        listed: &Listed,
        dossier: &Dossier,
        card: &Delivery,
        sight: Sight<'_>,
        revision: u32,
    ) -> FullView {
        let view = self
            .maker
            .everything(dossier, card, sight.at, (&listed.voice, self.clock.now()));
        let seen = self.maker.seen(&view, sight);
        FullView {
            seen: seen.filter(|_| dossier.confirmation.revision == revision),
            ..view
        }
    }

    fn spend(&self, channel: &ChannelName) {
        if let Some(bucket) = self
            .pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(channel)
        {
            bucket.free = bucket.free.saturating_sub(1);
        }
    }
}

/// One of the messages that show one person everything.
#[derive(Clone, Copy)]
struct Part<'a> {
    number: u32,
    key: &'a PostKey,
    /// An earlier try may have left it.
    again: bool,
}

/// Which editions the message of a card's row shows of the other cards that stand in it.
fn beside(item: &OutboxItem, dossier: Option<&Dossier>, fellows: &[Dossier]) -> Vec<(DeliveryId, u32)> {
    let (Some(dossier), Errand::Card { delivery, .. }) = (dossier, &item.errand) else {
        return Vec::new();
    };
    let card = dossier.deliveries.iter().find(|card| card.id == *delivery);
    card.map_or_else(Vec::new, |card| Shows::of(dossier, fellows, card).beside)
}

/// Names the attempts to post a card: another name once a message of it was deleted, since under the old one the platform may
/// take the card for posted.
fn key(card: &Delivery) -> PostKey {
    match card.lost {
        0 => PostKey(card.id.to_string()),
        lost => PostKey(format!("{}.{lost}", card.id)),
    }
}

/// The channel was taken out of the configuration since.
fn no_channel(errand: &Errand) -> Sent {
    match errand {
        Errand::Card { .. } => Sent::PostFailed(Failure::Setup {
            why: "the channel is no longer configured".to_owned(),
        }),
        Errand::Notice { .. }
        | Errand::Whisper { .. }
        | Errand::View { .. }
        | Errand::Line { .. }
        | Errand::Escalate { .. } => Sent::Told,
    }
}

const fn word(sent: &Sent) -> &'static str {
    match sent {
        Sent::Posted { .. } => "posted",
        Sent::PostUnknown(_) => "post unknown",
        Sent::PostFailed(_) => "post failed",
        Sent::Edited { .. } => "edited",
        Sent::Page { .. } => "shown",
        Sent::Told => "told",
        Sent::TellFailed(_) => "not told",
        Sent::MessageGone { .. } => "the message is gone",
    }
}
