//! How long Slack asks us to wait: seconds or a date, in a header or in the body, always within reason. Reads no clock.

use std::time::Duration;

use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// A wait of zero would make a tight loop.
const FLOOR: Duration = Duration::from_secs(1);
/// A wait beyond any request's patience helps nobody; the next attempt is told again.
const CAP: Duration = Duration::from_mins(5);

/// The wait that a 429 asks for, in its header or else in its JSON body; `None` when it says nothing readable.
pub(crate) fn asked(headers: &HeaderMap, body: &[u8]) -> Option<Duration> {
    asked_by_header(headers).or_else(|| {
        let body: Value = serde_json::from_slice(body).ok()?;
        let seconds = body.get("retry_after")?.as_f64()?;
        Duration::try_from_secs_f64(seconds.min(CAP.as_secs_f64()))
            .ok()
            .map(bound)
    })
}

/// The wait in `Retry-After` (RFC 9110, 10.2.3). A date is measured against the answer's own `Date`, so no clock of ours and
/// no drift between the two machines takes part.
pub(crate) fn asked_by_header(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(
            text.parse()
                .map_or(CAP, |seconds| bound(Duration::from_secs(seconds))),
        );
    }
    let until = seconds(text)?;
    let sent = seconds(headers.get(DATE)?.to_str().ok()?)?;
    Some(bound(Duration::from_secs(
        u64::try_from(until.saturating_sub(sent)).unwrap_or(0),
    )))
}

fn seconds(date: &str) -> Option<i64> {
    let instant = rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(instant.as_second())
}

fn bound(wait: Duration) -> Duration {
    wait.clamp(FLOOR, CAP)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn headers(retry_after: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(retry_after).unwrap());
        headers.insert(DATE, HeaderValue::from_static("Sun, 29 Nov 2026 12:00:00 GMT"));
        headers
    }

    #[test]
    fn seconds_and_dates_are_honoured_within_bounds() {
        for (text, expected) in [
            ("2", Some(2)),
            ("0", Some(1)),
            ("99999999", Some(300)),
            ("99999999999999999999999999", Some(300)),
            ("Sun, 29 Nov 2026 12:00:05 GMT", Some(5)),
            ("Sun, 29 Nov 2026 11:00:00 GMT", Some(1)),
            ("soon", None),
            ("-5", None),
            ("", None),
        ] {
            assert_eq!(
                asked_by_header(&headers(text)),
                expected.map(Duration::from_secs),
                "{text}"
            );
        }
    }

    #[test]
    fn the_body_is_asked_when_the_header_is_silent() {
        let body = br#"{"retry_after": 1.5, "ok": false}"#;
        assert_eq!(asked(&HeaderMap::new(), body), Some(Duration::from_millis(1500)));
        assert_eq!(asked(&headers("7"), body), Some(Duration::from_secs(7)));
        assert_eq!(asked(&HeaderMap::new(), br#"{"retry_after": -1}"#), None);
        assert_eq!(asked(&HeaderMap::new(), b"upstream"), None);
    }

    proptest! {
        #[test]
        fn every_wait_is_within_bounds(text in "[ -~]{0,40}", body in any::<Vec<u8>>()) {
            if let Some(wait) = asked(&headers(&text), &body) {
                prop_assert!((FLOOR..=CAP).contains(&wait));
            }
        }
    }
}
