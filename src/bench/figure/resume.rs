//! P5: from the decision to the first instruction after the gate, in one process: a waiter that was asleep, and a parked job
//! that a worker takes up again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use gatepost_channel::Decision;
use tokio::sync::mpsc;

use crate::app::{channels, people};
use crate::bench::figure::callback;
use crate::bench::limit::fsync;
use crate::bench::product::{self, OPERATOR, Product};
use crate::bench::report::{About, Gate, Round};
use crate::bench::sample::{Figures, Sample};
use crate::bench::{Bench, BenchError, Rounds};
use crate::clock::SystemClock;
use crate::confirmation::decide::Surface;
use crate::delivery::button::ServerKey;
use crate::delivery::card::CardMaker;
use crate::delivery::phrase::Phrasebook;
use crate::delivery::sender::Sender;
use crate::gatekeeper::{self, Gatekeeper, Journal};
use crate::ids::{ConfirmationId, Ids, JobId, OperatorId, Org, SystemIds, TokenName};
use crate::job::begin_call::{BeginCall, Right};
use crate::job::finish::{Ending, Finish};
use crate::job::park::{Park, Parked, Until};
use crate::job::queue::Queue;
use crate::job::save::Remembered;
use crate::job::submit::Submit;
use crate::job::worker::{Ran, Reins, Run};
use crate::job::{Hold, Job, WaitReason};
use crate::lifecycle::Tasks;
use crate::storage::open::{Settings, open};

const JOB: About = About {
    metric: "P5",
    what: "decision to the parked job's run entered again, p50",
    unit: "ms",
    of: "P3 p50 of the product",
    gate: Gate::Plus(1.0),
};
const JOB_P99: About = About {
    metric: "P5",
    what: "decision to the parked job's run entered again, p99",
    unit: "ms",
    of: "L1 fdatasync p99",
    gate: Gate::Times(3.0),
};
const WAITER: About = About {
    metric: "P5",
    what: "decision to a waiter in the process, p50",
    unit: "ms",
    of: "P3 p50 of the product",
    gate: Gate::Plus(1.0),
};
const CONSUMED: About = About {
    metric: "P5",
    what: "decision to the permit consumed by the job, p50",
    unit: "ms",
    of: "P3 p50 of the product",
    gate: Gate::Shown,
};

/// How long a resumption may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures it.
pub async fn measure(bench: &mut Bench<'_>, product: &Arc<Product>) -> Result<(), BenchError> {
    let few = bench.scale.resumes;
    let database = bench.database().await?;
    let (tasks, store_tasks) = (Tasks::new(), Tasks::new());
    let (mut engine, told) = Engine::start(bench, &database.url, &tasks, &store_tasks).await?;
    let mut told = told;
    let (mut job, mut p99, mut waiter, mut consumed) = <(Rounds, Rounds, Rounds, Rounds)>::default();
    for round in 0..bench.scale.rounds {
        bench.tell(&format!("resumption, round {}", round + 1));
        let cards = product::park(product.gatekeeper(), bench.number(2 * few), 2 * few).await?;
        let (first, second) = cards.split_at(few);
        let disk_before = fsync::appends(bench.dir(), bench.scale.appends).await?.figures();
        let before = callback::decide(product, first, 1).await?.p50_ms;
        let resumed = engine.jobs(bench.number(few), few, &mut told).await?;
        let woken = engine.waiters(bench.number(few), few).await?;
        let after = callback::decide(product, second, 1).await?.p50_ms;
        let disk_after = fsync::appends(bench.dir(), bench.scale.appends).await?.figures();
        let around = |product| Round {
            before,
            product,
            after,
        };
        job.push(around(resumed.entered.p50_ms));
        consumed.push(around(resumed.begun.p50_ms));
        waiter.push(around(woken.p50_ms));
        p99.push(Round {
            before: disk_before.p99_ms,
            product: resumed.entered.p99_ms,
            after: disk_after.p99_ms,
        });
    }
    for tasks in [tasks, store_tasks] {
        tasks.ask_to_stop();
        tasks.drain(Duration::from_secs(10)).await;
    }
    database.drop().await?;
    bench.add(WAITER, waiter);
    bench.add(JOB, job);
    bench.add(JOB_P99, p99);
    bench.add(CONSUMED, consumed);
    Ok(())
}

/// What a run tells of itself.
enum News {
    /// It waits for this request.
    Waits(ConfirmationId),
    /// It goes on: when it was entered, and when its permit was consumed.
    GoesOn { entered: Instant, begun: Instant },
    /// Something failed.
    Failed(String),
}

struct Resumed {
    entered: Figures,
    begun: Figures,
}

/// The parts of a server that a job needs, with a scripted run instead of an agent.
struct Engine {
    gatekeeper: Gatekeeper,
}

impl Engine {
    async fn start(
        bench: &Bench<'_>,
        url: &str,
        tasks: &Tasks,
        store_tasks: &Tasks,
    ) -> Result<(Self, mpsc::UnboundedReceiver<News>), BenchError> {
        let other = |error: &dyn std::error::Error| BenchError::other(error);
        let platform = product::platform(tasks).await?;
        let loaded = product::configuration(url, bench.dir(), platform)?;
        let clock: Arc<dyn crate::clock::Clock> = Arc::new(SystemClock);
        let http = channels::http_client().map_err(|error| other(&error))?;
        let registry =
            channels::build(&loaded.config.channels, &http, &clock).map_err(|error| other(&error))?;
        let roll = Arc::new(people::roll(&loaded.config));
        let phrases = Phrasebook::load().map_err(|error| other(&error))?;
        let mut key = [0_u8; 32];
        SystemIds.random(&mut key);
        let maker = CardMaker::new(Arc::new(phrases), ServerKey::new(key), Arc::clone(&roll), None);
        let store = open(&Settings::new(url, Arc::clone(&clock)), store_tasks)
            .await
            .map_err(|error| other(&error))?;
        let (journal, scribe) = Journal::open();
        let gatekeeper = Gatekeeper::new(gatekeeper::Parts {
            directories: crate::gatekeeper::Directories::none(),
            store: store.clone(),
            policy: Arc::clone(&loaded.policy),
            roll,
            people: Arc::new(people::people(&loaded.config)),
            registry: registry.clone(),
            maker: maker.clone(),
            ids: Arc::new(SystemIds),
            journal,
            council: Arc::new(gatekeeper::council::Nobody),
            shapes: crate::gatekeeper::KnownShapes::default(),
        });
        let ids: Arc<dyn Ids> = Arc::new(SystemIds);
        let sender = Sender::new(store.clone(), registry, maker, Arc::clone(&clock), &ids);
        tasks.spawn(sender.run(tasks.clone()));
        tasks.spawn(scribe.run(store.clone(), clock, tasks.clone()));
        let (tell, told) = mpsc::unbounded_channel();
        let run = Arc::new(Script {
            gatekeeper: gatekeeper.clone(),
            tell,
        });
        Queue::new(store, run, 4, Duration::from_secs(30), &SystemIds, tasks.clone()).start();
        Ok((Self { gatekeeper }, told))
    }

    async fn jobs(
        &mut self,
        first: usize,
        count: usize,
        told: &mut mpsc::UnboundedReceiver<News>,
    ) -> Result<Resumed, BenchError> {
        let (mut entries, mut begins) = (Vec::new(), Vec::new());
        let began = Instant::now();
        for number in first..first + count {
            self.submit(number).await?;
            let News::Waits(id) = news(told).await? else {
                return Err(BenchError::Answer("a run did not park".to_owned()));
            };
            let start = Instant::now();
            self.approve(&id).await?;
            let News::GoesOn { entered, begun } = news(told).await? else {
                return Err(BenchError::Answer("a run did not go on".to_owned()));
            };
            entries.push(entered - start);
            begins.push(begun - start);
        }
        let took = began.elapsed();
        Ok(Resumed {
            entered: Sample::new(entries, took).figures(),
            begun: Sample::new(begins, took).figures(),
        })
    }

    async fn waiters(&self, first: usize, count: usize) -> Result<Figures, BenchError> {
        let mut times = Vec::new();
        let began = Instant::now();
        for number in first..first + count {
            let id = product::ask(&self.gatekeeper, product::question(number, None)?)
                .await?
                .confirmation
                .id;
            let waiting = self.gatekeeper.decided(&id, PATIENCE);
            tokio::pin!(waiting);
            // Far enough into the wait that it sleeps.
            drop(tokio::time::timeout(Duration::from_millis(5), &mut waiting).await);
            let start = Instant::now();
            let (woken, decided) = tokio::join!(
                async {
                    let row = waiting.await;
                    (row, start.elapsed())
                },
                self.approve(&id)
            );
            decided?;
            woken.0.map_err(|error| BenchError::other(&error))?;
            times.push(woken.1);
        }
        Ok(Sample::new(times, began.elapsed()).figures())
    }

    async fn submit(&self, number: usize) -> Result<(), BenchError> {
        let submit = Submit {
            id: JobId::fresh(&SystemIds),
            org: Org::default(),
            token: TokenName("bench".to_owned()),
            piece: "bench".to_owned(),
            movement: "work".to_owned(),
            input: number.to_string(),
            shown_input: None,
            agent_id: None,
            session_id: None,
            requester: None,
            persons: Vec::new(),
            parent: None,
            priority: 0,
            run_at: None,
        };
        let submitted = self.gatekeeper.store().run(submit).await;
        submitted.map(drop).map_err(|error| BenchError::other(&error))
    }

    async fn approve(&self, id: &ConfirmationId) -> Result<(), BenchError> {
        let (operator, org) = (OperatorId(OPERATOR.to_owned()), Org::default());
        let decided = self
            .gatekeeper
            .respond(&operator, &org, id, Decision::Approve, None, Surface::Api);
        decided.await.map(drop).map_err(|error| BenchError::other(&error))
    }
}

async fn news(told: &mut mpsc::UnboundedReceiver<News>) -> Result<News, BenchError> {
    match tokio::time::timeout(PATIENCE, told.recv()).await {
        Ok(Some(News::Failed(why))) => Err(BenchError::Answer(why)),
        Ok(Some(news)) => Ok(news),
        Ok(None) | Err(_) => Err(BenchError::Answer("a run said nothing any more".to_owned())),
    }
}

/// A run that asks once, parks, and goes on when it was approved.
struct Script {
    gatekeeper: Gatekeeper,
    tell: mpsc::UnboundedSender<News>,
}

#[async_trait]
impl Run for Script {
    async fn run(&self, job: Job, _reins: &Reins) -> Ran {
        let entered = Instant::now();
        let news = if job.confirmations.is_empty() {
            self.park(&job).await
        } else {
            self.go_on(&job, entered).await
        };
        drop(
            self.tell
                .send(news.unwrap_or_else(|error| News::Failed(error.to_string()))),
        );
        Ran::Done
    }
}

impl Script {
    async fn park(&self, job: &Job) -> Result<News, BenchError> {
        let number = job.input.parse().map_err(|error| BenchError::other(&error))?;
        let asked = product::ask(&self.gatekeeper, product::question(number, Some(job.id.clone()))?).await?;
        let id = asked.confirmation.id;
        let park = Park {
            hold: Hold::on(job),
            until: Until::Decided {
                reason: WaitReason::ToolApproval,
                requests: vec![id.clone()],
            },
            resume_movement: "work".to_owned(),
            remembered: remembered(&id, Vec::new()),
            asks: None,
        };
        match self.gatekeeper.store().run(park).await {
            Ok(Ok(Parked::Waiting)) => Ok(News::Waits(id)),
            Ok(Ok(Parked::Nothing)) => Err(BenchError::Answer("nothing to wait for".to_owned())),
            Ok(Err(error)) => Err(BenchError::other(&error)),
            Err(error) => Err(BenchError::other(&error)),
        }
    }

    async fn go_on(&self, job: &Job, entered: Instant) -> Result<News, BenchError> {
        let gone = || BenchError::Answer("the request is gone".to_owned());
        let id = job.confirmations.first().ok_or_else(gone)?;
        let store = self.gatekeeper.store();
        let row = store
            .read()
            .dossier(id)
            .await
            .map_err(|error| BenchError::other(&error))?
            .ok_or_else(gone)?;
        let digest = row.confirmation.asked.digest;
        let consume = self.gatekeeper.consumption(&row, digest).await;
        let consume = consume.map_err(|error| BenchError::other(&error))?;
        let call = BeginCall {
            hold: Hold::on(job),
            right: Right::Approved(Box::new(consume)),
            remembered: remembered(id, vec![id.clone()]),
        };
        match store.run(call).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(BenchError::other(&error)),
            Err(error) => return Err(BenchError::other(&error)),
        }
        let begun = Instant::now();
        let finish = Finish {
            family: crate::job::family::Family::default(),
            hold: Hold::on(job),
            ending: Ending::Completed {
                result: "done".to_owned(),
            },
            said: None,
            remembered: None,
            confirmations: vec![id.clone()],
            parent: None,
        };
        match store.run(finish).await {
            Ok(Ok(())) => Ok(News::GoesOn { entered, begun }),
            Ok(Err(error)) => Err(BenchError::other(&error)),
            Err(error) => Err(BenchError::other(&error)),
        }
    }
}

fn remembered(id: &ConfirmationId, taken: Vec<ConfirmationId>) -> Remembered {
    Remembered {
        memory: "{}".to_owned(),
        movement: "work".to_owned(),
        confirmations: vec![id.clone()],
        taken,
    }
}
