//! The worker: runs one claimed job, keeps its lease alive meanwhile, and hands it back when the run could not go on.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tracing::{error, info, warn};

use super::claim::MAX_ATTEMPTS;
use super::family::Family;
use super::finish::{Ending, Finish};
use super::heartbeat::Heartbeat;
use super::release::{Because, Release};
use super::{Hold, Job, LostLease};
use crate::lifecycle::Tasks;
use crate::storage::Store;

/// How long a job rests after a failed attempt: the first, and every later one.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_mins(1)];
/// How long a job waits for something outside that does not answer.
const LATER: Duration = Duration::from_secs(5);

/// What a claimed job is run by: the agent room's runner.
#[async_trait]
pub trait Run: Send + Sync {
    /// Runs the job until it parks, ends, or cannot go on. Everything durable is written under the job's [`Hold`].
    async fn run(&self, job: Job, reins: &Reins) -> Ran;
}

/// How far a run came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// It parked or ended, and wrote so.
    Done,
    /// It stopped between two steps, because it was told to.
    Stopped,
    /// Something outside does not answer now, and nothing was begun: it goes on later.
    Later,
    /// The job is somebody else's now.
    Lost,
    /// It could not go on; another attempt may go better. The text goes into the job's error if none does.
    Failed(String),
}

impl From<LostLease> for Ran {
    fn from(_: LostLease) -> Self {
        Self::Lost
    }
}

/// How a run is told to stop. Between two steps it asks; while nothing is under way that has an effect, it may also listen.
pub struct Reins {
    tasks: Tasks,
    lost: AtomicBool,
}

impl Reins {
    /// Reins of a run among these tasks.
    pub fn new(tasks: Tasks) -> Self {
        Self {
            tasks,
            lost: AtomicBool::new(false),
        }
    }

    /// Why the run must not begin another step.
    pub fn halt(&self) -> Option<Ran> {
        if self.lost.load(Ordering::SeqCst) {
            Some(Ran::Lost)
        } else if self.tasks.is_stopping() {
            Some(Ran::Stopped)
        } else {
            None
        }
    }

    /// Resolves when the server is asked to stop.
    pub async fn stopping(&self) {
        self.tasks.stopping().await;
    }
}

/// Runs a claimed job to wherever it comes. A panic of the run is caught here.
pub(super) async fn work(store: &Store, run: &dyn Run, lease: Duration, tasks: Tasks, job: Job) {
    let hold = Hold::on(&job);
    let reins = Reins::new(tasks);
    let running = AssertUnwindSafe(run.run(job, &reins)).catch_unwind();
    let ran = tokio::select! {
        biased;
        ran = running => ran,
        () = beat(store, &hold, lease, &reins) => Ok(Ran::Lost),
    };
    let ran = ran.unwrap_or_else(|_| {
        error!(job = %hold.job, "a run panicked");
        metrics::counter!("gatepost_job_panics_total").increment(1);
        Ran::Failed("the run panicked".to_owned())
    });
    match ran {
        Ran::Done => {}
        Ran::Lost => info!(job = %hold.job, "the job went to somebody else"),
        Ran::Stopped => release(store, &hold, Because::Stopping).await,
        Ran::Later => release(store, &hold, Because::Waiting { pause: LATER }).await,
        Ran::Failed(why) => fail(store, &hold, why).await,
    }
}

/// Extends the lease every third of it, on the steady clock. Never ends: a lost lease only stops the run at its next step.
async fn beat(store: &Store, hold: &Hold, lease: Duration, reins: &Reins) {
    let pause = (lease / 3).max(Duration::from_millis(10));
    loop {
        tokio::time::sleep(pause).await;
        let heartbeat = Heartbeat {
            hold: hold.clone(),
            lease,
        };
        match store.run(heartbeat).await {
            Ok(Ok(_)) => {}
            Ok(Err(LostLease)) => {
                reins.lost.store(true, Ordering::SeqCst);
                return std::future::pending().await;
            }
            Err(error) => warn!(job = %hold.job, %error, "a heartbeat was not written"),
        }
    }
}

async fn fail(store: &Store, hold: &Hold, why: String) {
    let now = match store.read().job(&hold.job).await {
        Ok(Some(job)) if job.fence == hold.fence => job,
        Ok(_) => return,
        Err(error) => {
            // Whoever claims it when the lease is over finds the attempt counted.
            warn!(job = %hold.job, %error, "a failed run could not be handed back");
            return;
        }
    };
    warn!(job = %hold.job, attempts = now.attempts, "a run could not go on");
    if now.attempts < MAX_ATTEMPTS {
        let pause = if now.attempts <= 1 { PAUSES[0] } else { PAUSES[1] };
        return release(store, hold, Because::Failed { pause }).await;
    }
    let family = match Family::of(store.read(), &now).await {
        Ok(family) => family,
        Err(error) => {
            warn!(job = %hold.job, %error, "what a failed run began could not be read");
            Family::default()
        }
    };
    let finish = Finish {
        hold: hold.clone(),
        family,
        ending: Ending::Failed { error: why },
        said: None,
        remembered: None,
        confirmations: now.confirmations,
        parent: now.parent,
    };
    if let Err(error) = store.run(finish).await {
        warn!(job = %hold.job, %error, "a failed run could not be ended");
    }
}

async fn release(store: &Store, hold: &Hold, because: Because) {
    let release = Release {
        hold: hold.clone(),
        because,
    };
    if let Err(error) = store.run(release).await {
        warn!(job = %hold.job, %error, "a job could not be handed back; its lease will run out");
    }
}
