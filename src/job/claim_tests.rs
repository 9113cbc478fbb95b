//! Claiming under a limit on the jobs of one agent.

use std::collections::BTreeMap;

use super::claim::{Agent, Claim};
use super::fixture::{LEASE, World};
use crate::ids::WorkerId;

#[test]
fn an_agent_at_its_limit_lets_others_by() {
    let world = World::new();
    let first = world.submit("go");
    for _ in 0..5 {
        world.submit("go");
    }
    let other = world.submit("go");
    world.tamper(&other, |job| job.agent_id = Some("other".to_owned()));
    let claim = |holding| Claim {
        worker: WorkerId::fresh(&*world.ids),
        lease: LEASE,
        limit: 3,
        holding,
        per_agent: Some(1),
    };
    let taken = world.run(&claim(BTreeMap::new())).jobs;
    let ids: Vec<_> = taken.iter().map(|job| &job.id).collect();
    assert_eq!(ids, [&first, &other]);
    let holding = taken.iter().map(|job| (job.id.clone(), Agent::of(job)));
    assert_eq!(
        world.run(&claim(holding.collect())).jobs,
        [],
        "both are at their limit"
    );
    let holding = BTreeMap::from([(other.clone(), Agent::of(&world.job(&other)))]);
    assert_eq!(world.run(&claim(holding)).jobs.len(), 1);
}
