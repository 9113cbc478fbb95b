//! What a rule offers beside one approval: a grant that lets later calls like this one run too. Here is for how long, for
//! which calls, and what of a call must be equal.
//!
//! It must not know who grants, nor where grants are kept.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::arguments::ToolName;
use super::json::{Json, Pointer, ReadLimits};

/// How long a grant for a session lasts at most: what calls itself a session never ends by itself.
pub const SESSION_MS: i64 = 8 * 3_600_000;
/// The longest span of a grant.
pub const LONGEST_MS: i64 = 7 * 24 * 3_600_000;
/// The most scopes that a rule may offer.
pub const MAX_SCOPES: usize = 4;

/// What a rule offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantTerms {
    /// For how long, in the order in which they are offered; never empty.
    pub scopes: Vec<GrantScope>,
    /// How many later calls may run; nothing is no limit but time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
    /// What of the arguments must be equal.
    pub arguments: GrantArguments,
}

/// For how long a grant holds. Whatever it is, it holds for the token that asked, the tool, the rule, the agent and the
/// requester as they were stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum GrantScope {
    /// For the session of the call, and no longer than [`SESSION_MS`].
    Session,
    /// For this many milliseconds, whatever the session.
    Span(i64),
}

/// Milliseconds of each unit, the largest first.
const UNITS: [(&str, i64); 4] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];

impl GrantScope {
    /// How long a grant lives, in milliseconds.
    pub const fn lives_ms(self) -> i64 {
        match self {
            Self::Session => SESSION_MS,
            Self::Span(ms) => ms,
        }
    }

    /// Reads `session`, or a span of whole units such as `1h` or `30m`, at most [`LONGEST_MS`].
    pub fn parse(word: &str) -> Option<Self> {
        if word == "session" {
            return Some(Self::Session);
        }
        let (unit, ms) = UNITS.iter().find(|(unit, _)| word.ends_with(unit))?;
        let digits = word.strip_suffix(unit)?;
        let plain =
            !digits.is_empty() && digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let span = plain.then(|| digits.parse::<i64>().ok())??.checked_mul(*ms)?;
        (1..=LONGEST_MS).contains(&span).then_some(Self::Span(span))
    }
}

/// The word of the API, of buttons and of the store: the largest unit that needs no fraction.
impl std::fmt::Display for GrantScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session => f.write_str("session"),
            Self::Span(span) => {
                let whole = UNITS.iter().find(|(_, ms)| span % ms == 0);
                let (unit, ms) = whole.copied().unwrap_or(("s", 1_000));
                write!(f, "{}{unit}", span / ms)
            }
        }
    }
}

impl From<GrantScope> for String {
    fn from(scope: GrantScope) -> Self {
        scope.to_string()
    }
}

/// The word is none of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the scope of a grant")]
pub struct NotAScope;

impl TryFrom<String> for GrantScope {
    type Error = NotAScope;

    fn try_from(word: String) -> Result<Self, NotAScope> {
        Self::parse(&word).ok_or(NotAScope)
    }
}

/// What of the arguments must be equal in a later call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantArguments {
    /// All of them.
    Same,
    /// Nothing: every call of the tool that the rule matches.
    Any,
    /// The values at these pointers (RFC 6901); all of them must be there.
    At(Vec<Pointer>),
}

impl GrantArguments {
    /// What a later call must have in common with this one, as SHA-256 in hex. Nothing where the arguments lack one of the values:
    /// such a call neither makes a grant nor is covered by one.
    pub fn pattern(&self, tool: &ToolName, canonical: &str) -> Option<String> {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update(text.as_bytes());
            hash.update(b"\n");
        };
        // Canonical JSON holds no line break, so the parts cannot run into each other.
        part(&Json::from(tool.as_str()).canonical());
        match self {
            Self::Any => part("any"),
            Self::Same => {
                part("same");
                part(canonical);
            }
            Self::At(pointers) => {
                let args = Json::read(canonical.as_bytes(), ReadLimits::bytes(canonical.len())).ok()?;
                for pointer in pointers {
                    let pointer = pointer.to_string();
                    part(&Json::from(pointer.as_str()).canonical());
                    part(&args.pointer(&pointer)?.canonical());
                }
            }
        }
        Some(hex::encode(hash.finalize()))
    }
}

impl GrantTerms {
    /// The scope of this word, where it is offered.
    pub fn offered(&self, word: &str) -> Option<GrantScope> {
        self.scopes
            .iter()
            .copied()
            .find(|scope| scope.to_string() == word)
    }

    /// What both offer: a grant that either rule would not give is not given.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let scopes: Vec<_> = self
            .scopes
            .iter()
            .copied()
            .filter(|scope| other.scopes.contains(scope))
            .collect();
        let max_uses = match (self.max_uses, other.max_uses) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        (!scopes.is_empty() && self.arguments == other.arguments).then(|| Self {
            scopes,
            max_uses,
            arguments: self.arguments.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_scope_has_one_word() {
        for (word, ms) in [
            ("1h", 3_600_000),
            ("30m", 1_800_000),
            ("90s", 90_000),
            ("2d", 172_800_000),
            ("7d", LONGEST_MS),
        ] {
            assert_eq!(GrantScope::parse(word), Some(GrantScope::Span(ms)));
            assert_eq!(GrantScope::Span(ms).to_string(), word);
        }
        assert_eq!(
            GrantScope::parse("60m").map(|scope| scope.to_string()).as_deref(),
            Some("1h")
        );
        assert_eq!(GrantScope::parse("session"), Some(GrantScope::Session));
        for bad in [
            "", "h", "0h", "8d", "-1h", "+1h", "1.5h", "1 h", "Session", "9999999s", "1w", "always",
        ] {
            assert_eq!(GrantScope::parse(bad), None, "{bad}");
        }
    }

    fn tool(name: &str) -> ToolName {
        name.parse().unwrap()
    }

    fn at(pointers: &[&str]) -> GrantArguments {
        GrantArguments::At(pointers.iter().map(|pointer| pointer.parse().unwrap()).collect())
    }

    #[test]
    fn calls_are_alike_where_the_rule_says_so_and_nowhere_else() {
        let payee = at(&["/payee"]);
        let both = at(&["/payee", "/currency"]);
        for (arguments, one, other, alike) in [
            (&GrantArguments::Same, r#"{"a":1}"#, r#"{"a":1}"#, true),
            (&GrantArguments::Same, r#"{"a":1}"#, r#"{"a":2}"#, false),
            (&GrantArguments::Any, r#"{"a":1}"#, r#"{"b":2}"#, true),
            (
                &payee,
                r#"{"amount":1,"payee":"x"}"#,
                r#"{"amount":2,"payee":"x"}"#,
                true,
            ),
            (&payee, r#"{"payee":"x"}"#, r#"{"payee":"y"}"#, false),
            (&payee, r#"{"payee":"1"}"#, r#"{"payee":1}"#, false),
            (
                &both,
                r#"{"currency":"b","payee":"a"}"#,
                r#"{"currency":"a","payee":"b"}"#,
                false,
            ),
        ] {
            let (one, other) = (
                arguments.pattern(&tool("pay"), one).unwrap(),
                arguments.pattern(&tool("pay"), other).unwrap(),
            );
            assert_eq!(one == other, alike, "{arguments:?}");
        }
        assert_eq!(
            both.pattern(&tool("pay"), r#"{"payee":"x"}"#),
            None,
            "a value that is not there"
        );
        let any = |name| GrantArguments::Any.pattern(&tool(name), "{}");
        assert_ne!(any("pay"), any("delete"));
    }

    proptest! {
        #[test]
        fn words_of_anybody_are_read_or_refused(word in "\\PC{0,12}") {
            if let Some(scope) = GrantScope::parse(&word) {
                prop_assert!((1..=LONGEST_MS).contains(&scope.lives_ms()));
                prop_assert_eq!(GrantScope::parse(&scope.to_string()), Some(scope));
            }
        }
    }
}
