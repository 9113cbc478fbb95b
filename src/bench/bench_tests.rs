//! That a run comes to its end and measures what it says. No figure of it is judged: a test is no place for a clock.

use std::collections::BTreeSet;

use super::report::Gate;
use super::{Metric, Options, Scale, Target, run};

const TINY: Scale = Scale {
    rounds: 1,
    callbacks: 80,
    single: 5,
    resumes: 2,
    warm: 20,
    parked: 60,
    appends: 3,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_figure_is_measured_and_nothing_is_left_behind() {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let dir = super::place::Folder::below(&std::env::temp_dir()).expect("a folder");
    let options = Options {
        targets: vec![Target::Sqlite],
        metrics: BTreeSet::from(Metric::ALL),
        scale: TINY,
        dir: dir.path().to_owned(),
        recorder: None,
    };
    let report = run(&options, &|_| {}).await.expect("a whole run");
    let measured: BTreeSet<_> = report.lines.iter().map(|line| line.metric).collect();
    assert_eq!(measured, BTreeSet::from(["P1", "P3", "P5", "P7", "P8", "P11"]));
    for line in &report.lines {
        assert!(line.product.is_finite() && line.limit.is_finite(), "{line:?}");
        assert_eq!(line.met.is_none(), line.gate == Gate::Shown, "{line:?}");
        assert_eq!(line.rounds.len(), 1, "{line:?}");
    }
    assert!(report.disk.is_some());
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn every_metric_is_known_by_its_name() {
    for metric in Metric::ALL {
        assert_eq!(Metric::parse(&format!("{metric:?}").to_lowercase()), Some(metric));
    }
    assert_eq!(Metric::parse("P11"), Some(Metric::P8));
    assert_eq!(Metric::parse("P99"), None);
}
