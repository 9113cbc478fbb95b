//! Who is logged in: random values in a cookie, kept as hashes in memory. A server that restarts has forgotten them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::request::Parts;
use gatepost_channel::same_bytes;
use sha2::{Digest as _, Sha256};

use crate::clock::UtcMillis;
use crate::confirmation::decide::Surface;
use crate::http::Api;
use crate::http::auth::Operator;
use crate::ids::Ids;

/// How long a session lives, used or not.
const LIFETIME: Duration = Duration::from_hours(8);
/// Sessions at once; the oldest makes room.
const MOST: usize = 1_000;

/// Somebody who is logged in.
#[derive(Debug, Clone)]
pub struct Session {
    /// The person.
    pub operator: Operator,
    /// Through what they decide.
    pub surface: Surface,
    /// Stands in every form.
    pub csrf: String,
    expires_at: UtcMillis,
}

/// All sessions, by the hash of the cookie's value.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

/// 256 bits of chance in hex.
pub fn secret(ids: &dyn Ids) -> String {
    let mut bytes = [0_u8; 32];
    ids.random(&mut bytes);
    hex::encode(bytes)
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

impl Sessions {
    /// Begins a session; the answer is the cookie's value.
    pub fn begin(&self, operator: Operator, surface: Surface, ids: &dyn Ids, now: UtcMillis) -> String {
        let value = secret(ids);
        let session = Session {
            operator,
            surface,
            csrf: secret(ids),
            expires_at: now.plus(LIFETIME),
        };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.expires_at > now);
        if sessions.len() >= MOST {
            let oldest = sessions
                .iter()
                .min_by_key(|(_, session)| session.expires_at)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                sessions.remove(&oldest);
            }
        }
        sessions.insert(hash(&value), session);
        value
    }

    /// The session of a cookie's value.
    pub fn get(&self, value: &str, now: UtcMillis) -> Option<Session> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions
            .get(&hash(value))
            .filter(|session| session.expires_at > now)
            .cloned()
    }

    /// Ends a session.
    pub fn end(&self, value: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&hash(value));
    }
}

impl Session {
    /// Whether a form came from a page of this session.
    pub fn sent(&self, csrf: &str) -> bool {
        same_bytes(self.csrf.as_bytes(), csrf.as_bytes())
    }
}

/// The session of a request.
pub fn of_request(parts: &Parts, api: &Api) -> Option<Session> {
    let value = cookie(parts, name(api))?;
    api.console()?.sessions().get(value, api.clock().now())
}

/// The value of a cookie that stands exactly once; two of one name are a trick.
pub fn cookie<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let mut values = parts
        .headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

fn secure(api: &Api) -> bool {
    api.public_url()
        .is_some_and(crate::config::address::PublicUrl::is_https)
}

/// The cookie's name. Over https the prefix makes browsers keep other hosts and plain connections from setting it.
pub fn name(api: &Api) -> &'static str {
    if secure(api) {
        "__Host-gatepost"
    } else {
        "gatepost"
    }
}

/// The header that sets the cookie.
pub fn set_cookie(api: &Api, value: &str) -> String {
    written(api, value, LIFETIME.as_secs())
}

/// The header that takes it away.
pub fn clear_cookie(api: &Api) -> String {
    written(api, "", 0)
}

fn written(api: &Api, value: &str, seconds: u64) -> String {
    let secure = if secure(api) { "; Secure" } else { "" };
    format!(
        "{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
        name(api)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Org, SeededIds};

    fn operator() -> Operator {
        Operator {
            id: "dana".into(),
            org: Org::default(),
        }
    }

    #[test]
    fn a_session_ends_by_time_and_by_will() {
        let (sessions, ids) = (Sessions::default(), SeededIds::default());
        let value = sessions.begin(operator(), Surface::Console, &ids, UtcMillis(0));
        let end = UtcMillis(0).plus(LIFETIME);
        assert!(sessions.get(&value, UtcMillis(end.0 - 1)).is_some());
        assert!(sessions.get(&value, end).is_none());
        assert!(sessions.get("", UtcMillis(0)).is_none());
        sessions.end(&value);
        assert!(sessions.get(&value, UtcMillis(0)).is_none());
    }

    #[test]
    fn sessions_do_not_grow_without_bound() {
        let (sessions, ids) = (Sessions::default(), SeededIds::default());
        let first = sessions.begin(operator(), Surface::Console, &ids, UtcMillis(0));
        for at in 1..=i64::try_from(MOST).unwrap() {
            sessions.begin(operator(), Surface::Console, &ids, UtcMillis(at));
        }
        assert_eq!(sessions.0.lock().unwrap().len(), MOST);
        assert!(sessions.get(&first, UtcMillis(5)).is_none());
    }
}
