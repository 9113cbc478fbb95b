//! Who may decide by what the platforms say: operators known by an address alone, members of groups and chats, accounts that do not
//! count, and platforms that do not answer. Over real HTTP, on both platforms.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_feishu::{self, Api, Person, Status};
use crate::support::fake_slack::{self, Standing, User};
use crate::support::fault::{Door, Fault};
use crate::support::people::DANA;
use crate::support::world::{Plan, SOON, Storage, World};

on_every_store!(
    an_operator_known_by_an_address_approves,
    a_member_of_a_group_approves_until_removed,
    a_member_of_the_chat_approves,
    accounts_of_slack_that_do_not_count,
    accounts_of_feishu_that_do_not_count,
    a_failed_look_up_costs_no_vote_on_slack,
    a_failed_look_up_costs_no_vote_on_feishu,
    a_failed_look_up_leaves_the_permit,
    two_accounts_of_one_person_are_one,
    who_stands_behind_a_call_is_known_across_platforms,
    a_restart_between_look_up_and_click_loses_nothing,
);

/// Known to the configuration by her address alone.
pub(super) const MARA: Both = Both("U0MARA001", "ou_4a4a01", "mara@example.com");
/// In the groups, and in no configuration.
pub(super) const TINA: Both = Both("U0TINA001", "ou_71aa02", "tina@example.com");
/// Another one.
pub(super) const TOM: Both = Both("U0TOM0001", "ou_70aa03", "tom@example.com");

/// The user group of Slack, and that of Feishu.
pub(super) const GROUPS: (&str, &str) = ("S0TREASURY", "g187131");

/// Longer than anything that was found out about an account or a group is believed.
pub(super) const STALE: Duration = Duration::from_mins(6);

/// A person with an account on each platform: Slack, Feishu, and the address of both.
pub(super) struct Both(
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) &'static str,
);

const RULES: &str = r#"
    - { name: by-address, tools: ["address__*"], effect: confirm, approvers: { operators: [mara] } }
    - { name: treasury, tools: ["treasury__*"], effect: confirm, approvers: { roles: [treasury] }, redact: [/iban] }
    - { name: treasury-pair, tools: ["treasuries__*"], effect: confirm, approvers: { roles: [treasury] }, quorum: 2 }
    - { name: room, tools: ["room__*"], effect: confirm, approvers: { roles: [room] } }
operator_groups:
  - { name: treasury, channel: ops-slack, usergroup: S0TREASURY }
  - { name: treasury-feishu, channel: finance-feishu, group: g187131, roles: [treasury] }
  - { name: room, channel: ops-slack, members: true }
  - { name: room-feishu, channel: finance-feishu, members: true, roles: [room] }
"#;

/// The plan of these stories; a story may add rules before the groups.
pub(super) fn plan(storage: Storage, rules: &str) -> Plan {
    Plan::on(storage)
        .operator("{ id: mara, name: Mara Lind, email: mara@example.com, orgs: [acme] }")
        .with(rules)
        .with(RULES)
}

/// The platforms' side of it: Tina and Tom are in both groups.
pub(super) fn populate(world: &World) {
    for Both(slack, feishu, email) in [MARA, TINA, TOM] {
        world.slack.add_user(User::new(slack, email));
        world.feishu.add_person(Person::new(feishu, email));
    }
    world.slack.set_user_group(GROUPS.0, &[TINA.0, TOM.0]);
    world.feishu.set_group(GROUPS.1, &[TINA.1, TOM.1]);
}

async fn start(storage: Storage) -> World {
    let world = plan(storage, "").start().await;
    populate(&world);
    world
}

/// Presses Approve on the card in Slack.
pub(super) async fn on_slack(world: &World, card: &fake_slack::Message, user: &str) {
    let answered = world.slack.click(card, "approve", user);
    let answered = answered.post(&world.callback("ops-slack")).await;
    assert_eq!((answered.status, answered.body.as_str()), (200, ""));
    assert!(answered.in_time(), "{:?}", answered.took);
}

/// Presses Approve on the card in Feishu and gives what the person is told.
pub(super) async fn on_feishu(world: &World, card: &fake_feishu::Message, person: &str) -> String {
    let clicked = world.feishu.click(card, "approve", person);
    let clicked = clicked.post(&world.callback("finance-feishu")).await;
    assert!(clicked.answered.in_time(), "{:?}", clicked.answered.took);
    clicked.toast.unwrap().unwrap().content
}

/// What the person was told in private on Slack, once there is this.
pub(super) async fn told_on_slack(world: &World, user: &str, words: &str) {
    world
        .slack
        .wait_for(&format!("{words} to {user}"), SOON, |slack| {
            let mut told = slack.ephemerals().into_iter();
            told.find(|(_, to, shown)| to == user && shown.to_string().contains(words))
        })
        .await;
}

/// The request is pending without a vote.
async fn untouched(world: &World, id: &str) {
    let request = world.request(id).await;
    assert_eq!(
        (&request["status"], request["votes"].as_array().map(Vec::len)),
        (&json!("pending"), Some(0)),
        "{request}"
    );
}

/// The request is approved by this operator alone.
pub(super) async fn approved_by(world: &World, id: &str, operator: &str) {
    let request = world.request(id).await;
    assert_eq!(
        (&request["status"], &request["votes"][0]["operator"]),
        (&json!("approved"), &json!(operator)),
        "{request}"
    );
    assert_eq!(request["votes"].as_array().map(Vec::len), Some(1));
}

pub(super) async fn consume(world: &World, id: &str, tool: &str, args: &Value) -> (u16, Value) {
    let path = format!("/api/confirmations/{id}/consume");
    let call = json!({"tool_name": tool, "tool_args": args});
    world.api("build-agent").post(&path, &call).await
}

/// RH-E: nobody knows their own id, everybody their address.
async fn an_operator_known_by_an_address_approves(storage: Storage) {
    let world = start(storage).await;
    let first = world.ask_for("address__pay", json!({"amount": 1})).await;
    let (slack, feishu) = world.cards(&first).await;
    // Somebody else's address is nobody's.
    on_slack(&world, &slack, TINA.0).await;
    let said = on_feishu(&world, &feishu, TINA.1).await;
    assert!(said.contains("may not decide"), "{said}");
    untouched(&world, &first).await;
    on_slack(&world, &slack, MARA.0).await;
    approved_by(&world, &first, "mara").await;
    world.both_settled(&first, "Mara Lind", "Mara Lind").await;
    assert_eq!(
        consume(&world, &first, "address__pay", &json!({"amount": 1}))
            .await
            .0,
        200
    );

    let second = world.ask_for("address__pay", json!({"amount": 2})).await;
    let (_, card) = world.cards(&second).await;
    on_feishu(&world, &card, MARA.1).await;
    approved_by(&world, &second, "mara").await;

    // Where the app may not see addresses of accounts, it may still ask to whom an address belongs.
    world.feishu.revoke_scope("contact:user.email:readonly");
    world.advance(STALE);
    let third = world.ask_for("address__pay", json!({"amount": 3})).await;
    let (_, card) = world.cards(&third).await;
    on_feishu(&world, &card, MARA.1).await;
    approved_by(&world, &third, "mara").await;
    assert!(!world.feishu.calls(Api::BatchGetId).is_empty());
    world.verify().await;
}

async fn a_member_of_a_group_approves_until_removed(storage: Storage) {
    let world = start(storage).await;
    let args = json!({"amount": 1});
    let id = world.ask_for("treasury__pay", args.clone()).await;
    let (card, _) = world.cards(&id).await;
    on_slack(&world, &card, TINA.0).await;
    approved_by(&world, &id, TINA.2).await;
    let other = world.ask_for("treasury__pay", json!({"amount": 2})).await;
    let (_, card) = world.cards(&other).await;
    on_feishu(&world, &card, TOM.1).await;
    approved_by(&world, &other, TOM.2).await;
    assert_eq!(
        consume(&world, &other, "treasury__pay", &json!({"amount": 2}))
            .await
            .0,
        200
    );

    // What was found out is believed for a minute and no longer: neither a press nor an approval that was not used counts.
    world.slack.set_user_group(GROUPS.0, &[]);
    world.feishu.set_group(GROUPS.1, &[TINA.1]);
    world.advance(Duration::from_secs(61));
    let (status, answer) = consume(&world, &id, "treasury__pay", &args).await;
    assert_eq!(
        (status, &answer["code"]),
        (409, &json!("not_authorised")),
        "{answer}"
    );
    let third = world.ask_for("treasury__pay", json!({"amount": 3})).await;
    let (slack, feishu) = world.cards(&third).await;
    on_slack(&world, &slack, TINA.0).await;
    told_on_slack(&world, TINA.0, "may not decide").await;
    assert!(on_feishu(&world, &feishu, TOM.1).await.contains("may not decide"));
    untouched(&world, &third).await;

    // By department she is in the group without being listed.
    world.feishu.set_group(GROUPS.1, &[]);
    world.feishu.add_department(GROUPS.1, "od_treasury");
    world
        .feishu
        .change_person(TINA.1, |person| person.department = Some("od_treasury".into()));
    world.advance(Duration::from_secs(61));
    on_feishu(&world, &feishu, TINA.1).await;
    approved_by(&world, &third, TINA.2).await;
    world.verify().await;
}

/// Chats are larger than a page.
async fn a_member_of_the_chat_approves(storage: Storage) {
    let world = start(storage).await;
    for number in 0..230 {
        world.slack.add_user(User::new(&format!("U0MANY{number:03}"), ""));
        world
            .feishu
            .add_person(Person::new(&format!("ou_many{number:03}"), ""));
    }
    let last = Both("U0ZOE0001", "ou_zz0001", "zoe@example.com");
    world.slack.add_user(User::new(last.0, last.2));
    world.feishu.add_person(Person::new(last.1, last.2));
    let first = world.ask_for("room__open", json!({"door": 1})).await;
    let (card, _) = world.cards(&first).await;
    on_slack(&world, &card, last.0).await;
    approved_by(&world, &first, last.2).await;
    assert_eq!(world.slack.calls("conversations.members").len(), 2);
    let second = world.ask_for("room__open", json!({"door": 2})).await;
    let (_, card) = world.cards(&second).await;
    on_feishu(&world, &card, last.1).await;
    approved_by(&world, &second, last.2).await;
    assert_eq!(world.feishu.calls(Api::Members).len(), 3);

    world.slack.remove_member(fake_slack::CHANNEL, last.0);
    world.feishu.remove_member(fake_feishu::CHAT, last.1);
    world.advance(Duration::from_secs(61));
    let third = world.ask_for("room__open", json!({"door": 3})).await;
    let (slack, feishu) = world.cards(&third).await;
    on_slack(&world, &slack, last.0).await;
    on_feishu(&world, &feishu, last.1).await;
    untouched(&world, &third).await;
}

/// Rule E of the peers (54).
async fn accounts_of_slack_that_do_not_count(storage: Storage) {
    let world = start(storage).await;
    let id = world.ask_for("treasury__pay", json!({"amount": 1})).await;
    let (card, _) = world.cards(&id).await;
    let money = world.ask(90_000).await;
    let (named, _) = world.cards(&money).await;
    for (standing, reason, words) in [
        (Standing::Deactivated, "account_deactivated", "is deactivated"),
        (Standing::Bot, "account_bot", "Programs may not decide"),
        (Standing::Guest, "account_guest", "Guests may not decide"),
        (
            Standing::GuestOfOneChannel,
            "account_guest",
            "Guests may not decide",
        ),
        (Standing::OfAnotherTeam, "account_foreign", "another workspace"),
        (Standing::Stranger, "account_foreign", "another workspace"),
        (Standing::Invited, "account_not_joined", "not active yet"),
    ] {
        let before = world.audit("callback.refused").await.len();
        // The configuration vouches for the one, a group for the other.
        for (card, user) in [(&named, DANA.slack), (&card, TINA.0)] {
            world.slack.change_user(user, |user| user.standing = standing);
            on_slack(&world, card, user).await;
            told_on_slack(&world, user, words).await;
        }
        let refused = world
            .until("both refusals", async || {
                let refused = world.audit("callback.refused").await.split_off(before);
                (refused.len() == 2).then_some(refused)
            })
            .await;
        assert!(
            refused.iter().all(|event| event["data"]["reason"] == reason),
            "{refused:?}"
        );
        world.advance(STALE);
    }
    untouched(&world, &id).await;
    untouched(&world, &money).await;
    for (card, user) in [(&named, DANA.slack), (&card, TINA.0)] {
        world
            .slack
            .change_user(user, |user| user.standing = Standing::Member);
        on_slack(&world, card, user).await;
    }
    approved_by(&world, &id, TINA.2).await;
    approved_by(&world, &money, "dana").await;
    world.verify().await;
}

async fn accounts_of_feishu_that_do_not_count(storage: Storage) {
    let world = start(storage).await;
    let id = world.ask_for("treasury__pay", json!({"amount": 1})).await;
    let (_, card) = world.cards(&id).await;
    let money = world.ask(90_000).await;
    let (_, named) = world.cards(&money).await;
    for (status, reason, words) in [
        (Status::Frozen, "account_frozen", "is suspended"),
        (Status::Resigned, "account_resigned", "somebody who has left"),
        (Status::Exited, "account_resigned", "somebody who has left"),
        (Status::Unjoined, "account_not_joined", "not active yet"),
        (Status::NotActivated, "account_not_joined", "not active yet"),
    ] {
        for (card, person) in [(&named, DANA.feishu), (&card, TINA.1)] {
            world
                .feishu
                .change_person(person, |person| person.status = status);
            let said = on_feishu(&world, card, person).await;
            assert!(said.contains(words), "{status:?}: {said}");
        }
        world.until_refused(reason).await;
        world.advance(STALE);
    }
    // Of another tenant, or outside the app's contact range: nobody vouches for a member of a group.
    for person in [DANA.feishu, TINA.1] {
        world.feishu.change_person(person, |person| {
            (person.status, person.in_range) = (Status::Active, false);
        });
    }
    on_feishu(&world, &card, TINA.1).await;
    world.until_refused("unknown_operator").await;
    untouched(&world, &id).await;
    untouched(&world, &money).await;
    // The configuration does for an identity of its own.
    on_feishu(&world, &named, DANA.feishu).await;
    approved_by(&world, &money, "dana").await;
    world
        .feishu
        .change_person(TINA.1, |person| person.in_range = true);
    world.advance(STALE);
    on_feishu(&world, &card, TINA.1).await;
    approved_by(&world, &id, TINA.2).await;
    world.verify().await;
}

/// How a platform fails, and how long it is left alone then.
fn failures(busy: Fault) -> [(&'static str, Option<Fault>, Duration); 3] {
    [
        (
            "broken",
            Some(Fault::text(500, "upstream")),
            Duration::from_secs(2),
        ),
        ("busy", Some(busy), Duration::from_secs(31)),
        // Opened when the person has given up.
        ("slow", None, Duration::ZERO),
    ]
}

async fn a_failed_look_up_costs_no_vote_on_slack(storage: Storage) {
    let world = start(storage).await;
    for method in ["users.info", "usergroups.users.list"] {
        let busy = json!({"ok": false, "error": "ratelimited"});
        let busy = Fault::answer(429, &busy).header("retry-after", "30");
        for (number, (how, fault, pause)) in failures(busy).into_iter().enumerate() {
            let id = world
                .ask_for("treasury__pay", json!({"how": how, "method": method}))
                .await;
            let (card, _) = world.cards(&id).await;
            world.advance(STALE);
            let door = Door::closed();
            let told = world.slack.ephemerals().len();
            world
                .slack
                .fail_next(method, fault.unwrap_or_else(|| Fault::held(&door)));
            on_slack(&world, &card, TINA.0).await;
            world
                .slack
                .wait_for("a private word", SOON, |slack| {
                    let told = slack.ephemerals().split_off(told);
                    let (_, _, shown) = told.into_iter().find(|(_, to, _)| to == TINA.0)?;
                    shown.to_string().contains("please try again").then_some(())
                })
                .await;
            untouched(&world, &id).await;
            assert_eq!(
                world.until_refused("look_up_failed").await["channel"],
                "ops-slack",
                "{method} {number}"
            );
            door.open();
            world.advance(pause);
            on_slack(&world, &card, TINA.0).await;
            // A late answer is kept for whoever asks next, once it is there.
            let late = async || {
                let request = world.request(&id).await;
                if request["status"] == "pending" {
                    on_slack(&world, &card, TINA.0).await;
                }
                (request["status"] == "approved").then_some(())
            };
            if how == "slow" {
                world.until("the late answer", late).await;
            }
            approved_by(&world, &id, TINA.2).await;
        }
    }
    world.verify().await;
}

async fn a_failed_look_up_costs_no_vote_on_feishu(storage: Storage) {
    let world = start(storage).await;
    for api in [Api::User, Api::GroupMembers] {
        let busy = json!({"code": 99_991_400, "msg": "request trigger frequency limit"});
        let busy = Fault::answer(400, &busy).header("x-ogw-ratelimit-reset", "30");
        for (how, fault, pause) in failures(busy) {
            let id = world
                .ask_for("treasury__pay", json!({"how": how, "api": format!("{api:?}")}))
                .await;
            let (_, card) = world.cards(&id).await;
            world.advance(STALE);
            let door = Door::closed();
            world
                .feishu
                .fail_next(api, fault.unwrap_or_else(|| Fault::held(&door)));
            let said = on_feishu(&world, &card, TINA.1).await;
            assert!(said.contains("please try again"), "{api:?} {how}: {said}");
            untouched(&world, &id).await;
            door.open();
            world.advance(pause);
            on_feishu(&world, &card, TINA.1).await;
            let late = async || {
                let request = world.request(&id).await;
                if request["status"] == "pending" {
                    on_feishu(&world, &card, TINA.1).await;
                }
                (request["status"] == "approved").then_some(())
            };
            if how == "slow" {
                world.until("the late answer", late).await;
            }
            approved_by(&world, &id, TINA.2).await;
        }
    }
    world.verify().await;
}

async fn a_failed_look_up_leaves_the_permit(storage: Storage) {
    let world = start(storage).await;
    let args = json!({"amount": 1});
    let id = world.ask_for("treasury__pay", args.clone()).await;
    let (card, _) = world.cards(&id).await;
    on_slack(&world, &card, TINA.0).await;
    approved_by(&world, &id, TINA.2).await;
    world.advance(STALE);
    world.slack.fail_next("users.info", Fault::text(500, "upstream"));
    let (status, answer) = consume(&world, &id, "treasury__pay", &args).await;
    assert_eq!(
        (status, &answer["code"]),
        (503, &json!("look_up_failed")),
        "{answer}"
    );
    assert!(world.request(&id).await["consumed_at"].is_null());
    world.advance(Duration::from_secs(2));
    assert_eq!(consume(&world, &id, "treasury__pay", &args).await.0, 200);
    // Gone for good is another matter.
    let other = world.ask_for("treasury__pay", json!({"amount": 2})).await;
    let (card, _) = world.cards(&other).await;
    on_slack(&world, &card, TINA.0).await;
    world
        .slack
        .change_user(TINA.0, |user| user.standing = Standing::Deactivated);
    world.advance(STALE);
    let (status, answer) = consume(&world, &other, "treasury__pay", &json!({"amount": 2})).await;
    assert_eq!(
        (status, &answer["code"]),
        (409, &json!("not_authorised")),
        "{answer}"
    );
    world.verify().await;
}

async fn two_accounts_of_one_person_are_one(storage: Storage) {
    let world = start(storage).await;
    let id = world.ask_for("treasuries__pay", json!({})).await;
    let (slack, feishu) = world.cards(&id).await;
    on_slack(&world, &slack, TINA.0).await;
    let said = on_feishu(&world, &feishu, TINA.1).await;
    assert_eq!(said, "You have answered before. Your first answer stands.");
    let request = world.request(&id).await;
    assert_eq!(
        (&request["status"], request["votes"].as_array().map(Vec::len)),
        (&json!("pending"), Some(1))
    );
    on_feishu(&world, &feishu, TOM.1).await;
    assert_eq!(world.request(&id).await["status"], "approved");
    assert_eq!(consume(&world, &id, "treasuries__pay", &json!({})).await.0, 200);

    // Who cannot be told apart from people on the other platform does not count at all.
    world.slack.revoke_scope("users:read.email");
    world.advance(STALE);
    let other = world.ask_for("treasuries__pay", json!({"again": true})).await;
    let (slack, _) = world.cards(&other).await;
    on_slack(&world, &slack, TINA.0).await;
    told_on_slack(&world, TINA.0, "cannot be told apart").await;
    untouched(&world, &other).await;
    world.verify().await;
}

async fn who_stands_behind_a_call_is_known_across_platforms(storage: Storage) {
    let world = start(storage).await;
    for requester in [TINA.0, TINA.1, TINA.2, "Tina@Example.com"] {
        let call = json!({
            "tool_name": "treasury__pay", "tool_args": {"for": requester}, "requester": requester,
        });
        let (_, asked) = world.api("build-agent").post("/api/confirmations", &call).await;
        let id = asked["confirmation_id"].as_str().expect("a request");
        let (slack, feishu) = world.cards(id).await;
        let said = on_feishu(&world, &feishu, TINA.1).await;
        assert_eq!(
            said, "You stand behind this call yourself, so somebody else has to approve it.",
            "{requester}"
        );
        on_slack(&world, &slack, TINA.0).await;
        told_on_slack(&world, TINA.0, "You stand behind this call yourself").await;
        untouched(&world, id).await;
        on_slack(&world, &slack, TOM.0).await;
        approved_by(&world, id, TOM.2).await;
    }
    world.verify().await;
}

async fn a_restart_between_look_up_and_click_loses_nothing(storage: Storage) {
    let mut world = start(storage).await;
    let id = world.ask_for("treasuries__pay", json!({})).await;
    let (slack, feishu) = world.cards(&id).await;
    on_slack(&world, &slack, TINA.0).await;
    world.slack.fail_next("users.info", Fault::text(500, "upstream"));
    on_slack(&world, &slack, TOM.0).await;
    world.until_refused("look_up_failed").await;
    assert_eq!(
        world.request(&id).await["votes"].as_array().map(Vec::len),
        Some(1)
    );
    world.restart().await;
    // Nothing of what was found out is left; the vote stands, and is asked about anew.
    on_feishu(&world, &feishu, TOM.1).await;
    let request = world.request(&id).await;
    assert_eq!(request["status"], "approved", "{request}");
    world.restart().await;
    assert_eq!(consume(&world, &id, "treasuries__pay", &json!({})).await.0, 200);
    world.verify().await;
}
