//! The contacts: accounts, addresses, user groups and the members of a group chat, with scopes, the contact range and pages.
//!
//! Facts: the pages of `contact/v3/users/:user_id`, `users/batch_get_id`, `group/:group_id/member/simplelist`,
//! `group/member_belong` and `im/v1/chats/:chat_id/members`, and the general error codes.

use std::collections::HashMap;

use axum::http::Uri;
use serde_json::{Value, json};

use super::FakeFeishu;
use super::methods::{Failure, Outcome, done};
use super::world::{Person, World};

const BASE: &str = "contact:contact.base:readonly";
const NAME: &str = "contact:user.base:readonly";
const STATUS: &str = "contact:user.employee:readonly";
const EMAIL: &str = "contact:user.email:readonly";
const ADDRESSES: &str = "contact:user.id:readonly";
const GROUPS: &str = "contact:group:readonly";
const CHATS: &str = "im:chat:readonly";
/// What the app is granted at the start.
pub(super) const SCOPES: [&str; 7] = [BASE, NAME, STATUS, EMAIL, ADDRESSES, GROUPS, CHATS];
/// Addresses that one call may name.
const ADDRESSES_OF_A_CALL: usize = 50;

/// What an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// In use.
    Active,
    /// Suspended by an administrator.
    Frozen,
    /// Left the organisation.
    Resigned,
    /// Took themselves out; becomes resigned after a time.
    Exited,
    /// Has not confirmed the invitation.
    Unjoined,
    /// Was never signed in with.
    NotActivated,
}

impl Status {
    fn shown(self) -> Value {
        json!({
            "is_frozen": self == Self::Frozen, "is_resigned": self == Self::Resigned,
            "is_activated": !matches!(self, Self::NotActivated | Self::Unjoined),
            "is_exited": self == Self::Exited, "is_unjoin": self == Self::Unjoined,
        })
    }
}

/// A user group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub people: Vec<String>,
    pub departments: Vec<String>,
    /// Whether its members follow from a rule instead of a list.
    pub dynamic: bool,
    /// Whether the contact range of the app leaves it out.
    pub hidden: bool,
}

impl Group {
    fn holds(&self, person: &Person) -> bool {
        let by_department = person
            .department
            .as_ref()
            .is_some_and(|department| self.departments.contains(department));
        by_department || self.people.contains(&person.open_id)
    }
}

impl FakeFeishu {
    /// A user group with these people; one that exists gets them instead of its own.
    pub fn set_group(&self, id: &str, people: &[&str]) {
        let people = people.iter().map(|id| (*id).to_owned()).collect();
        self.world(|world| world.groups.entry(id.to_owned()).or_default().people = people);
    }

    /// A user group that holds a whole department.
    pub fn add_department(&self, group: &str, department: &str) {
        self.world(|world| {
            let group = world.groups.entry(group.to_owned()).or_default();
            group.departments.push(department.to_owned());
        });
    }

    /// The contact range of the app no longer holds the group.
    pub fn hide_group(&self, id: &str) {
        self.world(|world| world.groups.get_mut(id).expect("a group of this test").hidden = true);
    }

    /// Changes an account.
    pub fn change_person(&self, open_id: &str, change: impl FnOnce(&mut Person)) {
        self.world(|world| change(world.people.get_mut(open_id).expect("a person of this test")));
    }

    /// Takes a granted scope away.
    pub fn revoke_scope(&self, scope: &str) {
        self.world(|world| assert!(world.scopes.remove(scope), "{scope} was granted"));
    }

    /// The person leaves the group chat.
    pub fn remove_member(&self, chat: &str, open_id: &str) {
        self.world(|world| {
            let chat = world.chats.get_mut(chat).expect("a chat of this test");
            chat.absent.insert(open_id.to_owned());
        });
    }
}

fn query(uri: &Uri) -> HashMap<String, String> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn needs(world: &World, scope: &str) -> Result<(), Failure> {
    if world.scopes.contains(scope) {
        return Ok(());
    }
    let text = format!("Access denied. One of the following scopes is required: [{scope}]");
    Err(Failure::new(99_991_672, &text))
}

fn limit(world: &mut World, call: &str, now_ms: i64) -> Result<(), Failure> {
    if !world.rate_limited {
        return Ok(());
    }
    let taken = world.contact_calls.take(call, now_ms);
    taken.map_err(|_| Failure::new(99_991_400, "request trigger frequency limit"))
}

/// The person of this id, or the code of the kind of id that leads nowhere.
fn person<'a>(world: &'a World, kind: &str, id: &str) -> Result<&'a Person, Failure> {
    let is = |person: &&Person| match kind {
        "open_id" => person.open_id == id,
        "union_id" => person.union_id == id,
        _ => person.user_id.as_deref() == Some(id),
    };
    let code = match kind {
        "open_id" => 99_992_351,
        "union_id" => 99_992_364,
        _ => 99_992_360,
    };
    let nobody = || {
        Failure::new(
            code,
            &format!("The request you send is not a valid {{{kind}}} or not exists"),
        )
    };
    world.people.values().find(is).ok_or_else(nobody)
}

fn id_of(person: &Person, kind: &str) -> Option<String> {
    match kind {
        "open_id" => Some(person.open_id.clone()),
        "union_id" => Some(person.union_id.clone()),
        _ => person.user_id.clone(),
    }
}

/// What the app is granted, as `application/v6/scopes` lists it.
pub(super) fn granted(world: &World) -> Value {
    let scopes = world.scopes.iter().map(String::as_str);
    let scopes = scopes.chain(["im:message:send_as_bot"]);
    let scopes = scopes.map(|scope| json!({"scope_name": scope, "grant_status": 1, "scope_type": "tenant"}));
    done(&json!({ "scopes": scopes.collect::<Vec<_>>() }))
}

pub(super) fn account(world: &mut World, id: &str, uri: &Uri, now_ms: i64) -> Outcome {
    needs(world, BASE)?;
    limit(world, "user", now_ms)?;
    let query = query(uri);
    let kind = query.get("user_id_type").map_or("open_id", String::as_str);
    let person = person(world, kind, id)?;
    if !person.in_range {
        return Err(Failure::new(41_050, "no user authority error"));
    }
    let mut user = json!({"open_id": person.open_id, "union_id": person.union_id});
    let granted = |scope: &str| world.scopes.contains(scope);
    if granted(NAME) {
        user["name"] = json!(person.open_id.trim_start_matches("ou_"));
    }
    if granted(EMAIL) && !person.email.is_empty() {
        user["email"] = json!(person.email);
    }
    if granted(STATUS) {
        user["status"] = person.status.shown();
    }
    Ok(done(&json!({ "user": user })))
}

pub(super) fn by_address(world: &mut World, body: &Value, uri: &Uri, now_ms: i64) -> Outcome {
    needs(world, ADDRESSES)?;
    limit(world, "batch_get_id", now_ms)?;
    let emails = body["emails"].as_array().cloned().unwrap_or_default();
    if emails.len() > ADDRESSES_OF_A_CALL {
        return Err(Failure::new(99_992_402, "field validation failed"));
    }
    let query = query(uri);
    let kind = query.get("user_id_type").map_or("open_id", String::as_str);
    let resigned = body["include_resigned"] == true;
    let list = emails.iter().map(|email| {
        let found = world.people.values().find(|person| {
            *email == *person.email && person.in_range && (resigned || person.status != Status::Resigned)
        });
        let mut entry = json!({ "email": email });
        if let Some(person) = found {
            entry["user_id"] = json!(id_of(person, kind));
            if world.scopes.contains(STATUS) {
                entry["status"] = person.status.shown();
            }
        }
        entry
    });
    Ok(done(&json!({ "user_list": list.collect::<Vec<_>>() })))
}

/// Part of a list, and how to get the next: the list is left out where it is empty, the token where nothing follows.
fn page(key: &str, all: &[Value], query: &HashMap<String, String>, sizes: (usize, usize)) -> Outcome {
    let size = query
        .get("page_size")
        .map_or(Some(sizes.0), |size| size.parse().ok());
    let size = size.filter(|size| (1..=sizes.1).contains(size));
    let size = size.ok_or_else(|| Failure::new(40_011, "page size is invalid"))?;
    let begin = match query.get("page_token") {
        None => 0,
        Some(token) => {
            let place = token.strip_prefix("place:").and_then(|place| place.parse().ok());
            let place = place.filter(|place: &usize| *place < all.len());
            place.ok_or_else(|| Failure::new(40_012, "page token is invalid error"))?
        }
    };
    let end = all.len().min(begin + size);
    let mut data = json!({"has_more": end < all.len()});
    if end < all.len() {
        data["page_token"] = json!(format!("place:{end}"));
    }
    if begin < end {
        data[key] = json!(all[begin..end]);
    }
    Ok(done(&data))
}

pub(super) fn in_group(world: &mut World, id: &str, uri: &Uri, now_ms: i64) -> Outcome {
    needs(world, GROUPS)?;
    limit(world, "simplelist", now_ms)?;
    let group = world.groups.get(id);
    let group = group.ok_or_else(|| Failure::new(42_002, "invalid group_id"))?;
    if group.hidden {
        return Err(Failure::with_status(403, 42_009, "no user group authority error"));
    }
    let query = query(uri);
    let members: Vec<Value> = match query.get("member_type").map_or("user", String::as_str) {
        "user" => {
            let kind = query.get("member_id_type").map_or("open_id", String::as_str);
            let listed = world
                .people
                .values()
                .filter(|person| group.people.contains(&person.open_id));
            let ids = listed.filter_map(|person| id_of(person, kind));
            ids.map(|id| json!({"member_id": id, "member_type": "user"}))
                .collect()
        }
        "department" => {
            let ids = group.departments.iter();
            ids.map(|id| json!({"member_id": id, "member_type": "department"}))
                .collect()
        }
        _ => return Err(Failure::new(41_074, "invalid member_type")),
    };
    page("memberlist", &members, &query, (50, 100))
}

pub(super) fn groups_of(world: &mut World, uri: &Uri, now_ms: i64) -> Outcome {
    needs(world, GROUPS)?;
    limit(world, "member_belong", now_ms)?;
    let query = query(uri);
    let kind = query.get("member_id_type").map_or("open_id", String::as_str);
    let id = query.get("member_id").map_or("", String::as_str);
    let person = person(world, kind, id).map_err(|_| Failure::new(41_073, "invalid member_id"))?;
    if !person.in_range {
        return Err(Failure::with_status(403, 41_050, "no user authority error"));
    }
    let dynamic = match query.get("group_type").map_or("1", String::as_str) {
        "1" => false,
        "2" => true,
        _ => return Err(Failure::new(41_074, "invalid member_type")),
    };
    let groups = world
        .groups
        .iter()
        .filter(|(_, group)| group.dynamic == dynamic && !group.hidden && group.holds(person));
    let ids: Vec<Value> = groups.map(|(id, _)| json!(id)).collect();
    page("group_list", &ids, &query, (500, 1_000))
}

pub(super) fn in_chat(world: &World, id: &str, uri: &Uri) -> Outcome {
    needs(world, CHATS)?;
    let chat = world.chats.get(id);
    let chat =
        chat.ok_or_else(|| Failure::new(232_006, "Your request specifies a chat_id which is invalid."))?;
    if !chat.bot_is_member {
        return Err(Failure::new(232_011, "Operator can NOT be out of the chat."));
    }
    let query = query(uri);
    let kind = query.get("member_id_type").map_or("open_id", String::as_str);
    let here = world
        .people
        .values()
        .filter(|person| !chat.absent.contains(&person.open_id));
    let members: Vec<Value> = here
        .filter_map(|person| id_of(person, kind))
        .map(|id| json!({"member_id_type": kind, "member_id": id, "name": id, "tenant_key": super::TENANT}))
        .collect();
    page("items", &members, &query, (20, 100))
}
