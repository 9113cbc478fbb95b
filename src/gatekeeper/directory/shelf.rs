//! Answers of platforms, kept for a while: one question at a time for the same thing, and an answer that outlives whoever
//! stopped waiting for it. Knows nothing of what is asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use gatepost_channel::{Failure, Unfound, UtcMillis};

use crate::clock::Clock;
use crate::lifecycle::Tasks;

/// How long it is believed that somebody is not there.
const NO_SUCH: Duration = Duration::from_secs(30);
/// How long it is believed that the app may not ask: somebody has to act, and a restart forgets it at once.
pub(super) const MAY_NOT: Duration = Duration::from_mins(5);
/// How soon after a failure the platform is asked again, at the least and at the most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// Answers that are kept at most.
const MOST: usize = 4_096;

/// An answer, or why there is none.
pub(super) type Answer<V> = Result<V, Unfound>;

/// A question that is under way, or its answer; clones share it.
pub(super) type Flight<V> = Shared<BoxFuture<'static, Answer<V>>>;

enum Kept<V> {
    Flying(Flight<V>),
    Landed { answer: Answer<V>, until: UtcMillis },
}

/// Answers to one kind of question.
pub(super) struct Shelf<K, V> {
    kept: Mutex<BTreeMap<K, Kept<V>>>,
    span: Duration,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

impl<K, V> Shelf<K, V>
where
    K: Ord + Clone + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Keeps what was found for `span`, by this clock.
    pub(super) fn new(span: Duration, clock: &Arc<dyn Clock>, tasks: &Tasks) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            span,
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
        })
    }

    /// Whether the platform need not be asked now.
    pub(super) fn holds(&self, key: &K) -> bool {
        match self.lock().get(key) {
            Some(Kept::Flying(_)) => true,
            Some(Kept::Landed { until, .. }) => self.clock.now() < *until,
            None => false,
        }
    }

    /// The answer that is kept, or the one that is on its way, or a new one.
    pub(super) fn get(
        self: &Arc<Self>,
        key: K,
        ask: impl FnOnce() -> BoxFuture<'static, Answer<V>>,
    ) -> Flight<V> {
        let mut kept = self.lock();
        let now = self.clock.now();
        match kept.get(&key) {
            Some(Kept::Flying(flight)) => return flight.clone(),
            Some(Kept::Landed { answer, until }) if now < *until => {
                return futures_util::future::ready(answer.clone()).boxed().shared();
            }
            _ => {}
        }
        make_room(&mut kept, now);
        let (keeper, name, asking) = (Arc::clone(self), key.clone(), ask());
        let flight = async move {
            let answer = asking.await;
            keeper.land(name, &answer);
            answer
        };
        let flight = flight.boxed().shared();
        kept.insert(key, Kept::Flying(flight.clone()));
        drop(kept);
        // Whoever asked may give up first; the next one finds the answer.
        self.tasks.spawn(flight.clone().map(drop));
        flight
    }

    fn land(&self, key: K, answer: &Answer<V>) {
        let until = self.clock.now().plus(lasting(answer, self.span));
        let answer = answer.clone();
        self.lock().insert(key, Kept::Landed { answer, until });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Kept<V>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long an answer is believed. A failure is no answer: it only spaces the questions.
fn lasting<V>(answer: &Answer<V>, found: Duration) -> Duration {
    match answer {
        Ok(_) => found,
        Err(Unfound::NoSuch) => NO_SUCH,
        Err(Unfound::MayNotAsk { .. } | Unfound::Hidden { .. }) => MAY_NOT,
        Err(Unfound::Failed(failure)) => pause(failure),
    }
}

/// How long the platform is left alone after a failure.
pub(super) fn pause(failure: &Failure) -> Duration {
    let wish = match failure {
        Failure::Retry { after, .. } => after.unwrap_or(PAUSE.0),
        _ => PAUSE.0,
    };
    wish.clamp(PAUSE.0, PAUSE.1)
}

/// Whoever can click can fill the shelf, so it is emptied of what is old, and then of everything that has landed.
fn make_room<K: Ord, V>(kept: &mut BTreeMap<K, Kept<V>>, now: UtcMillis) {
    if kept.len() < MOST {
        return;
    }
    kept.retain(|_, kept| {
        matches!(kept, Kept::Flying(_)) || matches!(kept, Kept::Landed { until, .. } if now < *until)
    });
    if kept.len() >= MOST {
        kept.retain(|_, kept| matches!(kept, Kept::Flying(_)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;
    use crate::clock::ManualClock;

    struct World {
        clock: ManualClock,
        shelf: Arc<Shelf<String, u32>>,
        asked: Arc<AtomicU32>,
    }

    fn world() -> World {
        let clock = ManualClock::at(UtcMillis::from_secs(1_795_953_600));
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        World {
            clock,
            shelf: Shelf::new(Duration::from_mins(5), &shared, &Tasks::new()),
            asked: Arc::default(),
        }
    }

    impl World {
        async fn get(&self, answer: Answer<u32>) -> Answer<u32> {
            let asked = Arc::clone(&self.asked);
            let ask = move || {
                async move {
                    asked.fetch_add(1, Ordering::SeqCst);
                    answer
                }
                .boxed()
            };
            self.shelf.get("mira".to_owned(), ask).await
        }

        fn asked(&self) -> u32 {
            self.asked.load(Ordering::SeqCst)
        }
    }

    fn failed(after: Option<u64>) -> Answer<u32> {
        Err(Unfound::Failed(Failure::Retry {
            after: after.map(Duration::from_secs),
            why: "busy".into(),
        }))
    }

    #[tokio::test]
    async fn each_answer_is_believed_for_its_time() {
        let may_not = || {
            Err(Unfound::MayNotAsk {
                why: "missing_scope".into(),
            })
        };
        for (answer, seconds) in [
            (Ok(7), 300),
            (Err(Unfound::NoSuch), 30),
            (may_not(), 300),
            (failed(None), 1),
            (failed(Some(20)), 20),
            (failed(Some(9_000)), 60),
        ] {
            let world = world();
            assert_eq!(world.get(answer.clone()).await, answer);
            world.clock.advance(Duration::from_millis(seconds * 1000 - 1));
            assert_eq!(world.get(Ok(8)).await, answer, "still {answer:?}");
            assert!(world.shelf.holds(&"mira".to_owned()));
            world.clock.advance(Duration::from_millis(1));
            assert!(!world.shelf.holds(&"mira".to_owned()));
            assert_eq!(world.get(Ok(8)).await, Ok(8), "no longer {answer:?}");
            assert_eq!(world.asked(), 2);
        }
    }

    #[tokio::test]
    async fn many_who_ask_at_once_are_one_question_that_nobody_can_give_up() {
        let world = world();
        let (gate, asked) = (Arc::new(Notify::new()), Arc::clone(&world.asked));
        let opened = Arc::clone(&gate);
        let ask = move || {
            async move {
                asked.fetch_add(1, Ordering::SeqCst);
                opened.notified().await;
                Ok(7)
            }
            .boxed()
        };
        let first = world.shelf.get("mira".to_owned(), ask);
        let second = world.get(Ok(8));
        // The first one gives up; the question goes on.
        drop(first);
        gate.notify_one();
        assert_eq!(second.await, Ok(7));
        assert_eq!((world.asked(), world.get(Ok(9)).await), (1, Ok(7)));
    }

    #[tokio::test]
    async fn the_shelf_does_not_grow_without_end() {
        let world = world();
        for number in 0..MOST + 10 {
            let ask = || futures_util::future::ready(Ok(1)).boxed();
            let _ = world.shelf.get(number.to_string(), ask).await;
        }
        assert!(world.shelf.lock().len() <= MOST);
    }
}
