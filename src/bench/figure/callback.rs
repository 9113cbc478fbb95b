//! P1, P2 and P3: a verified callback is stored and answered, by 64 connections and by one.

use std::sync::Arc;

use tokio::time::Duration;

use crate::bench::limit::writer::Writer;
use crate::bench::limit::{endpoint, postgres, sqlite};
use crate::bench::place::Database;
use crate::bench::press::press;
use crate::bench::product::{self, Parked, Product};
use crate::bench::report::{About, Gate, Round};
use crate::bench::sample::Figures;
use crate::bench::{Bench, BenchError, Metric, Rounds, load};
use crate::ids::{Ids as _, SystemIds};
use crate::lifecycle::Tasks;

/// Connections that press at the same time.
pub const CROWD: usize = 64;

const P1: About = About {
    metric: "P1",
    what: "callback stored and answered, 64 connections",
    unit: "/s",
    of: "L4 bare endpoint",
    gate: Gate::Share(0.50),
};
const P2: About = About {
    metric: "P2",
    what: "callback stored and answered, 64 connections",
    unit: "/s",
    of: "min(L4 bare endpoint, L6 unnest)",
    gate: Gate::Share(0.40),
};
const P3_P50: About = About {
    metric: "P3",
    what: "answer to a callback, 1 connection, p50",
    unit: "ms",
    of: "L4 p50",
    gate: Gate::Plus(0.3),
};
const P3_P99: About = About {
    metric: "P3",
    what: "answer to a callback, 1 connection, p99",
    unit: "ms",
    of: "L4 p99",
    gate: Gate::Times(2.0),
};
const L5: About = About {
    metric: "L5",
    what: "single UPDATEs, 64 connections",
    unit: "/s",
    of: "L6 unnest",
    gate: Gate::Shown,
};

/// The bare endpoint over a database of its own, with undecided requests behind it.
struct Limit {
    address: std::net::SocketAddr,
    tokens: Vec<String>,
    tasks: Tasks,
    database: Database,
}

impl Limit {
    async fn start(bench: &Bench<'_>, rows: usize) -> Result<Self, BenchError> {
        let tokens: Vec<_> = (0..rows).map(|_| format!("g1.{}.1", SystemIds.fresh())).collect();
        let database = bench.database().await?;
        let tasks = Tasks::new();
        let writer = match (database.path(), database.options()) {
            (Some(path), _) => {
                let mut engine = sqlite::Sqlite::open(path).await?;
                engine.fill(&tokens).await?;
                Writer::start(engine, &tasks)
            }
            (None, Some(options)) => {
                let mut engine = postgres::Postgres::open(&options).await?;
                engine.fill(&tokens).await?;
                Writer::start(engine, &tasks)
            }
            (None, None) => return Err(BenchError::Answer("a database that is nowhere".to_owned())),
        };
        let address = endpoint::start(writer, &tasks).await?;
        Ok(Self {
            address,
            tokens,
            tasks,
            database,
        })
    }

    async fn run(&mut self, count: usize, connections: usize) -> Result<Figures, BenchError> {
        let tokens = self.tokens.split_off(self.tokens.len().saturating_sub(count));
        let presses = tokens.iter().enumerate();
        let presses = presses
            .map(|(number, token)| press(self.address, endpoint::PATH, "1700000000.000001", token, number))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(load::fire(self.address, presses, connections).await?.figures())
    }

    async fn stop(self) -> Result<(), BenchError> {
        self.tasks.ask_to_stop();
        self.tasks.drain(Duration::from_secs(10)).await;
        self.database.drop().await
    }
}

/// Presses on fresh cards, and makes sure that each press decided its request.
pub async fn decide(product: &Product, cards: &[Parked], connections: usize) -> Result<Figures, BenchError> {
    let presses = product.presses(cards)?;
    let before = product::pending(product.gatekeeper()).await?;
    let sample = load::fire(product.address(), presses, connections).await?;
    let after = product::pending(product.gatekeeper()).await?;
    if before - after != u64::try_from(cards.len()).unwrap_or(0) {
        return Err(BenchError::Answer(format!(
            "{} presses decided {} requests",
            cards.len(),
            before - after
        )));
    }
    Ok(sample.figures())
}

/// Measures them.
pub async fn measure(bench: &mut Bench<'_>, product: &Arc<Product>) -> Result<(), BenchError> {
    let (many, few) = (bench.scale.callbacks, bench.scale.single);
    let on_server = bench.store.is_server();
    let (mut rates, mut p50, mut p99, mut singles) = <(Rounds, Rounds, Rounds, Rounds)>::default();
    let wants_rate = bench.wants(Metric::P1) || bench.wants(Metric::P2);
    for round in 0..bench.scale.rounds {
        bench.tell(&format!("callbacks, round {}", round + 1));
        let cards = product::park(product.gatekeeper(), bench.number(many + few), many + few).await?;
        let (crowd, alone) = cards.split_at(many);
        let mut limit = Limit::start(bench, 2 * (many + few)).await?;
        if wants_rate {
            bench.disk().await?;
            let unnest = unnest(bench, many).await?;
            let before = limit.run(many, CROWD).await?.rate;
            let ours = decide(product, crowd, CROWD).await?.rate;
            let after = limit.run(many, CROWD).await?.rate;
            let least = |bare: f64| unnest.as_ref().map_or(bare, |(_, l6)| bare.min(*l6));
            rates.push(Round {
                before: least(before),
                product: ours,
                after: least(after),
            });
            if let Some((l5, l6)) = unnest {
                singles.push(Round {
                    before: l6,
                    product: l5,
                    after: l6,
                });
            }
        }
        if bench.wants(Metric::P3) {
            bench.disk().await?;
            let before = limit.run(few, 1).await?;
            let ours = decide(product, alone, 1).await?;
            let after = limit.run(few, 1).await?;
            p50.push(Round {
                before: before.p50_ms,
                product: ours.p50_ms,
                after: after.p50_ms,
            });
            p99.push(Round {
                before: before.p99_ms,
                product: ours.p99_ms,
                after: after.p99_ms,
            });
        }
        limit.stop().await?;
    }
    bench.add(if on_server { P2 } else { P1 }, rates);
    bench.add(L5, singles);
    bench.add(P3_P50, p50);
    bench.add(P3_P99, p99);
    Ok(())
}

/// L5 and L6, where there is a server.
async fn unnest(bench: &Bench<'_>, count: usize) -> Result<Option<(f64, f64)>, BenchError> {
    if !bench.store.is_server() {
        return Ok(None);
    }
    let database = bench.database().await?;
    let Some(options) = database.options() else {
        return Ok(None);
    };
    let ids: Vec<_> = (0..2 * count).map(|_| SystemIds.fresh()).collect();
    let mut bare = postgres::Postgres::open(&options).await?;
    bare.fill(&ids).await?;
    let (single, set) = ids.split_at(count);
    let l6 = bare.unnest(set).await?;
    let l5 = postgres::updates(&options, single.to_vec(), CROWD)
        .await?
        .figures()
        .rate;
    crate::bench::limit::writer::Engine::close(bare).await;
    database.drop().await?;
    Ok(Some((l5, l6)))
}
