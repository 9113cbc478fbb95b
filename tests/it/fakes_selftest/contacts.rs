//! The contacts of the fake Feishu: what the platform shows of people, groups and chats.

use serde_json::{Value, json};

use super::feishu::{PERSON, call, tenant};
use crate::support::fake_feishu::{CHAT, FakeFeishu, Person, Status};

async fn get(feishu: &FakeFeishu, path: &str) -> (u16, Value) {
    call(feishu, "GET", path, &Value::Null).await
}

/// Scopes, the contact range, kinds of ids and states of accounts lead to the platform's own codes and fields.
#[tokio::test]
async fn the_contacts_show_what_the_app_may_see() {
    let feishu = tenant().await;
    let path = format!("contact/v3/users/{PERSON}?user_id_type=open_id");
    let seen = get(&feishu, &path).await.1["data"]["user"].clone();
    assert_eq!(
        (&seen["email"], &seen["status"]["is_activated"]),
        (&json!("dana@example.com"), &json!(true))
    );
    for (status, key) in [
        (Status::Frozen, "is_frozen"),
        (Status::Resigned, "is_resigned"),
        (Status::Exited, "is_exited"),
        (Status::Unjoined, "is_unjoin"),
    ] {
        feishu.change_person(PERSON, |person| person.status = status);
        assert_eq!(get(&feishu, &path).await.1["data"]["user"]["status"][key], true);
    }
    feishu.change_person(PERSON, |person| person.status = Status::NotActivated);
    let seen = get(&feishu, &path).await.1["data"]["user"]["status"].clone();
    assert_eq!(seen["is_activated"], false);
    for (id, kind, code) in [
        ("ou_nobody", "open_id", 99_992_351),
        ("on_nobody", "union_id", 99_992_364),
        ("nobody", "user_id", 99_992_360),
    ] {
        let found = get(&feishu, &format!("contact/v3/users/{id}?user_id_type={kind}")).await;
        assert_eq!((found.0, &found.1["code"]), (400, &json!(code)));
    }
    feishu.revoke_scope("contact:user.employee:readonly");
    feishu.revoke_scope("contact:user.email:readonly");
    let seen = get(&feishu, &path).await.1["data"]["user"].clone();
    assert!(seen["email"].is_null() && seen["status"].is_null(), "{seen}");
    feishu.change_person(PERSON, |person| person.in_range = false);
    assert_eq!(get(&feishu, &path).await.1["code"], 41_050);
    feishu.revoke_scope("contact:contact.base:readonly");
    assert_eq!(get(&feishu, &path).await.1["code"], 99_991_672);
    feishu.change_person(PERSON, |person| {
        (person.in_range, person.status) = (true, Status::Resigned);
    });
    let ids = "contact/v3/users/batch_get_id?user_id_type=open_id";
    let asked = |resigned: bool| json!({"emails": ["dana@example.com"], "include_resigned": resigned});
    let found = call(&feishu, "POST", ids, &asked(false)).await.1;
    assert!(found["data"]["user_list"][0]["user_id"].is_null(), "{found}");
    let found = call(&feishu, "POST", ids, &asked(true)).await.1;
    assert_eq!(found["data"]["user_list"][0]["user_id"], PERSON);
}

#[tokio::test]
async fn user_groups_and_chats_come_in_pages() {
    let feishu = tenant().await;
    let ids: Vec<String> = (0..120).map(|number| format!("ou_many{number:03}")).collect();
    for id in &ids {
        feishu.add_person(Person::new(id, ""));
    }
    feishu.set_group("g187131", &ids.iter().map(String::as_str).collect::<Vec<_>>());
    feishu.add_department("g187131", "od_finance");
    feishu.change_person(PERSON, |person| person.department = Some("od_finance".into()));
    let path = "contact/v3/group/g187131/member/simplelist?page_size=100";
    let first = get(&feishu, path).await.1["data"].clone();
    assert_eq!(first["memberlist"].as_array().map(Vec::len), Some(100));
    let next = first["page_token"].as_str().unwrap();
    let last = get(&feishu, &format!("{path}&page_token={next}")).await.1["data"].clone();
    assert_eq!(
        (last["memberlist"].as_array().map(Vec::len), &last["has_more"]),
        (Some(20), &json!(false))
    );
    assert_eq!(
        get(
            &feishu,
            "contact/v3/group/g187131/member/simplelist?page_size=101"
        )
        .await
        .1["code"],
        40_011
    );
    let belong = format!("contact/v3/group/member_belong?member_id={PERSON}&group_type=1");
    assert_eq!(
        get(&feishu, &belong).await.1["data"]["group_list"],
        json!(["g187131"])
    );
    feishu.hide_group("g187131");
    let hidden = get(&feishu, path).await;
    assert_eq!((hidden.0, &hidden.1["code"]), (403, &json!(42_009)));
    assert_eq!(
        get(&feishu, "contact/v3/group/g0/member/simplelist").await.1["code"],
        42_002
    );
    let members = format!("im/v1/chats/{CHAT}/members?page_size=100");
    assert_eq!(get(&feishu, &members).await.1["data"]["has_more"], true);
    feishu.remove_bot(CHAT);
    assert_eq!(get(&feishu, &members).await.1["code"], 232_011);
    feishu.revoke_scope("contact:group:readonly");
    assert_eq!(get(&feishu, path).await.1["code"], 99_991_672);
}
