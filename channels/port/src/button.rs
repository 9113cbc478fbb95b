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
        spell(&self.token.0, f)?;
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
        let token = ButtonToken(read(hex).ok_or(NotAButtonValue)?);
        if let Some(set) = shown.strip_prefix('s') {
            let set = read(set).map(SetCode).ok_or(NotAButtonValue)?;
            return Ok(Self::all(token, set));
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

fn spell(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Exactly `N` bytes, spelled in lower-case hex; no other spelling.
fn read<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut bytes = [0_u8; N];
    if hex.len() != 2 * N {
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
