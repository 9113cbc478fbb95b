//! The description of the API, kept by hand; a test holds it against the route table in both directions.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The OpenAPI 3.1 document.
pub const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /openapi.json`.
pub async fn handle() -> Response {
    let mut response = DOCUMENT.into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
