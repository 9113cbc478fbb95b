//! Holding several sessions at once: one is opened at a time, a leaving one is replaced before it goes, failures back off,
//! a refusal for good opens no more. Knows neither platform nor socket: a session is any future that ends with an [`Ended`].

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Chance, ConnectionState, ConnectionStatus, Now, Stop};

/// A session that stood this long was fine; one that fell sooner counts as a failure, so that a platform which takes and
/// drops connections at once is not hammered.
const STEADY: Duration = Duration::from_secs(10);
/// The longest wait between two tries of our own; a platform may ask for more.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Why a session ended or will end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was let go: after its replacement stood, or because the server stops.
    LetGo,
    /// The platform said that it will close it; another one takes over.
    Refreshed,
    /// It was lost, or could not be opened.
    Lost {
        /// A word of ours or the platform's code.
        why: String,
    },
    /// The platform wants us to come later.
    Later {
        /// Not sooner than this.
        after: Duration,
        /// The platform's code.
        why: String,
    },
    /// No other try can succeed until an operator has acted.
    Stop {
        /// The platform's code and what to do.
        why: String,
    },
}

impl End {
    /// A loss with this word.
    pub fn lost(why: impl Into<String>) -> Self {
        Self::Lost { why: why.into() }
    }
}

/// A session's end, and the clicks that it had taken and could no longer answer: they are finished all the same.
pub struct Ended {
    /// Why.
    pub end: End,
    /// What is left to finish.
    pub rest: Option<BoxFuture<'static, ()>>,
}

impl From<End> for Ended {
    fn from(end: End) -> Self {
        Self { end, rest: None }
    }
}

/// A session that ended or announced its end, as it matters for when the next one is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// Why.
    pub end: End,
    /// Whether it ever took clicks.
    pub was_live: bool,
    /// How many departures in a row, this one included, came without a steady session between them.
    pub failures: u32,
}

impl Departure {
    /// A wait drawn from zero to a bound that doubles with each failure, from one second to a minute; the platform's own
    /// wish comes on top.
    pub fn backoff(&self, chance: &Chance) -> Duration {
        let bound = Duration::from_secs(1)
            .saturating_mul(1_u32 << self.failures.min(10))
            .min(LONGEST_WAIT);
        let wish = match self.end {
            End::Later { after, .. } => after,
            _ => Duration::ZERO,
        };
        wish.saturating_add(spread(bound, chance))
    }
}

/// A time between zero and `bound`, drawn evenly.
pub fn spread(bound: Duration, chance: &Chance) -> Duration {
    let mut bytes = [0_u8; 4];
    chance(&mut bytes);
    let share = f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX);
    bound.mul_f64(share)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening,
    Live { since: Instant },
    Leaving,
    Down,
}

#[derive(Debug)]
struct Standing {
    state: ConnectionState,
    wanted: usize,
    sessions: BTreeMap<u64, Phase>,
    opened: u64,
    lives: u64,
    departures: Vec<(End, Option<Duration>)>,
    last_inbound: Option<super::UtcMillis>,
    strangers: u32,
    trouble: Option<String>,
    stopping: bool,
}

impl Standing {
    fn count(&self, which: impl Fn(Phase) -> bool) -> usize {
        self.sessions.values().filter(|phase| which(**phase)).count()
    }

    fn live(&self) -> usize {
        self.count(|phase| matches!(phase, Phase::Live { .. }))
    }

    fn opening(&self) -> usize {
        self.count(|phase| phase == Phase::Opening)
    }
}

/// How the sessions of one app stand; shared by them, their keeper and whoever asks. Clones share it.
#[derive(Clone)]
pub struct Board {
    standing: Arc<watch::Sender<Standing>>,
    now: Now,
}

impl Board {
    /// No sessions yet, `wanted` to be held.
    pub fn new(wanted: usize, now: Now) -> Self {
        Self {
            standing: Arc::new(watch::Sender::new(Standing {
                state: ConnectionState::Idle,
                wanted,
                sessions: BTreeMap::new(),
                opened: 0,
                lives: 0,
                departures: Vec::new(),
                last_inbound: None,
                strangers: 0,
                trouble: None,
                stopping: false,
            })),
            now,
        }
    }

    /// How things stand now.
    pub fn status(&self) -> ConnectionStatus {
        let standing = self.standing.borrow();
        ConnectionStatus {
            state: standing.state.clone(),
            connected: standing.live(),
            wanted: standing.wanted,
            last_inbound: standing.last_inbound,
            reconnects: standing.lives.saturating_sub(standing.wanted as u64),
            strangers: standing.strangers,
            trouble: standing.trouble.clone(),
        }
    }

    fn seat(&self) -> Seat {
        let mut id = 0;
        self.standing.send_modify(|standing| {
            id = standing.opened;
            standing.opened += 1;
            standing.sessions.insert(id, Phase::Opening);
        });
        Seat {
            id,
            board: self.clone(),
        }
    }

    fn remove(&self, id: u64, end: &End) {
        self.standing.send_modify(|standing| {
            depart(standing, id, end, Phase::Down);
            standing.sessions.remove(&id);
        });
    }
}

/// Moves a session on to a phase in which it takes over no more. Its departure is told once.
fn depart(standing: &mut Standing, id: u64, end: &End, to: Phase) {
    let Some(phase) = standing.sessions.get_mut(&id) else {
        return;
    };
    let lived = match mem::replace(phase, to) {
        Phase::Opening => None,
        Phase::Live { since } => Some(since.elapsed()),
        Phase::Leaving | Phase::Down => return,
    };
    standing.departures.push((end.clone(), lived));
    match end {
        End::Lost { why } | End::Later { why, .. } => standing.trouble = Some(why.clone()),
        End::Stop { why } => standing.state = ConnectionState::Stopped { why: why.clone() },
        End::LetGo | End::Refreshed => {}
    }
}

/// One session's place on the board.
#[derive(Clone)]
pub struct Seat {
    id: u64,
    board: Board,
}

impl Seat {
    /// The session takes clicks from now on. `counted` is how many connections of the app the platform counts, this one
    /// included, where it does.
    pub fn live(&self, counted: Option<u32>) {
        self.board.standing.send_modify(|standing| {
            if let Some(phase) = standing.sessions.get_mut(&self.id)
                && *phase == Phase::Opening
            {
                *phase = Phase::Live {
                    since: Instant::now(),
                };
                standing.lives += 1;
            }
            if let Some(counted) = counted {
                let ours = standing.sessions.len() - standing.opening();
                standing.strangers = counted.saturating_sub(u32::try_from(ours).unwrap_or(u32::MAX));
            }
            if standing.live() >= standing.wanted {
                standing.trouble = None;
            }
        });
    }

    /// The platform announced that it will close the session: another one is opened, this one serves on meanwhile.
    pub fn leave(&self) {
        self.board.standing.send_modify(|standing| {
            depart(standing, self.id, &End::Refreshed, Phase::Leaving);
        });
    }

    /// The session takes no more clicks; it may still finish some.
    pub fn down(&self, end: &End) {
        self.board.standing.send_modify(|standing| {
            depart(standing, self.id, end, Phase::Down);
        });
    }

    /// Something came in.
    pub fn heard(&self) {
        let now = (self.board.now)();
        self.board.standing.send_if_modified(|standing| {
            standing.last_inbound = Some(now);
            false
        });
    }

    /// Connections of the app that are not ours, by the platform's last count.
    pub fn strangers(&self) -> u32 {
        self.board.standing.borrow().strangers
    }

    /// Resolves when the server stops.
    pub async fn stopping(&self) {
        let mut standing = self.board.standing.subscribe();
        // The board outlives its seats, so the wait cannot fail.
        let _ = standing.wait_for(|standing| standing.stopping).await;
    }

    /// Resolves when this session leaves and enough others stand.
    pub async fn replaced(&self) {
        let mut standing = self.board.standing.subscribe();
        let done = |standing: &Standing| {
            standing.sessions.get(&self.id) == Some(&Phase::Leaving) && standing.live() >= standing.wanted
        };
        let _ = standing.wait_for(done).await;
    }
}

/// Holds sessions on `board` until `stop` resolves, then waits until they have ended. `open` makes one; `wait` says how long
/// after a departure the next may be opened.
pub async fn keep<S>(
    board: &Board,
    mut stop: Stop,
    wait: impl Fn(&Departure) -> Duration,
    open: impl Fn(Seat) -> S,
) where
    S: Future<Output = Ended>,
{
    let mut changes = board.standing.subscribe();
    let mut sessions = FuturesUnordered::new();
    let mut rests = FuturesUnordered::new();
    let mut failures = 0_u32;
    let mut not_before = Instant::now();
    board.standing.send_modify(|standing| {
        standing.state = ConnectionState::Running;
        standing.stopping = false;
    });
    loop {
        let departures = take_departures(board);
        for (end, lived) in departures {
            if end == End::LetGo {
                continue;
            }
            failures = match lived {
                Some(lived) if lived >= STEADY => 0,
                _ => failures.saturating_add(1),
            };
            let departure = Departure {
                end,
                was_live: lived.is_some(),
                failures,
            };
            not_before = not_before.max(Instant::now() + wait(&departure));
            tracing::info!(end = ?departure.end, failures, "a connection to the platform goes");
        }
        let due = {
            let standing = changes.borrow_and_update();
            standing.state == ConnectionState::Running
                && standing.opening() == 0
                && standing.live() < standing.wanted
        };
        if due && Instant::now() >= not_before {
            let seat = board.seat();
            let id = seat.id;
            let session = open(seat);
            sessions.push(async move { (id, session.await) });
        }
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(()) = rests.next(), if !rests.is_empty() => {}
            Some((id, ended)) = sessions.next(), if !sessions.is_empty() => {
                let Ended { end, rest } = ended;
                board.remove(id, &end);
                rests.extend(rest);
            }
            told = changes.changed() => if told.is_err() { break },
            () = sleep_until(not_before), if due && Instant::now() < not_before => {}
        }
    }
    board.standing.send_modify(|standing| standing.stopping = true);
    while let Some((id, ended)) = sessions.next().await {
        let Ended { end, rest } = ended;
        board.remove(id, &end);
        rests.extend(rest);
    }
    while rests.next().await.is_some() {}
}

fn take_departures(board: &Board) -> Vec<(End, Option<Duration>)> {
    let mut taken = Vec::new();
    board.standing.send_if_modified(|standing| {
        taken = mem::take(&mut standing.departures);
        false
    });
    taken
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
