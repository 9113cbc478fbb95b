//! What was measured, against what it must reach. Every gate is a ratio to a limit of the same run, since the disk of a
//! machine wanders by more than any absolute figure could allow for. Pure; knows nothing of how a figure comes about.

use serde::Serialize;

/// What a figure must reach, given the limit of its round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "rule", content = "value", rename_all = "snake_case")]
pub enum Gate {
    /// At least this share of the limit: for rates.
    Share(f64),
    /// At most this much more than the limit: for times.
    Plus(f64),
    /// At most so many times the limit: for times.
    Times(f64),
    /// At most this, whatever the limit: for sizes.
    AtMost(f64),
    /// Nothing: it stands there to be read.
    Shown,
}

impl Gate {
    /// What the figure is compared with.
    pub fn bound(self, limit: f64) -> Option<f64> {
        match self {
            Self::Share(share) => Some(share * limit),
            Self::Plus(more) => Some(limit + more),
            Self::Times(times) => Some(times * limit),
            Self::AtMost(most) => Some(most),
            Self::Shown => None,
        }
    }

    /// Whether the figure reaches it.
    pub fn met(self, product: f64, limit: f64) -> Option<bool> {
        let bound = self.bound(limit)?;
        Some(match self {
            Self::Share(_) => product >= bound,
            _ => product <= bound,
        })
    }

    /// Of two limits measured around the product, the one that asks more of it.
    pub fn better(self, before: f64, after: f64) -> f64 {
        match self {
            Self::Share(_) => before.max(after),
            _ => before.min(after),
        }
    }
}

/// Limit, product, limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Round {
    /// The limit before.
    pub before: f64,
    /// The product.
    pub product: f64,
    /// The limit after.
    pub after: f64,
}

/// One figure of one store.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// `P1`, `P3`, …
    pub metric: &'static str,
    /// `sqlite` or `postgres`.
    pub store: &'static str,
    /// In words.
    pub what: &'static str,
    /// `/s`, `ms`, `B`.
    pub unit: &'static str,
    /// What its limit is, in words.
    pub of: &'static str,
    /// What it must reach.
    pub gate: Gate,
    /// All rounds, in order.
    pub rounds: Vec<Round>,
    /// The better limit of the median round.
    pub limit: f64,
    /// The product in the median round.
    pub product: f64,
    /// Product through limit, in the median round.
    pub ratio: f64,
    /// Whether the median round reaches the gate.
    pub met: Option<bool>,
}

/// What a line is about.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// `P1`, `P3`, …
    pub metric: &'static str,
    /// In words.
    pub what: &'static str,
    /// `/s`, `ms`, `B`.
    pub unit: &'static str,
    /// What its limit is, in words.
    pub of: &'static str,
    /// What it must reach.
    pub gate: Gate,
}

impl About {
    /// The line over these rounds: that of the median ratio speaks for all. `None` when there was no round.
    pub fn over(self, store: &'static str, rounds: Vec<Round>) -> Option<Line> {
        let mut judged: Vec<(f64, f64, f64)> = rounds
            .iter()
            .map(|round| {
                let limit = self.gate.better(round.before, round.after);
                let ratio = if limit > 0.0 { round.product / limit } else { 0.0 };
                (ratio, round.product, limit)
            })
            .collect();
        judged.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (ratio, product, limit) = *judged.get(judged.len().saturating_sub(1) / 2)?;
        Some(Line {
            metric: self.metric,
            store,
            what: self.what,
            unit: self.unit,
            of: self.of,
            gate: self.gate,
            rounds,
            limit,
            product,
            ratio,
            met: self.gate.met(product, limit),
        })
    }
}

/// The disk beside all that: fdatasync of 4 KiB appends, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Disk {
    /// The median of all runs.
    pub p50_ms: f64,
    /// The median of the runs' p99.
    pub p99_ms: f64,
    /// The fastest run's p50.
    pub fastest_p50_ms: f64,
    /// The slowest run's p50.
    pub slowest_p50_ms: f64,
    /// The disk moved by more than twice while this ran: times of different rounds are not to be compared.
    pub wandered: bool,
}

impl Disk {
    /// Over the runs, each as p50 and p99. `None` when there was none.
    pub fn over(runs: &[(f64, f64)]) -> Option<Self> {
        let mut p50: Vec<f64> = runs.iter().map(|run| run.0).collect();
        let mut p99: Vec<f64> = runs.iter().map(|run| run.1).collect();
        p50.sort_by(f64::total_cmp);
        p99.sort_by(f64::total_cmp);
        let (fastest, slowest) = (*p50.first()?, *p50.last()?);
        Some(Self {
            p50_ms: p50[(p50.len() - 1) / 2],
            p99_ms: p99[(p99.len() - 1) / 2],
            fastest_p50_ms: fastest,
            slowest_p50_ms: slowest,
            wandered: slowest > 2.0 * fastest,
        })
    }
}

/// Where it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Processors that this process may use.
    pub processors: usize,
    /// The operating system and its architecture.
    pub system: String,
    /// Whether the program was built with optimisation: figures of one that was not mean nothing.
    pub optimised: bool,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        Self {
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of the program.
    pub version: &'static str,
    /// When it began, RFC 3339.
    pub began_at: String,
    /// Where.
    pub machine: Machine,
    /// Whether it was a quick run: good for finding out that it runs, not for figures.
    pub quick: bool,
    /// The disk.
    pub disk: Option<Disk>,
    /// The figures.
    pub lines: Vec<Line>,
}

impl Report {
    /// Whether no gate was missed.
    pub fn all_met(&self) -> bool {
        self.lines.iter().all(|line| line.met != Some(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: About = About {
        metric: "P1",
        what: "callbacks",
        unit: "/s",
        of: "L4",
        gate: Gate::Share(0.5),
    };

    fn round(before: f64, product: f64, after: f64) -> Round {
        Round {
            before,
            product,
            after,
        }
    }

    #[test]
    fn the_median_round_speaks_against_the_better_limit() {
        let rounds = vec![
            round(100.0, 90.0, 80.0),
            round(100.0, 50.0, 200.0),
            round(100.0, 60.0, 90.0),
        ];
        let line = RATE.over("sqlite", rounds).expect("three rounds");
        assert!((line.product - 60.0).abs() < 1e-9 && (line.limit - 100.0).abs() < 1e-9);
        assert!((line.ratio - 0.6).abs() < 1e-9);
        assert_eq!(line.met, Some(true));
        assert!(RATE.over("sqlite", Vec::new()).is_none());
    }

    #[test]
    fn a_time_is_held_against_the_faster_limit() {
        let gate = Gate::Plus(0.3);
        assert!((gate.better(0.2, 0.5) - 0.2).abs() < 1e-9);
        assert_eq!(gate.met(0.5, 0.2), Some(true));
        assert_eq!(gate.met(0.51, 0.2), Some(false));
        assert_eq!(Gate::Times(2.0).met(3.9, 2.0), Some(true));
        assert_eq!(Gate::Times(2.0).met(4.1, 2.0), Some(false));
        assert_eq!(Gate::AtMost(64.0).met(65.0, 1e9), Some(false));
        assert_eq!(Gate::Shown.met(1.0, 0.0), None);
    }

    #[test]
    fn a_missed_gate_is_told() {
        let met = RATE.over("sqlite", vec![round(10.0, 6.0, 9.0)]).expect("a round");
        let missed = RATE.over("sqlite", vec![round(10.0, 4.0, 9.0)]).expect("a round");
        let mut report = Report {
            version: "0",
            began_at: String::new(),
            machine: Machine::here(),
            quick: true,
            disk: Disk::over(&[(1.0, 3.0), (2.5, 5.0)]),
            lines: vec![met],
        };
        assert!(report.all_met());
        report.lines.push(missed);
        assert!(!report.all_met());
        let json = serde_json::to_value(&report).expect("plain data");
        assert_eq!(json["lines"][1]["met"], false);
        assert_eq!(json["lines"][0]["gate"]["rule"], "share");
        assert_eq!(json["disk"]["wandered"], true);
    }
}
