//! Forms: read whole within the body limit, each field once.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::response::Response;
use url::form_urlencoded;

use super::refusal;
use super::session::Session;
use crate::http::problem::{Code, Problem};
use crate::http::{Api, body};

/// The fields of a form.
#[derive(Debug)]
pub struct Form(Vec<(String, String)>);

impl FromRequest<Api> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let plain = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.as_bytes()
                .to_ascii_lowercase()
                .starts_with(b"application/x-www-form-urlencoded")
        });
        if !plain {
            return Err(refusal(api, Problem::new(Code::UnsupportedBody)));
        }
        match body::read(&api.budget().of_strangers(), &parts.headers, body, body::MAX_BODY).await {
            Ok(held) => Self::of(held.bytes()).map_err(|problem| refusal(api, problem)),
            Err(problem) => Err(refusal(api, problem)),
        }
    }
}

impl Form {
    fn of(bytes: &[u8]) -> Result<Self, Problem> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(bytes) {
            if fields.len() == 16 || fields.iter().any(|(before, _)| *before == name) {
                return Err(Problem::invalid("the form is malformed"));
            }
            fields.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(fields))
    }

    /// A field; empty when it is not there.
    pub fn field(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(field, _)| field == name)
            .map_or("", |(_, value)| value)
    }

    /// Refuses a form that no page of this session sent.
    pub fn check(&self, session: &Session) -> Result<(), Problem> {
        if session.sent(self.field("csrf")) {
            Ok(())
        } else {
            Err(Problem::forbidden(
                "wrong_form",
                "The form is not from this session. Open the page again.",
            ))
        }
    }
}
