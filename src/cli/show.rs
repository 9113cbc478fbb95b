//! `gatepost show ID`: one request with everything about it, and what an answer to it takes.

use clap::Args;
use serde_json::Value;

use super::answer::Answer;
use super::api::{Api, Filters, ServerArgs, segment};
use super::pending::approvals;
use super::stop::Done;
use super::{find, print};

/// Arguments of `gatepost show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The request: its id `cr_…`, how it begins, or the code of the call
    id: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Show what the rule hides, too; the audit log says that you looked
    #[arg(long)]
    full: bool,
}

/// Shows one request.
pub async fn run(args: ShowArgs, as_json: bool) -> Done {
    let api = Api::new(&args.server)?;
    let id = find::request(&api, &args.id).await?;
    let id = segment(&id)?;
    let full = Filters::new().with("full", args.full.then_some("true"));
    let request = api
        .ask(&format!("/api/confirmations/{id}"), &full)
        .await
        .map_err(|error| error.naming("request", id, "gatepost pending"))?;
    if as_json {
        print::line(request.text());
    } else {
        lay_out(&request);
    }
    Ok(())
}

/// The request for people: facts, arguments, votes, cards.
fn lay_out(answer: &Answer) {
    const FACTS: [(&str, &str); 18] = [
        ("request", "id"),
        ("status", "status"),
        ("tool", "tool_name"),
        ("code", "short_code"),
        ("risk", "risk"),
        ("reason", "reason"),
        ("rule", "rule"),
        ("asked by", "token"),
        ("agent", "agent_id"),
        ("session", "session_id"),
        ("call", "tool_call_id"),
        ("requester", "requester"),
        ("created", "created_at"),
        ("expires", "expires_at"),
        ("decided", "decided_at"),
        ("consumed", "consumed_at"),
        ("executed", "executed_at"),
        ("set", "set"),
    ];
    let request = &answer.value;
    let known = FACTS.iter().filter(|(_, member)| !request[member].is_null());
    let mut facts: Vec<_> = known
        .map(|(name, member)| (*name, print::text(request, member)))
        .collect();
    facts.push(("approvals", approvals(request)));
    facts.extend(asked(request));
    if !request["outcome"].is_null() {
        facts.push(("outcome", outcome(&request["outcome"])));
    }
    let edit = &request["edit"];
    if !edit.is_null() {
        let by = print::text(edit, "by");
        facts.push((
            "edited",
            if request["status"] == "pending" {
                format!(
                    "by {by}; approve it with --edited {}",
                    print::text(edit, "number")
                )
            } else {
                format!("by {by}")
            },
        ));
    }
    print::facts(&facts);
    if let Some(changes) = edit["changes"].as_str() {
        print::line("\nchanged");
        print::line(&print::block(changes, "  "));
        if let Some(args) = answer
            .exact("edit")
            .and_then(|edit| edit.get("tool_args").cloned())
        {
            print::line("\narguments as they are now");
            print::line(&print::block(&args.pretty(), "  "));
        }
        print::line("\narguments as they were proposed");
    } else {
        print::line("\narguments");
    }
    print::line(&print::block(&arguments(answer), "  "));
    section("votes", &request["votes"], |vote| {
        let reason = vote["reason"]
            .as_str()
            .map(|reason| format!(": {}", print::foreign(reason)));
        format!(
            "  {}  {} by {} on {}{}",
            print::text(vote, "at"),
            print::text(vote, "decision"),
            print::text(vote, "operator"),
            print::text(
                vote,
                if vote["channel"].is_null() {
                    "surface"
                } else {
                    "channel"
                }
            ),
            reason.unwrap_or_default(),
        )
    });
    section("cards", &request["deliveries"], |delivery| {
        let error = delivery["error"]
            .as_str()
            .map(|error| format!(": {}", print::foreign(error)));
        format!(
            "  {}  {}{}",
            print::text(delivery, "channel"),
            print::text(delivery, "state"),
            error.unwrap_or_default()
        )
    });
}

/// The arguments, exactly, over several lines.
pub fn arguments(request: &Answer) -> String {
    request
        .exact("tool_args")
        .map_or_else(|| "(not readable)".to_owned(), |args| args.pretty())
}

fn outcome(outcome: &Value) -> String {
    match outcome {
        Value::Object(_) => {
            let detail = outcome["detail"]
                .as_str()
                .map(|detail| format!(": {}", print::foreign(detail)));
            format!("{}{}", print::text(outcome, "status"), detail.unwrap_or_default())
        }
        other => print::inert(other),
    }
}

fn section(title: &str, items: &Value, shown: impl Fn(&Value) -> String) {
    let Some(items) = items.as_array().filter(|items| !items.is_empty()) else {
        return;
    };
    print::line(&format!("\n{title}"));
    for item in items {
        print::line(&shown(item));
    }
}

/// What an answer takes and may be, while one is asked for; of a settled request only how far it came.
fn asked(request: &Value) -> Vec<(&'static str, String)> {
    let pending = request["status"] == "pending";
    let list = |member: &str| request[member].as_array().map_or(&[][..], Vec::as_slice);
    let mut facts = Vec::new();
    let stages: Vec<String> = list("stages")
        .iter()
        .enumerate()
        .map(|(at, one)| stage(request, at, one))
        .collect();
    if !stages.is_empty() {
        facts.push(("stages", stages.join(", ")));
    }
    if let Some(broken) = request["break_glass"].as_object() {
        let by = broken.get("operator").map(print::inert).unwrap_or_default();
        facts.push(("break-glass", format!("approved alone by {by}")));
    }
    if !pending {
        return facts;
    }
    if let Some(needed) = request["require_reason"].as_str() {
        let which = match needed {
            "both" => "to approve and to reject".to_owned(),
            other => format!("to {}", print::foreign(other)),
        };
        facts.push(("reason", format!("needed {which} (--reason TEXT)")));
    }
    let step = match request["step_up"].as_str() {
        Some("code") => Some("a one-time code (--code CODE)"),
        Some("second_person") => Some("a second person who approves too"),
        Some("both") => Some("a one-time code (--code CODE) and a second person who approves too"),
        _ => None,
    };
    facts.extend(step.map(|step| ("to approve", step.to_owned())));
    for one in list("armed") {
        facts.push(("armed", arm(one)));
    }
    let grants: Vec<String> = list("grants_offered").iter().map(print::inert).collect();
    if !grants.is_empty() {
        facts.push(("grants", format!("{} (--grant SCOPE)", grants.join(", "))));
    }
    let places: Vec<String> = list("edits_accepted").iter().map(print::inert).collect();
    if request["edits_accepted"] == true {
        facts.push(("edits", "all of the arguments (--edit, --args)".to_owned()));
    } else if !places.is_empty() {
        facts.push(("edits", format!("{} (--edit, --args)", places.join(", "))));
    }
    if request["break_glass_offered"] == true {
        let how = "whom the rule lets approve alone: gatepost break-glass ID --reason TEXT";
        facts.push(("break-glass", how.to_owned()));
    }
    facts
}

fn stage(request: &Value, at: usize, stage: &Value) -> String {
    let now = request["status"] == "pending" && request["stage"].as_u64() == u64::try_from(at + 1).ok();
    let [name, have, need] = ["name", "approvals", "quorum"].map(|member| print::text(stage, member));
    format!("{name} {have} of {need}{}", if now { " (now)" } else { "" })
}

/// An approval that counts nothing yet: whose, until when, and what completes it.
pub fn arm(arm: &Value) -> String {
    let [who, until] = ["operator", "until"].map(|member| print::text(arm, member));
    let who = match arm["acting_for"].as_str() {
        Some(absent) => format!("{who} for {}", print::foreign(absent)),
        None => who,
    };
    let what = match arm["waits_for"].as_str() {
        Some("code") => "their one-time code (gatepost approve ID --code CODE)",
        _ => "somebody else's approval",
    };
    format!("{who}, until {until}, waits for {what}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_answer_takes_is_said_while_one_is_asked_for() {
        let mut request = json!({
            "id": "cr_1", "status": "pending", "require_reason": "both", "step_up": "both", "stage": 2,
            "stages": [{"name": "finance", "quorum": 2, "approvals": 2}, {"name": "director", "quorum": 1, "approvals": 0}],
            "armed": [{"operator": "dana", "acting_for": "li", "waits_for": "code", "until": "2026-12-01T00:00:00Z"}],
            "grants_offered": ["session", "1h"], "edits_accepted": ["/amount"], "break_glass_offered": true, "break_glass": null,
        });
        let told = |request: &Value| -> Vec<String> {
            asked(request)
                .into_iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect()
        };
        assert_eq!(
            told(&request),
            [
                "stages: finance 2 of 2, director 0 of 1 (now)",
                "reason: needed to approve and to reject (--reason TEXT)",
                "to approve: a one-time code (--code CODE) and a second person who approves too",
                "armed: dana for li, until 2026-12-01T00:00:00Z, waits for their one-time code (gatepost approve ID --code CODE)",
                "grants: session, 1h (--grant SCOPE)",
                "edits: /amount (--edit, --args)",
                "break-glass: whom the rule lets approve alone: gatepost break-glass ID --reason TEXT",
            ]
        );
        request["status"] = "approved".into();
        request["break_glass"] = json!({"operator": "mira\u{1b}[2J"});
        assert_eq!(
            told(&request),
            [
                "stages: finance 2 of 2, director 0 of 1",
                "break-glass: approved alone by mira\\x1b[2J"
            ]
        );
        // A server that tells none of it is believed.
        assert!(asked(&json!({"status": "pending"})).is_empty());
    }
}
