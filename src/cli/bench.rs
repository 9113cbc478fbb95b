//! `gatepost bench`: measures this machine's limits and Gatepost beside them. Progress goes to stderr, the figures to stdout.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::print;
use super::stop::{Done, Stop};
use crate::bench::report::{Gate, Line, Report};
use crate::bench::{self, Metric, Options, Scale, Target};
use crate::telemetry::metrics;

/// What is measured, and where.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// `sqlite`, the URL of a PostgreSQL server, or both after a comma
    #[arg(long, value_name = "STORE", default_value = "sqlite", value_delimiter = ',')]
    store: Vec<String>,
    /// A short run: tells whether it works, gives no figures to rely on
    #[arg(long)]
    quick: bool,
    /// Only these, such as P1,P3
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Below which folder files are made: its disk is what is measured
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl BenchArgs {
    fn options(&self) -> Result<Options, Stop> {
        let targets = self.store.iter().map(|store| match store.trim() {
            "sqlite" => Ok(Target::Sqlite),
            url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Target::Postgres(url.to_owned()))
            }
            _ => Err(Stop::usage(
                "--store takes `sqlite`, `postgres://USER@HOST/DATABASE`, or both after a comma",
            )),
        });
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        let metrics = if self.only.is_empty() {
            Metric::ALL.into_iter().collect()
        } else {
            let only = self.only.iter().map(|name| {
                Metric::parse(name).ok_or_else(|| Stop::usage("--only takes P1, P2, P3, P5, P7, P8 and P11"))
            });
            only.collect::<Result<BTreeSet<_>, _>>()?
        };
        Ok(Options {
            targets,
            metrics,
            scale: if self.quick { Scale::QUICK } else { Scale::FULL },
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
            recorder: None,
        })
    }
}

/// Measures and prints. A missed gate is no failure of the command.
pub async fn run(args: &BenchArgs, as_json: bool) -> Done {
    let mut options = args.options()?;
    options.recorder = Some(metrics::install()?);
    let report = bench::run(&options, &|what| print::note(what)).await?;
    if as_json {
        print::json(&serde_json::to_value(&report)?);
    } else {
        table(&report);
    }
    Ok(())
}

fn table(report: &Report) {
    print::line(&format!(
        "gatepost {} on {} with {} processors, {}",
        report.version, report.machine.system, report.machine.processors, report.began_at
    ));
    if report.quick || !report.machine.optimised {
        print::line("A quick run, or a build without optimisation: the figures mean nothing.");
    }
    if let Some(disk) = report.disk {
        print::line(&format!(
            "L1 fdatasync of 4 KiB: p50 {:.2} ms (runs {:.2} to {:.2}), p99 {:.2} ms",
            disk.p50_ms, disk.fastest_p50_ms, disk.slowest_p50_ms, disk.p99_ms
        ));
        if disk.wandered {
            print::line("The disk moved by more than twice: read the ratios, not the times.");
        }
    }
    let width = report.lines.iter().map(|line| line.what.len()).max().unwrap_or(0);
    for line in &report.lines {
        print::line(&row(line, width));
    }
    let missed = report.lines.iter().filter(|line| line.met == Some(false)).count();
    print::line(&format!(
        "{missed} of {} figures miss their gate",
        report.lines.len()
    ));
}

fn row(line: &Line, width: usize) -> String {
    let gate = match line.gate {
        Gate::Share(share) => format!("≥ {share:.2} ×"),
        Gate::Plus(more) => format!("≤ + {more:.1} {}", line.unit),
        Gate::Times(times) => format!("≤ {times:.1} ×"),
        Gate::AtMost(most) => format!("≤ {most:.0} {}", line.unit),
        Gate::Shown => "-".to_owned(),
    };
    let met = match line.met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "",
    };
    format!(
        "{:<3} {:<8} {:<width$} {:>11} of {:>11} {:>7.2} {:>11} {:<6} ({})",
        line.metric,
        line.store,
        line.what,
        number(line.product, line.unit),
        number(line.limit, line.unit),
        line.ratio,
        gate,
        met,
        line.of
    )
}

fn number(value: f64, unit: &str) -> String {
    if unit == "ms" {
        format!("{value:.3} ms")
    } else {
        format!("{value:.0} {unit}")
    }
}
