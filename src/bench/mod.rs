//! `gatepost bench`: limit, product, limit, in one run on one machine.
//!
//! What disk, driver and web framework can do is measured back to back with what Gatepost does, so that a figure is a ratio
//! and holds on a slow disk as on a fast one. [`limit`] is the bare thing, [`product`] the server as it is served, [`figure`]
//! puts both together, [`report`] judges. Everything runs in this process on the loopback; nothing outside it is touched but
//! a folder and, on PostgreSQL, databases of their own names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;

use crate::clock::{Clock as _, SystemClock, rfc3339};
use crate::lifecycle::Tasks;

#[cfg(test)]
mod bench_tests;
pub mod figure;
pub mod limit;
pub mod load;
pub mod memory;
pub mod place;
pub mod press;
pub mod product;
pub mod report;
pub mod sample;

use limit::fsync;
use place::{Database, Folder};
use product::Product;
use report::{About, Disk, Line, Machine, Report, Round};

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Callbacks a second on SQLite.
    P1,
    /// Callbacks a second on PostgreSQL.
    P2,
    /// The answer to one callback.
    P3,
    /// From the decision to the resumption.
    P5,
    /// Requests created.
    P7,
    /// What parked requests hold, and whether a decision notices them (P11).
    P8,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::P1, Self::P2, Self::P3, Self::P5, Self::P7, Self::P8];

    /// Reads the name; P11 is measured with P8.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_uppercase().as_str() {
            "P1" => Self::P1,
            "P2" => Self::P2,
            "P3" => Self::P3,
            "P5" => Self::P5,
            "P7" => Self::P7,
            "P8" | "P11" => Self::P8,
            _ => return None,
        })
    }
}

/// On which store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file in the folder of the run.
    Sqlite,
    /// Databases of their own on the server of this URL.
    Postgres(String),
}

impl Target {
    /// Whether it is a server of its own.
    pub const fn is_server(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Rounds of each figure.
    pub rounds: usize,
    /// Callbacks or creations in one round.
    pub callbacks: usize,
    /// The same by one caller.
    pub single: usize,
    /// Resumptions in one round.
    pub resumes: usize,
    /// Requests that are parked before anything is measured.
    pub warm: usize,
    /// Parked requests.
    pub parked: usize,
    /// Appends to the disk in one run.
    pub appends: usize,
}

impl Scale {
    /// For figures.
    pub const FULL: Self = Self {
        rounds: 3,
        callbacks: 12_000,
        single: 600,
        resumes: 100,
        warm: 12_000,
        parked: 100_000,
        appends: 300,
    };
    /// For finding out whether it runs.
    pub const QUICK: Self = Self {
        rounds: 1,
        callbacks: 600,
        single: 60,
        resumes: 10,
        warm: 500,
        parked: 2_000,
        appends: 40,
    };
}

/// What is to be measured.
#[derive(Clone)]
pub struct Options {
    /// The stores.
    pub targets: Vec<Target>,
    /// The measurements.
    pub metrics: BTreeSet<Metric>,
    /// How much.
    pub scale: Scale,
    /// Below which folder files are made; its disk is what is measured.
    pub dir: PathBuf,
    /// The recorder of the process, so that counting costs what it costs in a server.
    pub recorder: Option<PrometheusHandle>,
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A connection on the loopback failed.
    #[error("a connection failed: {0}")]
    Net(std::io::Error),
    /// The folder cannot be used.
    #[error("the folder of the run: {0}")]
    File(std::io::Error),
    /// The database beside the product failed.
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
    /// Something answered what it should not.
    #[error("not what was measured: {0}")]
    Answer(String),
}

impl BenchError {
    const fn net(error: std::io::Error) -> Self {
        Self::Net(error)
    }

    const fn file(error: std::io::Error) -> Self {
        Self::File(error)
    }

    fn other(error: &(impl std::fmt::Display + ?Sized)) -> Self {
        Self::Answer(error.to_string())
    }
}

/// The rounds of one figure.
pub type Rounds = Vec<Round>;

/// One store being measured.
pub struct Bench<'a> {
    store: &'a Target,
    metrics: &'a BTreeSet<Metric>,
    scale: Scale,
    folder: &'a Folder,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    next: usize,
    disk: Vec<(f64, f64)>,
    lines: Vec<Line>,
}

impl Bench<'_> {
    fn wants(&self, metric: Metric) -> bool {
        self.metrics.contains(&metric)
    }

    fn tell(&self, what: &str) {
        (self.progress)(&format!("{}: {what}", self.store.name()));
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    async fn database(&self) -> Result<Database, BenchError> {
        match self.store {
            Target::Sqlite => Ok(Database::file(self.dir())),
            Target::Postgres(url) => Database::on_server(url).await,
        }
    }

    /// The first of so many numbers that nobody had before.
    const fn number(&mut self, count: usize) -> usize {
        let first = self.next;
        self.next += count;
        first
    }

    /// Looks at the disk beside a round.
    async fn disk(&mut self) -> Result<(), BenchError> {
        let figures = fsync::appends(self.dir(), self.scale.appends).await?.figures();
        self.disk.push((figures.p50_ms, figures.p99_ms));
        Ok(())
    }

    fn add(&mut self, about: About, rounds: Rounds) {
        self.lines.extend(about.over(self.store.name(), rounds));
    }

    async fn measure(&mut self, recorder: Option<&PrometheusHandle>) -> Result<(), BenchError> {
        self.disk().await?;
        let by_callback = [Metric::P1, Metric::P2, Metric::P3];
        if [Metric::P5, Metric::P7]
            .iter()
            .chain(&by_callback)
            .any(|metric| self.wants(*metric))
        {
            let tasks = Tasks::new();
            let platform = product::platform(&tasks).await?;
            let database = self.database().await?;
            let product =
                Arc::new(Product::start(&database.url, self.dir(), platform, recorder.cloned()).await?);
            if self.wants(Metric::P7) {
                figure::create::measure(self, &product).await?;
            }
            if by_callback.iter().any(|metric| self.wants(*metric)) {
                figure::callback::measure(self, &product).await?;
            }
            if self.wants(Metric::P5) {
                figure::resume::measure(self, &product).await?;
            }
            if let Some(product) = Arc::into_inner(product) {
                product.stop().await;
            }
            tasks.ask_to_stop();
            tasks.drain(Duration::from_secs(10)).await;
            database.drop().await?;
        }
        if self.wants(Metric::P8) {
            figure::parked::measure(self, recorder.cloned()).await?;
        }
        self.disk().await
    }
}

/// Measures. What goes on meanwhile is told in words.
pub async fn run(options: &Options, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<Report, BenchError> {
    let began_at = rfc3339(SystemClock.now());
    let folder = Folder::below(&options.dir)?;
    let (mut disk, mut lines) = (Vec::new(), Vec::new());
    for store in &options.targets {
        let mut bench = Bench {
            store,
            metrics: &options.metrics,
            scale: options.scale,
            folder: &folder,
            progress,
            next: 0,
            disk: Vec::new(),
            lines: Vec::new(),
        };
        bench.measure(options.recorder.as_ref()).await?;
        disk.append(&mut bench.disk);
        lines.append(&mut bench.lines);
    }
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        began_at,
        machine: Machine::here(),
        quick: options.scale == Scale::QUICK,
        disk: Disk::over(&disk),
        lines,
    })
}
