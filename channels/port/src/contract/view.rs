//! What opens for one person: dialogues and pages. What is shown there is shown whole or not at all, and what comes back from there says
//! with what it was opened.

use super::callback::{press, verify};
use super::card::{card, open, ours};
use super::opening::{check_asks, check_forms, check_opening, check_pages};
use super::{CANARY, HOSTILE, Next, Platform, Press, Sent, Typed, log};
use crate::{
    Actions, Card, Click, Decision, Dialog, DialogWords, EditForm, Field, FullView, Inbound, Inert, Link,
    MessageRef, Posted, RawRequest, ReasonForm, Reply, ReplyTone, Say, Seen, Vantage,
};

/// Arguments with what platforms like to change on the way: entities, emoji, marks of their own mark-up, quotes.
const ARGUMENTS: &str = "{\n  \"cmd\": \"a && b <c> &amp; `d` 🚀 ✅ :tada: *e* “f”\",\n  \"n\": 1\n}";

fn words() -> DialogWords {
    let word = str::to_owned;
    DialogWords {
        close: word("Close"),
        send: word("Send"),
        answer: word("Your answer"),
        part: word("Part {part} of {parts}"),
    }
}

const fn seen() -> Seen {
    Seen::new([0x5e; 16])
}

fn form(text: &str) -> EditForm {
    let word = str::to_owned;
    EditForm {
        text: word(text),
        label: word("Arguments"),
        approve: word("Approve with these arguments"),
        elsewhere: word("They can be changed in the console."),
    }
}

pub(super) fn view(platform: &dyn Platform, card: Card, arguments: &str) -> FullView {
    FullView {
        card,
        arguments: Inert::new(arguments),
        at: press(platform).at,
        seen: Some(seen()),
        edit: None,
        words: words(),
    }
}

pub(super) fn say(text: &str) -> Say {
    Say {
        title: "Show everything".to_owned(),
        text: Inert::new(text),
        link: Some(Link {
            label: "Open in the console".to_owned(),
            url: "https://gate.example.com/console/requests/cr_01hzy3v7k9".to_owned(),
        }),
        words: words(),
    }
}

pub(super) fn reason(platform: &dyn Platform, card: Card, decision: Decision) -> Dialog {
    Dialog::Reason(Box::new(ReasonForm {
        card,
        at: press(platform).at,
        decision,
        grant: None,
        required: true,
        words: words(),
    }))
}

/// What is sent to show all of it: the one dialogue, or each page.
pub(super) fn shown(platform: &dyn Platform, view: &FullView) -> Vec<Sent> {
    let channel = platform.channel();
    if channel.dialogs().is_some() {
        let (opened, sent) = platform.open(&[Next::Done], &Dialog::Everything(Box::new(view.clone())));
        assert!(opened.is_ok() && sent.len() == 1, "C-71: one call: {opened:?}");
        return sent;
    }
    let count = channel.pages().and_then(|pages| pages.count(view));
    let pages = (0..count.unwrap_or_default()).flat_map(|number| {
        let (posted, sent) = platform.page(&[Next::Done], view, number);
        assert!(
            matches!(&posted, Posted::At(_)) && sent.len() == 1,
            "C-77: one call for each: {posted:?}"
        );
        sent
    });
    pages.collect()
}

/// Whether the channel says that all of it can be shown.
fn holds(platform: &dyn Platform, view: &FullView) -> bool {
    let channel = platform.channel();
    let dialog = channel.dialogs().map(|dialogs| dialogs.holds(view));
    dialog.unwrap_or_else(|| channel.pages().is_some_and(|pages| pages.count(view).is_some()))
}

fn opens_nothing(platform: &dyn Platform) -> bool {
    platform.channel().dialogs().is_none() && platform.channel().pages().is_none()
}

/// C-70 to C-77, but for text of any kind: [`check_view_text`]. Nothing is asked of a channel without dialogues and pages.
pub fn check_views(platform: &dyn Platform) {
    if opens_nothing(platform) {
        return;
    }
    check_asks(platform);
    if platform.channel().dialogs().is_some() {
        check_opening(platform);
        check_forms(platform);
    }
    if platform.channel().pages().is_some() {
        check_pages(platform);
    }
    check_whole(platform);
    check_answers_from_there(platform);
    check_edits(platform);
    check_quiet(platform);
}

/// C-73: what is held is shown letter for letter; what is too long is not held.
fn check_whole(platform: &dyn Platform) {
    for arguments in ["{}", ARGUMENTS, &"line <of> \"arguments\" & 支払い\n".repeat(400)] {
        let view = view(platform, open("oa__purchase_pay", false), arguments);
        assert!(holds(platform, &view), "C-73: {}", arguments.len());
        let sent = shown(platform, &view);
        assert_ours(platform, &sent);
        let shown: String = sent.iter().map(|sent| platform.literally(sent)).collect();
        assert_eq!(shown, view.arguments.as_str(), "C-73: letter for letter");
    }
    let endless = view(platform, open("oa__purchase_pay", false), &"x".repeat(4_000_000));
    assert!(!holds(platform, &endless), "C-73: what cannot be shown whole");
    let nameless = view(platform, open(&"t".repeat(20_000), false), "{}");
    assert!(!holds(platform, &nameless), "C-73: nor a name that cannot");
}

/// C-72, C-74, C-75: what is answered there, and how that is answered.
fn check_answers_from_there(platform: &dyn Platform) {
    let open_view = view(platform, open("oa__purchase_pay", false), ARGUMENTS);
    let sent = shown(platform, &open_view);
    let last = &sent[sent.len() - 1];
    for decision in [Decision::Approve, Decision::Reject] {
        let request = platform.answer(last, decision, Typed::Nothing, "ou_mira");
        assert!(
            request.is_some(),
            "C-74: {decision:?} stands on a view with a proof"
        );
        let Some(request) = request else { continue };
        let click = click(platform, &request);
        assert_eq!((click.decision, click.edited.as_ref()), (decision, None), "C-72");
        assert_place(platform, &click);
        assert_eq!(click.vantage, Vantage::Alone { seen: Some(seen()) }, "C-72");
        assert_eq!(
            click.user.ids.first().map(String::as_str),
            Some("ou_mira"),
            "C-72, C-11"
        );
        check_reply(platform, &click);
    }
    let blind = FullView {
        seen: None,
        edit: Some(form(ARGUMENTS)),
        ..open_view.clone()
    };
    let over = FullView {
        edit: Some(form(ARGUMENTS)),
        ..view(platform, card("oa__purchase_pay", Actions::None), ARGUMENTS)
    };
    for view in [blind, over] {
        for sent in shown(platform, &view) {
            platform.assert_view(&sent);
            for decision in [Decision::Approve, Decision::Reject] {
                let answer = platform.answer(&sent, decision, Typed::Nothing, "ou_mira");
                assert!(answer.is_none(), "C-74: nothing stands on it");
            }
            assert!(
                !sent.card.to_string().contains(&ours().to_string()),
                "C-74: nor what would be sent"
            );
        }
    }
}

/// C-75: a refusal keeps a dialogue open and is said in it; everything else closes it.
fn check_reply(platform: &dyn Platform, click: &Click) {
    let Some(webhook) = platform.channel().webhook() else {
        return;
    };
    let answer = |refused, field| {
        let reply = Reply {
            tone: ReplyTone::Warning,
            text: Inert::new("Nothing was changed."),
            refused,
            field,
            card: None,
        };
        let answer = webhook.answer(click, &reply);
        assert_eq!(answer.status, 200, "C-8");
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    for field in [Field::Answer, Field::Reason] {
        assert!(answer(true, field).contains("Nothing was changed."), "C-75");
    }
    if platform.channel().dialogs().is_some() {
        assert!(
            !answer(false, Field::Answer).contains("Nothing was changed."),
            "C-75: it closes"
        );
    }
}

/// C-78: arguments in a field come back as they were put there or as they were typed, or are not put there at all.
fn check_edits(platform: &dyn Platform) {
    let same = |one: &str, other: &str| {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        read(one).is_some() && read(one) == read(other)
    };
    let mut shown_view = view(platform, open("oa__purchase_pay", false), ARGUMENTS);
    shown_view.edit = Some(form(ARGUMENTS));
    let answer = |view: &FullView, decision, typed| {
        let sent = shown(platform, view);
        assert_ours(platform, &sent);
        let request = platform.answer(&sent[sent.len() - 1], decision, typed, "ou_mira");
        request.map(|request| click(platform, &request))
    };
    let untouched = answer(&shown_view, Decision::Approve, Typed::Nothing);
    let edited = untouched.and_then(|click| click.edited);
    assert!(
        edited.as_deref().is_none_or(|edited| same(edited, ARGUMENTS)),
        "C-78: what nobody touched says what it said: {edited:?}"
    );
    let given = answer(&shown_view, Decision::Approve, Typed::AsGiven);
    assert!(
        given.is_some_and(|click| click.edited.is_some_and(|edited| same(&edited, ARGUMENTS))),
        "C-78: what was put there comes back"
    );
    for typed in [
        "{\"cmd\": \"ls <x> & 支払い\"}",
        "",
        "no JSON",
        " {} \n",
        "\u{202e}{}",
    ] {
        let click = answer(&shown_view, Decision::Approve, Typed::Text(typed));
        assert!(click.is_some(), "C-78: a field that fits is there");
        let Some(click) = click else { continue };
        assert_eq!(click.edited.as_deref(), Some(typed), "C-78: as it was typed");
        assert!(
            typed.len() < 8 || !format!("{click:?}").contains(typed),
            "C-28: arguments do not print"
        );
        assert_eq!(click.vantage, Vantage::Alone { seen: Some(seen()) }, "C-72");
        assert_place(platform, &click);
    }
    let reject = answer(&shown_view, Decision::Reject, Typed::Nothing);
    assert!(
        reject.is_some_and(|click| click.decision == Decision::Reject),
        "C-78: rejecting needs no arguments"
    );
    let long = format!("{{\"cmd\": \"{}\"}}", "x".repeat(6_000));
    let too_long = FullView {
        edit: Some(form(&long)),
        ..view(platform, open("oa__purchase_pay", false), &long)
    };
    let sent = shown(platform, &too_long);
    let last = &sent[sent.len() - 1];
    platform.assert_view(last);
    assert!(
        platform
            .answer(last, Decision::Approve, Typed::Text("{}"), "ou_mira")
            .is_none()
            && last.card.to_string().contains("changed in the console"),
        "C-78: what does not fit is not cut, and it is said where else"
    );
    let plain = platform.answer(last, Decision::Approve, Typed::Nothing, "ou_mira");
    assert!(
        plain.is_some_and(|request| click(platform, &request).edited.is_none()),
        "C-78: without a field nothing is edited"
    );
}

/// C-27, C-28 for what is opened here.
fn check_quiet(platform: &dyn Platform) {
    let mut canaries = view(platform, open(CANARY, false), CANARY);
    canaries.edit = Some(form(&format!("\"{CANARY}\"")));
    let mut told = Vec::new();
    let logged = log::heard(|| {
        for next in [
            Next::RateLimited,
            Next::ServerError,
            Next::NotThere,
            Next::HangUp,
            Next::ContentRefused,
            Next::Nothing,
        ] {
            if platform.channel().dialogs().is_some() {
                let dialog = Dialog::Everything(Box::new(canaries.clone()));
                told.push(format!("{:?}", platform.open(&[next], &dialog).0));
                told.push(format!("{:?}", platform.change(&[next], &dialog).0));
            } else {
                told.push(format!("{:?}", platform.page(&[next], &canaries, 0).0));
                told.push(format!("{:?}", platform.edit_page(&[next], &canaries).0));
            }
        }
    });
    for text in [told.concat(), logged] {
        assert!(
            !text.contains(CANARY) && !text.contains("127.0.0.1"),
            "C-27, C-28: {text}"
        );
    }
}

/// C-30, C-76: somebody's text in every place of what opens for a person adds no element, no button and no field. To be run over
/// generated texts and [`HOSTILE`].
pub fn check_view_text(platform: &dyn Platform, text: &str) {
    if opens_nothing(platform) {
        return;
    }
    let mut everything = view(platform, open(text, false), text);
    everything.edit = Some(form(&serde_json::Value::from(text).to_string()));
    if holds(platform, &everything) {
        let sent = shown(platform, &everything);
        assert_ours(platform, &sent);
        let shown: String = sent.iter().map(|sent| platform.literally(sent)).collect();
        assert_eq!(shown, everything.arguments.as_str(), "C-73, C-76: {text:?}");
    }
    if platform.channel().dialogs().is_some() {
        for dialog in [
            reason(platform, open(text, false), Decision::Reject),
            Dialog::Tell(say(text)),
            Dialog::Wait(say(text)),
        ] {
            let (_, sent) = platform.open(&[Next::Done], &dialog);
            assert_ours(platform, &sent);
        }
    }
}

/// All of [`HOSTILE`] through [`check_view_text`].
pub fn check_view_hostile(platform: &dyn Platform) {
    for text in HOSTILE {
        check_view_text(platform, text);
    }
    check_view_text(platform, &HOSTILE.concat());
}

pub(super) fn assert_ours(platform: &dyn Platform, sent: &[Sent]) {
    for sent in sent {
        platform.assert_view(sent);
    }
}

pub(super) fn assert_place(platform: &dyn Platform, click: &Click) {
    let Press { at, .. } = press(platform);
    let MessageRef { chat, message } = &at;
    if platform.channel().dialogs().is_some() {
        assert_eq!(
            (&click.chat, &click.message),
            (chat, message),
            "C-72: the card's place"
        );
    }
    assert_eq!(click.button, Some(ours()), "C-72");
}

#[expect(clippy::panic, reason = "a broken rule ends the test")]
pub(super) fn click(platform: &dyn Platform, request: &RawRequest) -> Click {
    match verify(platform, request, platform.now()) {
        Ok(Inbound::Click(click)) => click,
        other => panic!("C-72: what is sent from there is a click: {other:?}"),
    }
}
