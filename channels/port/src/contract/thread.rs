//! Lines below a card: three outcomes as for a card, real mentions only of ids that were given, and nothing to press.

use super::{CANARY, HOSTILE, Next, Platform};
use crate::{Failure, Inert, Mention, Note, Posted};

/// An id that no platform has.
const NO_ID: &str = "not-an-id!";

fn note(platform: &dyn Platform, text: &str) -> Note {
    let mention = |id: Option<&str>, name: &str| Mention {
        id: id.map(str::to_owned),
        name: Inert::new(name).one_line(),
    };
    Note {
        request_id: "cr_contract".to_owned(),
        text: Inert::new(text),
        preview: "cr_contract".to_owned(),
        mentions: vec![
            mention(Some(platform.person()), "Mira"),
            mention(None, "Tomas"),
            mention(Some(NO_ID), "Ines"),
        ],
        aloud: true,
    }
}

/// C-84 to C-87. Nothing is asked of a channel without threads.
pub fn check_threads(platform: &dyn Platform) {
    if platform.channel().threads().is_none() {
        return;
    }
    let plain = note(platform, "Still waiting.");
    let (posted, sent) = platform.reply(&[Next::Done], &plain);
    assert!(matches!(posted, Posted::At(_)), "C-84: {posted:?}");
    assert_eq!(sent.len(), 1);
    let spelled = sent[0].card.to_string();
    assert!(
        spelled.contains(platform.person()),
        "C-85: whoever has an id is mentioned by it: {spelled}"
    );
    assert!(
        !spelled.contains(NO_ID) && spelled.contains("Tomas") && spelled.contains("Ines"),
        "C-85: everybody else is named in text: {spelled}"
    );
    assert!(platform.buttons(&sent[0]).is_empty(), "C-87");

    let outcome = |next| {
        let (posted, sent) = platform.reply(&[next], &plain);
        assert!(sent.len() <= 1, "C-23: {next:?} is not repeated");
        posted
    };
    let posted = outcome(Next::NotThere);
    assert!(
        matches!(&posted, Posted::NotSent(Failure::Gone { .. })),
        "C-84: a message that is not there is gone: {posted:?}"
    );
    let posted = outcome(Next::RateLimited);
    assert!(
        matches!(&posted, Posted::NotSent(failure) if failure.is_temporary()),
        "C-84: {posted:?}"
    );
    for next in [Next::ServerError, Next::HangUp] {
        let posted = outcome(next);
        assert!(matches!(&posted, Posted::Unknown { .. }), "C-84: {posted:?}");
    }

    let (posted, sent) = platform.reply(&[Next::ContentRefused, Next::Done], &plain);
    assert!(
        matches!(posted, Posted::At(_)) && sent.len() == 2,
        "C-86: {posted:?}"
    );
    let spelled = sent[1].card.to_string();
    assert!(
        !spelled.contains(platform.person()) && spelled.contains("Mira"),
        "C-86: the second time nobody is mentioned: {spelled}"
    );
    for text in HOSTILE {
        let (posted, sent) = platform.reply(&[Next::Done], &note(platform, text));
        assert!(matches!(posted, Posted::At(_)), "C-30: {text}");
        platform.assert_note(&sent[0]);
    }
    let (posted, sent) = platform.reply(&[Next::Done], &note(platform, &CANARY.repeat(20_000)));
    assert!(matches!(posted, Posted::At(_)), "C-32: a note of any size fits");
    platform.assert_note(&sent[0]);
}
