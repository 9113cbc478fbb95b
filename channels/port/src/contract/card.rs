//! What can be seen and pressed: limits, cuts, settled cards, and text that stays text.

use super::{Next, Platform, Sent};
use crate::{
    Actions, All, Asks, Body, ButtonToken, ButtonValue, Card, CardSet, Content, Decision, Fact, Failure,
    Fate, Inert, Line, Part, Posted, Row, SetCode, Tone, Words,
};

const TOKEN: [u8; 16] = [0xa5; 16];

pub(super) fn ours() -> ButtonValue {
    ButtonValue::one(ButtonToken::new(TOKEN), 7)
}

/// A card with this text in each place that is somebody else's.
pub(super) fn card(text: &str, actions: Actions) -> Card {
    let word = str::to_owned;
    Card {
        request_id: word("cr_01hzy3v7k9"),
        tone: if actions == Actions::None {
            Tone::Approved
        } else {
            Tone::Pending
        },
        risk: None,
        title: word("Approval needed"),
        preview: word("Approval needed: cr_01hzy3v7k9"),
        tool: Inert::new(text),
        facts: vec![
            Fact {
                label: word("Agent"),
                value: Inert::new(text)
            };
            3
        ],
        arguments: Inert::new(text).into(),
        actions,
        words: Words {
            approve: word("Approve"),
            reject: word("Reject"),
            show_everything: word("Show everything"),
            arguments: word("Arguments"),
            cut: word("{shown} of {total} characters are shown"),
            approve_in_full_view: word("Approve it where everything can be seen."),
            reason: word("Reason"),
            reject_with_reason: word("Reject with a reason"),
            open_console: word("Open in the console"),
        },
        set: None,
    }
}

pub(super) fn open(text: &str, approve_when_cut: bool) -> Card {
    let ButtonValue { token, revision, .. } = ours();
    card(
        text,
        Actions::Decide {
            token,
            revision,
            approve_when_cut,
            full_view: Some("https://gate.example.com/console/requests/cr_01hzy3v7k9".to_owned()),
            asks: Asks::default(),
        },
    )
}

pub(super) fn decisions(platform: &dyn Platform, sent: &Sent) -> Vec<Decision> {
    platform
        .buttons(sent)
        .into_iter()
        .map(|(decision, _)| decision)
        .collect()
}

/// C-31 to C-37: what can be pressed follows from what can be seen.
pub fn check_cards(platform: &dyn Platform) {
    let both = [Decision::Approve, Decision::Reject];
    let long = "another line of arguments\n".repeat(20_000);
    let (small, cut, lifted) = (
        open("amount: 50000", false),
        open(&long, false),
        open(&long, true),
    );
    let shows_all = |card| platform.channel().shows_all(card);
    assert!(
        shows_all(&small) && !shows_all(&cut) && !shows_all(&lifted),
        "C-33: what can be seen"
    );
    for (card, expected) in [(&small, &both[..]), (&cut, &both[1..]), (&lifted, &both[..])] {
        let posted = platform.post(&[Next::Done], card).1;
        let edited = platform.edit(&[Next::Done], card).1;
        for sent in posted.iter().chain(&edited) {
            platform.assert_ours(sent);
            assert_eq!(
                decisions(platform, sent),
                expected,
                "C-34: no Approve on a card that was cut"
            );
            for (_, value) in platform.buttons(sent) {
                assert!(value.len() <= 64 && value.parse() == Ok(ours()), "C-14: {value}");
            }
        }
    }
    check_parts(platform);
    let (_, sent) = platform.edit(&[Next::Done], &card("amount: 50000", Actions::None));
    assert!(
        platform.buttons(&sent[0]).is_empty(),
        "C-36: a settled card has no buttons"
    );
    assert!(
        !sent[0].card.to_string().contains(&ours().to_string()),
        "C-36: nor what they carried"
    );
}

/// C-33: a card of several parts that counts as whole shows each line of each part, and every heading.
fn check_parts(platform: &dyn Platform) {
    let inert = Inert::new;
    let parts = vec![
        Part {
            heading: "Arguments: command".to_owned(),
            content: Content::Literal(inert("kubectl rollout\n  restart")),
        },
        Part {
            heading: String::new(),
            content: Content::Rows(vec![Row {
                key: inert("namespace"),
                value: inert("prod-7"),
            }]),
        },
        Part {
            heading: "Change: old to new".to_owned(),
            content: Content::Change(
                [
                    (Fate::Kept, "stays"),
                    (Fate::Removed, "goes"),
                    (Fate::Added, "comes"),
                ]
                .map(|(fate, text)| Line {
                    fate,
                    text: inert(text),
                })
                .to_vec(),
            ),
        },
    ];
    let mut open = open("x", false);
    open.arguments = Body::new(parts.clone(), inert("{}"));
    let (_, sent) = platform.post(&[Next::Done], &open);
    platform.assert_ours(&sent[0]);
    assert!(platform.channel().shows_all(&open), "C-33");
    let card = sent[0].card.to_string();
    let escaped = |text: &str| serde_json::Value::from(text).to_string();
    let stands = |text: &str| {
        let once = escaped(text);
        let twice = escaped(once.trim_matches('"'));
        card.contains(once.trim_matches('"')) || card.contains(twice.trim_matches('"'))
    };
    for part in &parts {
        let heading = if part.heading.is_empty() {
            &open.words.arguments
        } else {
            &part.heading
        };
        assert!(stands(heading), "C-33: {heading}");
        let text = part.content.text();
        let mut words = text.as_str().split([':', '\n']).map(str::trim);
        assert!(words.all(stands), "C-33: {text}");
    }
}

/// C-30: somebody's text in every place of a card adds no element and no button. To be run over generated texts and [`HOSTILE`].
pub fn check_text(platform: &dyn Platform, text: &str) {
    let open = open(text, false);
    let (_, sent) = platform.post(&[Next::Done], &open);
    platform.assert_ours(&sent[0]);
    let all = [Decision::Approve, Decision::Reject];
    let expected = if platform.channel().shows_all(&open) {
        &all[..]
    } else {
        &all[1..]
    };
    assert_eq!(decisions(platform, &sent[0]), expected, "C-30: {text:?}");
    let (_, sent) = platform.edit(&[Next::Done], &card(text, Actions::None));
    platform.assert_ours(&sent[0]);
    assert!(platform.buttons(&sent[0]).is_empty(), "C-30: {text:?}");
}

/// A card of requests with this text in each place that is somebody else's, of which the first is settled.
fn together(texts: &[&str]) -> Card {
    let items = texts.iter().enumerate().map(|(at, text)| {
        let mut item = if at == 0 {
            card(text, Actions::None)
        } else {
            open(text, false)
        };
        item.request_id = format!("cr_{at:010}");
        item
    });
    let items: Vec<_> = items.collect();
    Card {
        arguments: Inert::default().into(),
        tone: Tone::Pending,
        set: Some(CardSet {
            all: (items.len() > 2).then(|| All {
                value: ButtonValue::all(ButtonToken::new(TOKEN), SetCode::new([0x5e; 12])),
                approve: "Approve all".to_owned(),
                reject: "Reject all".to_owned(),
                once_more: None,
            }),
            items,
        }),
        ..card("pay", Actions::None)
    }
}

/// C-48, C-49: several requests in one card.
pub fn check_sets(platform: &dyn Platform) {
    let both = [Decision::Approve, Decision::Reject];
    let card = together(&["amount: 1", "amount: 2", "amount: 3"]);
    assert!(platform.channel().shows_all(&card), "C-48: they fit");
    let (posted, sent) = platform.post(&[Next::Done], &card);
    assert!(matches!(posted, Posted::At(_)), "C-48: {posted:?}");
    platform.assert_ours(&sent[0]);
    assert_eq!(
        decisions(platform, &sent[0]),
        [both, both, both].concat(),
        "C-48: two for each open one, two for all"
    );
    let all = card
        .set
        .as_ref()
        .and_then(|set| set.all.as_ref())
        .map(|all| all.value);
    let values = platform.buttons(&sent[0]).into_iter().map(|(_, value)| {
        assert!(value.len() <= 64, "C-14: {value}");
        value.parse().ok()
    });
    let values: Vec<Option<ButtonValue>> = values.collect();
    assert_eq!(values[4..], [all, all], "C-48: what the buttons for all carry");
    assert!(values[..4].iter().all(|value| *value == Some(ours())), "C-48");

    let long = "another line of arguments\n".repeat(20_000);
    let cut = together(&["amount: 1", &long, "amount: 3"]);
    assert!(!platform.channel().shows_all(&cut), "C-48: what can be seen");
    let (_, sent) = platform.edit(&[Next::Done], &cut);
    platform.assert_ours(&sent[0]);
    let cut = decisions(platform, &sent[0]);
    let approvals = cut
        .iter()
        .filter(|decision| **decision == Decision::Approve)
        .count();
    assert!(
        approvals <= 1,
        "C-48: neither the cut one nor all can be approved: {cut:?}"
    );

    let (posted, sent) = platform.post(&[Next::ContentRefused], &card);
    let refused = matches!(posted, Posted::NotSent(Failure::Content { .. }));
    assert!(refused && sent.len() == 1, "C-49: {posted:?}");
    let (edited, sent) = platform.edit(&[Next::ContentRefused], &card);
    assert!(
        matches!(edited, Err(Failure::Content { .. })) && sent.len() == 1,
        "C-49: {edited:?}"
    );

    let mut settled = together(&["amount: 1", "amount: 2"]);
    for item in settled.set.iter_mut().flat_map(|set| &mut set.items) {
        item.actions = Actions::None;
    }
    let (_, sent) = platform.edit(&[Next::Done], &settled);
    assert!(
        platform.buttons(&sent[0]).is_empty(),
        "C-36: settled, without buttons"
    );
}
