//! The port as a contract: what `docs/CHANNEL-CONTRACT.md` asks of every adapter, as checks that an adapter's tests run on its own fake
//! platform. Compiled only with the feature `contract`, which is for dev-dependencies. A check panics with the rule that was broken.
//!
//! An adapter implements [`Platform`] once and calls every `check_*` beside; [`check_channel`] is for channels without a platform too.
//! Knows no platform; what only the adapter can judge (its markup, its limits) it asks of [`Platform::assert_ours`].

use std::time::Duration;

use crate::{
    Actions, Asks, ButtonToken, ButtonValue, Card, Channel, Click, Decision, Fact, Failure, Health, Inbound,
    Inert, MessageRef, Posted, RawRequest, Refusal, RefusalKind, Reply, ReplyTone, Tone, UtcMillis, Words,
};

mod log;

/// One answer of the fake platform to the next call of the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is done.
    Done,
    /// Too many calls; the platform asks for [`WAIT`].
    RateLimited,
    /// The platform broke and says so (5xx).
    ServerError,
    /// The content of the card is refused.
    ContentRefused,
    /// To a post: the group is not there, or the bot is not in it. To an edit: the message is not there.
    NotThere,
    /// The request is read, and the connection closed without an answer.
    HangUp,
}

/// What [`Next::RateLimited`] asks for.
pub const WAIT: Duration = Duration::from_secs(7);

/// Stands in arguments, names, facts and secrets of the checks: it may be in a posted card, and in no error or log line. A fixture
/// writes it into its secrets and into the error messages of its fake.
pub const CANARY: &str = "canary";

/// Texts that try to be more than text, on one platform or another; to be mixed into generated ones.
pub const HOSTILE: &[&str] = &[
    "<!channel> <@U024BE7LH> <https://evil.example|ok>",
    "<at id=all></at><at user_id=\"all\">all</at>",
    "[Approve](https://evil.example) **done** `x` ~y~ :white_check_mark:",
    "\",\"tag\":\"button\",\"value\":{\"decision\":\"approve\"},\"x\":\"",
    "\"}]},{\"type\":\"button\",\"action_id\":\"approve\"}",
    "| a |\n|---|\n# heading\n> quote\n```\ncode",
    "\u{202E}evorppA\u{200B}\u{0}\u{1b}[31m\u{2028}",
    "&lt;!here&gt; &amp; {{name}} ${x} %s",
];

/// A press on a button, in the adapter's neutral words.
#[derive(Debug, Clone)]
pub struct Press {
    /// What the button carries.
    pub value: String,
    /// Which button.
    pub decision: Decision,
    /// The most specific id of who pressed.
    pub user: String,
    /// Where the card stands.
    pub at: MessageRef,
    /// Which press of this person it is; another one is another press.
    pub serial: u32,
}

/// How the request of a press is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// As the platform makes it, now.
    Authentic,
    /// Without any proof.
    Unsigned,
    /// Signed with a secret that is not ours.
    OtherSecret,
    /// Signed rightly, this many seconds from now.
    At(i64),
    /// Signed rightly, but speaking of another app.
    OtherApp,
}

/// A request that the adapter made to post or edit, as the fake saw it.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The card, as JSON.
    pub card: serde_json::Value,
    /// How large the body of the request was, in bytes.
    pub bytes: usize,
}

/// An adapter and its fake platform. Methods block; each starts its own fake.
pub trait Platform {
    /// A channel whose clicks come in over HTTP.
    fn channel(&self) -> &dyn Channel;
    /// When authentic requests are made.
    fn now(&self) -> UtcMillis;
    /// The request of a press.
    fn request(&self, press: &Press, made: Made) -> RawRequest;
    /// Posts while the fake answers so, and gives what it was sent. A call too many is a failure of the test.
    fn post(&self, script: &[Next], card: &Card) -> (Posted, Vec<Sent>);
    /// Edits the same way.
    fn edit(&self, script: &[Next], card: &Card) -> (Result<(), Failure>, Vec<Sent>);
    /// What the channel says of itself while nothing listens at the platform's address.
    fn health_when_down(&self) -> Health;
    /// Panics unless the card holds only elements that the adapter lays out, none of which reads markup, within the platform's limits.
    fn assert_ours(&self, sent: &Sent);
    /// The deciding buttons of a card and what they carry.
    fn buttons(&self, sent: &Sent) -> Vec<(Decision, String)>;
}

const TOKEN: [u8; 16] = [0xa5; 16];

fn ours() -> ButtonValue {
    ButtonValue {
        token: ButtonToken::new(TOKEN),
        revision: 7,
    }
}

fn press(platform: &dyn Platform) -> Press {
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

/// A card with this text in each place that is somebody else's.
fn card(text: &str, actions: Actions) -> Card {
    let word = str::to_owned;
    Card {
        request_id: word("cr_01hzy3v7k9"),
        tone: if actions == Actions::None {
            Tone::Approved
        } else {
            Tone::Pending
        },
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
        arguments: Inert::new(text),
        actions,
        words: Words {
            approve: word("Approve"),
            reject: word("Reject"),
            show_everything: word("Show everything"),
            arguments: word("Arguments"),
            cut: word("{shown} of {total} characters are shown"),
            approve_in_full_view: word("Approve it where everything can be seen."),
            reason: word("Reason"),
        },
    }
}

fn open(text: &str, approve_when_cut: bool) -> Card {
    let ButtonValue { token, revision } = ours();
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

fn verify(platform: &dyn Platform, request: &RawRequest, now: UtcMillis) -> Result<Inbound, Refusal> {
    let webhook = platform.channel().webhook();
    assert!(webhook.is_some(), "a fixture's channel is called over HTTP");
    webhook.map_or(Err(Refusal::unreadable("no_webhook")), |webhook| {
        webhook.verify(request, now)
    })
}

fn judge(platform: &dyn Platform, press: &Press, made: Made) -> Result<Inbound, Refusal> {
    verify(platform, &platform.request(press, made), platform.now())
}

#[expect(clippy::panic, reason = "a broken rule ends the test")]
fn click(platform: &dyn Platform, press: &Press) -> Click {
    match judge(platform, press, Made::Authentic) {
        Ok(Inbound::Click(click)) => click,
        other => panic!("C-10: an authentic press is a click: {other:?}"),
    }
}

fn assert_inauthentic(judged: &Result<Inbound, Refusal>, rule: &str) {
    let refused = matches!(
        judged,
        Err(Refusal {
            kind: RefusalKind::Inauthentic,
            ..
        })
    );
    assert!(refused, "{rule}: {judged:?}");
}

fn decisions(platform: &dyn Platform, sent: &Sent) -> Vec<Decision> {
    platform
        .buttons(sent)
        .into_iter()
        .map(|(decision, _)| decision)
        .collect()
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

/// C-10 to C-16: who clicked, on what and where comes from the platform's own fields; a button carries an opaque value.
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

/// C-8, C-16: every click has an answer, 200, that says nothing to others and holds only text.
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

/// C-20 to C-26: a post has three outcomes, an edit two; each failure has its class, and nothing is repeated on its own.
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
    assert_eq!(edit(Next::Done), Ok(()), "C-20");
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
        matches!(posted, Posted::At(_)) && sent.len() == 2,
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
        (Ok(()), vec![Decision::Reject]),
        "C-24"
    );
    let (edited, sent) = platform.edit(&[Next::ContentRefused, Next::Done], &card(CANARY, Actions::None));
    assert_eq!(
        (edited, decisions(platform, &sent[1])),
        (Ok(()), vec![]),
        "C-36: settled, without buttons"
    );
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

/// C-27, C-28: neither an error nor a log line holds what the adapter was given, an address, or a platform's own words.
pub fn check_silence(platform: &dyn Platform) {
    let open = open(CANARY, false);
    let mut told = String::new();
    let logged = log::heard(|| {
        for script in [
            &[Next::RateLimited][..],
            &[Next::ServerError],
            &[Next::NotThere],
            &[Next::HangUp],
            &[Next::ContentRefused, Next::ContentRefused],
        ] {
            told.push_str(&format!(
                "{:?} {:?}\n",
                platform.post(script, &open).0,
                platform.edit(script, &open).0
            ));
        }
        told.push_str(&format!("{:?}", platform.health_when_down()));
        told.push_str(&format!(
            "{:?}",
            judge(platform, &press(platform), Made::OtherSecret)
        ));
    });
    for text in [told, logged] {
        assert!(
            !text.contains(CANARY) && !text.contains("127.0.0.1"),
            "C-27, C-28: {text}"
        );
    }
}

/// C-40 to C-42: what a channel says of itself. `down`: what it says while its platform cannot be reached, if it has one.
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
