//! Words to the bot: let in by the same proof as a press, read without judging them, answered to the person alone.

use super::callback::{assert_inauthentic, verify};
use super::{CANARY, HOSTILE, Made, Platform};
use crate::command::LONGEST_WORDS;
use crate::{Answered, Command, Inbound, Inert, Refusal, Reply, ReplyTone, UtcMillis};

fn judge(platform: &dyn Platform, words: &str, serial: u32, made: Made) -> Result<Inbound, Refusal> {
    let request = platform.words(words, "ou_mira", serial, made);
    let Some(request) = request else {
        return Err(Refusal::unreadable("the platform brings no words"));
    };
    verify(platform, &request, platform.now())
}

#[expect(clippy::panic, reason = "a broken rule ends the test")]
fn command(platform: &dyn Platform, words: &str, serial: u32) -> Command {
    match judge(platform, words, serial, Made::Authentic) {
        Ok(Inbound::Command(command)) => command,
        other => panic!("C-60: authentic words of a person are a command: {other:?}"),
    }
}

/// C-1 to C-7, C-11, C-15 and C-60 to C-65 for words; only for a platform that brings them.
pub fn check_commands(platform: &dyn Platform) {
    for made in [
        Made::Unsigned,
        Made::OtherSecret,
        Made::At(-86_400),
        Made::At(86_400),
    ] {
        let judged = judge(platform, "approve x", 1, made);
        assert_inauthentic(&judged, &format!("C-2, C-4: {made:?}"));
    }
    match judge(platform, "approve x", 1, Made::OtherApp) {
        Ok(Inbound::Command(command)) => assert!(
            command.app.is_some_and(|app| app != platform.channel().app().id),
            "C-7: words to another app never pass for words to this one"
        ),
        refused => assert!(refused.is_err(), "C-7: {refused:?}"),
    }

    let said = command(platform, "approve K7QF-2M9X looks fine", 1);
    assert_eq!(said.words, "approve K7QF-2M9X looks fine", "C-62");
    assert!(said.called.starts_with('/'), "C-62: {}", said.called);
    assert_eq!(said.user.ids.first().map(String::as_str), Some("ou_mira"), "C-11");
    assert!(
        said.app
            .as_ref()
            .is_none_or(|app| *app == platform.channel().app().id),
        "C-7"
    );
    assert!(!said.place.chat().is_empty(), "C-61");
    if said.answered == Answered::Apart {
        assert!(platform.channel().whisper().is_some(), "C-65: somebody answers");
        assert!(
            said.said_at.is_some(),
            "C-63: what is not answered at once may come late"
        );
    }
    let close = |at: UtcMillis| platform.now().0.abs_diff(at.0) < 60_000;
    assert!(
        said.said_at.is_none_or(close),
        "C-63: the platform's time, in milliseconds"
    );
    assert!(
        !format!("{said:?}").contains(CANARY),
        "C-64: no address that answers"
    );

    let key = |words, serial| command(platform, words, serial).replay_key;
    assert_eq!(key("pending", 1), key("pending", 1), "C-15");
    assert_ne!(key("pending", 1), key("pending", 2), "C-15");

    let longest = "x".repeat(2 * LONGEST_WORDS);
    let words = command(platform, &longest, 1).words;
    assert_eq!(words.chars().count(), LONGEST_WORDS, "C-62: capped");
    for hostile in HOSTILE {
        let judged = judge(platform, hostile, 1, Made::Authentic);
        assert!(
            matches!(judged, Ok(Inbound::Command(_) | Inbound::Ignored { .. })),
            "C-62: {hostile:?}: {judged:?}"
        );
    }

    let Some(webhook) = platform.channel().webhook() else {
        return;
    };
    let reply = Reply {
        refused: false,
        field: crate::Field::Answer,
        tone: ReplyTone::Info,
        text: Inert::new(&format!("{CANARY} {}", HOSTILE.concat())),
        card: None,
    };
    let answer = webhook.answer_command(&said, &reply);
    assert_eq!(answer.status, 200, "C-65");
    assert_eq!(answer, webhook.answer_command(&said, &reply), "C-65: pure");
    let told = String::from_utf8_lossy(&answer.body).contains(CANARY);
    assert_eq!(
        told,
        said.answered == Answered::There,
        "C-65: the answer stands where it belongs"
    );
}
