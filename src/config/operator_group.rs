//! The `operator_groups` section: people of a platform who hold roles by being in a group there. Who that is, the platform is
//! asked when somebody answers.

use super::{context::Complaint, node::Reader, problem::ProblemKind};

/// A group of a platform whose members hold roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorGroup {
    /// The name, unique.
    pub name: String,
    /// The channel whose app is asked; the roles hold in its organisation.
    pub channel: String,
    /// Which people.
    pub of: GroupOf,
    /// The roles that rules name; never empty.
    pub roles: Vec<String>,
}

/// Which people of a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupOf {
    /// A Slack user group, `S…`.
    Usergroup(String),
    /// A Feishu user group.
    Group(String),
    /// Everybody who is in the chat of the channel.
    Members,
}

impl GroupOf {
    /// The key that names it.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Usergroup(_) => "usergroup",
            Self::Group(_) => "group",
            Self::Members => "members",
        }
    }
}

/// The groups, in the order of the file; `None` for one that could not be read.
pub(super) fn decode(reader: &Reader<'_>) -> Option<Vec<Option<OperatorGroup>>> {
    Some(reader.list()?.iter().map(decode_one).collect())
}

fn decode_one(reader: &Reader<'_>) -> Option<OperatorGroup> {
    let before = reader.context().count();
    let mut map = reader.map()?;
    let name = map.required("name").and_then(|name| name.name());
    let channel = map.required("channel").and_then(|channel| channel.line(64));
    let usergroup = map
        .optional("usergroup")
        .map(|id| id.line(64).map(GroupOf::Usergroup));
    let group = map.optional("group").map(|id| id.line(64).map(GroupOf::Group));
    let members = map.optional("members").map(|members| decode_members(&members));
    let roles = map.optional("roles").map(|roles| roles.texts());
    map.finish();
    let mut named = [usergroup, group, members].into_iter().flatten();
    let of = match (named.next(), named.next()) {
        (Some(of), None) => of,
        (None, _) => unclear(reader, ProblemKind::MissingKey, "names no group"),
        (Some(_), Some(_)) => unclear(reader, ProblemKind::Conflict, "names more than one group"),
    };
    let name = name?;
    let group = OperatorGroup {
        channel: channel?,
        of: of?,
        roles: roles.unwrap_or_else(|| Some(vec![name.clone()]))?,
        name,
    };
    (reader.context().count() == before).then_some(group)
}

fn unclear(reader: &Reader<'_>, kind: ProblemKind, message: &str) -> Option<GroupOf> {
    reader.complain(
        Complaint::new(kind, message)
            .accepted("one of usergroup (Slack), group (Feishu) and members: true")
            .remedy(
                "make an entry for each group; `members: true` means everybody in the chat of the channel",
            ),
    );
    None
}

/// Being in a chat is authority only where somebody says so in full.
fn decode_members(reader: &Reader<'_>) -> Option<GroupOf> {
    if reader.boolean()? {
        return Some(GroupOf::Members);
    }
    reader.bad_value(
        "true",
        "remove the key: the members of a chat are never meant unless it stands there",
    );
    None
}
