//! A number with its exact decimal value and its one canonical spelling (RFC 8785 section 3.2.2.3; plain
//! digits where no double holds the value).
//!
//! It knows nothing of objects, policy or digests.

use std::fmt;

use thiserror::Error;

/// The most digits that a number may have.
///
/// Counted are the digits before any exponent, as written, without the single `0` before a decimal point; and, where no
/// double holds the value, the digits of its plain spelling, so that `1e400` is refused while `1e300` is not.
pub const MAX_DIGITS: usize = 40;

/// An exponent beyond this is held by no double and has no plain spelling of [`MAX_DIGITS`] digits.
const EXPONENT_BOUND: i64 = 10_000;

/// A JSON number. Two numbers are equal exactly when their decimal values are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number {
    canonical: Box<str>,
    double: bool,
}

/// Why a text is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NumberProblem {
    /// It does not follow the JSON grammar (RFC 8259 section 6).
    #[error("a number is malformed")]
    Malformed,
    /// It has more than [`MAX_DIGITS`] digits, as written or written out.
    #[error("a number has more than {MAX_DIGITS} digits")]
    TooManyDigits,
}

impl Number {
    /// Reads a whole text as a JSON number.
    pub fn parse(text: &str) -> Result<Self, NumberProblem> {
        match Self::scan(text)? {
            (number, length) if length == text.len() => Ok(number),
            _ => Err(NumberProblem::Malformed),
        }
    }

    /// Reads the number at the start of `text` and tells how many bytes it takes.
    pub(super) fn scan(text: &str) -> Result<(Self, usize), NumberProblem> {
        let written = Written::scan(text)?;
        if written.digits() > MAX_DIGITS {
            return Err(NumberProblem::TooManyDigits);
        }
        Ok((written.decimal().into_number()?, written.length))
    }

    /// The canonical spelling: as ECMAScript spells the double that holds the value, else plain decimal digits.
    pub fn as_str(&self) -> &str {
        &self.canonical
    }

    /// The value, where it is a whole number that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.canonical.parse().ok()
    }

    /// The value, where a double holds it: where the shortest spelling of the nearest double denotes the same decimal.
    /// Different numbers that a double holds are different doubles in the same order, so comparing them loses nothing.
    pub fn as_held_f64(&self) -> Option<f64> {
        if self.double {
            self.canonical.parse().ok()
        } else {
            None
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        let canonical = value.to_string();
        let double = value == 0
            || Written::scan(&canonical).is_ok_and(|written| written.decimal().is_held_by_double());
        Self {
            canonical: canonical.into(),
            double,
        }
    }
}

/// A number as it is written.
struct Written<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
    length: usize,
}

impl<'a> Written<'a> {
    /// The number at the start of a text (RFC 8259 section 6).
    fn scan(text: &'a str) -> Result<Self, NumberProblem> {
        let mut scan = Scan {
            bytes: text.as_bytes(),
            at: 0,
        };
        let negative = scan.take(|byte| byte == b'-');
        let whole = scan.digits();
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
            return Err(NumberProblem::Malformed);
        }
        let mut fraction = "";
        if scan.take(|byte| byte == b'.') {
            fraction = scan.digits();
            if fraction.is_empty() {
                return Err(NumberProblem::Malformed);
            }
        }
        let exponent = if scan.take(|byte| matches!(byte, b'e' | b'E')) {
            scan.exponent()?
        } else {
            0
        };
        Ok(Self {
            negative,
            whole,
            fraction,
            exponent,
            length: scan.at,
        })
    }

    fn digits(&self) -> usize {
        self.fraction.len() + if self.whole == "0" { 0 } else { self.whole.len() }
    }

    fn decimal(&self) -> Decimal {
        let all = format!("{}{}", self.whole, self.fraction);
        let significant = all.trim_start_matches('0');
        let leading = all.len() - significant.len();
        let point = length(self.whole.len()) - length(leading) + self.exponent;
        Decimal {
            negative: self.negative,
            digits: significant.trim_end_matches('0').to_owned(),
            point,
        }
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.bytes.get(self.at).copied().is_some_and(wanted);
        self.at += usize::from(found);
        found
    }

    fn digits(&mut self) -> &'a str {
        let start = self.at;
        while self.take(|byte| byte.is_ascii_digit()) {}
        self.bytes
            .get(start..self.at)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .unwrap_or_default()
    }

    /// The exponent, held within what [`EXPONENT_BOUND`] makes distinguishable.
    fn exponent(&mut self) -> Result<i64, NumberProblem> {
        let negative = self.take(|byte| byte == b'-');
        if !negative {
            self.take(|byte| byte == b'+');
        }
        let digits = self.digits();
        if digits.is_empty() {
            return Err(NumberProblem::Malformed);
        }
        let size = digits.bytes().fold(0, |size: i64, digit| {
            (size * 10 + i64::from(digit - b'0')).min(EXPONENT_BOUND)
        });
        Ok(if negative { -size } else { size })
    }
}

/// `0.DIGITS × 10^point`, the digits without zeros at either end; no digits are zero.
struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    fn is_held_by_double(&self) -> bool {
        let spelled = format!("0.{}e{}", self.digits, self.point);
        let Ok(double) = spelled.parse::<f64>() else {
            return false;
        };
        if !double.is_finite() || double == 0.0 {
            return false;
        }
        // The shortest spelling that reads back as the same double; of two equally near ones the even one, as ECMA-262
        // wants it (Rust's own `{:e}` takes the upper one).
        let Ok(shortest) = serde_json::to_string(&double) else {
            return false;
        };
        Written::scan(&shortest).is_ok_and(|shortest| {
            let shortest = shortest.decimal();
            shortest.digits == self.digits && shortest.point == self.point
        })
    }

    fn into_number(self) -> Result<Number, NumberProblem> {
        if self.digits.is_empty() {
            return Ok(Number {
                canonical: "0".into(),
                double: true,
            });
        }
        let double = self.is_held_by_double();
        let unsigned =
            if double { self.ecmascript() } else { self.plain() }.ok_or(NumberProblem::TooManyDigits)?;
        let sign = if self.negative { "-" } else { "" };
        Ok(Number {
            canonical: format!("{sign}{unsigned}").into(),
            double,
        })
    }

    /// ECMA-262 `Number::toString`, steps 6 to 10.
    fn ecmascript(&self) -> Option<String> {
        if (-5..=21).contains(&self.point) {
            return self.plain();
        }
        let (first, rest) = self.digits.split_at_checked(1)?;
        let dot = if rest.is_empty() { "" } else { "." };
        Some(format!("{first}{dot}{rest}e{:+}", self.point - 1))
    }

    /// Decimal digits without exponent, where [`MAX_DIGITS`] are enough.
    fn plain(&self) -> Option<String> {
        let digits = self.digits.as_str();
        let zeros = |count: i64| usize::try_from(count).ok().filter(|count| *count <= MAX_DIGITS);
        let (text, count) = if self.point <= 0 {
            let text = format!("0.{}{digits}", "0".repeat(zeros(-self.point)?));
            let count = text.len() - 2;
            (text, count)
        } else if let Some((whole, fraction)) = digits
            .split_at_checked(zeros(self.point)?)
            .filter(|(_, fraction)| !fraction.is_empty())
        {
            (format!("{whole}.{fraction}"), digits.len())
        } else {
            let text = format!(
                "{digits}{}",
                "0".repeat(zeros(self.point - length(digits.len()))?)
            );
            let count = text.len();
            (text, count)
        };
        (count <= MAX_DIGITS).then_some(text)
    }
}

/// A length that is bounded far below `i64::MAX`, as a signed number.
fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
