//! P7: a call that needs a person becomes a durable request with its card in the outbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::bench::limit::writer::Writer;
use crate::bench::limit::{fsync, postgres, sqlite};
use crate::bench::product::{self, Product};
use crate::bench::report::{About, Gate, Round};
use crate::bench::sample::{Figures, Sample};
use crate::bench::{Bench, BenchError, Rounds};
use crate::gatekeeper::Gatekeeper;
use crate::ids::{Ids as _, SystemIds};
use crate::lifecycle::Tasks;

use super::callback::CROWD;

const RATE: About = About {
    metric: "P7",
    what: "request created, 64 callers",
    unit: "/s",
    of: "L2 bare writer",
    gate: Gate::Share(0.45),
};
const P50: About = About {
    metric: "P7",
    what: "request created, 1 caller, p50",
    unit: "ms",
    of: "L1 fdatasync p50",
    gate: Gate::Plus(1.0),
};

/// Measures it.
pub async fn measure(bench: &mut Bench<'_>, product: &Arc<Product>) -> Result<(), BenchError> {
    let (many, few) = (bench.scale.callbacks, bench.scale.single);
    let (mut rates, mut p50) = <(Rounds, Rounds)>::default();
    for round in 0..bench.scale.rounds {
        bench.tell(&format!("creation, round {}", round + 1));
        let before = limit(bench, many).await?.rate;
        let ours = create(product.gatekeeper(), bench.number(many), many, CROWD)
            .await?
            .rate;
        let after = limit(bench, many).await?.rate;
        rates.push(Round {
            before,
            product: ours,
            after,
        });
        let before = fsync::appends(bench.dir(), bench.scale.appends).await?.figures();
        let ours = create(product.gatekeeper(), bench.number(few), few, 1).await?;
        let after = fsync::appends(bench.dir(), bench.scale.appends).await?.figures();
        p50.push(Round {
            before: before.p50_ms,
            product: ours.p50_ms,
            after: after.p50_ms,
        });
    }
    bench.add(RATE, rates);
    bench.add(P50, p50);
    Ok(())
}

/// Asks so many times, so many at once.
async fn create(
    gatekeeper: &Gatekeeper,
    first: usize,
    count: usize,
    callers: usize,
) -> Result<Figures, BenchError> {
    let questions = (first..first + count)
        .map(|number| product::question(number, None))
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let asked = stream::iter(questions).map(|question| async move {
        let start = Instant::now();
        product::ask(gatekeeper, question).await?;
        Ok::<Duration, BenchError>(start.elapsed())
    });
    let times = asked.buffer_unordered(callers).try_collect().await?;
    Ok(Sample::new(times, began.elapsed()).figures())
}

/// L2 with 64 clients.
async fn limit(bench: &Bench<'_>, count: usize) -> Result<Figures, BenchError> {
    let database = bench.database().await?;
    let tasks = Tasks::new();
    let ids: Vec<_> = (0..count).map(|_| SystemIds.fresh()).collect();
    let writer = match (database.path(), database.options()) {
        (Some(path), _) => {
            let mut engine = sqlite::Sqlite::open(path).await?;
            engine.fill(&ids).await?;
            Writer::start(engine, &tasks)
        }
        (None, Some(options)) => {
            let mut engine = postgres::Postgres::open(&options).await?;
            engine.fill(&ids).await?;
            Writer::start(engine, &tasks)
        }
        (None, None) => return Err(BenchError::Answer("a database that is nowhere".to_owned())),
    };
    let figures = writer.decide_all(ids, CROWD).await?.figures();
    drop(writer);
    tasks.ask_to_stop();
    tasks.drain(Duration::from_secs(10)).await;
    database.drop().await?;
    Ok(figures)
}
