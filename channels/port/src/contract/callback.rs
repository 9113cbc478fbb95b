//! What is let in, and what is read from it.

use super::card::{card, ours};
use super::{HOSTILE, Made, Platform, Press};
use crate::{
    Actions, Click, Decision, Inbound, Inert, MessageRef, RawRequest, Refusal, RefusalKind, Reply, ReplyTone,
    UtcMillis,
};

pub(super) fn press(platform: &dyn Platform) -> Press {
    Press {
        value: ours().to_string(),
        decision: Decision::Approve,
        user: "ou_mira".to_owned(),
        at: MessageRef {
            chat: platform.channel().chat().to_owned(),
            message: "1795953000.000200".to_owned(),
        },
        serial: 1,
    }
}

pub(super) fn verify(
    platform: &dyn Platform,
    request: &RawRequest,
    now: UtcMillis,
) -> Result<Inbound, Refusal> {
    let webhook = platform.channel().webhook();
    assert!(webhook.is_some(), "a fixture's channel is called over HTTP");
    webhook.map_or(Err(Refusal::unreadable("no_webhook")), |webhook| {
        webhook.verify(request, now)
    })
}

pub(super) fn judge(platform: &dyn Platform, press: &Press, made: Made) -> Result<Inbound, Refusal> {
    verify(platform, &platform.request(press, made), platform.now())
}

#[expect(clippy::panic, reason = "a broken rule ends the test")]
fn click(platform: &dyn Platform, press: &Press) -> Click {
    match judge(platform, press, Made::Authentic) {
        Ok(Inbound::Click(click)) => click,
        other => panic!("C-10: an authentic press is a click: {other:?}"),
    }
}

pub(super) fn assert_inauthentic(judged: &Result<Inbound, Refusal>, rule: &str) {
    let refused = matches!(
        judged,
        Err(Refusal {
            kind: RefusalKind::Inauthentic,
            ..
        })
    );
    assert!(refused, "{rule}: {judged:?}");
}

/// C-1 to C-7: nothing but a fresh request with the platform's own proof over these very bytes is let in.
pub fn check_refusals(platform: &dyn Platform) {
    let press = press(platform);
    for made in [
        Made::Unsigned,
        Made::OtherSecret,
        Made::At(-86_400),
        Made::At(86_400),
    ] {
        assert_inauthentic(&judge(platform, &press, made), &format!("C-2, C-4: {made:?}"));
    }
    let good = platform.request(&press, Made::Authentic);
    for now in [i64::MIN, 0, i64::MAX] {
        assert_inauthentic(
            &verify(platform, &good, UtcMillis(now)),
            "C-4: judged by the given clock, without overflow",
        );
    }
    for at in (0..good.body.len()).step_by(7) {
        let mut changed = good.clone();
        changed.body[at] ^= 1;
        assert_inauthentic(
            &verify(platform, &changed, platform.now()),
            "C-1: every byte is covered",
        );
    }
    let mut needed = 0;
    for at in 0..good.headers.len() {
        let mut without = good.clone();
        let (name, value) = without.headers.remove(at);
        if matches!(
            verify(platform, &without, platform.now()),
            Err(Refusal {
                kind: RefusalKind::Inauthentic,
                ..
            })
        ) {
            needed += 1;
            let mut twice = good.clone();
            twice.headers.push((name.to_uppercase(), value));
            assert_inauthentic(
                &verify(platform, &twice, platform.now()),
                &format!("C-5: {name} twice proves nothing"),
            );
        }
    }
    assert!(needed > 0, "C-2: some header carries the proof");
    for body in [
        &b""[..],
        b"\xff\xfe",
        b"{}",
        b"[[[[",
        b"payload=%7B%7D",
        b"{\"encrypt\":\"\"}",
    ] {
        let judged = verify(
            platform,
            &RawRequest {
                headers: good.headers.clone(),
                body: body.to_vec(),
            },
            platform.now(),
        );
        assert_inauthentic(&judged, "C-1: what is not authentic is not read");
    }
    match judge(platform, &press, Made::OtherApp) {
        Ok(Inbound::Click(click)) => assert!(
            click.app.is_some_and(|app| app != platform.channel().app().id),
            "C-7: a click of another app never passes for one of this app"
        ),
        refused => assert!(refused.is_err(), "C-7: {refused:?}"),
    }
}

/// C-10 to C-15: who clicked, on what and where comes from the platform's own fields; a button carries an opaque value.
pub fn check_clicks(platform: &dyn Platform) {
    for decision in [Decision::Approve, Decision::Reject] {
        let press = Press {
            decision,
            ..press(platform)
        };
        let read = click(platform, &press);
        assert_eq!(read.decision, decision, "C-10");
        assert_eq!(read.button, Some(ours()), "C-14");
        assert_eq!(
            (&read.chat, &read.message),
            (&press.at.chat, &press.at.message),
            "C-12"
        );
        assert_eq!(read.user.ids.first(), Some(&press.user), "C-11");
        assert!(
            read.app.is_none_or(|app| app == platform.channel().app().id),
            "C-7"
        );
    }
    let first = press(platform);
    let key = |press: &Press| click(platform, press).replay_key;
    assert_eq!(
        key(&first),
        key(&first),
        "C-15: a repeat has the key of the first"
    );
    assert_ne!(
        key(&first),
        key(&Press {
            serial: 2,
            ..first.clone()
        }),
        "C-15: a second press has another"
    );

    for value in [
        "",
        "approve",
        "{\"user\":\"ou_boss\",\"decision\":\"approve\"}",
        "g1.00.1",
        &format!("{} ", ours()),
    ] {
        let press = Press {
            value: value.to_owned(),
            decision: Decision::Reject,
            ..first.clone()
        };
        match judge(platform, &press, Made::Authentic) {
            Ok(Inbound::Click(click)) => {
                assert_eq!(click.button, None, "C-14: {value:?} is no value of ours");
                assert_eq!(
                    click.user.ids.first(),
                    Some(&press.user),
                    "C-13: what is carried has no authority"
                );
                assert_eq!(click.decision, Decision::Reject, "C-13");
            }
            other => assert!(
                matches!(other, Ok(Inbound::Ignored { .. }) | Err(_)),
                "C-14: {other:?}"
            ),
        }
    }
}

/// C-8: every click has an answer, 200, that says nothing to others and holds only text.
pub fn check_answers(platform: &dyn Platform) {
    let click = click(platform, &press(platform));
    for tone in [
        ReplyTone::Success,
        ReplyTone::Info,
        ReplyTone::Warning,
        ReplyTone::Error,
    ] {
        let card = platform
            .channel()
            .takes_card()
            .then(|| card("as it stands", Actions::None));
        let reply = Reply {
            tone,
            text: Inert::new(HOSTILE.concat().as_str()),
            refused: false,
            field: crate::Field::Answer,
            card,
        };
        let Some(webhook) = platform.channel().webhook() else {
            continue;
        };
        let answer = webhook.answer(&click, &reply);
        assert_eq!(answer.status, 200, "C-8");
        assert_eq!(answer, webhook.answer(&click, &reply), "C-8: pure");
        let told = !answer.body.is_empty() || platform.channel().private_notice().is_some();
        assert!(told, "C-8: the clicker is told, here or by a private notice");
    }
}
