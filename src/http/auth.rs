//! Who calls: bearer tokens, and one extractor for each kind of caller, so that a handler cannot be reached by another.
//!
//! Roles do not include one another: an `admin` neither decides nor asks. The header is never logged.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use gatepost_channel::same_bytes;
use sha2::{Digest as _, Sha256};

use super::Api;
use super::problem::{Code, Problem};
use crate::config::{Role, TokenConfig};
use crate::gatekeeper::{Caller, People};
use crate::ids::{OperatorId, Org, TokenName};
use crate::job::cancel::By;

/// What a token may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rights {
    /// Asks, consumes, submits; sees only what it created.
    Agent {
        /// Who runs it, when that is a known person.
        owner: Option<OperatorId>,
        /// The pieces it may submit; `None` is all.
        pieces: Option<Vec<String>>,
    },
    /// Decides for this person.
    Operator(OperatorId),
    /// Reads.
    Auditor,
    /// Sees to the channels.
    Admin,
}

impl Rights {
    /// The word of the configuration.
    pub const fn role(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "agent",
            Self::Operator(_) => "operator",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }
}

/// A token as it was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub token: TokenName,
    /// Its organisation.
    pub org: Org,
    /// What it may do.
    pub rights: Rights,
}

struct Entry {
    hash: [u8; 32],
    identity: Arc<Identity>,
}

/// All tokens, by the hash of their secrets. Clones share them.
#[derive(Clone, Default)]
pub struct Tokens(Arc<Vec<Entry>>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

impl Tokens {
    /// The tokens of these secrets.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, Identity)>) -> Self {
        let entry = |(secret, identity): (&str, Identity)| Entry {
            hash: Sha256::digest(secret).into(),
            identity: Arc::new(identity),
        };
        Self(Arc::new(tokens.into_iter().map(entry).collect()))
    }

    /// The tokens of the configuration. An owner who is no known person is nobody.
    pub fn of_config(tokens: &[TokenConfig], people: &People) -> Self {
        Self::new(tokens.iter().map(|token| {
            let org = Org(token.org.clone());
            let rights = match &token.role {
                Role::Agent => Rights::Agent {
                    owner: token
                        .owner
                        .as_deref()
                        .and_then(|owner| people.owner(&org, owner))
                        .cloned(),
                    pieces: token.pieces.clone(),
                },
                Role::Operator { operator } => Rights::Operator(OperatorId(operator.clone())),
                Role::Auditor => Rights::Auditor,
                Role::Admin => Rights::Admin,
            };
            let identity = Identity {
                token: TokenName(token.name.clone()),
                org,
                rights,
            };
            (token.secret.expose(), identity)
        }))
    }

    /// The token of a secret. Takes the same time wherever it stands and however much of it is right.
    pub fn recognise(&self, secret: &[u8]) -> Option<Arc<Identity>> {
        let hash: [u8; 32] = Sha256::digest(secret).into();
        let mut found = None;
        for entry in self.0.iter() {
            if same_bytes(&entry.hash, &hash) {
                found = Some(Arc::clone(&entry.identity));
            }
        }
        found
    }

    /// The token of a request: exactly one `Authorization: Bearer …`.
    pub fn of_request(&self, parts: &Parts) -> Result<Arc<Identity>, Problem> {
        let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
        let refuse = |detail| Problem::new(Code::Unauthenticated).because(detail);
        let header = headers
            .next()
            .ok_or_else(|| refuse("the header Authorization: Bearer … is missing"))?;
        if headers.next().is_some() {
            return Err(refuse("the header Authorization stands more than once"));
        }
        let secret = bearer(header.as_bytes())
            .ok_or_else(|| refuse("the header Authorization does not hold a bearer token"))?;
        self.recognise(secret)
            .ok_or_else(|| refuse("the bearer token is not known: compare it with the secrets under `auth.tokens`, as the server read them when it started"))
    }
}

/// The token of RFC 6750 section 2.1; the scheme is compared without case.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = header.split_at_checked(7)?;
    let secret = rest.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !secret.is_empty()).then_some(secret)
}

/// An agent's token.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Who calls.
    pub caller: Caller,
    /// The pieces it may submit; `None` is all.
    pub pieces: Option<Vec<String>>,
}

/// An operator's token.
#[derive(Debug, Clone)]
pub struct Operator {
    /// The person.
    pub id: OperatorId,
    /// The organisation.
    pub org: Org,
}

/// An auditor's token.
#[derive(Debug, Clone)]
pub struct Auditor {
    /// The organisation.
    pub org: Org,
}

/// An admin's token.
#[derive(Debug, Clone)]
pub struct Admin {
    /// The token.
    pub token: TokenName,
    /// The organisation.
    pub org: Org,
}

/// Somebody who may read requests and jobs.
#[derive(Debug, Clone)]
pub enum Reader {
    /// Only their own.
    Agent(Agent),
    /// Those of the organisation.
    Operator(Operator),
    /// Those of the organisation.
    Auditor(Auditor),
}

/// Somebody who may read lists over the whole organisation.
#[derive(Debug, Clone)]
pub struct Staff {
    /// The organisation.
    pub org: Org,
}

/// Somebody who may see who is away, and no more than that.
#[derive(Debug, Clone)]
pub struct Roster {
    /// The organisation.
    pub org: Org,
}

/// Somebody who may set an absence.
#[derive(Debug, Clone)]
pub enum Planner {
    /// Their own.
    Operator(Operator),
    /// That of anybody of the organisation.
    Admin(Admin),
}

/// Somebody who may answer or cancel a job.
#[derive(Debug, Clone)]
pub enum JobPerson {
    /// Their own.
    Agent(Agent),
    /// Those of the organisation.
    Operator(Operator),
}

impl JobPerson {
    /// The organisation, and who acts.
    pub fn acts(self) -> (Org, By) {
        match self {
            Self::Agent(agent) => (agent.caller.org, By::Token(agent.caller.token)),
            Self::Operator(operator) => (operator.org, By::Operator(operator.id)),
        }
    }
}

impl Reader {
    /// Under whose name waits for people are counted: an agent's token; staff are counted by person or together, under names
    /// that no token can have.
    pub fn waiter(&self) -> TokenName {
        match self {
            Self::Agent(agent) => agent.caller.token.clone(),
            Self::Operator(operator) => TokenName(format!("operator {}", operator.id)),
            Self::Auditor(auditor) => TokenName(format!("auditors of {}", auditor.org)),
        }
    }

    /// The organisation.
    pub const fn org(&self) -> &Org {
        match self {
            Self::Agent(agent) => &agent.caller.org,
            Self::Operator(operator) => &operator.org,
            Self::Auditor(auditor) => &auditor.org,
        }
    }
}

fn recognise(parts: &Parts, api: &Api) -> Result<Identity, Problem> {
    api.tokens().of_request(parts).map(|identity| (*identity).clone())
}

fn wrong_role(identity: &Identity, needed: &'static str) -> Problem {
    Problem::forbidden(
        "wrong_role",
        format!(
            "this is for {needed}; the token has the role {}",
            identity.rights.role()
        ),
    )
}

fn agent(identity: Identity) -> Result<Agent, Identity> {
    match identity.rights {
        Rights::Agent { owner, pieces } => Ok(Agent {
            caller: Caller {
                token: identity.token,
                org: identity.org,
                owner,
            },
            pieces,
        }),
        rights => Err(Identity { rights, ..identity }),
    }
}

fn operator(identity: Identity) -> Result<Operator, Identity> {
    match identity.rights {
        Rights::Operator(id) => Ok(Operator {
            id,
            org: identity.org,
        }),
        rights => Err(Identity { rights, ..identity }),
    }
}

fn auditor(identity: Identity) -> Result<Auditor, Identity> {
    match identity.rights {
        Rights::Auditor => Ok(Auditor { org: identity.org }),
        rights => Err(Identity { rights, ..identity }),
    }
}

fn admin(identity: Identity) -> Result<Admin, Identity> {
    match identity.rights {
        Rights::Admin => Ok(Admin {
            token: identity.token,
            org: identity.org,
        }),
        rights => Err(Identity { rights, ..identity }),
    }
}

/// How a kind of caller is made of a token.
macro_rules! extract {
    ($kind:ty, $needed:literal, $make:expr) => {
        impl FromRequestParts<Api> for $kind {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
                let make: fn(Identity) -> Result<Self, Identity> = $make;
                make(recognise(parts, api)?).map_err(|identity| wrong_role(&identity, $needed))
            }
        }
    };
}

extract!(Agent, "agents", agent);
extract!(Operator, "operators", operator);
extract!(Auditor, "auditors", auditor);
extract!(Admin, "admins", admin);
extract!(Reader, "agents, operators and auditors", |identity| {
    agent(identity)
        .map(Reader::Agent)
        .or_else(|identity| operator(identity).map(Reader::Operator))
        .or_else(|identity| auditor(identity).map(Reader::Auditor))
});
extract!(Staff, "operators and auditors", |identity| {
    operator(identity)
        .map(|operator| Staff { org: operator.org })
        .or_else(|identity| auditor(identity).map(|auditor| Staff { org: auditor.org }))
});
extract!(Roster, "operators, auditors and admins", |identity| {
    operator(identity)
        .map(|operator| operator.org)
        .or_else(|identity| auditor(identity).map(|auditor| auditor.org))
        .or_else(|identity| admin(identity).map(|admin| admin.org))
        .map(|org| Roster { org })
});
extract!(Planner, "operators and admins", |identity| {
    operator(identity)
        .map(Planner::Operator)
        .or_else(|identity| admin(identity).map(Planner::Admin))
});
extract!(JobPerson, "agents and operators", |identity| {
    agent(identity)
        .map(JobPerson::Agent)
        .or_else(|identity| operator(identity).map(JobPerson::Operator))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_is_read() {
        for (header, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("BEARER a b", Some("a b")),
            ("Bearer ", None),
            ("Bearer", None),
            ("Basic abc", None),
            ("", None),
            ("Bearerabc", None),
        ] {
            assert_eq!(
                bearer(header.as_bytes()),
                expected.map(str::as_bytes),
                "{header:?}"
            );
        }
    }

    #[test]
    fn a_secret_is_recognised_whole() {
        let identity = Identity {
            token: "t".into(),
            org: Org::default(),
            rights: Rights::Auditor,
        };
        let tokens = Tokens::new([("0123456789abcdef", identity)]);
        assert!(tokens.recognise(b"0123456789abcdef").is_some());
        for wrong in ["0123456789abcde", "0123456789abcdeF", "", "0123456789abcdef "] {
            assert!(tokens.recognise(wrong.as_bytes()).is_none(), "{wrong:?}");
        }
    }
}
