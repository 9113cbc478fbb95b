//! What a run may spend: memory, mistakes, and what a piece sets for itself.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::control::Control;
use super::engine::{Effect, Event, Setting, step};
use super::fixture::{Lab, call, calls, complete, piece, words};
use super::limits::{Limits, OwnLimits};
use super::memory::{Entry, Memory};
use super::model::{RawCall, Reply, Usage};
use super::piece::{Piece, Pieces};
use super::scene::{House, Scene};
use super::stage::Stage;
use super::tool::Shelf;
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;
use crate::ids::{PermitId, SeededIds};
use crate::job::JobState;
use crate::job::finish::Ending;

const KIB: usize = 1024;

/// Plays replies of these sizes to the end, every call answered at this length, and looks at the memory after each step.
fn play(
    limits: Limits,
    input: usize,
    replies: &[(usize, Vec<usize>)],
    filler: char,
) -> Result<Memory, TestCaseError> {
    let piece = piece();
    let (toolbox, pieces) = (Shelf::default(), Pieces::default());
    let house = House {
        toolbox: &toolbox,
        pieces: &pieces,
        submits: None,
        limits,
    };
    let fill = |count: usize| filler.to_string().repeat(count);
    let mut scene = Scene::set(house, &piece, &piece.movements[0], &Memory::fresh("in"));
    scene.tools.insert("t", false);
    let setting = Setting {
        limits,
        scene: &scene,
    };
    let ids = SeededIds::default();
    let mut replies = replies.iter();
    let (mut memory, mut effect) = step(Memory::fresh(&fill(input)), Event::Resumed, &setting);
    loop {
        prop_assert!(
            memory.write().len() <= limits.memory,
            "{} of {}",
            memory.write().len(),
            limits.memory
        );
        let event = match effect {
            Effect::AskModel => {
                let Some((text, calls)) = replies.next() else {
                    return Ok(memory);
                };
                let call = |(at, size): (usize, &usize)| RawCall {
                    id: Some(format!("c{at}")),
                    name: Some("t".to_owned()),
                    arguments: Some(json!({ "x": fill(*size) }).to_string()),
                    fault: None,
                };
                Event::Replied(Reply {
                    text: Some(fill(*text)),
                    calls: calls.iter().enumerate().map(call).collect(),
                    complete: true,
                    usage: Usage::default(),
                })
            }
            Effect::Judge { at } => Event::Permitted {
                at,
                permit: PermitId::fresh(&ids),
            },
            Effect::Begin { at } => Event::Begun { at },
            Effect::Send { at } => Event::Ran {
                at,
                told: fill(100 * KIB),
            },
            Effect::Finish(_) => return Ok(memory),
            other => panic!("{other:?}"),
        };
        (memory, effect) = step(memory, event, &setting);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// The finding: nothing bounded what a job remembers.
    #[test]
    fn no_run_remembers_more_than_it_may(
        input in 0..300 * KIB,
        replies in prop::collection::vec((0..90 * KIB, prop::collection::vec(0..40 * KIB, 0..6)), 0..12),
        filler in prop::sample::select(vec!['a', '\u{e9}', '"']),
    ) {
        let limits = Limits { memory: 256 * KIB, context: usize::MAX, ..Limits::default() };
        play(limits, input, &replies, filler)?;
    }
}

#[test]
fn the_oldest_is_left_out_before_a_run_ends_for_want_of_room() {
    let limits = Limits {
        memory: 256 * KIB,
        context: usize::MAX,
        ..Limits::default()
    };
    let replies = vec![(10, vec![10 * KIB, 10 * KIB]); 10];
    let memory = play(limits, 10, &replies, 'a').unwrap();
    assert!(memory.compactions > 0);
    assert_eq!(memory.replies, 10);
    assert_eq!(memory.history[0], Entry::User("a".repeat(10)), "the input stays");

    // What cannot be left out.
    let mut memory = Memory::fresh("in");
    let granted = (0..10_000)
        .map(|n| format!("a_tool_of_some_length_{n}"))
        .collect::<BTreeSet<_>>();
    memory.granted.insert("start".to_owned(), granted);
    let piece = piece();
    let (toolbox, pieces) = (Shelf::default(), Pieces::default());
    let house = House {
        toolbox: &toolbox,
        pieces: &pieces,
        submits: None,
        limits,
    };
    let scene = Scene::set(house, &piece, &piece.movements[0], &memory);
    let setting = Setting {
        limits,
        scene: &scene,
    };
    let (_, effect) = step(memory, Event::Resumed, &setting);
    let Effect::Finish(Ending::Failed { error }) = effect else {
        panic!("{effect:?}")
    };
    assert!(
        error.starts_with("memory_limit: ") && error.contains("agent.max_memory"),
        "{error}"
    );
}

const LEAD: &str = "
name: lead
initial_movement: first
movements:
  - name: first
    instruction: Lead.
    allowed_tools: [t_free]
    rules:
      - { condition: it is time, next: second }
  - { name: second, instruction: Finish. }
";

const HELP: &str = "
name: help
initial_movement: only
movements: [ { name: only, instruction: Help. } ]
";

fn tools() -> BTreeSet<String> {
    ["t_free", "t_pay", "hidden"].map(str::to_owned).into()
}

/// The finding: `complete` without a result ended the job with an empty one.
#[test]
fn the_arguments_of_control_tools_are_held_against_their_schema() {
    let lead = Piece::parse(LEAD, "lead.yaml", &tools()).unwrap();
    let pieces = Pieces::new([lead.clone(), Piece::parse(HELP, "help.yaml", &tools()).unwrap()]);
    let toolbox = super::fixture::toolbox(&super::fixture::Ledger::default()).shelf();
    let house = House {
        toolbox: &toolbox,
        pieces: &pieces,
        submits: None,
        limits: Limits::default(),
    };
    let scene = Scene::set(house, &lead, &lead.movements[0], &Memory::fresh("in"));
    let steer = |tool: Control, args: &Value| {
        let args = args.to_string();
        let args = Arguments::read(args.as_bytes(), ReadLimits::bytes(args.len())).unwrap();
        tool.steer(&args, &scene)
    };
    let sound = [
        (Control::Complete, json!({"status": "success", "result": ""})),
        (
            Control::Transition,
            json!({"next": "second", "reason": "it is time"}),
        ),
        (Control::SpawnSubtask, json!({"piece": "help", "input": "x"})),
        (Control::WaitSubtasks, json!({})),
        (Control::RequestTool, json!({"tool": "t_pay", "reason": "to pay"})),
        (
            Control::BrowserLogin,
            json!({"url": "https://a.example/", "reason": "to see"}),
        ),
    ];
    assert_eq!(
        sound.iter().map(|(tool, _)| *tool).collect::<Vec<_>>(),
        Control::ALL
    );
    for (tool, args) in sound {
        assert!(steer(tool, &args).is_ok(), "{tool:?} {args}");
        let members = args.as_object().unwrap();
        for name in members.keys() {
            // `reason` of a transition may be left out.
            let mut lacking = members.clone();
            lacking.remove(name);
            let may_lack = tool == Control::Transition && name == "reason";
            assert_eq!(
                steer(tool, &lacking.into()).is_ok(),
                may_lack,
                "{tool:?} without {name}"
            );
            for wrong in [json!(5), json!(null), json!(["x"]), json!({"text": "x"})] {
                let mut odd = members.clone();
                odd.insert(name.clone(), wrong);
                assert!(steer(tool, &odd.into()).is_err(), "{tool:?} with an odd {name}");
            }
        }
        let mut more = members.clone();
        more.insert("more".to_owned(), json!(1));
        let why = steer(tool, &more.into()).unwrap_err();
        assert_eq!(why, "`/more` is not allowed", "{tool:?}");
    }
}

#[tokio::test]
async fn calls_that_cannot_be_acted_upon_count_against_a_limit() {
    let lacking = calls(vec![call("complete", &json!({"status": "success"}))]);
    let lab = Lab::new(vec![lacking.clone()]);
    let id = lab.submit().await;
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("not completed with nothing")
    };
    assert_eq!(result, "mistake_limit: the run was ended after 5 replies");
    for told in lab.results(&id) {
        assert_eq!(
            told,
            "error: the arguments object lacks the required member `result`"
        );
    }
    // A call that is sound begins the count anew; words between mistakes do not.
    let free = calls(vec![call("t_free", &json!({}))]);
    let mut script = vec![lacking.clone(); 4];
    script.push(free);
    script.extend([
        lacking.clone(),
        lacking.clone(),
        words("hm"),
        lacking.clone(),
        lacking.clone(),
        lacking,
    ]);
    let lab = Lab::new(script);
    let id = lab.submit().await;
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("mistake_limit"), "{result}");
    assert_eq!(lab.memory(&id).replies, 11);
}

#[tokio::test]
async fn a_piece_sets_limits_for_its_own_runs() {
    let with = |key: &str| LEAD.replace("initial_movement", &format!("{key}\ninitial_movement"));
    let cases: [(&str, Reply, &str, usize); 4] = [
        (
            "max_iterations: 2",
            calls(vec![call("t_free", &json!({}))]),
            "max_iterations",
            2,
        ),
        ("text_only_limit: 1", words("hm"), "text_only_limit", 1),
        (
            "mistake_limit: 2",
            calls(vec![call("nothing", &json!({}))]),
            "mistake_limit",
            2,
        ),
        (
            "ask_limit: 0",
            complete("needs_user_input", "which?"),
            "ask_limit",
            1,
        ),
    ];
    for (key, reply, word, replies) in cases {
        let text = with(key);
        let stage = Stage::new(&[&text], vec![("Lead.", vec![reply])]);
        let id = stage.submit("lead");
        stage.work().await;
        let JobState::Aborted { result } = stage.world.job(&id).state else {
            panic!("{key}: aborted")
        };
        assert!(result.starts_with(word), "{key}: {result}");
        assert_eq!(stage.seen().len(), replies, "{key}");
    }
}

#[test]
fn what_a_piece_leaves_out_is_the_houses() {
    let house = Limits::default();
    assert_eq!(house.with(&OwnLimits::default()), house);
    let own = OwnLimits {
        cards: Some(1),
        subtasks: Some(2),
        ..OwnLimits::default()
    };
    let limits = house.with(&own);
    assert_eq!((limits.cards, limits.subtasks, limits.max_iterations), (1, 2, 50));
}
