use gatepost_channel::{Bar, Channel as _, Failure, Group, Profile, Unfound};
use serde_json::{Value, json};

use crate::fake::{Answer, Fake, coded, ok, refusal};

const MIRA: &str = "ou_demo_mira";

fn user(status: &Value) -> Answer {
    ok(&json!({"user": {
        "open_id": MIRA, "name": "Mira Ode", "email": "Mira@Example.com", "status": status,
    }}))
}

fn active() -> Value {
    json!({"is_frozen": false, "is_resigned": false, "is_activated": true, "is_exited": false, "is_unjoin": false})
}

async fn person(answer: Answer) -> (Result<Profile, Unfound>, Fake) {
    let fake = Fake::start([answer]).await;
    let channel = fake.channel();
    let found = gatepost_channel::Channel::directory(&channel)
        .unwrap()
        .person(MIRA)
        .await;
    (found, fake)
}

fn class<T>(found: &Result<T, Unfound>) -> &'static str {
    match found {
        Ok(_) => "found",
        Err(Unfound::NoSuch) => "no_such",
        Err(Unfound::Hidden { .. }) => "hidden",
        Err(Unfound::MayNotAsk { .. }) => "may_not",
        Err(Unfound::Failed(_)) => "failed",
    }
}

#[tokio::test]
async fn a_member_is_described_and_nothing_bars_them() {
    let (found, fake) = person(user(&active())).await;
    assert_eq!(
        found,
        Ok(Profile {
            id: MIRA.into(),
            bar: None,
            email: Some("mira@example.com".into()),
            name: Some("Mira Ode".into()),
        })
    );
    let call = &fake.calls()[0];
    assert_eq!(
        (call.method.as_str(), call.path.as_str(), call.query.as_str()),
        (
            "GET",
            "/open-apis/contact/v3/users/ou_demo_mira",
            "user_id_type=open_id"
        )
    );
}

/// Rule E of the peers (54): a frozen or resigned account decides nothing.
#[tokio::test]
async fn whoever_may_not_decide_is_named_by_kind() {
    for (with, bar) in [
        (json!({"is_resigned": true}), Bar::Resigned),
        (json!({"is_resigned": true, "is_frozen": true}), Bar::Resigned),
        (json!({"is_exited": true}), Bar::Resigned),
        (json!({"is_frozen": true}), Bar::Frozen),
        (json!({"is_unjoin": true}), Bar::NotJoined),
        (json!({"is_activated": false}), Bar::NotJoined),
    ] {
        let mut status = active();
        status
            .as_object_mut()
            .unwrap()
            .extend(with.as_object().unwrap().clone());
        let (found, _) = person(user(&status)).await;
        assert_eq!(found.unwrap().bar, Some(bar), "{with}");
    }
}

#[tokio::test]
async fn what_was_not_found_is_kept_apart() {
    for (answer, expected) in [
        (refusal(400, 41_012), "no_such"),
        (refusal(400, 99_992_351), "no_such"),
        (refusal(400, 99_992_360), "no_such"),
        (refusal(400, 99_992_361), "no_such"),
        (refusal(400, 99_992_364), "no_such"),
        (refusal(400, 99_992_381), "no_such"),
        (refusal(400, 41_022), "no_such"),
        (refusal(400, 41_050), "hidden"),
        (refusal(403, 41_050), "hidden"),
        // The platform's own fault, which it tells with the status of a bad request too.
        (refusal(400, 40_003), "failed"),
        (refusal(500, 40_003), "failed"),
        (refusal(400, 45_500), "failed"),
        (refusal(401, 42_008), "failed"),
        (refusal(400, 99_991_672), "may_not"),
        (refusal(400, 99_991_679), "may_not"),
        (refusal(400, 40_999), "hidden"),
        (coded(400, &json!({})), "may_not"),
        (refusal(404, 404), "may_not"),
        (coded(404, &json!({})), "may_not"),
        (coded(405, &json!({})), "may_not"),
        (coded(501, &json!({})), "may_not"),
        (coded(200, &json!({"code": 0})), "may_not"),
        (coded(200, &json!({"code": 0, "data": {}})), "may_not"),
        (coded(200, &json!({})), "may_not"),
        (ok(&json!({"user": {"open_id": MIRA}})), "may_not"),
        (refusal(400, 99_991_400), "failed"),
        (refusal(429, 99_991_400), "failed"),
        (refusal(400, 10_014), "failed"),
        (refusal(400, 99_991_403), "failed"),
        (coded(503, &json!({})), "failed"),
        (coded(500, &json!({"code": 77})), "failed"),
        (Answer::Drop, "failed"),
    ] {
        let told = format!("{answer:?}");
        let (found, _) = person(answer).await;
        assert_eq!(class(&found), expected, "{told}");
        let words = format!("{found:?}");
        assert!(!words.contains("canary") && !words.contains(MIRA), "{words}");
    }
    let busy = Answer::Http(
        400,
        vec![("x-ogw-ratelimit-reset", "7".into())],
        json!({"code": 99_991_400}).to_string(),
    );
    let (found, _) = person(busy).await;
    let after = Some(std::time::Duration::from_secs(7));
    assert!(matches!(
        found,
        Err(Unfound::Failed(Failure::Retry { after: asked, .. })) if asked == after
    ));
}

/// An id travels in the path, so what is no id is nobody and is not asked about.
#[tokio::test]
async fn what_is_no_id_is_not_asked_about() {
    let fake = Fake::start([]).await;
    let channel = fake.channel();
    let directory = channel.directory().unwrap();
    assert_eq!(directory.person("../../x?y").await, Err(Unfound::NoSuch));
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn an_address_leads_to_an_id() {
    let by_email = async |answer: Answer| {
        let fake = Fake::start([answer]).await;
        let channel = fake.channel();
        let found = channel.directory().unwrap().by_email("mira@example.com").await;
        (found, fake)
    };
    let listed = json!({"user_list": [{"user_id": MIRA, "email": "mira@example.com"}]});
    let (found, fake) = by_email(ok(&listed)).await;
    assert_eq!(found, Ok(MIRA.into()));
    assert_eq!(
        fake.calls()[0].body,
        json!({"emails": ["mira@example.com"], "include_resigned": false})
    );
    let (found, _) = by_email(ok(&json!({"user_list": [{"email": "mira@example.com"}]}))).await;
    assert_eq!(found, Err(Unfound::NoSuch));
    let (found, _) = by_email(ok(&json!({}))).await;
    assert_eq!(class(&found), "may_not");
}

#[tokio::test]
async fn groups_and_chats_are_read_page_by_page() {
    let page = |key: &str, ids: &[&str], next: Option<&str>| {
        let list: Vec<_> = ids
            .iter()
            .map(|id| json!({"member_id": id, "member_type": "user"}))
            .collect();
        ok(&json!({key: list, "has_more": next.is_some(), "page_token": next.unwrap_or_default()}))
    };
    let fake = Fake::start([
        page("memberlist", &["ou_1", "ou_2"], Some("next")),
        page("memberlist", &["ou_3"], None),
        page("items", &["ou_4"], None),
        ok(&json!({"memberlist": [{"member_id": "od_1", "member_type": "department"}], "has_more": false})),
        ok(&json!({"has_more": false})),
        refusal(400, 42_002),
    ])
    .await;
    let channel = fake.channel();
    let directory = channel.directory().unwrap();
    let group = Group::Named("g187131".into());
    assert_eq!(
        directory.members(&group).await,
        Ok(vec!["ou_1".into(), "ou_2".into(), "ou_3".into()])
    );
    assert_eq!(directory.members(&Group::Chat).await, Ok(vec!["ou_4".into()]));
    assert_eq!(
        directory.members(&group).await,
        Ok(vec![]),
        "a department is nobody"
    );
    assert_eq!(
        directory.members(&group).await,
        Ok(vec![]),
        "an empty group has no list"
    );
    assert_eq!(directory.members(&group).await, Err(Unfound::NoSuch));
    let calls = fake.calls();
    assert_eq!(
        calls[0].path,
        "/open-apis/contact/v3/group/g187131/member/simplelist"
    );
    assert!(calls[1].query.contains("page_token=next"), "{}", calls[1].query);
    assert_eq!(calls[2].path, "/open-apis/im/v1/chats/oc_vector_chat_1/members");

    let endless: Vec<_> = (0..10).map(|_| page("items", &["ou_1"], Some("again"))).collect();
    let fake = Fake::start(endless).await;
    let channel = fake.channel();
    let found = channel.directory().unwrap().members(&Group::Chat).await;
    assert_eq!(
        class(&found),
        "hidden",
        "one list that is too long says nothing of others"
    );
}

#[tokio::test]
async fn what_holds_for_one_group_or_chat_closes_no_other() {
    for (answer, expected) in [
        (refusal(400, 42_002), "no_such"),
        (refusal(403, 42_009), "hidden"),
        (refusal(400, 232_011), "hidden"),
        (refusal(400, 232_006), "hidden"),
        (refusal(400, 232_009), "hidden"),
        (refusal(400, 232_019), "failed"),
        (refusal(400, 40_012), "failed"),
        (refusal(400, 99_991_672), "may_not"),
    ] {
        let fake = Fake::start([answer]).await;
        let channel = fake.channel();
        let found = channel.directory().unwrap().members(&Group::Chat).await;
        assert_eq!(class(&found), expected, "{found:?}");
        let told = format!("{found:?}");
        assert!(!told.contains("im:message"), "no advice about cards: {told}");
    }
}

#[tokio::test]
async fn a_person_of_a_department_is_in_the_group_all_the_same() {
    let groups = |ids: &[&str]| ok(&json!({"group_list": ids, "has_more": false}));
    let belongs = async |answers: Vec<Answer>| {
        let fake = Fake::start(answers).await;
        let channel = fake.channel();
        let group = Group::Named("g187131".into());
        channel.directory().unwrap().belongs(&group, MIRA).await
    };
    assert_eq!(belongs(vec![groups(&["g1", "g187131"])]).await, Ok(Some(true)));
    assert_eq!(
        belongs(vec![groups(&[]), groups(&["g187131"])]).await,
        Ok(Some(true))
    );
    assert_eq!(
        belongs(vec![groups(&["g18713"]), ok(&json!({"has_more": false}))]).await,
        Ok(Some(false))
    );
    let more = json!({"group_list": ["g1"], "has_more": true, "page_token": "next"});
    assert_eq!(
        belongs(vec![ok(&more), groups(&["g187131"])]).await,
        Ok(Some(true)),
        "on the second page"
    );
    assert_eq!(belongs(vec![refusal(400, 41_073)]).await, Err(Unfound::NoSuch));
    assert_eq!(class(&belongs(vec![refusal(400, 42_009)]).await), "hidden");
}
