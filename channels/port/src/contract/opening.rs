//! How something opens for one person: the press, the leave, the call, and what becomes of each. What is then shown and answered is
//! [`view`](super::view)'s.

use super::callback::{assert_inauthentic, press, verify};
use super::card::{card, open, ours};
use super::view::{assert_ours, assert_place, click, reason, say, shown, view};
use super::{Made, Next, Platform, Typed};
use crate::{Actions, Decision, Dialog, DialogRef, Failure, Inbound, Posted, Vantage, Wants};

/// C-70: a press that opens something decides nothing, and its leave does not print.
pub(super) fn check_asks(platform: &dyn Platform) {
    let press = press(platform);
    let request = platform.asks(&press, Wants::Everything, Made::Authentic);
    let read = request.map(|request| verify(platform, &request, platform.now()));
    match read {
        Some(Ok(Inbound::Ask(ask))) => {
            assert_eq!((ask.wants, ask.button), (Wants::Everything, Some(ours())), "C-70");
            assert_eq!(
                (&ask.chat, &ask.message),
                (&press.at.chat, &press.at.message),
                "C-70, C-12"
            );
            assert_eq!(ask.user.ids.first(), Some(&press.user), "C-70, C-11");
            if let Some(opener) = &ask.opener {
                assert!(!format!("{ask:?}").contains(opener.as_str()), "C-70: it prints");
            }
        }
        other => assert!(
            other.is_none(),
            "C-70: a press that opens something asks: {other:?}"
        ),
    }
    for made in [Made::Unsigned, Made::OtherSecret] {
        let judged = platform.asks(&press, Wants::Everything, made);
        if let Some(request) = judged {
            let judged = verify(platform, &request, platform.now());
            assert_inauthentic(&judged, "C-2, C-70");
        }
    }
}

/// C-71: one call; what is over is gone, and an answer without a dialogue is none.
pub(super) fn check_opening(platform: &dyn Platform) {
    let dialog = Dialog::Tell(say("It is too long to be shown here."));
    let outcome = |next| {
        let (opened, sent) = platform.open(&[next], &dialog);
        assert!(sent.len() <= 1, "C-23, C-71: {next:?} is not repeated");
        assert_ours(platform, &sent);
        opened
    };
    assert!(
        matches!(outcome(Next::Done), Ok(DialogRef(id)) if !id.is_empty()),
        "C-71"
    );
    let gone = outcome(Next::NotThere);
    assert!(matches!(&gone, Err(Failure::Gone { .. })), "C-71: {gone:?}");
    for next in [
        Next::Nothing,
        Next::RateLimited,
        Next::ServerError,
        Next::ContentRefused,
        Next::HangUp,
    ] {
        let failed = outcome(next);
        assert!(
            failed.is_err(),
            "C-71: {next:?} opens nothing, and C-73: no other form: {failed:?}"
        );
    }
    let (changed, sent) = platform.change(&[Next::Done], &dialog);
    assert!(changed.is_ok() && sent.len() == 1, "C-71: {changed:?}");
    platform.assert_view(&sent[0]);
    let (gone, _) = platform.change(&[Next::NotThere], &dialog);
    assert!(matches!(&gone, Err(Failure::Gone { .. })), "C-71: {gone:?}");
}

/// C-72, C-74: a form for words says which answer it is for, and can say no other; it proves nothing about what was seen.
pub(super) fn check_forms(platform: &dyn Platform) {
    for decision in [Decision::Approve, Decision::Reject] {
        let other = match decision {
            Decision::Approve => Decision::Reject,
            Decision::Reject => Decision::Approve,
        };
        let (_, sent) = platform.open(&[Next::Done], &reason(platform, open("x", false), decision));
        platform.assert_view(&sent[0]);
        for pressed in [decision, other] {
            let Some(request) = platform.answer(&sent[0], pressed, Typed::Nothing, "ou_mira") else {
                continue;
            };
            let click = click(platform, &request);
            assert_eq!(click.decision, decision, "C-72: it is opened for one answer");
            assert_place(platform, &click);
            assert_eq!(click.vantage, Vantage::Alone { seen: None }, "C-72");
        }
        let over = card("x", Actions::None);
        let (_, sent) = platform.open(&[Next::Done], &reason(platform, over, decision));
        let answer = platform.answer(&sent[0], decision, Typed::Nothing, "ou_mira");
        assert!(answer.is_none(), "C-74: there is nothing to answer any more");
    }
}

/// C-77: parts depend on tool and arguments alone, only the last one can be answered, and it is what an edit replaces.
pub(super) fn check_pages(platform: &dyn Platform) {
    let long = "one more line of arguments\n".repeat(2_000);
    let before = view(platform, open("oa__purchase_pay", false), &long);
    let mut after = before.clone();
    after.card.facts.truncate(1);
    "Approved".clone_into(&mut after.card.title);
    after.card.actions = Actions::None;
    let (before_sent, after_sent) = (shown(platform, &before), shown(platform, &after));
    assert!(
        before_sent.len() > 2 && before_sent.len() == after_sent.len(),
        "C-77: {}",
        before_sent.len()
    );
    let parts = before_sent.len() - 1;
    for at in 0..parts {
        assert_eq!(before_sent[at].card, after_sent[at].card, "C-77: part {at}");
        let answer = platform.answer(&before_sent[at], Decision::Approve, Typed::Nothing, "ou_mira");
        assert!(answer.is_none(), "C-77: part {at} cannot be answered");
    }
    assert_ne!(before_sent[parts].card, after_sent[parts].card, "C-77");
    let outcome = |next| platform.page(&[next], &before, 0);
    let (posted, _) = outcome(Next::NotThere);
    assert!(
        matches!(&posted, Posted::NotSent(failure) if !failure.is_temporary()),
        "C-77, C-20: {posted:?}"
    );
    let (posted, sent) = outcome(Next::ContentRefused);
    assert!(
        matches!(&posted, Posted::NotSent(Failure::Content { .. })) && sent.len() == 1,
        "C-73: no other form: {posted:?}"
    );
    for next in [Next::ServerError, Next::HangUp, Next::Nothing] {
        let (posted, sent) = outcome(next);
        assert!(
            matches!(&posted, Posted::Unknown { .. }) && sent.len() <= 1,
            "C-77, C-21: {next:?}: {posted:?}"
        );
    }
    let (edited, sent) = platform.edit_page(&[Next::Done], &after);
    assert!(edited.is_ok(), "C-77: {edited:?}");
    assert_eq!(
        sent[0].card, after_sent[parts].card,
        "C-77: the last one is replaced"
    );
    let (gone, _) = platform.edit_page(&[Next::NotThere], &after);
    assert!(matches!(&gone, Err(Failure::Gone { .. })), "C-77: {gone:?}");
}
