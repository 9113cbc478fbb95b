//! The `operators` section: the persons who may decide, each known by one identity per platform.

use super::authority::decode_code_key;
use super::{
    channel::Kind,
    node::{Reader, joined},
    on_call::decode_away,
};
use crate::gate::code::CodeKey;
use crate::gate::duty::Absence;

/// A person who may decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The id, unique.
    pub id: String,
    /// The name that cards and pages show.
    pub name: String,
    /// The e-mail address, in lower case.
    pub email: Option<String>,
    /// The organisations; never empty once the configuration is checked.
    pub orgs: Vec<String>,
    /// The roles that rules name.
    pub roles: Vec<String>,
    /// The identities on the platforms.
    pub identities: Vec<Identity>,
    /// When the person is away, and who acts meanwhile.
    pub away: Vec<Absence>,
    /// The secret of the person's one-time codes.
    pub code_key: Option<CodeKey>,
}

/// Who somebody is on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Where the identity holds: on every channel of a kind, or on one channel.
    pub scope: IdentityScope,
    /// The platform's id of the person.
    pub id: PlatformId,
}

/// Where an identity holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IdentityScope {
    /// On every channel of this kind.
    Kind(Kind),
    /// On the channel of this name only.
    Channel(String),
}

/// A platform's id of a person, with its kind: ids of different kinds are never equal, whatever their text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PlatformId {
    /// Feishu `ou_…`: one person in one app.
    FeishuOpen(String),
    /// Feishu `on_…`: one person for all apps of one developer.
    FeishuUnion(String),
    /// Any other Feishu id: one person in one tenant.
    FeishuUser(String),
    /// Slack `U…` or `W…`.
    Slack(String),
    /// The local channel: the operator's own id.
    Local(String),
}

impl PlatformId {
    /// Reads an id of a platform of this kind as it is spelt in the configuration.
    pub fn of(kind: Kind, text: &str) -> Self {
        let text = text.to_owned();
        match kind {
            Kind::Feishu if text.starts_with("ou_") => Self::FeishuOpen(text),
            Kind::Feishu if text.starts_with("on_") => Self::FeishuUnion(text),
            Kind::Feishu => Self::FeishuUser(text),
            Kind::Slack => Self::Slack(text),
            Kind::Local => Self::Local(text),
        }
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        match self {
            Self::FeishuOpen(id)
            | Self::FeishuUnion(id)
            | Self::FeishuUser(id)
            | Self::Slack(id)
            | Self::Local(id) => id,
        }
    }

    /// What the platform calls this form of id.
    pub fn form(&self) -> &'static str {
        match self {
            Self::FeishuOpen(_) => "open_id",
            Self::FeishuUnion(_) => "union_id",
            Self::FeishuUser(_) => "user_id",
            Self::Slack(_) | Self::Local(_) => "user id",
        }
    }
}

impl Operator {
    /// Whether the person belongs to the organisation.
    pub fn is_of(&self, org: &str) -> bool {
        self.orgs.iter().any(|mine| mine == org)
    }

    /// Whether a requester or owner of this name is the person: by id, e-mail (in any case) or the text of an identity.
    pub fn is_called(&self, handle: &str) -> bool {
        self.id == handle
            || self
                .email
                .as_deref()
                .is_some_and(|email| email == handle.to_lowercase())
            || self
                .identities
                .iter()
                .any(|identity| identity.id.as_str() == handle)
    }

    /// The identities that hold on a channel.
    pub fn identities_on<'a, 'c>(
        &'a self,
        kind: Kind,
        channel: &'c str,
    ) -> impl Iterator<Item = &'a PlatformId> + use<'a, 'c> {
        self.identities
            .iter()
            .filter(move |identity| match &identity.scope {
                IdentityScope::Kind(of) => *of == kind,
                IdentityScope::Channel(name) => name == channel,
            })
            .map(|identity| &identity.id)
    }
}

/// An operator as written: the identities are not sorted out before the channels are known.
pub(super) struct OperatorDraft {
    pub(super) operator: Operator,
    /// Key as written (a kind or a channel's name) and id.
    pub(super) identities: Vec<(String, String)>,
}

/// The operators, in the order of the file; `None` for one that could not be read.
pub(super) fn decode(reader: &Reader<'_>) -> Option<Vec<Option<OperatorDraft>>> {
    Some(reader.list()?.iter().map(decode_one).collect())
}

fn decode_one(reader: &Reader<'_>) -> Option<OperatorDraft> {
    let before = reader.context().count();
    let mut map = reader.map()?;
    let id = map.required("id").and_then(|id| decode_id(&id));
    let name = map.optional("name").map(|name| name.line(128));
    let email = map.optional("email").and_then(|email| decode_email(&email));
    let orgs = map.optional("orgs").and_then(|orgs| {
        let names = orgs.texts();
        orgs.list()?.iter().for_each(|org| {
            org.text().and_then(|_| org.name());
        });
        names
    });
    let roles = map.optional("roles").and_then(|roles| roles.texts_or_none());
    let identities: Option<Vec<(String, String)>> = map.optional("identities").and_then(|identities| {
        let named = identities.names()?;
        named
            .into_iter()
            .map(|(key, id)| Some((key.to_owned(), id.line(128)?)))
            .collect()
    });
    let away = map.optional("away").and_then(|away| decode_away(&away));
    let code_key = map.optional("totp").and_then(|totp| decode_code_key(&totp));
    map.finish();
    let id = id?;
    let name = name.unwrap_or_else(|| Some(id.clone()))?;
    let operator = Operator {
        id,
        name,
        email,
        orgs: orgs.unwrap_or_default(),
        roles: roles.unwrap_or_default(),
        identities: Vec::new(),
        away: away.unwrap_or_default(),
        code_key,
    };
    (reader.context().count() == before).then_some(OperatorDraft {
        operator,
        identities: identities.unwrap_or_default(),
    })
}

fn decode_id(reader: &Reader<'_>) -> Option<String> {
    let id = reader.line(128)?;
    if id.chars().any(char::is_whitespace) {
        reader.bad_value(
            "an id without blanks",
            "use a short id such as `dana`; the full name is `name`",
        );
        return None;
    }
    Some(id)
}

fn decode_email(reader: &Reader<'_>) -> Option<String> {
    let text = reader.line(254)?;
    let ok = text
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.chars().any(char::is_whitespace);
    if !ok {
        reader.bad_value("an e-mail address", "write it as user@host");
        return None;
    }
    Some(text.to_lowercase())
}

/// The path of one identity of an operator, for messages.
pub(super) fn identity_path(index: usize, key: &str) -> String {
    joined(&format!("operators[{index}].identities"), key)
}
