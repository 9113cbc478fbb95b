//! The console as browsers meet it, over a real store.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, header};
use proptest::prelude::*;
use serde_json::json;

use super::page::{Pages, inert, inert_or};
use crate::http::fixture::{Bench, HOST, Heard, secret};
use minijinja::context;

/// A browser: one cookie.
struct Browser<'a> {
    bench: &'a Bench,
    cookie: String,
}

impl<'a> Browser<'a> {
    async fn log_in(bench: &'a Bench, token: &str) -> Self {
        let mut browser = Self {
            bench,
            cookie: String::new(),
        };
        let heard = browser.post("/console/login", &[("token", &secret(token))]).await;
        assert_eq!(heard.status, 303, "{}", heard.text);
        browser.keep(&heard);
        browser
    }

    fn keep(&mut self, heard: &Heard) {
        let cookie = heard.headers[header::SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    async fn send(&self, method: &str, path: &str, body: String) -> Heard {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, HOST)
            .header(header::COOKIE, &self.cookie)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .unwrap();
        self.bench.raw(request).await
    }

    async fn get(&self, path: &str) -> Heard {
        self.send("GET", path, String::new()).await
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Heard {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.send("POST", path, body).await
    }

    async fn csrf(&self) -> String {
        let page = self.get("/console/").await.text;
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}

#[tokio::test]
async fn who_may_only_break_the_glass_has_no_other_form() {
    let bench = Bench::new().await;
    let id = bench.ask("glass__pay").await;
    let page = format!("/console/requests/{id}");
    let ines = Browser::log_in(&bench, "ines").await.get(&page).await.text;
    assert!(ines.contains("Break the glass: approve alone"), "{ines}");
    assert!(!ines.contains("value=\"reject\""), "{ines}");
    let dana = Browser::log_in(&bench, "dana").await.get(&page).await.text;
    assert!(
        dana.contains("value=\"reject\"") && !dana.contains("Break the glass"),
        "{dana}"
    );
}

#[tokio::test]
async fn the_address_of_the_server_leads_to_the_console() {
    let bench = Bench::new().await;
    let heard = bench.get("/", "").await;
    assert_eq!(
        (heard.status.as_u16(), &heard.headers[header::LOCATION]),
        (303, &"/console/".parse().unwrap())
    );
}

#[tokio::test]
async fn nobody_sees_anything_without_logging_in() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    let stranger = Browser {
        bench: &bench,
        cookie: "gatepost=made-up".into(),
    };
    let heard = stranger.get("/console/").await;
    assert_eq!(
        (heard.status.as_u16(), &heard.headers[header::LOCATION]),
        (303, &"login".parse().unwrap())
    );
    let heard = stranger.get(&format!("/console/requests/{id}")).await;
    assert_eq!(heard.headers[header::LOCATION], format!("../login?next={id}"));
    let path = format!("/console/requests/{id}/respond");
    let heard = stranger.post(&path, &[("decision", "approve")]).await;
    assert_eq!(heard.status, 401);
    for token in ["agent", "auditor", "admin"] {
        let heard = stranger
            .post("/console/login", &[("token", &secret(token))])
            .await;
        assert_eq!(heard.status, 403, "{token}");
        assert!(!heard.headers.contains_key(header::SET_COOKIE));
    }
    let heard = stranger.post("/console/login", &[("token", "wrong")]).await;
    assert_eq!(heard.status, 401);
    // A bearer token is no session.
    assert_eq!(bench.get("/console/", "dana").await.status, 303);
}

#[tokio::test]
async fn a_person_logs_in_looks_decides_and_leaves() {
    let bench = Bench::new().await;
    let id = bench.ask("card__charge").await;
    let dana = Browser::log_in(&bench, "dana").await;
    let inbox = dana.get("/console/").await;
    assert!(inbox.text.contains("card__charge") && inbox.text.contains("DANA Doe"));
    let policy = inbox.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("script")
    );
    let page = dana.get(&format!("/console/requests/{id}")).await;
    assert!(page.text.contains("value=\"approve\"") && !page.text.contains("<script"));
    let respond = format!("/console/requests/{id}/respond");
    for csrf in ["", "00", &"0".repeat(64)] {
        let heard = dana
            .post(&respond, &[("csrf", csrf), ("decision", "approve")])
            .await;
        assert_eq!(heard.status, 403, "{csrf}");
    }
    let csrf = dana.csrf().await;
    assert!(page.text.contains("needed to reject, optional to approve"));
    for reason in ["", " \r\n"] {
        let fields = [
            ("csrf", csrf.as_str()),
            ("decision", "reject"),
            ("reason", reason),
        ];
        let heard = dana.post(&respond, &fields).await;
        assert_eq!(heard.status, 422, "{reason:?}");
        assert!(heard.text.contains("A rejection needs a reason"));
    }
    let fields = [
        ("csrf", csrf.as_str()),
        ("decision", "reject"),
        ("reason", "not now"),
    ];
    let heard = dana.post(&respond, &fields).await;
    assert_eq!(
        heard.headers[header::LOCATION],
        format!("../{id}?said=settled_reject")
    );
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(shown["status"], "rejected");
    assert_eq!(
        (&shown["votes"][0]["surface"], &shown["votes"][0]["reason"]),
        (&json!("console"), &json!("not now"))
    );
    let heard = dana.post(&respond, &fields).await;
    assert_eq!(
        heard.headers[header::LOCATION],
        format!("../{id}?said=already_rejected")
    );
    let page = dana
        .get(&format!("/console/requests/{id}?said=already_rejected"))
        .await;
    assert!(!page.text.contains("value=\"approve\"") && page.text.contains("not now"));
    assert_eq!(dana.post("/console/logout", &[("csrf", &csrf)]).await.status, 303);
    assert_eq!(dana.get("/console/").await.headers[header::LOCATION], "login");
}

#[tokio::test]
async fn all_of_the_arguments_are_for_who_may_decide() {
    let bench = Bench::new().await;
    let body =
        json!({ "tool_name": "card__charge", "tool_args": { "card": { "number": "4111222233334444" } } });
    let heard = bench.post("/api/confirmations", "agent", body).await;
    let id = heard.json()["confirmation_id"].as_str().unwrap().to_owned();
    let path = format!("/console/requests/{id}");
    let ines = Browser::log_in(&bench, "ines").await.get(&path).await;
    assert!(ines.text.contains("16 characters") && !ines.text.contains("4111222233334444"));
    assert!(!ines.text.contains("value=\"approve\""));
    let events = || bench.get("/api/audit?kind=args.viewed", "auditor");
    assert_eq!(events().await.json()["items"], json!([]));
    let dana = Browser::log_in(&bench, "dana").await.get(&path).await;
    assert!(dana.text.contains("4111222233334444"));
    assert_eq!(events().await.json()["items"][0]["data"]["surface"], "console");
    let gus = Browser::log_in(&bench, "gus").await;
    assert_eq!(gus.get(&path).await.status, 404);
    assert!(!gus.get("/console/").await.text.contains("card__charge"));
}

#[tokio::test]
async fn a_session_of_another_time_or_of_two_cookies_is_none() {
    let bench = Bench::new().await;
    let mut dana = Browser::log_in(&bench, "dana").await;
    assert_eq!(dana.get("/console/").await.status, 200);
    let once = dana.cookie.clone();
    dana.cookie = format!("{once}; {once}");
    assert_eq!(dana.get("/console/").await.status, 303);
    dana.cookie = once;
    bench.clock.advance(std::time::Duration::from_hours(8));
    assert_eq!(dana.get("/console/").await.status, 303);
}

#[tokio::test]
async fn the_one_time_address_works_once_and_from_here() {
    let bench = Bench::new().await;
    let ask = |value: &str, peer: Option<&str>| {
        let mut request = Request::builder()
            .uri(format!("/console/once/{value}"))
            .header(header::HOST, HOST)
            .body(Body::empty())
            .unwrap();
        if let Some(peer) = peer {
            let peer: SocketAddr = peer.parse().unwrap();
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        bench.raw(request)
    };
    let here = Some("127.0.0.1:5000");
    for (value, peer) in [
        (bench.once.as_str(), None),
        (bench.once.as_str(), Some("10.0.0.1:5000")),
        ("wrong", here),
    ] {
        assert_eq!(ask(value, peer).await.status, 404);
    }
    let heard = ask(&bench.once, here).await;
    assert_eq!(heard.status, 303);
    assert_eq!(ask(&bench.once, here).await.status, 404);
    let mut browser = Browser {
        bench: &bench,
        cookie: String::new(),
    };
    browser.keep(&heard);
    let id = bench.ask("pay").await;
    let csrf = browser.csrf().await;
    let fields = [("csrf", csrf.as_str()), ("decision", "approve")];
    browser
        .post(&format!("/console/requests/{id}/respond"), &fields)
        .await;
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(
        (&shown["status"], &shown["votes"][0]["surface"]),
        (&json!("approved"), &json!("terminal"))
    );
}

#[tokio::test]
async fn hostile_text_stays_text_on_every_page() {
    let bench = Bench::new().await;
    let evil = "\"><script>alert(1)</script>{{ 9973*9967 }}<img src=x onerror=y>\u{202e}";
    let body = json!({
        "tool_name": evil.replace('\u{202e}', ""), "tool_args": { evil: evil }, "agent_id": evil, "session_id": evil,
        "requester": evil,
    });
    let heard = bench.post("/api/confirmations", "agent", body).await;
    let id = heard.json()["confirmation_id"].as_str().unwrap().to_owned();
    let dana = Browser::log_in(&bench, "dana").await;
    for path in [
        "/console/".to_owned(),
        format!("/console/requests/{id}?said=%3Cscript%3E"),
    ] {
        let page = dana.get(&path).await.text;
        assert!(page.contains("&lt;script&gt;alert(1)"), "{path}");
        for trick in ["<script", "<img", "99400891", "\u{202e}"] {
            assert!(!page.contains(trick), "{path}: {trick}");
        }
    }
}

#[tokio::test]
async fn the_cookie_is_kept_from_scripts_and_other_sites() {
    let bench = Bench::new().await;
    let browser = Browser {
        bench: &bench,
        cookie: String::new(),
    };
    let heard = browser
        .post("/console/login", &[("token", &secret("dana"))])
        .await;
    let cookie = heard.headers[header::SET_COOKIE].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=28800"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let next = "cr_00000000000000000000000000000001";
    let heard = browser
        .post("/console/login", &[("token", &secret("dana")), ("next", next)])
        .await;
    assert_eq!(heard.headers[header::LOCATION], format!("requests/{next}"));
    let heard = browser
        .post(
            "/console/login",
            &[("token", &secret("dana")), ("next", "//evil.example")],
        )
        .await;
    assert_eq!(heard.headers[header::LOCATION], "./");
}

proptest! {
    #[test]
    fn no_text_opens_a_tag_or_leaves_an_attribute(text in any::<String>()) {
        let pages = Pages::new().unwrap();
        let marked = format!("<{text}\"'>");
        let page = pages
            .render("login.html", context! {
                root => "./", person => inert(&marked), org => inert(&marked), csrf => inert(&marked).to_string(),
                next => inert(&marked), said => inert_or(Some(&marked)),
            })
            .unwrap();
        let blank = pages
            .render("login.html", context! {
                root => "./", person => inert("x"), org => inert("x"), csrf => "x", next => inert("x"), said => inert("x"),
            })
            .unwrap();
        for mark in ['<', '>', '"', '\''] {
            prop_assert_eq!(page.matches(mark).count(), blank.matches(mark).count());
        }
    }
}

/// What dana writes in place of the arguments of [`to_edit`].
const EDITED: &str = r#"{"amount":1,"card":{"note":"<b>1</b>","number":"4111222233334444"}}"#;

/// A request whose arguments may be changed.
async fn to_edit(bench: &Bench) -> String {
    let body = json!({
        "tool_name": "edits__pay", "accepts_edits": true,
        "tool_args": { "amount": 60000, "card": { "number": "4111222233334444", "note": "a\u{202e}b</textarea>" } },
    });
    let heard = bench.post("/api/confirmations", "agent", body).await.json();
    assert_eq!(heard["verdict"], "pending");
    heard["confirmation_id"].as_str().unwrap().to_owned()
}

/// Sends the form for edited arguments.
async fn edit(browser: &Browser<'_>, id: &str, csrf: &str, decision: &str, args: &str) -> Heard {
    let fields = [
        ("csrf", csrf),
        ("edit", "0"),
        ("decision", decision),
        ("edited_args", args),
    ];
    browser
        .post(&format!("/console/requests/{id}/respond"), &fields)
        .await
}

#[tokio::test]
async fn a_person_changes_the_arguments_sees_what_that_does_and_approves_it() {
    let bench = Bench::new().await;
    let id = to_edit(&bench).await;
    let path = format!("/console/requests/{id}");
    let dana = Browser::log_in(&bench, "dana").await;
    let page = dana.get(&path).await.text;
    let (_, form) = page.split_once("name=\"edited_args\"").expect("a field for them");
    let (written, _) = form.split_once("</textarea>").unwrap();
    // What would not be seen is an escape; what would end the field does not.
    assert!(
        written.contains("\\u202e") && !written.contains('\u{202e}'),
        "{written}"
    );
    assert!(
        written.contains("4111222233334444"),
        "who may decide sees all of them"
    );
    let csrf = dana.csrf().await;
    let heard = edit(&dana, &id, &csrf, "preview", EDITED).await;
    assert_eq!(heard.status, 200);
    assert!(
        heard.text.contains("- &#x2f;amount: 60000") && !heard.text.contains("<b>1</b>"),
        "{}",
        heard.text
    );
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(
        (&shown["status"], &shown["votes"]),
        (&json!("pending"), &json!([]))
    );
    let heard = edit(&dana, &id, &csrf, "approve_edited", EDITED).await;
    assert_eq!(
        heard.headers[header::LOCATION],
        format!("../{id}?said=settled_approve")
    );
    let page = dana.get(&path).await.text;
    assert!(page.contains("DANA Doe changed them") && page.contains("As they were proposed"));
    assert!(!page.contains("<b>1</b>") && !page.contains("name=\"edited_args\""));
}

#[tokio::test]
async fn an_edit_that_is_not_taken_says_why_and_keeps_what_was_written() {
    let bench = Bench::new().await;
    let id = to_edit(&bench).await;
    let dana = Browser::log_in(&bench, "dana").await;
    let csrf = dana.csrf().await;
    for (args, why) in [
        ("{", "refused"),
        (r#"{"amount":1}"#, "cannot be changed"),
        (
            r#"{"amount":200000,"card":{"number":"4111222233334444","note":"x"}}"#,
            "edits-never",
        ),
        (
            r#"{"amount":1,"x":2,"card":{"number":"4111222233334444","note":"x"}}"#,
            "does not let people",
        ),
    ] {
        for decision in ["preview", "approve_edited"] {
            let heard = edit(&dana, &id, &csrf, decision, args).await;
            assert_eq!(heard.status, 422, "{args}");
            assert!(
                heard.text.contains(why) && heard.text.contains("Nothing was decided"),
                "{args}: {}",
                heard.text
            );
            let kept = args.replace('"', "&quot;").replace('/', "&#x2f;");
            assert!(
                heard.text.contains(&kept),
                "what was written is still there: {kept}"
            );
        }
    }
    let ines = Browser::log_in(&bench, "ines").await;
    let page = ines.get(&format!("/console/requests/{id}")).await.text;
    assert!(!page.contains("edited_args"));
    let csrf = ines.csrf().await;
    assert_eq!(edit(&ines, &id, &csrf, "preview", EDITED).await.status, 403);
}

#[tokio::test]
async fn a_page_that_is_older_than_an_edit_approves_nothing() {
    let bench = Bench::new().await;
    let body = json!({ "tool_name": "edits__pay", "tool_args": { "amount": 60000 }, "accepts_edits": true });
    let heard = bench.post("/api/confirmations", "agent", body).await.json();
    let id = heard["confirmation_id"].as_str().unwrap().to_owned();
    let respond = format!("/console/requests/{id}/respond");
    let mira = Browser::log_in(&bench, "mira").await;
    let edited = json!({ "decision": "approve", "edited_args": { "amount": 4 } });
    let path = format!("/api/confirmations/{id}/respond");
    assert_eq!(
        bench.post(&path, "dana", edited).await.json()["status"],
        "pending"
    );
    let csrf = mira.csrf().await;
    let answer = |edit: &'static str| {
        [
            ("csrf", csrf.clone()),
            ("edit", edit.to_owned()),
            ("decision", "approve".to_owned()),
        ]
    };
    for (edit, said) in [
        ("0", "edit_unseen"),
        ("", "edit_unseen"),
        ("1", "settled_approve"),
    ] {
        let fields = answer(edit);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let heard = mira.post(&respond, &fields).await;
        assert_eq!(
            heard.headers[header::LOCATION],
            format!("../{id}?said={said}"),
            "{edit:?}"
        );
    }
}
