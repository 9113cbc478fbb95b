//! What was said, read: a verb and what it is about. Nothing here knows who spoke.

use std::time::Duration;

use gatepost_channel::Decision;

/// A command, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verb {
    /// What can be said.
    Help,
    /// What waits for the person, from this page on, counted from 1.
    Pending { page: usize },
    /// One request.
    Show { name: Name },
    /// An answer to one request.
    Decide(Wanted),
    /// The person is away.
    Leave {
        /// Until when.
        until: Until,
        /// Who acts meanwhile, as the person names them.
        substitute: Option<String>,
    },
    /// The person is there again.
    Back,
}

/// Until when, as it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Until {
    /// A time, in a form that is not looked at here.
    At(String),
    /// So long.
    For(Duration),
}

/// An answer to one request, as it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) decision: Decision,
    pub(super) name: Name,
    /// The code of the call, said beside another name of the request.
    pub(super) code: Option<Code>,
    pub(super) reason: Option<String>,
}

/// Words that are no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// No verb of ours.
    Verb,
    /// The verb needs the name of a request.
    Name(&'static str),
    /// A rejection needs words.
    Reason,
    /// An absence needs an end.
    Until,
}

/// How a request is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// Its id, or how that begins: `cr_` and up to 32 hex digits.
    Id(String),
    /// The code of its call.
    Code(Code),
    /// Neither; nothing has such a name.
    Neither,
}

/// The short code of a call as cards show it, `K7QF-2M9X`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code(pub(super) String);

/// The fewest digits of an id that name anything; fewer would be a guess.
const FEWEST: usize = 6;
/// All digits of an id.
const DIGITS: usize = 32;
/// The letters of codes (Crockford's base 32).
const LETTERS: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl Code {
    /// Reads a code, in any case.
    fn read(word: &str) -> Option<Self> {
        let word = word.to_ascii_uppercase();
        let (front, back) = word.split_once('-')?;
        let half = |half: &str| half.len() == 4 && half.chars().all(|letter| LETTERS.contains(letter));
        (half(front) && half(back)).then_some(Self(word))
    }
}

impl Name {
    fn read(word: &str) -> Self {
        if let Some(code) = Code::read(word) {
            return Self::Code(code);
        }
        let word = word.to_ascii_lowercase();
        let digits = word.strip_prefix("cr_").unwrap_or(&word);
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hex && (FEWEST..=DIGITS).contains(&digits.len()) {
            Self::Id(format!("cr_{digits}"))
        } else {
            Self::Neither
        }
    }
}

/// Reads what stands behind the name of the bot.
pub(super) fn read(words: &str) -> Result<Verb, Unread> {
    let (verb, rest) = next(words);
    match verb.to_ascii_lowercase().as_str() {
        "" | "help" => Ok(Verb::Help),
        "pending" | "list" => {
            let (page, _) = next(rest);
            Ok(Verb::Pending {
                page: page.parse().unwrap_or(1).max(1),
            })
        }
        "show" => match next(rest) {
            ("", _) => Err(Unread::Name("show")),
            (name, _) => Ok(Verb::Show {
                name: Name::read(name),
            }),
        },
        "away" => leave(rest),
        "back" => Ok(Verb::Back),
        "approve" => decide(Decision::Approve, rest),
        "reject" => decide(Decision::Reject, rest),
        _ => Err(Unread::Verb),
    }
}

fn decide(decision: Decision, rest: &str) -> Result<Verb, Unread> {
    let (word, rest) = next(rest);
    if word.is_empty() {
        return Err(Unread::Name(decision.as_str()));
    }
    let name = Name::read(word);
    let (second, behind) = next(rest);
    let (code, reason) = match Code::read(second) {
        Some(code) => (Some(code), behind),
        None => (None, rest),
    };
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    if decision == Decision::Reject && reason.is_none() {
        return Err(Unread::Reason);
    }
    Ok(Verb::Decide(Wanted {
        decision,
        name,
        code,
        reason,
    }))
}

/// `until 2026-12-24 18:00 [substitute NAME]`, or `for 3d [substitute NAME]`.
fn leave(rest: &str) -> Result<Verb, Unread> {
    let (how, rest) = next(rest);
    let (word, behind) = next(rest);
    let (until, rest) = match how.to_ascii_lowercase().as_str() {
        "for" => {
            let span = so_long(word).ok_or(Unread::Until)?;
            (Until::For(span), behind)
        }
        "until" if !word.is_empty() => match next(behind) {
            (time, behind) if time.contains(':') => (Until::At(format!("{word} {time}")), behind),
            _ => (Until::At(word.to_owned()), behind),
        },
        _ => return Err(Unread::Until),
    };
    let (word, name) = next(rest);
    let name = name.trim();
    match word.to_ascii_lowercase().as_str() {
        "" => Ok(Verb::Leave {
            until,
            substitute: None,
        }),
        "substitute" if !name.is_empty() => Ok(Verb::Leave {
            until,
            substitute: Some(name.to_owned()),
        }),
        _ => Err(Unread::Until),
    }
}

/// `3d`, `8h` or `90m`.
fn so_long(word: &str) -> Option<Duration> {
    let (at, unit) = word.char_indices().next_back()?;
    let number: u32 = word.get(..at)?.parse().ok()?;
    let one = match unit.to_ascii_lowercase() {
        'd' => Duration::from_hours(24),
        'h' => Duration::from_hours(1),
        'm' => Duration::from_mins(1),
        _ => return None,
    };
    Some(one.saturating_mul(number))
}

/// The first word, and what stands behind it.
fn next(words: &str) -> (&str, &str) {
    let words = words.trim_start();
    words.split_once(char::is_whitespace).unwrap_or((words, ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(digits: &str) -> Name {
        Name::Id(format!("cr_{digits}"))
    }

    #[test]
    fn verbs_are_read_in_any_case_with_what_they_are_about() {
        let decide = |decision, name, code: Option<&str>, reason: Option<&str>| {
            Ok(Verb::Decide(Wanted {
                decision,
                name,
                code: code.map(|code| Code(code.into())),
                reason: reason.map(str::to_owned),
            }))
        };
        let code = || Name::Code(Code("K7QF-2M9X".into()));
        for (words, expected) in [
            ("", Ok(Verb::Help)),
            ("  HELP me ", Ok(Verb::Help)),
            ("pending", Ok(Verb::Pending { page: 1 })),
            ("Pending  3", Ok(Verb::Pending { page: 3 })),
            ("pending 0", Ok(Verb::Pending { page: 1 })),
            ("pending -1", Ok(Verb::Pending { page: 1 })),
            ("show cr_0123AB", Ok(Verb::Show { name: id("0123ab") })),
            ("show k7qf-2m9x", Ok(Verb::Show { name: code() })),
            (
                "approve 0123ab",
                decide(Decision::Approve, id("0123ab"), None, None),
            ),
            (
                "approve 0123ab K7QF-2M9X fine\nby me",
                decide(
                    Decision::Approve,
                    id("0123ab"),
                    Some("K7QF-2M9X"),
                    Some("fine\nby me"),
                ),
            ),
            (
                "reject K7QF-2M9X too much",
                decide(Decision::Reject, code(), None, Some("too much")),
            ),
            ("show", Err(Unread::Name("show"))),
            ("approve ", Err(Unread::Name("approve"))),
            ("reject K7QF-2M9X", Err(Unread::Reason)),
            ("reject K7QF-2M9X K7QF-2M9X", Err(Unread::Reason)),
            ("aprove 0123ab", Err(Unread::Verb)),
            ("approve\u{200b} 0123ab", Err(Unread::Verb)),
        ] {
            assert_eq!(read(words), expected, "{words:?}");
        }
    }

    #[test]
    fn an_absence_has_an_end_and_perhaps_somebody_who_acts() {
        let leave = |until, substitute: Option<&str>| {
            Ok(Verb::Leave {
                until,
                substitute: substitute.map(str::to_owned),
            })
        };
        let at = |text: &str| Until::At(text.to_owned());
        for (words, expected) in [
            ("away until 2026-12-24 18:00", leave(at("2026-12-24 18:00"), None)),
            ("AWAY Until 2026-12-24", leave(at("2026-12-24"), None)),
            (
                "away until 2026-12-24  18:00 substitute @Noor Haddad ",
                leave(at("2026-12-24 18:00"), Some("@Noor Haddad")),
            ),
            (
                "away until 2026-12-24 substitute <@U061>",
                leave(at("2026-12-24"), Some("<@U061>")),
            ),
            (
                "away for 3d substitute noor",
                leave(Until::For(Duration::from_hours(72)), Some("noor")),
            ),
            ("back", Ok(Verb::Back)),
            ("away", Err(Unread::Until)),
            ("away until", Err(Unread::Until)),
            ("away for ever", Err(Unread::Until)),
            ("away for 3d noor", Err(Unread::Until)),
            ("away for 3d substitute ", Err(Unread::Until)),
        ] {
            assert_eq!(read(words), expected, "{words:?}");
        }
    }

    #[test]
    fn what_is_no_name_names_nothing() {
        let longest = "a".repeat(DIGITS);
        assert_eq!(Name::read(&longest), id(&longest));
        for word in [
            "cr_",
            "cr_01234",
            "01234",
            "all",
            "*",
            "K7QF2M9X",
            "K7QF-2M9XX",
            "KIQF-2M9X",
            "cr_%",
            "０１２３４５",
            "dl_0123456789",
            &"a".repeat(DIGITS + 1),
        ] {
            assert_eq!(Name::read(word), Name::Neither, "{word}");
        }
    }

    proptest! {
        #[test]
        fn no_words_break_it_and_none_but_the_verbs_decide(words in any::<String>()) {
            if let Ok(Verb::Decide(_)) = read(&words) {
                let verb = words.trim_start().to_ascii_lowercase();
                prop_assert!(verb.starts_with("approve") || verb.starts_with("reject"));
            }
        }
    }
}
