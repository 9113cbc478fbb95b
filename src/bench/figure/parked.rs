//! P8 and P11: what 100,000 parked requests hold, and whether a decision notices them.

use std::time::{Duration, Instant};

use gatepost_channel::Decision;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::bench::product::{self, OPERATOR, Parked, Product};
use crate::bench::report::{About, Gate, Round};
use crate::bench::sample::{Sample, float};
use crate::bench::{Bench, BenchError, memory};
use crate::confirmation::decide::Surface;
use crate::ids::{OperatorId, Org};
use crate::lifecycle::Tasks;

const MEMORY: About = About {
    metric: "P8",
    what: "memory for each parked request",
    unit: "B",
    of: "nothing",
    gate: Gate::AtMost(64.0),
};
const DISK: About = About {
    metric: "P8",
    what: "database for each parked request of 600 B arguments",
    unit: "B",
    of: "its arguments, 600 B",
    gate: Gate::AtMost(2560.0),
};
const DECIDE: About = About {
    metric: "P11",
    what: "decision with all parked, 1 caller, p50",
    unit: "ms",
    of: "decision with few parked",
    gate: Gate::Times(1.3),
};

/// Requests made between two messages.
const STEP: usize = 20_000;

/// Measures them. One round: what is held does not wander.
pub async fn measure(bench: &mut Bench<'_>, metrics: Option<PrometheusHandle>) -> Result<(), BenchError> {
    let tasks = Tasks::new();
    let database = bench.database().await?;
    let platform = product::platform(&tasks).await?;
    let product = Product::start(&database.url, bench.dir(), platform, metrics).await?;
    let decisions = bench.scale.resumes;
    // Caches and pools get their size before anything is measured.
    let warm = bench.scale.warm;
    let few = product::park(product.gatekeeper(), bench.number(warm), warm).await?;
    let before = decide(&product, &few[..decisions]).await?;
    let (held, size) = (memory::resident(), database.size().await?);

    let count = bench.scale.parked;
    let mut some = Vec::new();
    let mut made = 0;
    while made < count {
        let step = STEP.min(count - made);
        let cards = product::park(product.gatekeeper(), bench.number(step), step).await?;
        some = cards[..decisions.min(step)].to_vec();
        made += step;
        bench.tell(&format!("{made} parked"));
    }
    // What the making needed goes back before what is held is read.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let growth = |before: i64, after: i64| {
        let grown = usize::try_from(after - before).unwrap_or(0);
        float(grown) / float(count)
    };
    let size_each = growth(size, database.size().await?);
    let held_each = held
        .zip(memory::resident())
        .map(|(before, after)| growth(before, after));
    let after = decide(&product, &some).await?;

    let alone = |product, limit| {
        vec![Round {
            before: limit,
            product,
            after: limit,
        }]
    };
    if let Some(each) = held_each {
        bench.add(MEMORY, alone(each, 0.0));
    }
    bench.add(DISK, alone(size_each, 600.0));
    bench.add(DECIDE, alone(after, before));
    product.stop().await;
    tasks.ask_to_stop();
    tasks.drain(Duration::from_secs(10)).await;
    database.drop().await
}

async fn decide(product: &Product, cards: &[Parked]) -> Result<f64, BenchError> {
    let (operator, org) = (OperatorId(OPERATOR.to_owned()), Org::default());
    let mut times = Vec::new();
    let began = Instant::now();
    for card in cards {
        let start = Instant::now();
        let decided =
            product
                .gatekeeper()
                .respond(&operator, &org, &card.id, Decision::Approve, None, Surface::Api);
        decided.await.map_err(|error| BenchError::other(&error))?;
        times.push(start.elapsed());
    }
    Ok(Sample::new(times, began.elapsed()).figures().p50_ms)
}
