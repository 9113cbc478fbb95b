//! What comes of calls to the platform, what a channel says of itself, and what it keeps to itself.

use std::time::Duration;

use super::callback::{judge, press};
use super::card::{card, decisions, open};
use super::{CANARY, Made, Next, Platform, Sent, WAIT, log};
use crate::{Actions, CardForm, Channel, Decision, Failure, Health, Posted};

/// C-20 to C-23: a post has three outcomes, an edit two; each failure has its class, and nothing is repeated on its own.
pub fn check_outcomes(platform: &dyn Platform) {
    let open = open("amount: 50000", false);
    let is_retry = |failure: &Failure| matches!(failure, Failure::Retry { .. });
    let waits =
        |failure: &Failure| matches!(failure, Failure::Retry { after: Some(after), .. } if *after >= WAIT);
    let post = |next: Next| {
        let (posted, sent) = platform.post(&[next], &open);
        assert!(sent.len() <= 1, "C-23: {next:?} is not repeated");
        posted
    };
    let edit = |next: Next| {
        let (edited, sent) = platform.edit(&[next], &open);
        assert!(sent.len() <= 1, "C-23: {next:?} is not repeated");
        edited
    };
    let at = post(Next::Done);
    assert!(
        matches!(&at, Posted::At(at) if !at.chat.is_empty() && !at.message.is_empty()),
        "C-20: {at:?}"
    );
    let posted = post(Next::RateLimited);
    assert!(
        matches!(&posted, Posted::NotSent(failure) if waits(failure)),
        "C-22: {posted:?}"
    );
    let posted = post(Next::NotThere);
    assert!(
        matches!(&posted, Posted::NotSent(Failure::Target { .. })),
        "C-22: {posted:?}"
    );
    for next in [Next::ServerError, Next::HangUp] {
        let posted = post(next);
        assert!(
            matches!(&posted, Posted::Unknown { .. }),
            "C-21: {next:?} leaves a post open: {posted:?}"
        );
        let edited = edit(next);
        assert!(
            edited.as_ref().is_err_and(is_retry),
            "C-22: an edit may be repeated: {edited:?}"
        );
    }
    assert_eq!(edit(Next::Done), Ok(CardForm::LaidOut), "C-20");
    assert!(edit(Next::RateLimited).as_ref().is_err_and(waits), "C-22");
    let edited = edit(Next::NotThere);
    assert!(matches!(&edited, Err(Failure::Gone { .. })), "C-22: {edited:?}");
}

/// C-24, C-35, C-36: refused content is sent once more in its least form, and then given up.
pub fn check_fallback(platform: &dyn Platform) {
    let mentions = |sent: &Sent| sent.card.to_string().contains(CANARY);
    let open = open(CANARY, true);
    let (posted, sent) = platform.post(&[Next::ContentRefused, Next::Done], &open);
    assert!(
        matches!(posted, Posted::Minimal(_)) && sent.len() == 2,
        "C-24: {posted:?}"
    );
    assert!(
        mentions(&sent[0]) && !mentions(&sent[1]),
        "C-35: the minimal card holds nobody's text"
    );
    assert_eq!(
        decisions(platform, &sent[1]),
        [Decision::Reject],
        "C-35: whatever the rule lifts"
    );
    let (posted, sent) = platform.post(&[Next::ContentRefused; 2], &open);
    assert!(
        matches!(posted, Posted::NotSent(Failure::Content { .. })) && sent.len() == 2,
        "C-24: {posted:?}"
    );

    let (edited, sent) = platform.edit(&[Next::ContentRefused, Next::Done], &open);
    assert_eq!(
        (edited, decisions(platform, &sent[1])),
        (Ok(CardForm::Minimal), vec![Decision::Reject]),
        "C-24"
    );
    let (edited, sent) = platform.edit(&[Next::ContentRefused, Next::Done], &card(CANARY, Actions::None));
    assert_eq!(
        (edited, decisions(platform, &sent[1])),
        (Ok(CardForm::Minimal), vec![]),
        "C-36: settled, without buttons"
    );
}

/// C-27, C-28: neither an error nor a log line holds what the adapter was given, an address, or a platform's own words.
pub fn check_silence(platform: &dyn Platform) {
    let open = open(CANARY, false);
    let mut told = Vec::new();
    let logged = log::heard(|| {
        for script in [
            &[Next::RateLimited][..],
            &[Next::ServerError],
            &[Next::NotThere],
            &[Next::HangUp],
            &[Next::ContentRefused, Next::ContentRefused],
        ] {
            told.push(format!(
                "{:?} {:?}",
                platform.post(script, &open).0,
                platform.edit(script, &open).0
            ));
        }
        told.push(format!("{:?}", platform.health_when_down()));
        told.push(format!(
            "{:?}",
            judge(platform, &press(platform), Made::OtherSecret)
        ));
    });
    for text in [told.concat(), logged] {
        assert!(
            !text.contains(CANARY) && !text.contains("127.0.0.1"),
            "C-27, C-28: {text}"
        );
    }
}

/// C-9, C-26, C-40 to C-42: what a channel says of itself. `down`: what it says while its platform cannot be reached, if it has one.
pub fn check_channel(channel: &dyn Channel, down: Option<&Health>) {
    let app = channel.app();
    assert!(
        !channel.name().is_empty() && !channel.chat().is_empty() && !app.id.is_empty(),
        "C-40"
    );
    assert_eq!(app.kind, channel.kind(), "C-40: apps of two kinds are never one");
    assert!(
        channel.pace().burst >= 1 && channel.pace().every > Duration::ZERO,
        "C-41: {:?}",
        channel.pace()
    );
    assert!(
        channel.repeats_safely().is_none_or(|span| span > Duration::ZERO),
        "C-26"
    );
    assert!(
        !(channel.webhook().is_some() && channel.connection().is_some()),
        "C-9: clicks come in one way"
    );
    if let Some(health) = down {
        assert!(
            !health.healthy && !health.detail.trim().is_empty(),
            "C-42: {health:?}"
        );
        assert!(!health.detail.contains('\n'), "C-42: one line: {}", health.detail);
    }
}
