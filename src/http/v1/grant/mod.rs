//! Grants over HTTP: what lets later calls run without a person, until when, and by whom.

use serde::Serialize;

use crate::clock::rfc3339;
use crate::confirmation::grant::{End, Grant};
use crate::gate::grant::GrantArguments;

#[cfg(test)]
mod grant_tests;
pub mod list;
pub mod revoke;

/// A grant as the API shows it. Members that hold nothing are `null`.
#[derive(Debug, Serialize)]
pub struct View {
    id: String,
    org: String,
    /// `active`, `revoked`, `expired`, or `used_up`.
    status: &'static str,
    scope: String,
    rule: String,
    tool_name: String,
    token: String,
    agent_id: Option<String>,
    session_id: Option<String>,
    requester: Option<String>,
    /// What of the arguments must be equal: `same`, `any`, or the pointers.
    arguments: ArgumentsView,
    /// Who gave it.
    operators: Vec<String>,
    /// The request whose approval made it.
    confirmation_id: String,
    uses: u32,
    max_uses: Option<u32>,
    created_at: String,
    expires_at: String,
    ended_at: Option<String>,
    revoked_by: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ArgumentsView {
    Word(&'static str),
    Pointers(Vec<String>),
}

/// Shows a grant. Every field of the row is named here, so that a new one cannot be forgotten or slip out.
pub fn view(grant: Grant) -> View {
    let Grant {
        id,
        org,
        rule,
        token,
        tool,
        agent_id,
        requester,
        session_id,
        scope,
        arguments,
        pattern: _,
        grantors,
        source,
        created_at,
        expires_at,
        max_uses,
        uses,
        end,
        version: _,
    } = grant;
    let used_up = max_uses.is_some_and(|most| uses >= most);
    let (status, ended_at, revoked_by) = match end {
        None if used_up => ("used_up", None, None),
        None => ("active", None, None),
        Some(End::Revoked { by, at }) => ("revoked", Some(at), Some(by.0)),
        Some(End::Expired { at }) => ("expired", Some(at), None),
    };
    View {
        id: id.to_string(),
        org: org.0,
        status,
        scope: scope.to_string(),
        rule,
        tool_name: tool.to_string(),
        token: token.0,
        agent_id,
        session_id,
        requester,
        arguments: match arguments {
            GrantArguments::Same => ArgumentsView::Word("same"),
            GrantArguments::Any => ArgumentsView::Word("any"),
            GrantArguments::At(pointers) => {
                ArgumentsView::Pointers(pointers.iter().map(ToString::to_string).collect())
            }
        },
        operators: grantors.into_iter().map(|grantor| grantor.person.0).collect(),
        confirmation_id: source.to_string(),
        uses,
        max_uses,
        created_at: rfc3339(created_at),
        expires_at: rfc3339(expires_at),
        ended_at: ended_at.map(rfc3339),
        revoked_by,
    }
}
