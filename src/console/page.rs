//! Pages: templates that are part of the program, every value escaped, and headers that let a browser do nothing else with
//! them.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use gatepost_channel::Inert;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::session::Session;
use crate::http::Api;
use crate::http::problem::Problem;

/// No script, no frame, nothing from elsewhere; forms go here only.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const TEMPLATES: [(&str, &str); 5] = [
    ("base.html", include_str!("../../templates/console/base.html")),
    ("login.html", include_str!("../../templates/console/login.html")),
    ("inbox.html", include_str!("../../templates/console/inbox.html")),
    (
        "request.html",
        include_str!("../../templates/console/request.html"),
    ),
    (
        "message.html",
        include_str!("../../templates/console/message.html"),
    ),
];

/// The templates, read once.
pub struct Pages(Environment<'static>);

impl Pages {
    /// Reads the templates.
    ///
    /// # Errors
    /// When one cannot be read; that stops the start.
    pub fn new() -> Result<Self, minijinja::Error> {
        let mut environment = Environment::new();
        // A name that is written wrong in a template is an error in a test and not an empty place on a page.
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        for (name, text) in TEMPLATES {
            environment.add_template(name, text)?;
        }
        Ok(Self(environment))
    }

    /// Renders a template.
    ///
    /// # Errors
    /// When the template names what it was not given.
    pub fn render(&self, name: &str, values: Value) -> Result<String, minijinja::Error> {
        self.0.get_template(name)?.render(values)
    }
}

/// Somebody's text for a page: inert; the template escapes it.
pub fn inert(text: &str) -> Value {
    Value::from(Inert::new(text).to_string())
}

/// Somebody's text where there may be none.
pub fn inert_or(text: Option<&str>) -> Value {
    text.map_or(Value::from(()), inert)
}

/// A page. `root` leads from it to the console's own address.
pub fn show(
    api: &Api,
    session: Option<&Session>,
    status: StatusCode,
    (template, root): (&str, &str),
    values: Value,
) -> Response {
    let person = session.map(|session| api.gatekeeper().roll().name(&session.operator.id).to_owned());
    let frame = context! {
        root => root,
        person => inert_or(person.as_deref()),
        org => inert_or(session.map(|session| session.operator.org.as_str())),
        csrf => session.map_or("", |session| session.csrf.as_str()),
    };
    let rendered = api.console().ok_or(()).and_then(|console| {
        console
            .pages()
            .render(template, context! { ..values, ..frame })
            .map_err(|error| tracing::error!(%error, template, "a page could not be rendered"))
    });
    match rendered {
        Ok(html) => {
            let mut response = (status, Html(html)).into_response();
            guard(response.headers_mut());
            response
        }
        Err(()) => Problem::internal("a page could not be rendered").into_response(),
    }
}

/// A page that says one thing.
pub fn message(api: &Api, status: StatusCode, heading: &str, said: &str) -> Response {
    let root = api
        .public_url()
        .map_or("", crate::config::address::PublicUrl::base_path);
    let root = format!("{root}/console/");
    show(
        api,
        None,
        status,
        ("message.html", &root),
        context! { heading => heading, said => said },
    )
}

fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer` browsers would send our own forms with `Origin: null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
}
