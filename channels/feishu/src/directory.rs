//! Who somebody is in the tenant, and who is in a group: `contact/v3/users`, `contact/v3/group` and the members of a chat
//! (open platform, contacts and messaging). Judges nobody: it tells what the account is.

use async_trait::async_trait;
use gatepost_channel::{Bar, Directory, Failure, Group, Profile, Unfound};
use reqwest::Method;
use serde_json::{Value, json};

use crate::channel::FeishuChannel;
use crate::client::Call;
use crate::config::is_id;
use crate::document::{Object, text};
use crate::error::{CallError, Class, Refused};

/// Members of a page; the platform gives 100 at most.
const PAGE: &str = "100";
/// Pages of a group that are read. A larger one is no list of approvers.
const MOST_PAGES: usize = 10;
/// Longest name that is passed on, in characters.
const LONGEST_NAME: usize = 80;
/// Longest e-mail address (RFC 5321).
const LONGEST_EMAIL: usize = 254;
/// The two kinds of user groups: those that people are put into, and those that follow rules.
const KINDS_OF_GROUPS: [&str; 2] = ["1", "2"];
/// Groups of a person of a page; the platform gives 1000 at most.
const PAGE_OF_GROUPS: &str = "1000";

/// How the platform calls the form of an id.
fn form(id: &str) -> &'static str {
    match id.get(..3) {
        Some("ou_") => "open_id",
        Some("on_") => "union_id",
        _ => "user_id",
    }
}

#[async_trait]
impl Directory for FeishuChannel {
    /// Open and union ids; a tenant chooses its user ids freely, so that any word may be one.
    fn is_id(&self, text: &str) -> bool {
        is_id(text) && form(text) != "user_id"
    }

    async fn person(&self, id: &str) -> Result<Profile, Unfound> {
        if !is_id(id) {
            return Err(Unfound::NoSuch);
        }
        let path = ["open-apis", "contact", "v3", "users", id];
        let answer = self
            .get("contact.user.get", &path, &[("user_id_type", form(id))])
            .await?;
        let user = data(&answer)
            .and_then(|data| data.get("user")?.as_object())
            .ok_or_else(nothing)?;
        profile(id, user)
    }

    /// The address as it stands in the contacts; enterprise mail is not found this way.
    async fn by_email(&self, email: &str) -> Result<String, Unfound> {
        let body = json!({ "emails": [email], "include_resigned": false });
        let call = Call {
            name: "contact.user.batch_get_id",
            method: Method::POST,
            path: &["open-apis", "contact", "v3", "users", "batch_get_id"],
            query: &[("user_id_type", "open_id")],
            body: Some(body.to_string().into_bytes()),
        };
        let answer = self.app.call(&call).await.map_err(unfound)?;
        let list = list(&answer, "user_list")?;
        let mut ids = list.iter().filter_map(|found| found.get("user_id")?.as_str());
        match ids.next() {
            Some(id) if is_id(id) => Ok(id.to_owned()),
            Some(_) => Err(odd("an id that is none")),
            None => Err(Unfound::NoSuch),
        }
    }

    async fn members(&self, group: &Group) -> Result<Vec<String>, Unfound> {
        match group {
            Group::Named(id) => {
                if !is_id(id) {
                    return Err(Unfound::NoSuch);
                }
                let path = ["open-apis", "contact", "v3", "group", id, "member", "simplelist"];
                let query = [("member_id_type", "open_id"), ("member_type", "user")];
                self.pages("contact.group.members", &path, &query, "memberlist")
                    .await
            }
            Group::Chat => {
                let path = ["open-apis", "im", "v1", "chats", &self.chat_id, "members"];
                let query = [("member_id_type", "open_id")];
                self.pages("im.chat.members", &path, &query, "items").await
            }
        }
    }

    /// Members by department are told only of a person: a list names either people or departments.
    async fn belongs(&self, group: &Group, id: &str) -> Result<Option<bool>, Unfound> {
        let Group::Named(group) = group else {
            return Ok(None);
        };
        if !is_id(id) {
            return Ok(None);
        }
        for kind in KINDS_OF_GROUPS {
            if self.is_among(kind, group, id).await? {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }
}

impl FeishuChannel {
    async fn get(
        &self,
        name: &'static str,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Object, Unfound> {
        let call = Call {
            name,
            method: Method::GET,
            path,
            query,
            body: None,
        };
        self.app.call(&call).await.map_err(unfound)
    }

    /// Whether this group is among those of a kind that hold the person, page by page.
    async fn is_among(&self, kind: &str, group: &str, id: &str) -> Result<bool, Unfound> {
        let path = ["open-apis", "contact", "v3", "group", "member_belong"];
        let mut next: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut query = vec![
                ("member_id", id),
                ("member_id_type", form(id)),
                ("group_type", kind),
                ("page_size", PAGE_OF_GROUPS),
            ];
            query.extend(next.as_deref().map(|token| ("page_token", token)));
            let answer = self.get("contact.group.member_belong", &path, &query).await?;
            // Who is in no group gets no list.
            let groups = data(&answer).ok_or_else(nothing)?.get("group_list");
            let groups = groups.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if groups.iter().any(|found| found.as_str() == Some(group)) {
                return Ok(true);
            }
            next = following(&answer)?;
            if next.is_none() {
                return Ok(false);
            }
        }
        Err(too_many("the person is in too many groups"))
    }

    /// The members of a list, page by page.
    async fn pages(
        &self,
        name: &'static str,
        path: &[&str],
        query: &[(&str, &str)],
        key: &str,
    ) -> Result<Vec<String>, Unfound> {
        let mut members = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut query = query.to_vec();
            query.push(("page_size", PAGE));
            query.extend(next.as_deref().map(|token| ("page_token", token)));
            let answer = self.get(name, path, &query).await?;
            for member in list(&answer, key)? {
                let kind = member.get("member_type").and_then(Value::as_str);
                if kind.is_some_and(|kind| kind != "user") {
                    continue;
                }
                match member.get("member_id").and_then(Value::as_str) {
                    Some(id) if is_id(id) => members.push(id.to_owned()),
                    _ => return Err(odd("a member without an id")),
                }
            }
            next = following(&answer)?;
            if next.is_none() {
                return Ok(members);
            }
        }
        Err(too_many("too many members: name a smaller user group"))
    }
}

/// Where the next page begins, if there is one.
fn following(answer: &Object) -> Result<Option<String>, Unfound> {
    let data = data(answer).ok_or_else(nothing)?;
    if data.get("has_more").and_then(Value::as_bool) != Some(true) {
        return Ok(None);
    }
    match data.get("page_token").and_then(Value::as_str) {
        Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
        _ => Err(odd("more follow and no way to them")),
    }
}

/// Holds for this one list, and says nothing of others.
fn too_many(why: &str) -> Unfound {
    Unfound::Hidden { why: why.to_owned() }
}

fn data(answer: &Object) -> Option<&Object> {
    answer.get("data")?.as_object()
}

/// The list of an answer. The platform leaves it out, or says null, where nobody is in it; an answer without data is none.
fn list<'a>(answer: &'a Object, key: &str) -> Result<&'a [Value], Unfound> {
    match data(answer)
        .filter(|data| !data.is_empty())
        .ok_or_else(nothing)?
        .get(key)
    {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(odd("a list that is none")),
    }
}

fn nothing() -> Unfound {
    Unfound::MayNotAsk {
        why: "an answer with nobody in it".to_owned(),
    }
}

fn odd(why: &str) -> Unfound {
    Unfound::Failed(Failure::Retry {
        after: None,
        why: why.to_owned(),
    })
}

/// What a failed call says, by the pages of the methods above and the general list of codes:
/// - nobody and no group: 41012 and 41073 an id that is none, 99992351, 99992360, 99992364 and 99992381 an id that is nobody's
///   here, 99992361 an open id of another app, 41022 a person of another tenant, 42002 no such group;
/// - this one is not for the app: 41050, 42009 and 40004 outside its contact range, 232006, 232009, 232010, 232011 and 232033 a
///   chat that it is not in;
/// - a right that the app lacks: 99991672 and 99991679 a scope, 99991676 and 99991668 what the token may not do;
/// - no answer: 40003, 40006, 45500 and 55001 the platform's own fault (with any status), 40012 a page that is gone, 42008 and
///   those of a token, an app or a quota that cannot serve.
///
/// Any other refusal is about what was asked for, and holds for nothing else.
fn unfound(error: CallError) -> Unfound {
    let refused = match error {
        CallError::Refused(refused) => refused,
        CallError::Unclear(why) if why == "an answer that cannot be read" => return nothing(),
        other => return Unfound::Failed(other.failure()),
    };
    match refused.code {
        Some(
            41_012 | 41_022 | 41_073 | 42_002 | 99_992_351 | 99_992_360 | 99_992_361 | 99_992_364
            | 99_992_381,
        ) => Unfound::NoSuch,
        Some(40_004 | 41_050 | 42_009 | 232_006 | 232_009 | 232_010 | 232_011 | 232_033) => {
            Unfound::Hidden { why: refused.why() }
        }
        Some(
            10_003 | 10_014 | 10_015 | 40_003 | 40_006 | 40_012 | 42_008 | 45_500 | 55_001 | 99_991_401
            | 99_991_403 | 99_991_662 | 99_991_673,
        ) => failed(refused),
        Some(99_991_668 | 99_991_672 | 99_991_676 | 99_991_679) => {
            Unfound::MayNotAsk { why: refused.codes() }
        }
        _ if matches!(refused.status, 404 | 405 | 501) => Unfound::MayNotAsk { why: refused.codes() },
        _ if matches!(refused.class(), Class::Retry | Class::Unclear | Class::Token) => failed(refused),
        _ if refused.status >= 500 => odd(&refused.codes()),
        // Without a code it is no answer of the platform's: whatever stands there does not know the method.
        None => Unfound::MayNotAsk { why: refused.codes() },
        Some(_) => Unfound::Hidden { why: refused.codes() },
    }
}

fn failed(refused: Refused) -> Unfound {
    Unfound::Failed(CallError::Refused(refused).failure())
}

/// An account. Its standing is shown only to apps that may see it; who is not seen to be active is not vouched for.
fn profile(id: &str, user: &Object) -> Result<Profile, Unfound> {
    let Some(status) = user.get("status").and_then(Value::as_object) else {
        return Err(Unfound::MayNotAsk {
            why: "whether the account is active is not shown: grant contact:user.employee:readonly"
                .to_owned(),
        });
    };
    let said = |key: &str| text(user, &[key]).map(str::trim).filter(|text| !text.is_empty());
    let email = said("email").or_else(|| said("enterprise_email"));
    Ok(Profile {
        id: id.to_owned(),
        bar: bar(status),
        email: email
            .filter(|email| email.len() <= LONGEST_EMAIL && email.contains('@'))
            .map(str::to_lowercase),
        name: said("name").map(|name| name.chars().take(LONGEST_NAME).collect()),
    })
}

/// Why the account may not decide; of several reasons the most lasting one.
fn bar(status: &Object) -> Option<Bar> {
    let is = |key: &str| status.get(key).and_then(Value::as_bool) == Some(true);
    if is("is_resigned") || is("is_exited") {
        Some(Bar::Resigned)
    } else if is("is_frozen") {
        Some(Bar::Frozen)
    } else if is("is_unjoin") || status.get("is_activated").and_then(Value::as_bool) == Some(false) {
        Some(Bar::NotJoined)
    } else {
        None
    }
}
