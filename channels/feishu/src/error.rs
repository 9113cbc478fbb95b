//! What the platform's codes mean: one table, and three ways in which a call can fail.
//!
//! Nothing here keeps a message of the platform: messages echo content and addresses. Codes, sub-codes and scope names suffice.

use std::time::Duration;

use gatepost_channel::Failure;

/// What has to happen after a code. Source: the platform's generic error codes and those of im/v1/messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The tenant token is not taken: fetch another one, once.
    Token,
    /// Not processed; later it may be.
    Retry,
    /// The platform failed on its side; whether it processed the call is open.
    Unclear,
    /// This group cannot be written to.
    Target,
    /// An operator must act.
    Setup,
    /// The card's content is refused.
    Content,
    /// The message is no longer there, or no longer editable.
    Gone,
}

/// The class of a body `code`. A code that is not listed is for an operator to look at: it is neither repeated blindly nor
/// taken for success.
pub(crate) const fn class(code: i64) -> Class {
    match code {
        99_991_663 | 99_991_664 | 99_991_665 | 99_991_671 => Class::Token,
        99_991_400 | 11_232 | 11_233 | 11_247 | 18_121 | 230_020 | 230_049 | 232_019 => Class::Retry,
        1_500 | 2_200 => Class::Unclear,
        230_002 | 230_013 | 230_018 | 230_029 | 230_034 | 230_035 | 230_038 | 230_053 | 230_054 | 230_075
        | 232_009 | 232_011 | 99_992_361 => Class::Target,
        11_310 | 200_860 | 200_861 | 230_001 | 230_022 | 230_025 | 230_028 | 230_099 => Class::Content,
        230_011 | 230_031 | 230_110 => Class::Gone,
        _ => Class::Setup,
    }
}

/// A scope is missing; the message names those of which one is enough.
const NO_SCOPE: i64 = 99_991_672;

/// What an operator can do about a code, in a few words.
pub(crate) const fn advice(code: i64) -> Option<&'static str> {
    Some(match code {
        10_003 | 10_014 | 10_015 => {
            "the platform does not take app_id and app_secret; note that Feishu and Lark are two clouds (base_url)"
        }
        1_000_040_351 => {
            "the app belongs to the other cloud: base_url is https://open.feishu.cn for Feishu, https://open.larksuite.com for Lark"
        }
        NO_SCOPE | 230_027 => {
            "grant the scope that the call needs (for cards im:message:send_as_bot) and publish a version of the app"
        }
        99_991_662 | 99_991_673 => {
            "the app is stopped or not installed in the tenant: enable it and publish a version"
        }
        99_991_401 => "add this machine's address to the app's IP allow-list",
        99_991_403 => "the tenant's monthly API quota is used up",
        230_002 | 232_011 => "add the bot to the group",
        230_006 => "turn on the bot ability and publish a version of the app",
        230_018 | 230_035 => "let the bot speak in the group (group settings)",
        230_034 => "chat_id is no chat of this app; ids do not carry over between apps",
        232_009 => "the group was dissolved: configure another one",
        _ => return None,
    })
}

/// The platform's own refusal of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body's code, when there was one.
    pub(crate) code: Option<i64>,
    /// The code inside the message of 230099.
    pub(crate) sub_code: Option<i64>,
    /// Whether a message says that the card is locked by a click in flight.
    pub(crate) locked: bool,
    /// How long the platform wants us to wait.
    pub(crate) after: Option<Duration>,
    /// Scopes that the platform says are missing.
    pub(crate) scopes: Vec<String>,
}

impl Refused {
    /// What to do about it.
    pub(crate) const fn class(&self) -> Class {
        match self.code {
            Some(230_099 | 11_310) if self.locked => Class::Retry,
            Some(code) if self.status == 429 => match class(code) {
                Class::Setup => Class::Retry,
                class => class,
            },
            Some(code) => class(code),
            None if self.status == 429 || self.status == 503 => Class::Retry,
            None if self.status >= 500 => Class::Unclear,
            None => Class::Setup,
        }
    }

    /// The codes with what can be done about them, for logs and failures of what a channel is there for: cards.
    pub(crate) fn why(&self) -> String {
        let named = !self.scopes.is_empty();
        let advice = self.code.and_then(|code| match code {
            // The platform has said which; another one would be a guess.
            NO_SCOPE if named => {
                Some("grant one of the scopes that are missing and publish a version of the app")
            }
            code => advice(code),
        });
        let advice = advice.map(|advice| format!(": {advice}"));
        [Some(self.code()), advice, self.missing()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The codes and the scopes that are missing, for calls about anything else.
    pub(crate) fn codes(&self) -> String {
        [Some(self.code()), self.missing()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn code(&self) -> String {
        match (self.code, self.sub_code) {
            (Some(code), Some(sub)) => format!("code {code}/{sub}"),
            (Some(code), None) => format!("code {code}"),
            (None, _) => format!("http {}", self.status),
        }
    }

    fn missing(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| format!(" (missing: {})", self.scopes.join(", ")))
    }
}

/// An answer of success that says nothing.
pub(crate) const UNREADABLE: &str = "an answer that cannot be read";

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    /// Nothing was asked of the platform: no connection, or no token to ask with.
    NotAsked(&'static str),
    /// The request was written and no clear answer came.
    Unclear(String),
    /// The platform said no.
    Refused(Refused),
    /// No tenant token can be had, and waiting will not help.
    NoToken(Refused),
}

impl CallError {
    /// Whether the platform did not like the content, so that a plainer one may pass.
    pub(crate) const fn is_content(&self) -> bool {
        matches!(self, Self::Refused(refused) if matches!(refused.class(), Class::Content))
    }

    /// Whether what answers does not know such a call: a gateway or a stand-in, not the platform.
    pub(crate) fn knows_no_such_call(&self) -> bool {
        match self {
            Self::Refused(refused) => refused.code.is_none() && matches!(refused.status, 404 | 405 | 501),
            Self::Unclear(why) => why == UNREADABLE,
            Self::NotAsked(_) | Self::NoToken(_) => false,
        }
    }

    /// Whether the call may have been processed all the same.
    pub(crate) fn may_have_happened(&self) -> Option<String> {
        match self {
            Self::Unclear(why) => Some(why.clone()),
            Self::Refused(refused) if refused.class() == Class::Unclear => Some(refused.why()),
            _ => None,
        }
    }

    /// What it means for a caller to whom repeating does no harm.
    pub(crate) fn failure(self) -> Failure {
        let retry = |why| Failure::Retry { after: None, why };
        match self {
            Self::NotAsked(why) => retry(why.to_owned()),
            Self::Unclear(why) => retry(why),
            Self::NoToken(refused) => match refused.class() {
                Class::Retry | Class::Unclear => Failure::Retry {
                    after: refused.after,
                    why: format!("tenant token: {}", refused.why()),
                },
                _ => Failure::Setup {
                    why: format!("tenant token: {}", refused.why()),
                },
            },
            Self::Refused(refused) => {
                let why = refused.why();
                match refused.class() {
                    Class::Retry => Failure::Retry {
                        after: refused.after,
                        why,
                    },
                    Class::Unclear => retry(why),
                    Class::Target => Failure::Target { why },
                    Class::Content => Failure::Content { why },
                    Class::Gone => Failure::Gone { why },
                    Class::Token | Class::Setup => Failure::Setup { why },
                }
            }
        }
    }
}

/// The sub-code inside a message such as `…, ext=ErrCode: 11310; …`.
pub(crate) fn sub_code(message: &str) -> Option<i64> {
    let (_, rest) = message.split_once("ErrCode:")?;
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .take(12)
        .collect();
    digits.parse().ok()
}

/// The scope names in a message, by their form, at most five.
pub(crate) fn scopes(message: &str) -> Vec<String> {
    message
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, ':' | '_' | '.')))
        .filter(|word| {
            (4..=60).contains(&word.len())
                && word.contains(':')
                && word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.ends_with(|c: char| c.is_ascii_lowercase())
        })
        .take(5)
        .map(str::to_owned)
        .collect()
}
