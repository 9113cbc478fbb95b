//! The server as a command sees it: where it is, who asks, and lists over several pages.

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::answer::Answer;
use super::client::{Client, ClientError};
use super::print;
use super::stop::Stop;
use crate::clock::parse_rfc3339;

/// Most items that are asked for at once.
const PAGE: usize = 100;

/// Where the server is and who asks.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Address of the server
    #[arg(
        long,
        env = "GATEPOST_URL",
        default_value = "http://127.0.0.1:8460",
        global = true
    )]
    pub url: String,
    /// Bearer token of the API
    #[arg(
        long,
        env = "GATEPOST_TOKEN",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true,
        global = true
    )]
    pub token: String,
}

/// See the module.
#[derive(Debug)]
pub struct Api {
    client: Client,
}

impl Api {
    /// The server of the arguments. Without a token nothing is asked.
    pub fn new(args: &ServerArgs) -> Result<Self, Stop> {
        let token = args.token.trim();
        if token.is_empty() {
            return Err(Stop::usage(
                "no token: give one with --token or in GATEPOST_TOKEN; `auth.tokens` of the server's configuration lists who has one",
            ));
        }
        match Client::new(&args.url, token) {
            Ok(client) => Ok(Self { client }),
            Err(error @ (ClientError::Address(_) | ClientError::Token)) => {
                Err(Stop::usage(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// `GET path`.
    pub async fn get(&self, path: &str) -> Result<Answer, ClientError> {
        self.client.get(path, &[]).await
    }

    /// `GET path` with filters.
    pub async fn ask(&self, path: &str, filters: &Filters) -> Result<Answer, ClientError> {
        self.client.get(path, &filters.0).await
    }

    /// `POST path` with a JSON body.
    pub async fn post(&self, path: &str, body: &(impl Serialize + Sync)) -> Result<Answer, ClientError> {
        self.client.post(path, body).await
    }

    /// `DELETE path`.
    pub async fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        self.client.delete(path).await
    }

    /// `GET path`, copied to stdout as it comes; tells whether anything came.
    pub async fn copy(&self, path: &str, filters: &Filters) -> Result<bool, ClientError> {
        let mut anything = false;
        self.client
            .stream(path, &filters.0, None, |bytes| {
                anything |= !bytes.is_empty();
                print::bytes(bytes);
            })
            .await?;
        Ok(anything)
    }

    /// `GET path`, handed on piece by piece as it comes; server-sent events go on after the one of the id `after`.
    pub async fn stream(
        &self,
        path: &str,
        after: Option<&str>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), ClientError> {
        self.client.stream(path, &[], after, |bytes| take(bytes)).await
    }

    /// The first `limit` items of a list, where a refusal is for the caller to read. An answer that is no list holds none.
    pub async fn list_all(
        &self,
        path: &str,
        filters: &Filters,
        limit: usize,
    ) -> Result<Vec<Answer>, ClientError> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let query = filters
                .clone()
                .with("limit", Some(&PAGE.to_string()))
                .with("cursor", cursor.as_deref());
            let Some((items, next)) = self.ask(path, &query).await?.page() else {
                return Ok(found);
            };
            // A page that is empty, or that leads to itself, would go on for ever.
            let ended = next.is_none() || next == cursor || items.is_empty();
            found.extend(items);
            if ended || found.len() >= limit {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// The first `limit` items of a list, over as many pages as it takes.
    pub async fn list(&self, path: &str, filters: &Filters, limit: usize) -> Result<Listed, Stop> {
        let mut listed = Listed::default();
        loop {
            let size = PAGE
                .min(limit.saturating_sub(listed.items.len()))
                .max(1)
                .to_string();
            let query = filters
                .clone()
                .with("limit", Some(&size))
                .with("cursor", listed.next_cursor.as_deref());
            let page = self.ask(path, &query).await?;
            let (items, cursor) = page
                .page()
                .ok_or_else(|| Stop::failed("the server answered with something that is no list"))?;
            // A page that is empty, or that leads to itself, would go on for ever.
            let ended = cursor.is_none() || cursor == listed.next_cursor || items.is_empty();
            listed.items.extend(items);
            listed.next_cursor = cursor.filter(|_| !ended);
            if ended || listed.items.len() >= limit {
                return Ok(listed);
            }
        }
    }
}

/// Items of a list, and where it goes on.
#[derive(Debug, Default)]
pub struct Listed {
    /// The items.
    pub items: Vec<Answer>,
    next_cursor: Option<String>,
}

impl Listed {
    /// Prints it as the API spells a list.
    pub fn print_json(&self) {
        let items: Vec<_> = self.items.iter().map(Answer::text).collect();
        let cursor = json!(self.next_cursor);
        print::line(&format!(
            r#"{{"items":[{}],"next_cursor":{cursor}}}"#,
            items.join(",")
        ));
    }

    /// Says on stderr that there is more.
    pub fn tell_rest(&self) {
        if self.next_cursor.is_some() {
            print::note("There are more: --limit N shows more of them.");
        }
    }
}

/// The query of a list.
#[derive(Debug, Clone, Default)]
pub struct Filters(Vec<(String, String)>);

impl Filters {
    /// No filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more filter, where it was given.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.0.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// A filter by time, which must be RFC 3339.
    pub fn time(self, name: &str, value: Option<&str>) -> Result<Self, Stop> {
        if let Some(text) = value
            && parse_rfc3339(text).is_none()
        {
            return Err(Stop::usage(format!(
                "--{name} takes a time in RFC 3339, such as 2026-07-01T00:00:00Z"
            )));
        }
        Ok(self.with(name, value))
    }
}

/// An id as a part of a path. What could leave the path is no id.
pub fn segment(id: &str) -> Result<&str, Stop> {
    let plain = !id.is_empty()
        && id.len() <= 128
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if plain {
        Ok(id)
    } else {
        Err(Stop::failed(format!("`{}` is not an id", print::foreign(id))))
    }
}
