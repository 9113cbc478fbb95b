//! Who may do what over the API: asking twice is asking once, agents do not see each other, organisations do not exist for
//! each other, and roles do not include one another.

use serde_json::{Value, json};

use crate::support::world::{Storage, World};

on_every_store!(
    asking_twice_is_asking_once,
    a_call_id_names_one_call,
    agents_do_not_see_each_other,
    organisations_do_not_exist_for_each_other,
    roles_do_not_include_one_another,
    an_operator_who_may_not_is_told_so,
    two_hundred_agents_ask_at_once,
);

fn call(id: &str, amount: u64) -> Value {
    json!({
        "tool_name": "oa__purchase_pay", "tool_args": {"amount": amount}, "session_id": "s1", "tool_call_id": id,
        "agent_id": "payer", "requester": "ines",
    })
}

async fn asking_twice_is_asking_once(storage: Storage) {
    let world = World::start(storage).await;
    let agent = world.api("build-agent");
    let (_, first) = agent.post("/api/confirmations", &call("c1", 60_000)).await;
    let mut same = call("c1", 60_000);
    same["tool_args"] = json!({"amount": 6e4});
    let asked = futures_util::future::join_all((0..8).map(|_| agent.post("/api/confirmations", &same))).await;
    for (status, answer) in asked {
        assert_eq!(
            (status, &answer["confirmation_id"]),
            (200, &first["confirmation_id"])
        );
    }
    assert_eq!(world.audit("confirmation.created").await.len(), 1);
    // The same id in another session, or of another token, is another call.
    let mut elsewhere = call("c1", 60_000);
    elsewhere["session_id"] = json!("s2");
    let (_, other_session) = agent.post("/api/confirmations", &elsewhere).await;
    assert_ne!(other_session["confirmation_id"], first["confirmation_id"]);
    let second = world.api("second-agent");
    let (_, other_token) = second.post("/api/confirmations", &call("c1", 60_000)).await;
    assert_ne!(other_token["confirmation_id"], first["confirmation_id"]);
    // After the decision the same question gets the verdict, and after the execution a denial.
    let id = first["confirmation_id"].as_str().unwrap();
    let path = format!("/api/confirmations/{id}");
    let approve = json!({"decision": "approve"});
    world
        .api("dana-cli")
        .post(&format!("{path}/respond"), &approve)
        .await;
    let (_, allowed) = agent.post("/api/confirmations", &same).await;
    assert_eq!(
        (&allowed["verdict"], &allowed["confirmation_id"]),
        (&json!("allow"), &first["confirmation_id"])
    );
    let run = json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 60_000}});
    let (status, _) = agent.post(&format!("{path}/consume"), &run).await;
    assert_eq!(status, 200);
    let (_, denied) = agent.post("/api/confirmations", &same).await;
    assert_eq!(
        (&denied["verdict"], &denied["reason_code"]),
        (&json!("deny"), &json!("already_consumed"))
    );
}

async fn a_call_id_names_one_call(storage: Storage) {
    let world = World::start(storage).await;
    let agent = world.api("build-agent");
    let (_, first) = agent.post("/api/confirmations", &call("c1", 60_000)).await;
    let mut other_requester = call("c1", 60_000);
    other_requester["requester"] = json!("tomas");
    let mut other_agent = call("c1", 60_000);
    other_agent["agent_id"] = json!("other");
    let mut other_tool = call("c1", 60_000);
    other_tool["tool_name"] = json!("oa__purchase_pay_now");
    for changed in [call("c1", 60_001), other_requester, other_agent, other_tool] {
        let (status, answer) = agent.post("/api/confirmations", &changed).await;
        assert_eq!(
            (status, &answer["code"]),
            (409, &json!("call_id_conflict")),
            "{changed}"
        );
        assert_eq!(answer["confirmation_id"], first["confirmation_id"]);
    }
    assert_eq!(world.audit("confirmation.created").await.len(), 1);
}

async fn agents_do_not_see_each_other(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (path, run) = (
        format!("/api/confirmations/{id}"),
        json!({"tool_name": "oa__purchase_pay", "tool_args": {}}),
    );
    let other = world.api("second-agent");
    let (status, answer) = other.get(&path).await;
    assert_eq!((status, &answer["code"]), (404, &json!("not_found")));
    let (_, unknown) = other
        .get("/api/confirmations/cr_00000000000000000000000000000000")
        .await;
    assert_eq!(answer, unknown, "another's request looks like none");
    let started = std::time::Instant::now();
    assert_eq!(other.get(&format!("{path}?wait=20")).await.0, 404);
    assert!(started.elapsed().as_secs() < 5, "a stranger's wait tells nothing");
    for (route, body) in [
        ("cancel", json!({})),
        ("consume", run),
        ("outcome", json!({"status": "succeeded"})),
    ] {
        let (status, answer) = other.post(&format!("{path}/{route}"), &body).await;
        assert_eq!((status, &answer["code"]), (404, &json!("not_found")), "{route}");
    }
    assert_eq!(world.request(&id).await["status"], "pending");
}

async fn organisations_do_not_exist_for_each_other(storage: Storage) {
    let world = World::start(storage).await;
    let ask = json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 1}});
    let umbrella = world.api("umbrella-agent");
    let (_, asked) = umbrella.post("/api/confirmations", &ask).await;
    assert_eq!(
        (&asked["verdict"], &asked["rule"]),
        (&json!("pending"), &json!("umbrella"))
    );
    let id = asked["confirmation_id"].as_str().unwrap();
    let path = format!("/api/confirmations/{id}");
    for token in ["audit", "dana-cli", "build-agent"] {
        let (status, answer) = world.api(token).get(&path).await;
        assert_eq!((status, &answer["code"]), (404, &json!("not_found")), "{token}");
    }
    let approve = json!({"decision": "approve"});
    let (status, _) = world
        .api("dana-cli")
        .post(&format!("{path}/respond"), &approve)
        .await;
    assert_eq!(status, 404);
    let (_, list) = world.api("audit").get("/api/confirmations").await;
    assert_eq!(list["items"], json!([]));
    let (_, events) = world.api("audit").get_text("/api/audit?limit=1000").await;
    assert!(!events.contains(id), "{events}");
    let (_, events) = world
        .api("umbrella-audit")
        .get_text("/api/audit?limit=1000")
        .await;
    assert!(events.contains(id));
    assert!(
        world
            .slack
            .messages(crate::support::fake_slack::CHANNEL)
            .is_empty()
    );
    world.verify().await;
}

/// The roles that `gatepost openapi` states (`x-roles`): each route with each role.
async fn roles_do_not_include_one_another(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let one = format!("/api/confirmations/{id}");
    let roles = [
        ("build-agent", 'a'),
        ("dana-cli", 'o'),
        ("audit", 'u'),
        ("admin", 'm'),
    ];
    let table = [
        ("POST", "/api/confirmations".to_owned(), "a"),
        ("GET", "/api/confirmations".to_owned(), "ou"),
        ("GET", one.clone(), "aou"),
        ("POST", format!("{one}/respond"), "o"),
        ("POST", format!("{one}/consume"), "a"),
        ("POST", format!("{one}/outcome"), "a"),
        ("POST", format!("{one}/cancel"), "a"),
        ("GET", "/api/channels".to_owned(), "m"),
        ("POST", "/api/channels/desk/test".to_owned(), "m"),
        ("GET", "/api/audit".to_owned(), "u"),
        ("GET", "/api/audit/verify".to_owned(), "u"),
        ("GET", "/api/audit/export".to_owned(), "u"),
    ];
    for (method, path, who) in &table {
        for (token, letter) in roles {
            let api = world.api(token);
            // An unknown member is refused by whoever reads the body, after the role was judged.
            let (status, text) = if *method == "GET" {
                api.get_text(path).await
            } else {
                api.post_text(path, r#"{"no such member":1}"#.to_owned()).await
            };
            if who.contains(letter) {
                assert!(
                    ![401, 403, 404].contains(&status),
                    "{method} {path} as {token}: {status} {text}"
                );
            } else {
                assert_eq!(status, 403, "{method} {path} as {token}: {text}");
                assert!(text.contains("\"not_authorised\""), "{text}");
            }
        }
        for wrong in ["", "x", "build-agent-secret-0123456789abcde"] {
            let api = world.place.api(wrong);
            let (status, text) = if *method == "GET" {
                api.get_text(path).await
            } else {
                api.post_text(path, "{}").await
            };
            assert_eq!(status, 401, "{method} {path} with {wrong:?}: {text}");
        }
    }
    assert_eq!(
        world.request(&id).await["status"],
        "pending",
        "nothing was done by all that"
    );
    for open in ["/healthz", "/readyz"] {
        let (status, text) = world.place.api("").get_text(open).await;
        assert_eq!(status, 200, "{open}: {text}");
        assert!(!text.contains("acme") && !text.contains("Dana"), "{open}: {text}");
    }
}

async fn an_operator_who_may_not_is_told_so(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let path = format!("/api/confirmations/{id}/respond");
    for decision in ["approve", "reject"] {
        let (status, answer) = world
            .api("olga-cli")
            .post(&path, &json!({"decision": decision}))
            .await;
        assert_eq!((status, &answer["code"]), (403, &json!("not_authorised")));
    }
    let refused = world.audit("vote.refused,callback.refused,respond.refused").await;
    assert_eq!(world.request(&id).await["status"], "pending");
    let all = world.audit("").await;
    assert!(
        refused.len() == 2
            || all
                .iter()
                .filter(|event| event["data"]["reason"] == "not_authorised")
                .count()
                == 2,
        "{all:?}"
    );
    for bad in [
        json!({"decision": "maybe"}),
        json!({}),
        json!({"decision": true}),
        json!({"decision": "approve", "x": 1}),
    ] {
        let (status, answer) = world.api("dana-cli").post(&path, &bad).await;
        assert_eq!(
            (status, &answer["code"]),
            (400, &json!("invalid_request")),
            "{bad}"
        );
    }
    assert_eq!(world.request(&id).await["status"], "pending");
}

async fn two_hundred_agents_ask_at_once(storage: Storage) {
    let world = World::start(storage).await;
    let agent = world.api("build-agent");
    let asked = futures_util::future::join_all((0..200).map(|n| {
        let (agent, call) = (agent.clone(), call(&format!("c{n}"), 60_000 + n));
        async move { agent.post("/api/confirmations", &call).await }
    }))
    .await;
    let ids: std::collections::BTreeSet<_> = asked
        .iter()
        .map(|(status, answer)| {
            assert_eq!(*status, 200, "{answer}");
            answer["confirmation_id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 200);
    // Every page holds what the one before did not, and together they hold all.
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/confirmations?limit=37{cursor}");
        let (status, page) = world.api("audit").get(&path).await;
        assert_eq!(status, 200, "{page}");
        for item in page["items"].as_array().unwrap() {
            assert!(seen.insert(item["id"].as_str().unwrap().to_owned()), "twice");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ids);
    world.verify().await;
}
