//! One-time codes of a person: TOTP (RFC 6238) over HMAC-SHA-1 with six digits and steps of 30 seconds, which is what every
//! authenticator app takes without being told.
//!
//! It must not know who the person is, which codes were used, nor what a code is for.

use std::fmt;

use gatepost_channel::UtcMillis;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use zeroize::Zeroizing;

/// How long a code is good by itself, in milliseconds.
pub const STEP_MS: i64 = 30_000;
/// So many steps before and after the present one are taken too: clocks differ, and typing takes a while (RFC 6238, section 5.2).
pub const DRIFT: i64 = 1;
/// Digits of a code.
const DIGITS: usize = 6;
const MODULUS: u32 = 1_000_000;
/// The shortest secret, in bytes (RFC 4226, requirement R6).
const SHORTEST: usize = 16;
/// The longest secret, in bytes.
const LONGEST: usize = 128;

/// The secret that a person's app and we share. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeKey(Zeroizing<Vec<u8>>);

impl fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeKey(…)")
    }
}

/// Why a text is no secret of one-time codes. It holds nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotACodeKey {
    /// A character that Base32 does not have.
    #[error("it is not Base32 (A-Z and 2-7)")]
    NotBase32,
    /// Fewer than 16 bytes.
    #[error("it is shorter than 16 bytes, which are 26 characters of Base32")]
    TooShort,
    /// More than 128 bytes.
    #[error("it is longer than 128 bytes")]
    TooLong,
}

impl CodeKey {
    /// Reads Base32 (RFC 4648) as apps show it: in any case, with blanks, with or without padding.
    ///
    /// # Errors
    /// The text cannot be such a secret.
    pub fn from_base32(text: &str) -> Result<Self, NotACodeKey> {
        let mut bytes = Zeroizing::new(Vec::new());
        let (mut bits, mut held) = (0_u32, 0_u32);
        for letter in text
            .trim_end_matches('=')
            .bytes()
            .filter(|byte| *byte != b' ' && *byte != b'-')
        {
            let value = match letter.to_ascii_uppercase() {
                letter @ b'A'..=b'Z' => letter - b'A',
                digit @ b'2'..=b'7' => digit - b'2' + 26,
                _ => return Err(NotACodeKey::NotBase32),
            };
            held = (held << 5 | u32::from(value)) & 0xfff;
            bits += 5;
            if bits >= 8 {
                bits -= 8;
                let [.., byte] = (held >> bits).to_be_bytes();
                bytes.push(byte);
            }
            if bytes.len() > LONGEST {
                return Err(NotACodeKey::TooLong);
            }
        }
        if bytes.len() < SHORTEST {
            return Err(NotACodeKey::TooShort);
        }
        Ok(Self(bytes))
    }

    /// The step whose code this is, among those that are taken at this instant. Every one of them is compared whole, in the same
    /// time whatever the code.
    pub fn step_of(&self, code: &str, now: UtcMillis) -> Option<i64> {
        let typed = digits(code)?;
        let present = now.0.div_euclid(STEP_MS);
        let (mut found, mut step) = (Choice::from(0), 0_i64);
        for at in (present - DRIFT)..=(present + DRIFT) {
            let same = typed.ct_eq(&self.code(at));
            step = i64::conditional_select(&step, &at, same);
            found |= same;
        }
        bool::from(found).then_some(step)
    }

    /// The code of a step, as a number. Steps before 1970 have none, which equals no code that can be typed.
    fn code(&self, step: i64) -> u32 {
        let (Ok(counter), Ok(mut mac)) = (u64::try_from(step), Hmac::<Sha1>::new_from_slice(&self.0)) else {
            return u32::MAX;
        };
        mac.update(&counter.to_be_bytes());
        let hash = mac.finalize().into_bytes();
        // Dynamic truncation (RFC 4226, section 5.3): the last four bits say where four bytes are taken.
        let offset = usize::from(hash.last().copied().unwrap_or_default() & 0xf);
        let taken = hash.iter().skip(offset).take(4);
        let number = taken.fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        (number & 0x7fff_ffff) % MODULUS
    }

    /// The code that an app shows at this instant; for tests, which are the other side.
    #[cfg(test)]
    pub fn shown_at(&self, now: UtcMillis) -> String {
        format!("{:06}", self.code(now.0.div_euclid(STEP_MS)))
    }
}

/// Six digits, as people type them: blanks around and between do not count.
fn digits(code: &str) -> Option<u32> {
    let mut number = 0_u32;
    let mut count = 0;
    for character in code.chars().filter(|character| *character != ' ') {
        number = number.checked_mul(10)?.checked_add(character.to_digit(10)?)?;
        count += 1;
        if count > DIGITS {
            return None;
        }
    }
    (count == DIGITS).then_some(number)
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
