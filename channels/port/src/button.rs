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
        for byte in self.token.0 {
            write!(f, "{byte:02x}")?;
        }
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
        if hex.len() != 32 || revision.is_empty() || revision.len() > 10 {
            return Err(NotAButtonValue);
        }
        if !revision.bytes().all(|b| b.is_ascii_digit()) || (revision.len() > 1 && revision.starts_with('0'))
        {
            return Err(NotAButtonValue);
        }
        let mut bytes = [0_u8; 16];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        let revision = revision.parse().map_err(|_| NotAButtonValue)?;
        Ok(Self {
            token: ButtonToken(bytes),
            revision,
        })
    }
}

fn nibble(digit: u8) -> Result<u8, NotAButtonValue> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotAButtonValue),
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
