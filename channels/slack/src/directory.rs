//! Who somebody is in the workspace: `users.info`, `users.lookupByEmail`, `usergroups.users.list`, `conversations.members`
//! (Slack's method reference). Judges nobody: it tells what the account is.

use async_trait::async_trait;
use gatepost_channel::{Bar, Directory, Failure, Group, Profile, Unfound};
use serde_json::{Map, Value};

use crate::channel::SlackChannel;
use crate::client::{Answer, Api, Arguments};
use crate::error::{CallError, is_short_word};

/// Pages of a conversation's members that are read, of [`PAGE`] each. A larger one is no list of approvers.
const MOST_PAGES: usize = 10;
/// Members that are asked for at once; Slack recommends 200 at most.
const PAGE: &str = "200";
/// The account that speaks for Slack itself; it is not marked as a bot.
const SLACKBOT: &str = "USLACKBOT";
/// Longest name that is passed on, in characters.
const LONGEST_NAME: usize = 80;
/// Longest e-mail address (RFC 5321).
const LONGEST_EMAIL: usize = 254;

/// Where the app is at home: accounts of another workspace are foreign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Home {
    team: Option<String>,
    enterprise: Option<String>,
}

#[async_trait]
impl Directory for SlackChannel {
    /// `U…` or `W…`, letters and digits.
    fn is_id(&self, text: &str) -> bool {
        (9..=24).contains(&text.len())
            && text.starts_with(['U', 'W'])
            && text
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    }

    async fn person(&self, id: &str) -> Result<Profile, Unfound> {
        let answer = ask(&self.app.api, "users.info", &[("user", id)]).await?;
        let user = user(&answer)?;
        if user.get("id").and_then(Value::as_str) != Some(id) {
            return Err(odd("another_user"));
        }
        let home = self
            .app
            .home
            .get_or_try_init(|| home(&self.app.api))
            .await
            .map_err(|error| unfound(error, "auth.test"))?;
        Ok(profile(id, user, home))
    }

    async fn by_email(&self, email: &str) -> Result<String, Unfound> {
        let answer = ask(&self.app.api, "users.lookupByEmail", &[("email", email)]).await?;
        match user(&answer)?.get("id").and_then(Value::as_str) {
            Some(id) if is_short_word(id) => Ok(id.to_owned()),
            _ => Err(odd("user_without_id")),
        }
    }

    async fn members(&self, group: &Group) -> Result<Vec<String>, Unfound> {
        match group {
            Group::Named(id) => {
                let answer = ask(&self.app.api, "usergroups.users.list", &[("usergroup", id)]).await?;
                ids(&answer, "users")
            }
            Group::Chat => self.everybody().await,
        }
    }
}

impl SlackChannel {
    /// The members of the channel's conversation, bots among them.
    async fn everybody(&self) -> Result<Vec<String>, Unfound> {
        let mut members = Vec::new();
        let mut cursor = String::new();
        for _ in 0..MOST_PAGES {
            let arguments = [
                ("channel", self.chat.as_str()),
                ("limit", PAGE),
                ("cursor", cursor.as_str()),
            ];
            let first = cursor.is_empty();
            let arguments = if first { &arguments[..2] } else { &arguments[..] };
            let answer = ask(&self.app.api, "conversations.members", arguments).await?;
            members.extend(ids(&answer, "members")?);
            let next = answer
                .body
                .get("response_metadata")
                .and_then(|data| data.get("next_cursor")?.as_str())
                .unwrap_or_default();
            if next.is_empty() {
                return Ok(members);
            }
            next.clone_into(&mut cursor);
        }
        // Holds for this conversation, and says nothing of others.
        Err(Unfound::Hidden {
            why: "too_many_members: name a user group instead".to_owned(),
        })
    }
}

/// Asks once. What the app may not ask, and who is not there, are no failures.
async fn ask(api: &Api, method: &str, arguments: &[(&str, &str)]) -> Result<Answer, Unfound> {
    api.call(method, Arguments::Form(arguments))
        .await
        .map_err(|error| unfound(error, method))
}

async fn home(api: &Api) -> Result<Home, CallError> {
    let answer = api.call("auth.test", Arguments::Form(&[])).await?;
    Ok(Home {
        team: answer.id("team_id").map(str::to_owned),
        enterprise: answer.id("enterprise_id").map(str::to_owned),
    })
}

/// What a failed call says, by the errors on the methods' pages. A code that says clearly that the app, its token or the platform
/// is ill is a failure; one that says that the app lacks a right or the platform the method holds for every such question; any other
/// refusal is about this person or conversation, and holds for no other.
fn unfound(error: CallError, method: &str) -> Unfound {
    let (why, failure) = match error {
        CallError::Unclear(why) => (why.clone(), Failure::Retry { after: None, why }),
        CallError::Refused(failure) => match &failure {
            Failure::Retry { .. } => return Unfound::Failed(failure),
            Failure::Target { why }
            | Failure::Setup { why }
            | Failure::Content { why }
            | Failure::Gone { why } => (why.clone(), failure),
        },
    };
    match why.as_str() {
        "user_not_found" | "users_not_found" | "no_such_subteam" => Unfound::NoSuch,
        "fetch_members_failed" | "invalid_cursor" => odd(&why),
        "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired"
        | "accesslimited" | "request_not_built" => Unfound::Failed(failure),
        // An answer with nothing of Slack in it, or an address at which no such method is.
        "http_404" | "http_405" | "http_501" => Unfound::MayNotAsk {
            why: format!("{method}: {why}"),
        },
        _ if why.starts_with("http_2") => Unfound::MayNotAsk {
            why: format!("{method}: an answer with nothing in it"),
        },
        _ if matches!(failure, Failure::Retry { .. }) => Unfound::Failed(failure),
        code if lacks_a_right(code) => Unfound::MayNotAsk {
            why: format!("{method}: {why}"),
        },
        _ => Unfound::Hidden { why },
    }
}

/// Whether a code says that the app may not ask such questions at all, whoever they are about: by its scopes, its token, the plan
/// of the workspace, or since there is no such method.
fn lacks_a_right(code: &str) -> bool {
    let code = code.split(' ').next().unwrap_or_default();
    matches!(
        code,
        "missing_scope"
            | "not_allowed_token_type"
            | "no_permission"
            | "access_denied"
            | "app_access_restricted"
            | "team_access_not_granted"
            | "enterprise_is_restricted"
            | "ekm_access_denied"
            | "plan_upgrade_required"
            | "paid_teams_only"
            | "permission_denied"
            | "unknown_method"
            | "method_not_found"
            | "method_deprecated"
            | "deprecated_endpoint"
            | "not_implemented"
    )
}

fn odd(why: &str) -> Unfound {
    Unfound::Failed(Failure::Retry {
        after: None,
        why: why.to_owned(),
    })
}

fn user(answer: &Answer) -> Result<&Map<String, Value>, Unfound> {
    let user = answer.body.get("user").and_then(Value::as_object);
    user.ok_or_else(|| Unfound::MayNotAsk {
        why: "an answer with nobody in it".to_owned(),
    })
}

fn ids(answer: &Answer, key: &str) -> Result<Vec<String>, Unfound> {
    let Some(list) = answer.body.get(key).and_then(Value::as_array) else {
        return Err(Unfound::MayNotAsk {
            why: "an answer with nobody in it".to_owned(),
        });
    };
    let id = |value: &Value| value.as_str().filter(|id| is_short_word(id)).map(str::to_owned);
    list.iter()
        .map(|value| id(value).ok_or_else(|| odd("member_without_id")))
        .collect()
}

fn profile(id: &str, user: &Map<String, Value>, home: &Home) -> Profile {
    let about = user.get("profile").and_then(Value::as_object);
    let said = |key: &str| {
        about?
            .get(key)?
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let name = said("display_name").or_else(|| said("real_name"));
    Profile {
        id: id.to_owned(),
        bar: bar(id, user, home),
        email: said("email")
            .filter(|email| email.len() <= LONGEST_EMAIL && email.contains('@'))
            .map(str::to_lowercase),
        name: name.map(|name| name.chars().take(LONGEST_NAME).collect()),
    }
}

/// Why the account may not decide; of several reasons the most lasting one.
fn bar(id: &str, user: &Map<String, Value>, home: &Home) -> Option<Bar> {
    let is = |key: &str| user.get(key).and_then(Value::as_bool) == Some(true);
    if is("deleted") {
        Some(Bar::Deactivated)
    } else if is("is_bot") || is("is_workflow_bot") || id == SLACKBOT {
        Some(Bar::Bot)
    } else if is("is_stranger") || is_foreign(user, home) {
        Some(Bar::Foreign)
    } else if is("is_restricted") || is("is_ultra_restricted") {
        Some(Bar::Guest)
    } else if is("is_invited_user") {
        Some(Bar::NotJoined)
    } else {
        None
    }
}

/// Whether the account's home is another workspace. People of an Enterprise Grid are at home in the workspaces that they are
/// listed in, and in an app that is installed for the whole of it.
fn is_foreign(user: &Map<String, Value>, home: &Home) -> bool {
    let (Some(theirs), Some(ours)) = (user.get("team_id").and_then(Value::as_str), home.team.as_deref())
    else {
        return false;
    };
    if theirs == ours {
        return false;
    }
    let grid = user.get("enterprise_user").and_then(Value::as_object);
    let listed = grid
        .and_then(|grid| grid.get("teams")?.as_array())
        .is_some_and(|teams| teams.iter().any(|team| team.as_str() == Some(ours)));
    let enterprise = grid.and_then(|grid| grid.get("enterprise_id")?.as_str());
    let ours = enterprise.is_some() && enterprise == home.enterprise.as_deref();
    !(listed || ours)
}
