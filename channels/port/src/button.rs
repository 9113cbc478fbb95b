//! What a button carries: an opaque reference to one delivery and the revision of its card. Never arguments, never authority.

use std::fmt;
use std::str::FromStr;

/// The random 128-bit token of one delivery. It is known to the card and, as a hash, to the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ButtonToken([u8; 16]);

impl ButtonToken {
    /// Wraps 16 bytes that came from a cryptographic source.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, to be hashed or spelled.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The token lets a click through, so it does not print.
impl fmt::Debug for ButtonToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ButtonToken(…)")
    }
}

/// What proves to the core that one person could see everything there is of one revision of a request. Made and judged by the core;
/// it stands in what was opened for that person alone, and opaque to everybody else.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seen([u8; 16]);

impl Seen {
    /// Wraps 16 bytes of the core's.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, to be compared.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// It lets an approval through, so it does not print.
impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seen(…)")
    }
}

/// `s1.<32 hex digits>`.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("s1.")?;
        spell(&self.0, f)
    }
}

impl FromStr for Seen {
    type Err = NotAButtonValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix("s1.")
            .and_then(read)
            .map(Self)
            .ok_or(NotAButtonValue)
    }
}

/// The text of a button: `g1.<32 hex digits>.<revision>`, at most 64 bytes so that it fits the tightest platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ButtonValue {
    /// Which delivery.
    pub token: ButtonToken,
    /// Which revision of its card was on the screen.
    pub revision: u32,
}

impl fmt::Display for ButtonValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("g1.")?;
        spell(&self.token.0, f)?;
        write!(f, ".{}", self.revision)
    }
}

/// The text is not one of our button values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a button value of ours")]
pub struct NotAButtonValue;

impl FromStr for ButtonValue {
    type Err = NotAButtonValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("g1.").ok_or(NotAButtonValue)?;
        let (hex, revision) = rest.split_once('.').ok_or(NotAButtonValue)?;
        if revision.is_empty() || revision.len() > 10 {
            return Err(NotAButtonValue);
        }
        if !revision.bytes().all(|b| b.is_ascii_digit()) || (revision.len() > 1 && revision.starts_with('0'))
        {
            return Err(NotAButtonValue);
        }
        let bytes = read(hex).ok_or(NotAButtonValue)?;
        let revision = revision.parse().map_err(|_| NotAButtonValue)?;
        Ok(Self {
            token: ButtonToken(bytes),
            revision,
        })
    }
}

fn spell(bytes: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// 32 lower-case hex digits; no other spelling.
fn read(hex: &str) -> Option<[u8; 16]> {
    let mut bytes = [0_u8; 16];
    if hex.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_back_and_stays_small() {
        let value = ButtonValue {
            token: ButtonToken::new([0xa5; 16]),
            revision: u32::MAX,
        };
        let text = value.to_string();
        assert!(text.len() <= 64, "{text}");
        assert_eq!(text.parse(), Ok(value));
    }

    #[test]
    fn what_was_seen_reads_back_and_nothing_like_it() {
        let seen = Seen::new([0x5e; 16]);
        let text = seen.to_string();
        assert_eq!(text.parse(), Ok(seen));
        for bad in [
            "",
            "s1.",
            &text.to_uppercase(),
            &format!("{text}0"),
            &text.replace("s1", "g1"),
            &text[..20],
        ] {
            assert_eq!(bad.parse::<Seen>(), Err(NotAButtonValue), "{bad}");
        }
        assert!(!format!("{seen:?}").contains("5e"));
    }

    #[test]
    fn near_misses_are_refused() {
        let good = ButtonValue {
            token: ButtonToken::new([1; 16]),
            revision: 3,
        }
        .to_string();
        for bad in [
            "",
            "g1.",
            &good.to_uppercase(),
            &format!("{good} "),
            &good.replace(".3", ".03"),
            &good.replace(".3", ".+3"),
            &good.replace("g1", "g2"),
            &good[..good.len() - 2],
        ] {
            assert_eq!(bad.parse::<ButtonValue>(), Err(NotAButtonValue), "{bad}");
        }
    }
}
