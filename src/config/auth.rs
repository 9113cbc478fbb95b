//! The `auth` section: the bearer tokens of the API, each with one role and one organisation.

use super::{context::Complaint, node::Reader, problem::ProblemKind, secret::Secret};

/// The organisation of whatever names none.
pub const DEFAULT_ORG: &str = "default";
/// The fewest characters of a token's secret.
pub const SHORTEST_TOKEN: usize = 16;

/// One bearer token.
#[derive(Debug, Clone)]
pub struct TokenConfig {
    /// Its name, unique; shown where the secret must not be.
    pub name: String,
    /// What the bearer sends.
    pub secret: Secret,
    /// What it may do. Roles do not include one another.
    pub role: Role,
    /// Whose requests and jobs it touches.
    pub org: String,
    /// Who runs the agent behind it: an operator's id or e-mail, else free text. Compared for self-approval.
    pub owner: Option<String>,
    /// The pieces it may submit; `None` is all of them.
    pub pieces: Option<Vec<String>>,
}

/// What a token may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Asks, consumes, submits jobs; sees only what it created.
    Agent,
    /// Decides for this operator.
    Operator {
        /// The operator's id.
        operator: String,
    },
    /// Reads everything of its organisation and the audit log.
    Auditor,
    /// Sees to the channels; neither decides nor consumes.
    Admin,
}

impl Role {
    /// The word of the configuration.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator { .. } => "operator",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RoleWord {
    Agent,
    Operator,
    Auditor,
    Admin,
}

const ROLES: [(&str, RoleWord); 4] = [
    ("agent", RoleWord::Agent),
    ("operator", RoleWord::Operator),
    ("auditor", RoleWord::Auditor),
    ("admin", RoleWord::Admin),
];

/// The tokens, in the order of the file; `None` for one that could not be read.
pub(super) fn decode(reader: &Reader<'_>) -> Option<Vec<Option<TokenConfig>>> {
    let mut map = reader.map()?;
    let tokens = map.optional("tokens");
    map.finish();
    let Some(tokens) = tokens else {
        return Some(Vec::new());
    };
    Some(tokens.list()?.iter().map(TokenConfig::decode).collect())
}

impl TokenConfig {
    fn decode(reader: &Reader<'_>) -> Option<Self> {
        let before = reader.context().count();
        let mut map = reader.map()?;
        let name = map.required("name").and_then(|name| name.name());
        let secret = map.required("secret").and_then(|secret| decode_secret(&secret));
        let role = map.required("role").and_then(|role| role.choice(&ROLES));
        let org = map
            .optional("org")
            .map_or_else(|| Some(DEFAULT_ORG.to_owned()), |org| org.name());
        let operator_reader = map.optional("operator");
        let operator = operator_reader.as_ref().and_then(|operator| operator.line(128));
        let owner_reader = map.optional("owner");
        let owner = owner_reader.as_ref().and_then(|owner| owner.line(256));
        let pieces_reader = map.optional("pieces");
        let pieces = pieces_reader.as_ref().and_then(Reader::texts_or_none);
        if role == Some(RoleWord::Operator) && operator_reader.is_none() {
            map.missing("operator", "name the operator for whom this token decides");
        }
        map.finish();
        let role = role?;
        if role != RoleWord::Operator
            && let Some(operator) = operator_reader
        {
            operator.warn("has no effect: only a token of the role operator decides for somebody");
        }
        if role != RoleWord::Agent {
            for unused in [owner_reader, pieces_reader].into_iter().flatten() {
                unused.warn("has no effect: only a token of the role agent asks and submits");
            }
        }
        let role = match role {
            RoleWord::Agent => Role::Agent,
            RoleWord::Operator => Role::Operator { operator: operator? },
            RoleWord::Auditor => Role::Auditor,
            RoleWord::Admin => Role::Admin,
        };
        let token = Self {
            name: name?,
            secret: secret?,
            role,
            org: org?,
            owner,
            pieces,
        };
        (reader.context().count() == before).then_some(token)
    }
}

fn decode_secret(reader: &Reader<'_>) -> Option<Secret> {
    let secret = reader.header_secret()?;
    if secret.length() < SHORTEST_TOKEN {
        let message = format!(
            "the secret has {} characters; a token needs at least {SHORTEST_TOKEN}",
            secret.length()
        );
        reader.complain(
            Complaint::new(ProblemKind::BadSecret, message)
                .remedy("make a random one, such as `openssl rand -hex 32`"),
        );
        return None;
    }
    Some(secret)
}
