//! Who is in the workspace: accounts, user groups, members of a channel, with the limits of each method.
//!
//! Facts: the method pages of `users.info`, `users.lookupByEmail`, `usergroups.list`, `usergroups.users.list` and
//! `conversations.members`, and the page on rate limits (tiers 2 to 4).

use serde_json::{Value, json};

use super::super::limiter::Limiter;
use super::methods::{Failure, Outcome, text};
use super::world::{User, World};
use super::{FakeSlack, TEAM};

/// Members of a page when nothing else is asked for, and at the most.
const PAGE: (usize, usize) = (100, 999);
const MINUTE_MS: i64 = 60_000;
/// The bot is a member like any other.
const BOT: &str = "U0GATEBOT";

/// What an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// An active member.
    Member,
    /// Switched off.
    Deactivated,
    /// A program.
    Bot,
    /// A guest of several channels.
    Guest,
    /// A guest of one channel.
    GuestOfOneChannel,
    /// Of another workspace, in a shared channel.
    OfAnotherTeam,
    /// Of another workspace that shares no channel with this one.
    Stranger,
    /// Invited, and has not signed in yet.
    Invited,
}

/// A user group.
#[derive(Clone, Debug, Default)]
pub(super) struct UserGroup {
    pub users: Vec<String>,
    pub disabled: bool,
}

/// The limits of the methods, per method: calls a minute, as a burst and again over the minute.
#[derive(Debug)]
pub(super) struct Tiers {
    groups: Limiter,
    addresses: Limiter,
    accounts: Limiter,
}

impl Default for Tiers {
    fn default() -> Self {
        let tier = |calls: i64| Limiter::new(MINUTE_MS / calls, calls);
        Self {
            groups: tier(20),
            addresses: tier(50),
            accounts: tier(100),
        }
    }
}

impl FakeSlack {
    /// A user group with these members; one that exists gets them instead of its own.
    pub fn set_user_group(&self, id: &str, users: &[&str]) {
        let users = users.iter().map(|id| (*id).to_owned()).collect();
        self.world(|world| world.user_groups.entry(id.to_owned()).or_default().users = users);
    }

    /// Somebody switches the user group off.
    pub fn disable_user_group(&self, id: &str) {
        self.world(|world| {
            let group = world.user_groups.get_mut(id);
            group.expect("a user group of this test").disabled = true;
        });
    }

    /// The workspace is on the free plan, which has no user groups.
    pub fn downgrade(&self) {
        self.world(|world| world.paid = false);
    }

    /// Changes an account.
    pub fn change_user(&self, id: &str, change: impl FnOnce(&mut User)) {
        self.world(|world| change(world.users.get_mut(id).expect("a person of this test")));
    }
}

/// Counts the call against the limit of its method.
pub(super) fn limit(world: &mut World, method: &str, now_ms: i64) -> Result<(), Failure> {
    let limiter = match method {
        "usergroups.list" | "usergroups.users.list" => &mut world.tiers.groups,
        "users.lookupByEmail" => &mut world.tiers.addresses,
        "users.info" | "conversations.members" => &mut world.tiers.accounts,
        _ => return Ok(()),
    };
    if !world.rate_limited {
        return Ok(());
    }
    limiter.take(method, now_ms).map_err(|wait_ms| Failure {
        retry_after: Some((wait_ms + 999) / 1000),
        ..Failure::from("ratelimited")
    })
}

/// The account as the app may see it: the address needs a scope of its own.
fn shown(world: &World, user: &User) -> Value {
    let is = |standing| user.standing == standing;
    let team = if is(Standing::OfAnotherTeam) || is(Standing::Stranger) {
        "T0ELSEWHERE"
    } else {
        TEAM
    };
    let mut profile = json!({"real_name": user.name, "display_name": user.name});
    if world.scopes.iter().any(|scope| scope == "users:read.email") && !user.email.is_empty() {
        profile["email"] = json!(user.email);
    }
    let mut account = json!({
        "id": user.id, "team_id": team, "name": user.name, "deleted": is(Standing::Deactivated),
        "profile": profile,
    });
    // Slack tells less of who is gone.
    if !is(Standing::Deactivated) {
        account["real_name"] = json!(user.name);
        account["is_restricted"] = json!(is(Standing::Guest) || is(Standing::GuestOfOneChannel));
        account["is_ultra_restricted"] = json!(is(Standing::GuestOfOneChannel));
    }
    account["is_bot"] = json!(is(Standing::Bot));
    account["is_app_user"] = json!(false);
    if is(Standing::Stranger) {
        account["is_stranger"] = json!(true);
    }
    if is(Standing::Invited) {
        account["is_invited_user"] = json!(true);
    }
    account
}

pub(super) fn info(world: &World, args: &Value) -> Outcome {
    let user = world.users.get(text(args, "user")).ok_or("user_not_found")?;
    Ok(json!({"user": shown(world, user)}))
}

pub(super) fn by_email(world: &World, args: &Value) -> Outcome {
    let email = text(args, "email");
    let mut users = world.users.values();
    let found = users.find(|user| {
        user.email.eq_ignore_ascii_case(email) && user.standing != Standing::Deactivated && !email.is_empty()
    });
    Ok(json!({"user": shown(world, found.ok_or("users_not_found")?)}))
}

fn wants(args: &Value, key: &str) -> bool {
    matches!(text(args, key), "true" | "1") || args[key] == true
}

pub(super) fn groups(world: &World, args: &Value) -> Outcome {
    if !world.paid {
        return Err("plan_upgrade_required".into());
    }
    let (disabled, users) = (wants(args, "include_disabled"), wants(args, "include_users"));
    let groups = world
        .user_groups
        .iter()
        .filter(|(_, group)| disabled || !group.disabled);
    let groups = groups.map(|(id, group)| {
        let mut shown = json!({
            "id": id, "team_id": TEAM, "is_usergroup": true, "name": id, "handle": id.to_lowercase(),
            "date_delete": i64::from(group.disabled), "user_count": group.users.len(),
        });
        if users {
            shown["users"] = json!(group.users);
        }
        shown
    });
    Ok(json!({"usergroups": groups.collect::<Vec<_>>()}))
}

pub(super) fn in_group(world: &World, args: &Value) -> Outcome {
    if !world.paid {
        return Err("plan_upgrade_required".into());
    }
    let group = world.user_groups.get(text(args, "usergroup"));
    let group = group.filter(|group| !group.disabled || wants(args, "include_disabled"));
    Ok(json!({"users": group.ok_or("no_such_subteam")?.users}))
}

/// A page of the members, in order of id. The cursor names the place of the next one.
pub(super) fn in_channel(world: &World, args: &Value) -> Outcome {
    let absent = &world.channels[text(args, "channel")].absent;
    let mut members: Vec<&str> = world.users.keys().map(String::as_str).collect();
    members.push(BOT);
    members.retain(|id| !absent.contains(*id));
    members.sort_unstable();
    let limit = match &args["limit"] {
        Value::Null => PAGE.0,
        given => {
            let given = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
            let limit = given.parse().ok().filter(|limit| (1..=PAGE.1).contains(limit));
            limit.ok_or("invalid_limit")?
        }
    };
    let begin = match text(args, "cursor") {
        "" => 0,
        cursor => {
            let place = cursor.strip_prefix("place:").and_then(|place| place.parse().ok());
            place
                .filter(|place| *place < members.len())
                .ok_or("invalid_cursor")?
        }
    };
    let end = members.len().min(begin + limit);
    let next = if end < members.len() {
        format!("place:{end}")
    } else {
        String::new()
    };
    Ok(json!({"members": members[begin..end], "response_metadata": {"next_cursor": next}}))
}
