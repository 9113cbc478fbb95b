//! L2: the bare batching writer. One task owns one connection, takes what is queued (at most 256, no timer), decides it in two
//! set-wise statements, commits, and only then answers.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::bench::BenchError;
use crate::bench::sample::Sample;
use crate::lifecycle::Tasks;

/// Items in one commit at most, as in the product.
pub const BATCH: usize = 256;

/// One bare connection.
pub trait Engine: Send + 'static {
    /// Decides the requests of these ids in one transaction; tells how many there were to decide.
    fn decide(&mut self, ids: &[String]) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
    /// Lets the connection go.
    fn close(self) -> impl Future<Output = ()> + Send;
}

struct Wanted {
    id: String,
    reply: oneshot::Sender<bool>,
}

/// The queue before a bare writer. Clones share it.
#[derive(Clone)]
pub struct Writer(mpsc::Sender<Wanted>);

impl Writer {
    /// Starts it. It ends when nobody holds its queue any more.
    pub fn start<E: Engine>(engine: E, tasks: &Tasks) -> Self {
        let (sender, queue) = mpsc::channel(4096);
        tasks.spawn(drive(engine, queue));
        Self(sender)
    }

    /// Decides one request; the answer comes after the commit.
    pub async fn decide(&self, id: String) -> bool {
        let (reply, answer) = oneshot::channel();
        self.0.send(Wanted { id, reply }).await.is_ok() && answer.await.unwrap_or(false)
    }

    /// Decides all of them, so many at a time, and times each.
    pub async fn decide_all(&self, ids: Vec<String>, clients: usize) -> Result<Sample, BenchError> {
        let ids = Arc::new(std::sync::Mutex::new(ids));
        let mut lanes = JoinSet::new();
        let began = Instant::now();
        for _ in 0..clients {
            let (writer, ids) = (self.clone(), Arc::clone(&ids));
            lanes.spawn(async move {
                let mut times = Vec::new();
                loop {
                    let next = ids
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .pop();
                    let Some(id) = next else { return Some(times) };
                    let start = Instant::now();
                    if !writer.decide(id).await {
                        return None;
                    }
                    times.push(start.elapsed());
                }
            });
        }
        let mut times = Vec::new();
        while let Some(lane) = lanes.join_next().await {
            let lane = lane.map_err(|error| BenchError::other(&error))?;
            times.extend(lane.ok_or_else(|| BenchError::Answer("the bare writer failed".to_owned()))?);
        }
        Ok(Sample::new(times, began.elapsed()))
    }
}

async fn drive<E: Engine>(mut engine: E, mut queue: mpsc::Receiver<Wanted>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let ids: Vec<String> = batch.iter().map(|wanted| wanted.id.clone()).collect();
        let decided = engine.decide(&ids).await;
        let all = decided.is_ok_and(|decided| decided == u64::try_from(ids.len()).unwrap_or(0));
        for wanted in batch.drain(..) {
            // A client that is gone needs no answer.
            let _gone = wanted.reply.send(all);
        }
    }
    engine.close().await;
}
