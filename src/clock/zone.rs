//! Zones in which people read times. The rules of all zones are built in, so a machine without a time zone database says the
//! same as any other; new rules come with a new version of Gatepost.

use std::fmt;
use std::str::FromStr;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::UtcMillis;

/// A zone of the IANA database, such as `Asia/Shanghai`. The default is UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// The name is no zone of the IANA database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no zone of the IANA time zone database")]
pub struct NoZone;

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = NoZone;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "UTC" => Ok(Self::default()),
            _ => TimeZoneDatabase::bundled()
                .get(name)
                .map(Self)
                .map_err(|_| NoZone),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

impl Zone {
    /// A time as people of this zone write it: `2026-12-24 18:00`, or a day, which is its beginning. A time that the zone skips or has
    /// twice is the one that a clock which was not set would show.
    pub fn read(&self, text: &str) -> Option<UtcMillis> {
        let (day, time) = text
            .trim()
            .split_once([' ', 'T'])
            .unwrap_or((text.trim(), "00:00"));
        let time: jiff::civil::Time = time.trim().parse().ok()?;
        let day: jiff::civil::Date = day.parse().ok()?;
        let at = self.0.to_timestamp(day.to_datetime(time)).ok()?;
        Some(UtcMillis(at.as_millisecond()))
    }

    /// A time for people: to the second, with offset and name of its zone beside it, so that nobody takes it for their own.
    /// Instants outside the calendar show their milliseconds.
    pub fn show(&self, at: UtcMillis) -> String {
        let Ok(time) = jiff::Timestamp::from_millisecond(at.0) else {
            return format!("{} ms", at.0);
        };
        if *self == Self::default() {
            return time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        }
        let local = time.to_zoned_datetime(self.0.clone());
        format!("{} ({self})", local.strftime("%Y-%m-%d %H:%M:%S %:z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> UtcMillis {
        super::super::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_time_names_its_zone_and_follows_its_rules() {
        for (zone, time, shown) in [
            ("UTC", "2026-11-30T10:00:00Z", "2026-11-30 10:00:00 UTC"),
            (
                "Asia/Shanghai",
                "2026-11-30T17:00:00Z",
                "2026-12-01 01:00:00 +08:00 (Asia/Shanghai)",
            ),
            (
                "Europe/Berlin",
                "2026-07-01T10:00:00Z",
                "2026-07-01 12:00:00 +02:00 (Europe/Berlin)",
            ),
            (
                "Europe/Berlin",
                "2026-10-25T00:30:00Z",
                "2026-10-25 02:30:00 +02:00 (Europe/Berlin)",
            ),
            (
                "Europe/Berlin",
                "2026-10-25T01:30:00Z",
                "2026-10-25 02:30:00 +01:00 (Europe/Berlin)",
            ),
            (
                "Asia/Kathmandu",
                "2026-01-01T00:00:00Z",
                "2026-01-01 05:45:00 +05:45 (Asia/Kathmandu)",
            ),
        ] {
            assert_eq!(zone.parse::<Zone>().unwrap().show(at(time)), shown);
        }
        assert_eq!(
            Zone::default().show(UtcMillis(i64::MAX)),
            "9223372036854775807 ms"
        );
    }

    #[test]
    fn a_time_is_read_as_people_of_the_zone_write_it() {
        for (zone, text, time) in [
            ("UTC", "2026-12-24 18:00", "2026-12-24T18:00:00Z"),
            ("Asia/Shanghai", " 2026-12-24  18:00 ", "2026-12-24T10:00:00Z"),
            ("Asia/Shanghai", "2026-12-24", "2026-12-23T16:00:00Z"),
            ("Europe/Berlin", "2026-07-01T12:30:15", "2026-07-01T10:30:15Z"),
            ("Europe/Berlin", "2026-10-25 02:30", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(zone.parse::<Zone>().unwrap().read(text), Some(at(time)), "{text}");
        }
        for text in [
            "",
            "tomorrow",
            "18:00",
            "2026-13-01",
            "2026-12-24 25:00",
            "24.12.2026",
            "2026-12-24 18:00 x",
        ] {
            assert_eq!(Zone::default().read(text), None, "{text}");
        }
    }

    #[test]
    fn only_names_of_the_database_are_zones() {
        for name in [
            "",
            "Asia/Shanghai ",
            "Mars/Base",
            "+08:00",
            "CST6",
            "../../etc/passwd",
            "local",
        ] {
            assert_eq!(name.parse::<Zone>(), Err(NoZone), "{name}");
        }
        let shanghai: Zone = "Asia/Shanghai".parse().unwrap();
        assert_eq!(shanghai.to_string(), "Asia/Shanghai");
        assert_eq!(Zone::default().to_string(), "UTC");
    }
}
