//! The endpoints of the API, one file each: what comes in, how it is refused, what goes out.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Serialize;
use serde_json::value::RawValue;

use super::problem::Problem;
use crate::ids::{ConfirmationId, GrantId, JobId};

pub mod absence;
pub mod audit;
pub mod channel;
pub mod confirmation;
pub mod grant;
pub mod job;

/// A list: `{items: […], next_cursor}`.
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page starts; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Stored JSON text as it is, numbers included.
pub fn raw(text: String) -> Result<Box<RawValue>, Problem> {
    RawValue::from_string(text).map_err(|_| Problem::internal("stored JSON could not be read"))
}

/// The request that an address names. What is no id names nothing.
#[derive(Debug)]
pub struct RequestId(pub ConfirmationId);

/// The job that an address names. What is no id names nothing.
#[derive(Debug)]
pub struct WhichJob(pub JobId);

/// The grant that an address names. What is no id names nothing.
#[derive(Debug)]
pub struct WhichGrant(pub GrantId);

impl<S: Send + Sync> FromRequestParts<S> for WhichGrant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = id(parts, state).await?;
        GrantId::parse(&text).map(Self).map_err(|_| Problem::not_found())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = id(parts, state).await?;
        ConfirmationId::parse(&text)
            .map(Self)
            .map_err(|_| Problem::not_found())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WhichJob {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = id(parts, state).await?;
        JobId::parse(&text).map(Self).map_err(|_| Problem::not_found())
    }
}

async fn id<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    axum::extract::Path::<String>::from_request_parts(parts, state)
        .await
        .map(|axum::extract::Path(text)| text)
        .map_err(|_| Problem::not_found())
}
