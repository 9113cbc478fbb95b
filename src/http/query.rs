//! Query strings: every parameter once, none unknown, and never a token.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use url::form_urlencoded;

use super::body::patience;
use super::problem::{Code, Problem};
use crate::clock::{UtcMillis, parse_rfc3339};

/// Names under which people put tokens into addresses, where histories and logs keep them.
const TOKEN_NAMES: [&str; 6] = [
    "token",
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "authorization",
];

/// The parameters of an address, to be taken one by one; what is left over is refused.
#[derive(Debug)]
pub struct Params(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(&parts.uri)
    }
}

/// Whether a token stands in the address.
pub fn holds_token(uri: &Uri) -> bool {
    pairs(uri).any(|(name, _)| TOKEN_NAMES.contains(&name.to_ascii_lowercase().as_str()))
}

fn pairs(uri: &Uri) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
}

impl Params {
    /// The parameters of an address.
    pub fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut params = Self(Vec::new());
        for (name, value) in pairs(uri) {
            if params.0.iter().any(|(before, _)| *before == name) {
                return Err(Problem::invalid(
                    "a parameter of the address stands more than once",
                ));
            }
            if params.0.len() == 32 || value.contains('\0') {
                return Err(Problem::invalid("the parameters of the address are refused"));
            }
            params.0.push((name.into_owned(), value.into_owned()));
        }
        Ok(params)
    }

    /// Whether a parameter stands there and was not taken yet.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(param, _)| param == name)
    }

    /// A parameter; an empty one is none.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(param, _)| param == name)?;
        let (_, value) = self.0.swap_remove(at);
        (!value.is_empty()).then_some(value)
    }

    /// Where a page begins. One that is given must be one of ours: an empty one is refused as any other nonsense is.
    pub fn cursor(&mut self) -> Option<String> {
        let at = self.0.iter().position(|(param, _)| param == "cursor")?;
        Some(self.0.swap_remove(at).1)
    }

    /// Words separated by commas, each of a known kind.
    pub fn words<T>(&mut self, name: &'static str, parse: fn(&str) -> Option<T>) -> Result<Vec<T>, Problem> {
        self.text(name)
            .iter()
            .flat_map(|words| words.split(','))
            .map(|word| parse(word.trim()).ok_or_else(|| wrong(name, "one of the documented words")))
            .collect()
    }

    /// A value of its own kind, such as an id.
    pub fn parsed<T>(
        &mut self,
        name: &'static str,
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        self.text(name)
            .map(|text| parse(&text).ok_or_else(|| wrong(name, accepted)))
            .transpose()
    }

    /// An instant.
    pub fn instant(&mut self, name: &'static str) -> Result<Option<UtcMillis>, Problem> {
        self.parsed(name, "an RFC 3339 time such as 2026-01-31T12:00:00Z", |text| {
            // A plus sign that was not escaped arrives as a blank.
            parse_rfc3339(text).or_else(|| parse_rfc3339(&text.replacen(' ', "+", 1)))
        })
    }

    /// How many items, from 1 to `most`.
    pub fn limit(&mut self, usual: usize, most: usize) -> Result<usize, Problem> {
        let limit = self.parsed("limit", &format!("a number from 1 to {most}"), |text| {
            text.parse::<usize>()
                .ok()
                .filter(|limit| (1..=most).contains(limit))
        })?;
        Ok(limit.unwrap_or(usual))
    }

    /// A time to wait, in seconds from 0 to 60.
    pub fn wait(&mut self) -> Result<Option<Duration>, Problem> {
        self.parsed("wait", "a number of seconds from 0 to 60", |text| {
            text.parse().ok().and_then(patience)
        })
    }

    /// `true` or `false`; left out it is false.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        let flag = self.parsed(name, "true or false", |text| text.parse().ok())?;
        Ok(flag.unwrap_or(false))
    }

    /// Refuses what nobody took.
    pub fn finish(self) -> Result<(), Problem> {
        if self.0.is_empty() {
            Ok(())
        } else {
            let plain = |name: &&(String, String)| {
                name.0.len() <= 64 && name.0.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            };
            Err(Problem::invalid(match self.0.first().filter(plain) {
                Some((name, _)) => format!("the parameter `{name}` is not known here"),
                None => "a parameter of the address is not known here".to_owned(),
            }))
        }
    }
}

fn wrong(name: &str, accepted: &str) -> Problem {
    Problem::invalid(format!("the parameter `{name}` must be {accepted}"))
}

/// Refuses a token in the address.
pub fn refuse_token(uri: &Uri) -> Result<(), Problem> {
    if holds_token(uri) {
        Err(Problem::new(Code::TokenInQuery)
            .because("send it as Authorization: Bearer …, and think of this one as known"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Result<Params, Problem> {
        Params::of(&format!("/x?{query}").parse().unwrap())
    }

    #[test]
    fn every_parameter_once_and_none_unknown() {
        assert!(params("a=1&a=2").is_err());
        assert!(params("a=%00").is_err());
        assert!(params("a=1").unwrap().finish().is_err());
        let mut known = params("a=1&b=").unwrap();
        assert_eq!((known.text("a").as_deref(), known.text("b")), (Some("1"), None));
        assert!(known.finish().is_ok());
    }

    #[test]
    fn bounds_hold() {
        for (query, ok) in [
            ("limit=1", true),
            ("limit=200", true),
            ("limit=201", false),
            ("limit=0", false),
            ("limit=-1", false),
            ("limit=x", false),
        ] {
            assert_eq!(params(query).unwrap().limit(50, 200).is_ok(), ok, "{query}");
        }
        for (query, ok) in [
            ("wait=60", true),
            ("wait=0", true),
            ("wait=60.5", false),
            ("wait=NaN", false),
            ("wait=inf", false),
            ("wait=-0.1", false),
        ] {
            assert_eq!(params(query).unwrap().wait().is_ok(), ok, "{query}");
        }
        for (query, ok) in [
            ("since=2026-01-31T12:00:00Z", true),
            ("since=2026-01-31T12:00:00%2B09:00", true),
            ("since=2026-01-31T12:00:00+09:00", true),
            ("since=yesterday", false),
        ] {
            assert_eq!(params(query).unwrap().instant("since").is_ok(), ok, "{query}");
        }
    }

    #[test]
    fn tokens_are_found_in_addresses() {
        for query in ["token=x", "a=1&access_token=x", "API_KEY=x", "%74oken=x"] {
            assert!(holds_token(&format!("/x?{query}").parse().unwrap()), "{query}");
        }
        assert!(!holds_token(&"/x?q=token".parse().unwrap()));
    }
}
