//! What a caller hears when something is refused: RFC 9457 problem documents with a stable `code`.
//!
//! One table gives every code its status and title. The text for the caller is written where the refusal happens; what failed
//! inside is logged here, once, and never leaves the server.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::gate::InvalidArguments;
use crate::storage::{ReadError, StoreError};

/// The media type of RFC 9457.
pub const MEDIA_TYPE: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $title:literal;)*) => {
        /// Every reason for which the API refuses. Codes are part of the contract: they are added, never changed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                }
            }

            /// The same words for every occurrence.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)*
                }
            }
        }
    };
}

codes! {
    /// The request itself cannot be understood.
    InvalidRequest = "invalid_request", 400, "The request is malformed";
    /// The call's name or arguments are malformed or have more than one meaning.
    InvalidArguments = "invalid_arguments", 400, "The arguments of the call are refused";
    /// The cursor of a list was not given out by it.
    BadCursor = "bad_cursor", 400, "The cursor is not one of ours";
    /// A token stands in the address, where logs and histories keep it.
    TokenInQuery = "token_in_query", 400, "A token must not stand in the address";
    /// No token, or none that is known.
    Unauthenticated = "unauthenticated", 401, "A bearer token is needed";
    /// The token or the person behind it may not do this.
    NotAuthorised = "not_authorised", 403, "Not authorised";
    /// The token lists the pieces that it may submit, and this is none of them.
    PieceNotPermitted = "piece_not_permitted", 403, "This token may not submit the piece";
    /// A browser sent this from another site.
    ForeignOrigin = "foreign_origin", 403, "The request comes from another site";
    /// Nothing of this name exists for this token.
    NotFound = "not_found", 404, "Not found";
    /// The address exists, the method on it does not.
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here";
    /// The body did not arrive in time.
    BodyTimeout = "body_timeout", 408, "The body did not arrive in time";
    /// The same call id was used with other arguments, requester or agent.
    CallIdConflict = "call_id_conflict", 409, "The call id was used for another call";
    /// The request was decided, withdrawn or ran out before.
    AlreadySettled = "already_settled", 409, "The request is settled";
    /// The person's first vote stands.
    AlreadyVoted = "already_voted", 409, "This person has voted";
    /// Somebody approved in the person's place before.
    AlreadyRepresented = "already_represented", 409, "Somebody has answered in this person's place";
    /// The person's approval waits already for what completes it.
    AlreadyArmed = "already_armed", 409, "The approval waits already";
    /// The rule lets nobody break the glass.
    BreakGlassNotOffered = "break_glass_not_offered", 409, "The rule lets nobody break the glass";
    /// The glass was broken as often as the rule allows.
    BreakGlassUsedUp = "break_glass_used_up", 409, "The glass was broken as often as the rule allows";
    /// The request is not approved.
    NotApproved = "not_approved", 409, "The request is not approved";
    /// The call is not the one that was approved; the permit stays usable.
    ArgsChanged = "args_changed", 409, "The call differs from the one that was approved";
    /// The permit was used before.
    AlreadyConsumed = "already_consumed", 409, "The permit was used before";
    /// The permit was not used in time.
    PermitExpired = "permit_expired", 409, "The permit has lapsed";
    /// Too few of those who approved may still decide.
    VotersNotAuthorised = "not_authorised", 409, "Too few of those who approved may still decide";
    /// A rule denies the call by now.
    DeniedByRule = "denied_by_rule", 409, "A rule denies the call by now";
    /// The request offers no such grant; nothing was decided.
    GrantNotOffered = "grant_not_offered", 409, "The request offers no such grant";
    /// Nobody may change the arguments of the request; nothing was decided.
    EditNotAccepted = "edit_not_accepted", 409, "The arguments of this request cannot be changed";
    /// A person changed the arguments, and the answer does not say that it is about them; nothing was decided.
    EditUnseen = "edit_unseen", 409, "The arguments were changed meanwhile";
    /// The grant ended by itself before.
    GrantEnded = "grant_ended", 409, "The grant has ended";
    /// Nothing can have been executed: no permit was consumed.
    NotConsumed = "not_consumed", 409, "No permit of the request was consumed";
    /// Another outcome was reported before.
    OutcomeContradicts = "outcome_contradicts", 409, "Another outcome was reported before";
    /// The job waits for no answer, or for one that is given elsewhere.
    NotAwaitingAnswer = "not_awaiting_answer", 409, "The job does not wait for this answer";
    /// The question that an answer names was answered before, or never asked.
    QuestionClosed = "question_closed", 409, "The question is not open";
    /// The job asks for an outcome not for the first time, and the answer does not say which it means.
    QuestionIdNeeded = "question_id_needed", 409, "The answer must name its question";
    /// The job has ended.
    JobEnded = "job_ended", 409, "The job has ended";
    /// The body is larger than the documented limit.
    BodyTooLarge = "body_too_large", 413, "The body is too large";
    /// The body is compressed or not JSON.
    UnsupportedBody = "unsupported_body", 415, "The body has an unsupported form";
    /// The server is not known by this name.
    WrongHost = "wrong_host", 421, "The server does not answer to this name";
    /// The rule asks for a reason in words; nothing was decided.
    ReasonRequired = "reason_required", 422, "The rule asks for a reason";
    /// The request does not take these arguments in place of its own; nothing was decided.
    EditRefused = "edit_refused", 422, "The changed arguments are not taken";
    /// The rule asks for a one-time code; nothing was decided.
    CodeRequired = "code_required", 422, "The rule asks for a one-time code";
    /// There is no piece of this name.
    UnknownPiece = "unknown_piece", 422, "There is no such piece";
    /// One token waits for people as often as one may.
    TooManyWaits = "too_many_waits", 429, "This token waits too often at the same time";
    /// Too many wrong one-time codes.
    TooManyCodes = "too_many_codes", 429, "Too many wrong codes";
    /// Too often.
    Throttled = "throttled", 429, "Too often";
    /// A fault of ours.
    Internal = "internal", 500, "Something failed on our side";
    /// This installation has no such part.
    NotInstalled = "not_installed", 501, "This server has no such part";
    /// Too much at once.
    Overloaded = "overloaded", 503, "The server is overloaded";
    /// A platform did not say who somebody is; nothing was changed.
    LookUpFailed = "look_up_failed", 503, "A platform could not be asked about a person";
    /// The database cannot be reached, or the server is stopping.
    Unavailable = "unavailable", 503, "The server cannot answer now";
}

/// One refusal.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    detail: Option<Cow<'static, str>>,
    members: Map<String, Value>,
    retry_after: Option<u32>,
}

impl Problem {
    /// A refusal without further words.
    pub fn new(code: Code) -> Self {
        Self {
            code,
            detail: None,
            members: Map::new(),
            retry_after: None,
        }
    }

    /// With words about this occurrence. They hold nothing of what was sent but the names of members.
    #[must_use]
    pub fn because(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With further words behind those about this occurrence.
    #[must_use]
    pub fn adding(mut self, words: &str) -> Self {
        self.detail = Some(match self.detail {
            Some(detail) => Cow::Owned(format!("{detail}; {words}")),
            None => Cow::Owned(words.to_owned()),
        });
        self
    }

    /// With a member of its own beside the standard ones.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Worth another try after so many seconds.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The words about this occurrence.
    pub fn into_detail(self) -> Option<Cow<'static, str>> {
        self.detail
    }

    /// A malformed request.
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidRequest).because(detail)
    }

    /// Nothing of this name.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound)
    }

    /// Somebody who may not; `refusal` says why, as a stable word.
    pub fn forbidden(refusal: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::NotAuthorised)
            .because(detail)
            .with("refusal", refusal)
    }

    /// A fault of ours; `what` goes to the log.
    pub fn internal(what: &str) -> Self {
        tracing::error!(what, "a request failed");
        Self::new(Code::Internal)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overloaded => Self::new(Code::Overloaded).retry_after(1),
            StoreError::Closed => Self::new(Code::Unavailable)
                .because("the server is stopping")
                .retry_after(5),
            StoreError::Database(_) => {
                tracing::error!(%error, "the store failed");
                Self::new(Code::Unavailable)
                    .because("the store does not answer")
                    .retry_after(2)
            }
            StoreError::Inconsistent { .. } | StoreError::Panicked(_) => {
                tracing::error!(%error, "the store failed");
                Self::new(Code::Internal)
            }
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::BadCursor => Self::new(Code::BadCursor),
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidArguments> for Problem {
    fn from(error: InvalidArguments) -> Self {
        Self::new(Code::InvalidArguments).because(error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut document = self.members;
        document.insert(
            "type".into(),
            format!("urn:gatepost:problem:{}", self.code.as_str()).into(),
        );
        document.insert("title".into(), self.code.title().into());
        document.insert("status".into(), self.code.status().into());
        document.insert("code".into(), self.code.as_str().into());
        if let Some(detail) = self.detail {
            document.insert("detail".into(), detail.into());
        }
        let mut response = (status, Value::Object(document).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_words_and_statuses_are_errors() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            assert!((400..600).contains(&code.status()), "{code:?}");
            assert!(seen.insert((code.as_str(), code.status())), "{code:?} twice");
        }
    }

    #[test]
    fn what_failed_inside_is_not_told() {
        for error in [
            StoreError::Database("password authentication failed for user gatepost".into()),
            StoreError::Inconsistent {
                table: "confirmation",
                id: "cr_1".into(),
                what: "secret".into(),
            },
            StoreError::Panicked("decide"),
        ] {
            let problem = Problem::from(error);
            let told = format!("{:?} {:?}", problem.detail, problem.members);
            for word in ["gatepost", "secret", "decide", "confirmation"] {
                assert!(!told.contains(word), "{told}");
            }
        }
    }
}
