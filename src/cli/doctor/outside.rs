//! How the world sees this machine: whether its public address leads to a Gatepost, and whether its clock agrees with the
//! platforms'.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::{DATE, HeaderMap};
use url::Url;

use super::channel::callback;
use super::finding::{Finding, State};
use crate::cli::print;
use crate::clock::{Clock, UtcMillis};
use crate::config::address::is_loopback;
use crate::config::{ChannelConfig, Config};

/// Platforms refuse, and we refuse, what was signed further away than this (both platforms' request verification).
const REFUSED_BEYOND: u64 = 300;
/// From here on a clock is worth a word: NTP keeps it within a second.
const ODD_BEYOND: u64 = 30;
/// An address that does not answer by then is not reached.
const PATIENCE: Duration = Duration::from_secs(5);

/// Compares this machine's clock with each platform's, as the `Date` of any answer shows it (RFC 9110, section 6.6.1).
pub(super) async fn clocks(config: &Config, http: &reqwest::Client, clock: &dyn Clock) -> Vec<Finding> {
    let mut platforms = BTreeMap::new();
    for base in config.channels.iter().filter_map(ChannelConfig::base_url) {
        platforms
            .entry(base.origin().ascii_serialization())
            .or_insert(base);
    }
    let asked = platforms.into_values().map(async |base| {
        // Whatever it answers has a date; an answer that never comes is told by the channel's own check.
        let answer = http.head(base.clone()).timeout(PATIENCE).send().await.ok()?;
        let there = date(answer.headers())?;
        Some(judge(base, there, clock.now()))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

fn judge(base: &Url, there: UtcMillis, here: UtcMillis) -> Finding {
    let apart = here.0.abs_diff(there.0) / 1000;
    let name = format!("clock at {}", base.host_str().unwrap_or("the platform"));
    let way = if here > there { "ahead of" } else { "behind" };
    let told = format!("this machine is {} {way} it", print::span(apart));
    if apart > REFUSED_BEYOND {
        let detail = format!(
            "{told}: every signed callback is refused as stale; set the clock (timedatectl set-ntp true)"
        );
        Finding::of(name, State::Ill, detail)
    } else if apart > ODD_BEYOND {
        Finding::of(
            name,
            State::Note,
            format!("{told}; beyond 5 min clicks would be refused: set the clock"),
        )
    } else {
        Finding::of(name, State::Ok, "agrees with this machine's")
    }
}

fn date(headers: &HeaderMap) -> Option<UtcMillis> {
    let text = headers.get(DATE)?.to_str().ok()?;
    let read = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    Some(UtcMillis(read.as_millisecond()))
}

/// Follows the public address from here: does it lead to a Gatepost, and does it pass callbacks on? Nothing is written: the
/// callback's address is asked with GET, which it refuses with 405.
pub(super) async fn public_url(config: &Config, http: &reqwest::Client) -> Option<Finding> {
    let url = config.server.public_url.as_ref()?;
    let found = |state, detail: String| Some(Finding::of("public address", state, detail));
    let callback = config
        .channels
        .iter()
        .find_map(|channel| callback(config, channel));
    let public_platform = config
        .channels
        .iter()
        .filter_map(ChannelConfig::base_url)
        .any(|base| !is_loopback(base));
    if callback.is_some()
        && public_platform
        && Url::parse(&url.to_string()).is_ok_and(|url| is_loopback(&url))
    {
        return found(
            State::Ill,
            format!(
                "{url} is this machine: no platform can call it; use an address of the internet, or mode: socket or long_connection"
            ),
        );
    }
    match ask(http, &url.join("/healthz")).await {
        Err(why) => {
            return found(
                State::Note,
                format!(
                    "{url} is not reached from here ({why}): start the server; if it runs, look at name, certificate and proxy"
                ),
            );
        }
        Ok((200, true)) => {}
        Ok((status, _)) => {
            return found(
                State::Ill,
                format!(
                    "{url} answers {status} and not as a Gatepost: let the proxy pass everything below it on to {}",
                    config.server.listen
                ),
            );
        }
    }
    match callback {
        None => found(State::Ok, format!("{url} leads to a Gatepost")),
        Some(address) => match ask(http, &address).await {
            Ok((405, _)) => found(State::Ok, format!("{url} leads to a Gatepost, callbacks pass")),
            Ok((status, _)) => found(
                State::Ill,
                format!(
                    "{address} answers {status} to GET instead of 405: let the proxy pass POST to it on, body and headers unchanged"
                ),
            ),
            Err(why) => found(State::Ill, format!("{address} is not reached ({why})")),
        },
    }
}

/// The status, and whether the body is that of our `healthz`.
async fn ask(http: &reqwest::Client, address: &str) -> Result<(u16, bool), &'static str> {
    let answer = http.get(address).timeout(PATIENCE).send().await;
    let answer = answer.map_err(|error| match () {
        () if error.is_timeout() => "no answer in time",
        () if error.is_connect() => "no connection, or no certificate that holds",
        () => "the connection broke",
    })?;
    let status = answer.status().as_u16();
    let ours = answer.content_length().is_some_and(|length| length < 256)
        && answer.text().await.is_ok_and(|body| body == r#"{"status":"ok"}"#);
    Ok((status, ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_ill_beyond_the_window_of_signatures() {
        let base = Url::parse("https://chat.example.com/api").unwrap();
        let here = UtcMillis(1_795_953_600_000);
        for (seconds, state, told) in [
            (0, State::Ok, "agrees"),
            (29, State::Ok, "agrees"),
            (61, State::Note, "behind"),
            (-61, State::Note, "ahead of"),
            (301, State::Ill, "refused as stale"),
            (-400, State::Ill, "refused as stale"),
        ] {
            let finding = judge(&base, UtcMillis(here.0 + seconds * 1000), here);
            assert_eq!(finding.state, state, "{seconds}");
            assert!(finding.detail.contains(told), "{}", finding.detail);
            assert_eq!(finding.name, "clock at chat.example.com");
        }
    }

    #[test]
    fn a_date_is_read_or_not_there() {
        let read = |text: &'static str| date(&HeaderMap::from_iter([(DATE, text.parse().unwrap())]));
        assert_eq!(
            read("Mon, 30 Nov 2026 10:00:00 GMT"),
            Some(UtcMillis(1_796_032_800_000))
        );
        assert_eq!(read("yesterday"), None);
        assert_eq!(date(&HeaderMap::new()), None);
    }
}
