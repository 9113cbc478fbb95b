//! The sender: takes what is due from the outbox and calls the platforms, never inside a transaction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gatepost_channel::{Card, CardForm, Failure, Inert, MessageRef, Pace, PostKey, Posted, UtcMillis};
use tracing::{debug, warn};

use super::Errand;
use super::card::CardMaker;
use super::claim::{Claim, Claimed};
use super::record::{Record, Sent};
use super::registry::{Listed, Registry};
use super::shared::Shows;
use crate::clock::Clock;
use crate::ids::{ChannelName, ConfirmationId, Ids, WorkerId};
use crate::lifecycle::Tasks;
use crate::storage::Store;

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
    worker: WorkerId,
    pace: Mutex<BTreeMap<ChannelName, Bucket>>,
    last_post: Mutex<BTreeMap<ChannelName, UtcMillis>>,
}

/// A token bucket for one channel.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    pace: Pace,
    free: u32,
    filled_at: UtcMillis,
}

impl Bucket {
    fn refill(&mut self, now: UtcMillis) {
        let every = self.pace.every.max(Duration::from_millis(1));
        let passed = now.since(self.filled_at).as_millis() / every.as_millis();
        // A clock that went back restarts the count instead of stopping it.
        if now < self.filled_at {
            self.filled_at = now;
        } else if passed > 0 {
            self.free = self
                .free
                .saturating_add(u32::try_from(passed).unwrap_or(u32::MAX))
                .min(self.pace.burst.max(1));
            self.filled_at = now;
        }
    }

    /// How long nothing more may be sent.
    fn full(&self, now: UtcMillis) -> Duration {
        if self.free > 0 {
            return Duration::ZERO;
        }
        self.pace.every.saturating_sub(now.since(self.filled_at))
    }
}

impl Sender {
    /// A sender for all channels.
    pub fn new(
        store: Store,
        registry: Registry,
        maker: CardMaker,
        clock: Arc<dyn Clock>,
        ids: &dyn Ids,
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
            worker: WorkerId::fresh(ids),
            pace: Mutex::new(pace),
            last_post: Mutex::default(),
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
                        if matches!(one.item.errand, Errand::Card { .. }) {
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
        let mut beside = Vec::new();
        let sent = match self.registry.get(item.channel.as_str()) {
            None => no_channel(&item.errand),
            Some(listed) => match &item.errand {
                Errand::Notice { user, chat, text } => match listed.channel.private_notice() {
                    None => Sent::Told,
                    Some(notice) => match notice.tell(user, chat, &Inert::new(text)).await {
                        Ok(()) => Sent::Told,
                        Err(failure) => Sent::TellFailed(failure),
                    },
                },
                Errand::Whisper { .. } => self.whisper(listed, &item, dossier.as_ref()).await,
                Errand::Card { delivery, .. } => {
                    let Some(dossier) = &dossier else { return };
                    let Some(card) = dossier.deliveries.iter().find(|card| card.id == *delivery) else {
                        return;
                    };
                    let edition = dossier.confirmation.edition;
                    let now = self.clock.now();
                    let looks = self.maker.message(dossier, &fellows, card, &listed.voice, now);
                    let shows = Shows::of(dossier, &fellows, card);
                    beside = shows.beside;
                    if card.standing.is_empty() {
                        self.post(listed, &looks, &PostKey(delivery.to_string()), edition)
                            .await
                    } else {
                        edit(listed, &looks, shows.stale, edition).await
                    }
                }
            },
        };
        debug!(channel = %item.channel, request = item.confirmation.as_ref().map(ConfirmationId::as_str), what = word(&sent), "sent");
        if let Some(onlooker) = self.onlooker.get() {
            onlooker.sent(&item.channel, item.confirmation.as_ref(), &sent);
        }
        let channel = item.channel.clone();
        // A record that is lost (the store is down) is made good by the claim's end: the row is claimed again.
        if let Err(error) = self.store.run(Record { item, sent, beside }).await {
            warn!(%error, %channel, "what was sent could not be recorded");
        }
    }

    async fn post(&self, listed: &Listed, card: &Card, key: &PostKey, edition: u32) -> Sent {
        match listed.channel.post(card, key).await {
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

async fn edit(listed: &Listed, card: &Card, stale: Vec<MessageRef>, edition: u32) -> Sent {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for at in stale {
        match listed.channel.edit(&at, card).await {
            Ok(form) => done.push((at, form)),
            Err(failure) => {
                warn!(channel = %listed.name, %failure, "a card was not edited");
                failed.push((at, failure));
            }
        }
    }
    Sent::Edited {
        edition,
        done,
        failed,
    }
}

/// The channel was taken out of the configuration since.
fn no_channel(errand: &Errand) -> Sent {
    match errand {
        Errand::Card { .. } => Sent::PostFailed(Failure::Setup {
            why: "the channel is no longer configured".to_owned(),
        }),
        Errand::Notice { .. } | Errand::Whisper { .. } => Sent::Told,
    }
}

const fn word(sent: &Sent) -> &'static str {
    match sent {
        Sent::Posted { .. } => "posted",
        Sent::PostUnknown(_) => "post unknown",
        Sent::PostFailed(_) => "post failed",
        Sent::Edited { .. } => "edited",
        Sent::Told => "told",
        Sent::TellFailed(_) => "not told",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_without_room_tells_when_it_will_have_some() {
        let pace = Pace {
            burst: 2,
            every: Duration::from_millis(500),
        };
        let bucket = |free| Bucket {
            pace,
            free,
            filled_at: UtcMillis(1_000),
        };
        assert_eq!(bucket(1).full(UtcMillis(1_000)), Duration::ZERO);
        assert_eq!(bucket(0).full(UtcMillis(1_100)), Duration::from_millis(400));
        assert_eq!(bucket(0).full(UtcMillis(1_700)), Duration::ZERO);
        // A clock that went back must not make anybody wait longer than a card takes.
        assert_eq!(bucket(0).full(UtcMillis(0)), Duration::from_millis(500));
    }
}
