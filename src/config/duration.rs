//! Spans of time as people write them: `2m`, `1h30m`, `30s`, `500ms`, `7d`. It knows no clock.

use std::{fmt, str::FromStr, time::Duration};

/// What is accepted, for messages.
pub const ACCEPTED: &str = "a span of time such as 500ms, 30s, 2m, 1h30m or 7d";

/// A span of time that was written as text, longer than zero and at most 100 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

/// Why a text is not a [`Span`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Nothing stands there.
    #[error("empty")]
    Empty,
    /// A number stands without `ms`, `s`, `m`, `h` or `d` behind it.
    #[error("a number without its unit")]
    NoUnit,
    /// A unit that is not known, or blanks or signs.
    #[error("not a span of time")]
    Malformed,
    /// Units must come from the longest to the shortest, each once.
    #[error("units out of order or doubled")]
    Disordered,
    /// No time at all.
    #[error("zero")]
    Zero,
    /// Below zero.
    #[error("negative")]
    Negative,
    /// More than 100 years.
    #[error("more than 100 years")]
    TooLong,
}

const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];
const LONGEST_MS: u64 = 100 * 366 * 86_400_000;

impl Span {
    /// The span as the standard library has it.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        if text.is_empty() {
            return Err(SpanError::Empty);
        }
        if text.starts_with('-') {
            return Err(SpanError::Negative);
        }
        let mut rest = text;
        let mut total: u64 = 0;
        let mut next_unit = 0;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, tail) = tail.split_at(letters);
            if number.is_empty() {
                return Err(SpanError::Malformed);
            }
            if unit.is_empty() {
                return Err(if tail.is_empty() {
                    SpanError::NoUnit
                } else {
                    SpanError::Malformed
                });
            }
            let (place, (_, scale)) = UNITS
                .iter()
                .enumerate()
                .find(|(_, (name, _))| *name == unit)
                .ok_or(SpanError::Malformed)?;
            if place < next_unit {
                return Err(SpanError::Disordered);
            }
            next_unit = place + 1;
            total = number
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_mul(*scale))
                .and_then(|part| total.checked_add(part))
                .filter(|total| *total <= LONGEST_MS)
                .ok_or(SpanError::TooLong)?;
            rest = tail;
        }
        if total == 0 {
            return Err(SpanError::Zero);
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(LONGEST_MS);
        for (unit, scale) in UNITS {
            if rest >= scale {
                write!(f, "{}{unit}", rest / scale)?;
                rest %= scale;
            }
        }
        Ok(())
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, SpanError};

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("30s", 30_000),
            ("500ms", 500),
            ("7d", 604_800_000),
            ("1m5ms", 60_005),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.get().as_millis(), millis, "{text}");
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn refuses_what_means_nothing() {
        for (text, error) in [
            ("", SpanError::Empty),
            ("5", SpanError::NoUnit),
            ("1h30", SpanError::NoUnit),
            ("2 sec", SpanError::Malformed),
            ("2sec", SpanError::Malformed),
            ("1.5h", SpanError::Malformed),
            ("-5m", SpanError::Negative),
            ("0s", SpanError::Zero),
            ("0h0m", SpanError::Zero),
            ("30m1h", SpanError::Disordered),
            ("1m1m", SpanError::Disordered),
            ("99999999999999999999s", SpanError::TooLong),
            ("213503982335d", SpanError::TooLong),
            ("é", SpanError::Malformed),
        ] {
            assert_eq!(text.parse::<Span>(), Err(error), "{text}");
        }
    }
}
