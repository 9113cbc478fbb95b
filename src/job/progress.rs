//! Progress: what goes on in the runs of this process, told while it happens. It is for those who watch and for nobody else: a
//! short memory for each job, gone with the process. Whoever needs what is true reads the job.
//!
//! It must not know what a run remembers: words, counts and names of tools are all that is told, no argument and no result.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use crate::ids::{Ids, JobId};

/// Jobs of which something is remembered; the one that was silent longest is forgotten first.
const MOST_JOBS: usize = 512;
/// What is remembered of each, for those who come back.
const MOST_TOLD: usize = 64;

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Progress {
    /// A worker took the run up again, after a wait or a crash.
    Resumed,
    /// The model is asked.
    TurnStarted {
        /// Replies so far.
        turn: u32,
    },
    /// The model answered.
    ModelAnswered {
        /// The calls that it wants.
        calls: usize,
        /// Tokens of what it was asked, as the endpoint counts them.
        input_tokens: u64,
        /// Those of them that the endpoint had in its cache.
        cached_tokens: u64,
        /// Tokens of what it answered.
        output_tokens: u64,
    },
    /// A call is sent.
    ToolStarted {
        /// The call's id.
        call: String,
        /// The tool's name.
        tool: String,
    },
    /// A call is over, or its outcome is not known.
    ToolFinished {
        /// The call's id.
        call: String,
        /// The tool's name.
        tool: String,
        /// `succeeded`, `failed` or `unknown`.
        status: &'static str,
    },
    /// The run goes on in another movement.
    MovementChanged {
        /// Where it was.
        from: String,
        /// Where it is.
        to: String,
    },
    /// The run waits as a row.
    Parked {
        /// The wait reason, or `subtasks`.
        reason: &'static str,
    },
    /// The run is over.
    Ended {
        /// The word of its state.
        status: &'static str,
    },
}

impl Progress {
    /// The word for it, as it stands in `type`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::TurnStarted { .. } => "turn_started",
            Self::ModelAnswered { .. } => "model_answered",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolFinished { .. } => "tool_finished",
            Self::MovementChanged { .. } => "movement_changed",
            Self::Parked { .. } => "parked",
            Self::Ended { .. } => "ended",
        }
    }
}

/// Something that was told, with its place among all that this process told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Rises with everything that is told.
    pub number: u64,
    /// What.
    pub progress: Progress,
}

/// See the module. Clones share it.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    instance: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    jobs: BTreeMap<JobId, Channel>,
}

#[derive(Debug)]
struct Channel {
    told: VecDeque<Told>,
    newest: watch::Sender<u64>,
}

impl Feed {
    /// A feed with nothing in it.
    pub fn new(ids: &dyn Ids) -> Self {
        let mut random = [0; 4];
        ids.random(&mut random);
        Self(Arc::new(Inner {
            instance: hex::encode(random),
            state: Mutex::default(),
        }))
    }

    /// Tells this feed from those of other processes and of other days.
    pub fn instance(&self) -> &str {
        &self.0.instance
    }

    /// Something happened in the run of a job.
    pub fn tell(&self, job: &JobId, progress: Progress) {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let channel = state.channel(job);
        if channel.told.len() == MOST_TOLD {
            channel.told.pop_front();
        }
        channel.told.push_back(Told { number, progress });
        channel.newest.send_replace(number);
    }

    /// The number of what was told last, of whatever job.
    pub fn newest(&self) -> u64 {
        self.state().last
    }

    /// Changes whenever something of the job is told. A job with listeners is not forgotten.
    pub fn listen(&self, job: &JobId) -> watch::Receiver<u64> {
        self.state().channel(job).newest.subscribe()
    }

    /// What was told of the job after this number, as far as it is remembered.
    pub fn after(&self, job: &JobId, number: u64) -> Vec<Told> {
        let state = self.state();
        let told = state.jobs.get(job).map(|channel| &channel.told);
        told.into_iter()
            .flatten()
            .filter(|told| told.number > number)
            .cloned()
            .collect()
    }

    /// Whether somebody listens to the job.
    #[cfg(test)]
    pub(crate) fn is_heard(&self, job: &JobId) -> bool {
        let state = self.state();
        state
            .jobs
            .get(job)
            .is_some_and(|channel| channel.newest.receiver_count() > 0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn channel(&mut self, job: &JobId) -> &mut Channel {
        if self.jobs.len() >= MOST_JOBS && !self.jobs.contains_key(job) {
            let quietest = self
                .jobs
                .iter()
                .filter(|(_, channel)| channel.newest.receiver_count() == 0)
                .min_by_key(|(_, channel)| *channel.newest.borrow())
                .map(|(id, _)| id.clone());
            if let Some(quietest) = quietest {
                self.jobs.remove(&quietest);
            }
        }
        let last = self.last;
        self.jobs.entry(job.clone()).or_insert_with(|| Channel {
            told: VecDeque::new(),
            newest: watch::Sender::new(last),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SeededIds;

    fn job(ids: &SeededIds) -> JobId {
        JobId::fresh(ids)
    }

    #[test]
    fn each_job_has_its_own_short_memory() {
        let ids = SeededIds::default();
        let feed = Feed::new(&ids);
        let (one, other) = (job(&ids), job(&ids));
        for turn in 0..100 {
            feed.tell(&one, Progress::TurnStarted { turn });
        }
        feed.tell(&other, Progress::Resumed);
        let told = feed.after(&one, 0);
        assert_eq!(told.len(), MOST_TOLD);
        assert_eq!(told[MOST_TOLD - 1].progress, Progress::TurnStarted { turn: 99 });
        assert_eq!(feed.after(&one, 99).len(), 1);
        assert_eq!(feed.after(&one, feed.newest()), []);
        assert_eq!(feed.after(&other, 0).len(), 1);
    }

    #[test]
    fn a_job_that_is_listened_to_is_not_forgotten() {
        let ids = SeededIds::default();
        let feed = Feed::new(&ids);
        let (heard, quiet) = (job(&ids), job(&ids));
        let listener = feed.listen(&heard);
        feed.tell(&heard, Progress::Resumed);
        feed.tell(&quiet, Progress::Resumed);
        for _ in 0..2 * MOST_JOBS {
            feed.tell(&job(&ids), Progress::Resumed);
        }
        assert_eq!(feed.after(&heard, 0).len(), 1);
        assert_eq!(feed.after(&quiet, 0), []);
        assert!(listener.has_changed().unwrap());
        assert!(feed.state().jobs.len() <= MOST_JOBS);
    }

    #[test]
    fn the_word_is_the_type() {
        for progress in [
            Progress::Resumed,
            Progress::TurnStarted { turn: 1 },
            Progress::Parked { reason: "subtasks" },
            Progress::Ended { status: "error" },
        ] {
            let json = serde_json::to_value(&progress).unwrap();
            assert_eq!(json["type"], progress.word());
        }
    }
}
