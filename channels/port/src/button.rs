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

/// Names a set of requests as one card showed them: which ones, in what order, with which calls. Made under the core's key, so
/// that it tells nothing of what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetCode([u8; 12]);

impl SetCode {
    /// Wraps the first 12 bytes of a keyed digest.
    pub const fn new(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }
}

/// 24 lower-case hex digits.
impl fmt::Display for SetCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The text of a button: `g1.<32 hex digits>.<revision>` for one request, `g1.<32 hex digits>.s<24 hex digits>` for all requests
/// of a card at once; at most 64 bytes so that it fits the tightest platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ButtonValue {
    /// Which delivery; for all at once, that of the first request of the card.
    pub token: ButtonToken,
    /// Which revision of its card was on the screen; 0 beside a set, which says it for all of them.
    pub revision: u32,
    /// All requests of the card at once: the set that was on the screen.
    pub set: Option<SetCode>,
}

impl ButtonValue {
    /// The value of a button that answers one request.
    pub const fn one(token: ButtonToken, revision: u32) -> Self {
        Self {
            token,
            revision,
            set: None,
        }
    }

    /// The value of a button that answers all requests of a card.
    pub const fn all(token: ButtonToken, set: SetCode) -> Self {
        Self {
            token,
            revision: 0,
            set: Some(set),
        }
    }
}

impl fmt::Display for ButtonValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("g1.")?;
        for byte in self.token.0 {
            write!(f, "{byte:02x}")?;
        }
        match &self.set {
            None => write!(f, ".{}", self.revision),
            Some(set) => write!(f, ".s{set}"),
        }
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
        let (hex, shown) = rest.split_once('.').ok_or(NotAButtonValue)?;
        let token = ButtonToken(bytes(hex)?);
        if let Some(set) = shown.strip_prefix('s') {
            return Ok(Self::all(token, SetCode(bytes(set)?)));
        }
        let revision = shown;
        if revision.is_empty() || revision.len() > 10 {
            return Err(NotAButtonValue);
        }
        if !revision.bytes().all(|b| b.is_ascii_digit()) || (revision.len() > 1 && revision.starts_with('0'))
        {
            return Err(NotAButtonValue);
        }
        let revision = revision.parse().map_err(|_| NotAButtonValue)?;
        Ok(Self::one(token, revision))
    }
}

/// Exactly `N` bytes, spelled in lower-case hex.
fn bytes<const N: usize>(hex: &str) -> Result<[u8; N], NotAButtonValue> {
    if hex.len() != 2 * N {
        return Err(NotAButtonValue);
    }
    let mut bytes = [0_u8; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Ok(bytes)
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
        let token = ButtonToken::new([0xa5; 16]);
        for value in [
            ButtonValue::one(token, u32::MAX),
            ButtonValue::all(token, SetCode::new([0x5a; 12])),
        ] {
            let text = value.to_string();
            assert!(text.len() <= 64, "{text}");
            assert_eq!(text.parse(), Ok(value));
        }
    }

    #[test]
    fn near_misses_are_refused() {
        let token = ButtonToken::new([1; 16]);
        let good = ButtonValue::one(token, 3).to_string();
        let all = ButtonValue::all(token, SetCode::new([2; 12])).to_string();
        for bad in [
            "",
            "g1.",
            &good.to_uppercase(),
            &format!("{good} "),
            &good.replace(".3", ".03"),
            &good.replace(".3", ".+3"),
            &good.replace("g1", "g2"),
            &good[..good.len() - 2],
            &all[..all.len() - 2],
            &format!("{all}00"),
            &format!("{all}.3"),
            &all.replace(".s", ".S"),
        ] {
            assert_eq!(bad.parse::<ButtonValue>(), Err(NotAButtonValue), "{bad}");
        }
    }
}
