//! The transactions of a job on bare rows: fencing, attempts, and no lost wake-up whatever the order of things.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatepost_channel::Decision;
use proptest::prelude::*;

use super::answer::{Answer, Heard, NotHeard, Question, Reply};
use super::begin_call::{BeginCall, NotBegun, Right};
use super::cancel::{By, Cancel, Cancelled};
use super::claim::{Agent, Claim, MAX_ATTEMPTS};
use super::family::Family;
use super::finish::{Ending, Finish};
use super::finish_call::{FinishCall, Ran};
use super::fixture::{LEASE, TIMEOUT, World, is_parked, org, roll, token};
use super::give_up::GiveUp;
use super::heartbeat::Heartbeat;
use super::park::{Park, Parked, Until};
use super::reconcile::Reconcile;
use super::release::{Because, Release};
use super::save::{Remembered, Save};
use super::*;
use crate::audit::Opening;
use crate::clock::Clock as _;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::expire::Expire;
use crate::confirmation::{OutcomeStatus, Status};
use crate::ids::{ConfirmationId, PermitId, WorkerId};

pub(super) fn remembered(memory: &str, requests: &[ConfirmationId]) -> Remembered {
    Remembered {
        memory: memory.to_owned(),
        movement: "start".to_owned(),
        confirmations: requests.to_vec(),
        taken: Vec::new(),
    }
}

fn save(hold: &Hold) -> Save {
    Save {
        hold: hold.clone(),
        remembered: remembered("{\"saved\":1}", &[]),
    }
}

pub(super) fn park(hold: &Hold, requests: &[ConfirmationId]) -> Park {
    Park {
        hold: hold.clone(),
        until: Until::Decided {
            reason: WaitReason::ToolApproval,
            requests: requests.to_vec(),
        },
        resume_movement: "start".to_owned(),
        remembered: remembered("{\"parked\":1}", requests),
        asks: None,
    }
}

pub(super) fn park_for(hold: &Hold, reason: WaitReason) -> Park {
    Park {
        until: Until::Answered(reason),
        ..park(hold, &[])
    }
}

pub(super) fn begin(world: &World, hold: &Hold, request: &ConfirmationId) -> BeginCall {
    BeginCall {
        hold: hold.clone(),
        right: Right::Approved(Box::new(world.consumption(request))),
        remembered: remembered("{\"running\":1}", std::slice::from_ref(request)),
    }
}

fn cancel(world: &World, id: &JobId) -> Cancel {
    let job = world.job(id);
    Cancel {
        job: id.clone(),
        org: org(),
        by: By::Token(token()),
        confirmations: job.confirmations,
        parent: job.parent,
        family: Family::default(),
    }
}

/// Memories of these tests hold one question; what they are about names the request, where there is one.
fn hear(memory: &str, reply: &Reply, _: Option<&str>) -> Result<Heard, NotHeard> {
    let request = memory
        .strip_prefix("{\"parked\":1}")
        .ok_or(NotHeard::NoQuestion)?;
    let memory = match reply {
        Reply::Words(words) => format!("heard {words}"),
        Reply::Outcome { done } => format!("done {done}"),
    };
    let question = Question {
        id: "q1".to_owned(),
        text: String::new(),
        request: ConfirmationId::parse(request.trim()).ok(),
    };
    Ok(Heard { memory, question })
}

pub(super) fn answer(world: &World, id: &JobId, by: By, text: &str) -> Answer {
    Answer {
        job: id.clone(),
        org: org(),
        by,
        answer: Opening::new(text, &*world.ids),
        confirmations: world.job(id).confirmations,
        roll: roll(),
        question: None,
        hear,
    }
}

#[test]
fn a_claim_counts_before_the_run_begins() {
    let world = World::new();
    let id = world.submit("go");
    let job = world.claim_one();
    assert_eq!((job.attempts, job.fence), (1, 1));
    let stored = world.job(&id);
    assert_eq!(
        (stored.state, stored.attempts, stored.fence),
        (job.state, 1, 1),
        "what the worker got is what is stored"
    );
    assert!(world.claim(5).jobs.is_empty(), "a leased job is nobody else's");
    assert_eq!(world.kinds(), ["job.submitted"]);
}

#[test]
fn an_expired_lease_is_reclaimed_and_the_old_worker_is_fenced_off() {
    let world = World::new();
    world.submit("go");
    let old = Hold::on(&world.claim_one());
    world.clock.advance(LEASE);
    let new = Hold::on(&world.claim_one());
    assert_eq!(world.count("job.reclaimed"), 1);
    let before = world.job(&old.job);

    assert_eq!(world.run(&save(&old)), Err(LostLease));
    assert_eq!(world.run(&park_for(&old, WaitReason::UserInput)), Err(LostLease));
    let lease = LEASE;
    assert_eq!(
        world.run(&Heartbeat {
            hold: old.clone(),
            lease
        }),
        Err(LostLease)
    );
    for because in [
        Because::Stopping,
        Because::Failed {
            pause: Duration::ZERO,
        },
    ] {
        assert_eq!(
            world.run(&Release {
                hold: old.clone(),
                because
            }),
            Err(LostLease)
        );
    }
    let finish = Finish {
        hold: old.clone(),
        ending: Ending::Completed {
            result: "late".to_owned(),
        },
        said: None,
        remembered: None,
        confirmations: Vec::new(),
        parent: None,
        family: Family::default(),
    };
    assert_eq!(world.run(&finish), Err(LostLease));
    let begin = BeginCall {
        hold: old.clone(),
        right: Right::Allowed(PermitId::fresh(&*world.ids)),
        remembered: remembered("late", &[]),
    };
    assert_eq!(world.run(&begin), Err(NotBegun::Lost(LostLease)));
    let call = FinishCall {
        hold: old,
        ran: Ran::Allowed {
            answered: true,
            tool: "pay".parse().unwrap(),
            permit: PermitId::fresh(&*world.ids),
        },
        status: OutcomeStatus::Succeeded,
        detail: None,
        remembered: remembered("late", &[]),
    };
    assert_eq!(world.run(&call), Err(LostLease));

    assert_eq!(world.job(&new.job), before, "nothing of it was written");
    assert_eq!(world.run(&save(&new)), Ok(()));
}

#[test]
fn a_worker_never_takes_from_itself_when_the_clock_steps() {
    let world = World::new();
    world.submit("go");
    let job = world.claim_one();
    world.clock.advance(Duration::from_hours(1));
    let claim = Claim {
        worker: WorkerId::fresh(&*world.ids),
        lease: LEASE,
        limit: 4,
        holding: BTreeMap::from([(job.id.clone(), Agent::of(&job))]),
        per_agent: None,
    };
    assert_eq!(world.run(&claim).jobs, []);
    let until = world
        .run(&Heartbeat {
            hold: Hold::on(&job),
            lease: LEASE,
        })
        .unwrap();
    assert_eq!(until, world.clock.now().plus(LEASE));
    assert_eq!(
        world.claim(1).jobs,
        [],
        "the heartbeat mended the lease for others too"
    );
}

#[test]
fn a_job_that_kills_its_workers_is_given_up_and_its_parent_woken() {
    let world = World::new();
    let parent = world.submit("parent");
    let parent_hold = Hold::on(&world.claim_one());
    let child = world.spawn("child", Some(parent.clone()));
    let subtasks = Park {
        until: Until::SubtasksEnded(vec![child.clone()]),
        ..park(&parent_hold, &[])
    };
    assert_eq!(world.run(&subtasks), Ok(Parked::Waiting));
    let mut request = None;
    for attempt in 1..=MAX_ATTEMPTS {
        let job = world.claim_one();
        assert_eq!((&job.id, job.attempts), (&child, attempt));
        if attempt == 1 {
            let asked = world.ask(&child, "call");
            let hold = Hold::on(&job);
            let with_request = Save {
                hold,
                remembered: remembered("{}", std::slice::from_ref(&asked)),
            };
            assert_eq!(world.run(&with_request), Ok(()));
            world.tamper(&child, |job| job.attempts = 1);
            request = Some(asked);
        }
        world.clock.advance(LEASE);
    }
    let fresh = world.submit("fresh");
    let claimed = world.claim(2);
    assert_eq!(
        claimed.jobs.iter().map(|job| &job.id).collect::<Vec<_>>(),
        [&fresh]
    );
    let [spent] = &claimed.spent[..] else {
        panic!("one is spent");
    };
    assert!(world.run(&GiveUp(spent.clone())));
    assert!(!world.run(&GiveUp(spent.clone())), "once");
    assert_eq!(
        world.job(&child).state,
        JobState::Error {
            error: "worker died".to_owned()
        }
    );
    assert_eq!(
        world.request(&request.unwrap()).state.status(),
        Status::Cancelled,
        "its card is settled"
    );
    assert_eq!(world.job(&parent).state, JobState::Queued);
    assert_eq!(world.count("job.failed"), 1);
    assert!(world.chain_is_sound());
}

#[test]
fn graceful_restarts_do_not_count() {
    let world = World::new();
    world.submit("go");
    for _ in 0..20 {
        let job = world.claim_one();
        assert_eq!(job.attempts, 1);
        let release = Release {
            hold: Hold::on(&job),
            because: Because::Stopping,
        };
        assert_eq!(world.run(&release), Ok(()));
    }
    let pause = Duration::from_secs(5);
    let failed = Release {
        hold: Hold::on(&world.claim_one()),
        because: Because::Failed { pause },
    };
    assert_eq!(world.run(&failed), Ok(()));
    assert_eq!(world.claim(1).jobs, [], "not before the pause is over");
    world.clock.advance(pause);
    assert_eq!(world.claim_one().attempts, 2);
}

#[test]
fn progress_resets_the_attempts() {
    let world = World::new();
    world.submit("go");
    for _ in 0..10 {
        let job = world.claim_one();
        assert!(job.attempts <= 2);
        assert_eq!(world.run(&save(&Hold::on(&job))), Ok(()));
        world.clock.advance(LEASE);
    }
}

#[test]
fn what_was_decided_before_parking_is_not_waited_for() {
    let world = World::new();
    world.submit("go");
    let hold = Hold::on(&world.claim_one());
    let requests = [world.ask(&hold.job, "a"), world.ask(&hold.job, "b")];
    world.decide(&requests[0], Decision::Approve);
    assert_eq!(world.run(&park(&hold, &requests)), Ok(Parked::Waiting));
    assert_eq!(world.job(&hold.job).waiting_on, [requests[1].to_string()]);
    world.decide(&requests[1], Decision::Reject);
    assert_eq!(world.job(&hold.job).state, JobState::Queued);
    assert!(world.request(&requests[1]).ledger.woken_at.is_some());
    assert_eq!(world.request(&requests[0]).ledger.woken_at, None);

    let hold = Hold::on(&world.claim_one());
    assert_eq!(world.run(&park(&hold, &requests)), Ok(Parked::Nothing));
    assert_eq!(world.run(&save(&hold)), Ok(()), "the worker goes on");
    assert_eq!(world.count("job.parked"), 1);
    assert_eq!(world.count("job.resumed"), 1);
}

#[test]
fn parking_on_a_request_that_is_not_there_does_not_wait_for_ever() {
    let world = World::new();
    world.submit("go");
    let hold = Hold::on(&world.claim_one());
    let nowhere = ConfirmationId::fresh(&*world.ids);
    assert_eq!(world.run(&park(&hold, &[nowhere])), Ok(Parked::Nothing));
}

#[test]
fn an_approval_begins_one_call_and_a_denial_is_taken_into_the_ledger() {
    let world = World::new();
    world.submit("go");
    let hold = Hold::on(&world.claim_one());
    let (yes, no) = (world.ask(&hold.job, "a"), world.ask(&hold.job, "b"));
    world.decide(&yes, Decision::Approve);
    world.decide(&no, Decision::Reject);
    let begun = world.run(&begin(&world, &hold, &yes)).unwrap();
    assert_eq!(begun.stored_args.as_deref(), Some("{\"call\":\"a\"}"));
    assert_eq!(
        world.run(&begin(&world, &hold, &yes)),
        Err(NotBegun::NotGranted(NotGranted::AlreadyConsumed))
    );
    assert_eq!(
        world.run(&begin(&world, &hold, &no)),
        Err(NotBegun::NotGranted(NotGranted::NotApproved(Status::Rejected)))
    );
    assert_eq!(world.request(&no).ledger.resumed_at, None);
    let taken = Save {
        hold: hold.clone(),
        remembered: Remembered {
            taken: vec![no.clone()],
            ..remembered("{}", &[])
        },
    };
    assert_eq!(world.run(&taken), Ok(()));
    assert!(world.request(&no).ledger.resumed_at.is_some());
    assert!(world.request(&yes).ledger.resumed_at.is_some());

    let done = FinishCall {
        hold,
        ran: Ran::Approved(yes.clone()),
        status: OutcomeStatus::Failed,
        detail: Some(Opening::new("HTTP 500", &*world.ids)),
        remembered: remembered("{}", &[]),
    };
    assert_eq!(world.run(&done), Ok(()));
    assert_eq!(world.run(&done), Ok(()));
    let outcome = world.request(&yes).ledger.outcome.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(world.count("tool.executed"), 1, "the first report stands");
}

#[test]
fn a_job_cannot_begin_a_call_of_another_job() {
    let world = World::new();
    world.submit("one");
    world.submit("two");
    let claimed = world.claim(2).jobs;
    let request = world.ask(&claimed[0].id, "a");
    world.decide(&request, Decision::Approve);
    let other = Hold::on(&claimed[1]);
    assert_eq!(
        world.run(&begin(&world, &other, &request)),
        Err(NotBegun::NotGranted(NotGranted::NotFound))
    );
    assert!(world.request(&request).state.consumed().is_none());
}

#[test]
fn cancelling_takes_the_open_requests_and_the_fence() {
    let world = World::new();
    let parked = world.submit("parked");
    let hold = Hold::on(&world.claim_one());
    let request = world.ask(&parked, "a");
    assert_eq!(
        world.run(&park(&hold, std::slice::from_ref(&request))),
        Ok(Parked::Waiting)
    );
    let stranger = Cancel {
        by: By::Token(crate::ids::TokenName("other".to_owned())),
        ..cancel(&world, &parked)
    };
    assert_eq!(world.run(&stranger), Cancelled::NotFound);
    let unaware = Cancel {
        confirmations: Vec::new(),
        ..cancel(&world, &parked)
    };
    assert_eq!(world.run(&unaware), Cancelled::Moved);
    assert!(matches!(world.run(&cancel(&world, &parked)), Cancelled::Done(_)));
    assert_eq!(world.request(&request).state.status(), Status::Cancelled);
    assert!(matches!(world.run(&cancel(&world, &parked)), Cancelled::Done(_)));
    assert_eq!(world.count("job.cancelled"), 1);

    let running = world.submit("running");
    let hold = Hold::on(&world.claim_one());
    assert!(matches!(world.run(&cancel(&world, &running)), Cancelled::Done(_)));
    assert_eq!(world.run(&save(&hold)), Err(LostLease));
}

#[test]
fn cancel_and_decide_have_one_winner() {
    for cancel_first in [true, false] {
        let world = World::new();
        let id = world.submit("go");
        let hold = Hold::on(&world.claim_one());
        let request = world.ask(&id, "a");
        world.run(&park(&hold, std::slice::from_ref(&request))).unwrap();
        let cancelling = cancel(&world, &id);
        if cancel_first {
            world.run(&cancelling);
            world.decide(&request, Decision::Approve);
            assert_eq!(world.request(&request).state.status(), Status::Cancelled);
        } else {
            world.decide(&request, Decision::Approve);
            world.run(&cancelling);
            assert_eq!(world.request(&request).state.status(), Status::Approved);
        }
        assert_eq!(
            world.job(&id).state,
            JobState::Cancelled,
            "a cancelled job does not run"
        );
        assert_eq!(world.claim(1).jobs, []);
    }
}

#[test]
fn a_wait_for_an_answer_is_never_redriven() {
    let world = World::new();
    let id = world.submit("go");
    world
        .run(&park_for(&Hold::on(&world.claim_one()), WaitReason::UserInput))
        .unwrap();
    assert_eq!(world.run(&Reconcile { limit: 10 }), 0);
    assert!(is_parked(&world.job(&id)));
}

#[test]
fn a_stranded_job_is_redriven_once() {
    let world = World::new();
    let id = world.submit("go");
    let hold = Hold::on(&world.claim_one());
    let request = world.ask(&id, "a");
    world.run(&park(&hold, std::slice::from_ref(&request))).unwrap();
    assert_eq!(world.run(&Reconcile { limit: 10 }), 0);
    // Somebody mended the database by hand and lost the wake-up.
    let parked = world.job(&id);
    world.decide(&request, Decision::Approve);
    world.tamper(&id, |job| {
        job.state = parked.state.clone();
        job.waiting_on = parked.waiting_on.clone();
    });
    assert_eq!(world.run(&Reconcile { limit: 10 }), 1);
    assert_eq!(world.run(&Reconcile { limit: 10 }), 0);
    assert_eq!(world.job(&id).state, JobState::Queued);
}

#[test]
fn an_unknown_job_is_nobodys() {
    let world = World::new();
    let hold = Hold {
        job: JobId::fresh(&*world.ids),
        fence: 1,
    };
    assert_eq!(world.run(&save(&hold)), Err(LostLease));
}

/// What may happen around a park, in any order.
#[derive(Debug, Clone)]
enum Act {
    Decide(usize, bool),
    Pass,
    Sweep,
    Park,
    Claim,
    Reconcile,
    Withdraw(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_usize, any::<bool>()).prop_map(|(at, yes)| Act::Decide(at, yes)),
        1 => Just(Act::Pass),
        2 => Just(Act::Sweep),
        3 => Just(Act::Park),
        3 => Just(Act::Claim),
        1 => Just(Act::Reconcile),
        1 => (0..3_usize).prop_map(Act::Withdraw),
    ]
}

proptest! {
    /// Whatever the order of decisions, expiry and parking: once all requests are settled and the last park happened, the job
    /// runs or may run; while one is open, a parked job waits for exactly the open ones.
    #[test]
    fn no_wake_up_is_lost(acts in prop::collection::vec(act(), 1..25)) {
        let world = World::new();
        let id = world.submit("go");
        let mut hold = Some(Hold::on(&world.claim_one()));
        let requests = [world.ask(&id, "a"), world.ask(&id, "b"), world.ask(&id, "c")];
        for act in acts {
            match act {
                Act::Decide(at, yes) => {
                    world.decide(&requests[at], if yes { Decision::Approve } else { Decision::Reject });
                }
                Act::Pass => world.clock.advance(TIMEOUT / 2),
                Act::Sweep => { world.run(&Expire { limit: 10 }); }
                Act::Park => if let Some(held) = &hold
                    && world.run(&park(held, &requests)) == Ok(Parked::Waiting) { hold = None },
                Act::Claim => hold = world.claim(1).jobs.first().map(Hold::on).or(hold),
                Act::Reconcile => { world.run(&Reconcile { limit: 10 }); }
                Act::Withdraw(at) => {
                    world.run(&crate::confirmation::cancel::Cancel { id: requests[at].clone(), org: org(), token: token() });
                }
            }
            let open: BTreeSet<String> = requests.iter()
                .filter(|id| world.request(id).state.status() == Status::Pending)
                .map(ToString::to_string)
                .collect();
            let job = world.job(&id);
            if is_parked(&job) {
                let waited: BTreeSet<String> = job.waiting_on.iter().cloned().collect();
                prop_assert_eq!(&waited, &open);
                prop_assert!(!open.is_empty(), "parked on nothing");
            } else {
                prop_assert!(job.waiting_on.is_empty());
            }
        }
        world.clock.advance(TIMEOUT);
        world.run(&Expire { limit: 10 });
        prop_assert!(!is_parked(&world.job(&id)), "all is settled: nobody waits");
        prop_assert_eq!(world.run(&Reconcile { limit: 10 }), 0, "nothing was left for the reconciler");
        prop_assert!(world.chain_is_sound());
    }

    /// However many workers believe to hold the job, an approval begins one call.
    #[test]
    fn a_double_resume_consumes_once(workers in 2..6_usize, order in any::<prop::sample::Index>()) {
        let world = World::new();
        let id = world.submit("go");
        let request = world.ask(&id, "a");
        let mut holds = vec![Hold::on(&world.claim_one())];
        for _ in 1..workers {
            let keep = world.run(&save(holds.last().unwrap()));
            prop_assert_eq!(keep, Ok(()));
            world.clock.advance(LEASE);
            holds.push(Hold::on(&world.claim_one()));
        }
        prop_assume!(world.clock.now() < world.request(&request).expires_at);
        world.decide(&request, Decision::Approve);
        let at = order.index(holds.len());
        holds.rotate_left(at);
        let begun = holds.iter().filter(|hold| world.run(&begin(&world, hold, &request)).is_ok()).count();
        prop_assert_eq!(begun, 1);
        prop_assert_eq!(world.count("permit.consumed"), 1);
    }
}
