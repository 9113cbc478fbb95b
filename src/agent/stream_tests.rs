//! Streams of real endpoints (RH-701 to RH-703): what is a call, what is none, and that no card is posted for the latter.

use std::path::Path;

use proptest::prelude::*;

use super::fixture::complete;
use super::model::Reply;
use super::model::stream::Collector;
use super::stage::Stage;
use crate::job::JobStatus;

fn collect(text: &[u8], step: usize) -> Reply {
    let mut collector = Collector::default();
    for piece in text.chunks(step) {
        collector.take(piece).unwrap();
    }
    collector.into_reply()
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bugs");
    std::fs::read(folder.join(name)).unwrap()
}

/// A fixture, and what must come of it: name and arguments of each call, and whether it is sound.
type Expected = (&'static str, &'static [(&'static str, &'static str, bool)]);

#[test]
fn parallel_calls_are_told_apart_or_void() {
    let table: [Expected; 4] = [
        (
            "RH-702/same_index.sse",
            &[
                ("files_read", r#"{"path":"/a"}"#, true),
                ("files_delete", r#"{"path":"/b"}"#, true),
            ],
        ),
        (
            "RH-702/interleaved.sse",
            &[
                ("files_read", r#"{"path":"/a"}"#, true),
                ("files_delete", r#"{"path":"/b"}"#, true),
            ],
        ),
        (
            "RH-702/name_blank_later.sse",
            &[("files_read", r#"{"path":"/a"}"#, true)],
        ),
        (
            "RH-702/name_in_pieces.sse",
            &[("files_", r#"{"path":"/b"}"#, false)],
        ),
    ];
    for (name, expected) in table {
        for step in [1, 7, 100_000] {
            let reply = collect(&fixture(name), step);
            assert!(reply.complete, "{name}");
            let found: Vec<_> = reply
                .calls
                .iter()
                .map(|call| {
                    let text = |text: &Option<String>| text.clone().unwrap_or_default();
                    (text(&call.name), text(&call.arguments), call.fault.is_none())
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, args, sound)| ((*name).to_owned(), (*args).to_owned(), *sound))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn a_piece_that_could_be_of_two_calls_voids_both() {
    let piece = |body: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{body}]}}}}]}}\n\n")
    };
    let text = [
        piece(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":"}}"#),
        piece(r#"{"index":0,"id":"b","function":{"name":"g","arguments":"{\"n\":"}}"#),
        piece(r#"{"index":0,"function":{"arguments":"1}"}}"#),
        piece(r#"{"index":1,"id":"c","function":{"name":"h","arguments":"{}"}}"#),
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let reply = collect(text.as_bytes(), 3);
    let void: Vec<bool> = reply.calls.iter().map(|call| call.fault.is_some()).collect();
    assert_eq!(void, [true, true, false]);
}

#[test]
fn what_was_cut_is_not_complete() {
    for name in [
        "length",
        "length_but_complete",
        "connection_cut",
        "content_filter",
    ] {
        let reply = collect(&fixture(&format!("RH-703/{name}.sse")), 11);
        assert!(!reply.complete, "{name}");
    }
    let whole = fixture("RH-702/interleaved.sse");
    assert!(collect(&whole, 64).complete);
    let cut = whole.len() - "[DONE]\n\n".len();
    assert!(!collect(&whole[..cut], 64).complete, "without its end mark");
}

const PIECE: &str = "\
name: one
initial_movement: go
movements:
  - name: go
    instruction: GO.
    allowed_tools: [t_pay]
";

/// No stream of a cut or tangled reply leads to a card, and the run goes on.
#[tokio::test]
async fn no_card_for_what_is_no_call() {
    let sound = [
        "RH-701/stream_empty.sse",
        "RH-701/stream_blank.sse",
        "RH-701/stream_braces.sse",
        "RH-701/stream_missing.sse",
        "RH-701/stream_noarg_tool_empty.sse",
    ];
    let mut tried = 0;
    for folder in ["RH-701", "RH-702", "RH-703"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/bugs")
            .join(folder);
        for file in std::fs::read_dir(path).unwrap() {
            let name = format!("{folder}/{}", file.unwrap().file_name().to_string_lossy());
            let mut reply = collect(&fixture(&name), 64);
            let bad = !sound.contains(&name.as_str())
                && ![
                    "RH-702/same_index.sse",
                    "RH-702/interleaved.sse",
                    "RH-702/name_blank_later.sse",
                ]
                .contains(&name.as_str());
            let calls = reply.calls.len();
            for call in &mut reply.calls {
                call.name = Some("t_pay".to_owned());
            }
            let stage = Stage::new(&[PIECE], vec![("GO", vec![reply, complete("success", "on")])]);
            let id = stage.submit("one");
            stage.work().await;
            if bad {
                assert!(stage.world.requests().is_empty(), "{name}");
                assert_eq!(
                    stage.world.job(&id).state.status(),
                    JobStatus::Completed,
                    "{name}"
                );
            } else {
                assert_eq!(stage.world.requests().len(), calls, "{name}");
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 21);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), step in 1..40_usize) {
        let mut collector = Collector::default();
        let taken = bytes.chunks(step).try_for_each(|piece| collector.take(piece));
        if taken.is_ok() {
            prop_assert!(!collector.into_reply().complete);
        }
    }
}
