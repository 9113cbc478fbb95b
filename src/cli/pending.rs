//! `gatepost pending`: what waits for a person; and how many have answered.

use clap::Args;
use serde_json::Value;

use super::answer::Answer;
use super::api::{Api, Filters, ServerArgs};
use super::stop::Done;
use super::table::{Column, cells_of, fit, table};
use super::{print, show};
use crate::clock::{Clock as _, SystemClock};
use crate::confirmation::together::together;

/// A list shows so many terminal cells of a request's arguments.
const BRIEF: usize = 48;

/// Arguments of `gatepost pending`.
#[derive(Debug, Args)]
pub struct PendingArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Instead of what waits: what was decided, but whose job did not go on within a minute
    #[arg(long)]
    stuck: bool,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only calls for this requester
    #[arg(long, value_name = "WHO")]
    requester: Option<String>,
    /// Only requests with a card on this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only requests made at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only requests made before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Instead of what waits: what one person approved past everybody else
    #[arg(long)]
    break_glass: bool,
    /// Only requests that hold this text
    #[arg(long, short, value_name = "TEXT")]
    query: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Lists the requests that wait for a person.
pub async fn run(args: PendingArgs, as_json: bool) -> Done {
    let api = Api::new(&args.server)?;
    let filters = Filters::new()
        .with("status", (!args.stuck && !args.break_glass).then_some("pending"))
        .with("break_glass", args.break_glass.then_some("true"))
        .with("stuck", args.stuck.then_some("true"))
        .with("tool", args.tool.as_deref())
        .with("agent", args.agent.as_deref())
        .with("requester", args.requester.as_deref())
        .with("channel", args.channel.as_deref())
        .time("since", args.since.as_deref())?
        .time("until", args.until.as_deref())?
        .with("q", args.query.as_deref());
    let mut page = api.list("/api/confirmations", &filters, args.limit).await?;
    if as_json {
        page.print_json();
        return Ok(());
    }
    if page.items.is_empty() {
        print::line(if args.stuck {
            "No request is stuck."
        } else {
            "Nothing waits for a person."
        });
        return Ok(());
    }
    let now = SystemClock.now();
    let items = together(std::mem::take(&mut page.items), |item| {
        item.value["set"].as_str().map(str::to_owned)
    });
    let with_sets = items.iter().any(|(set, _)| set.is_some());
    let row = |(set, item): &(Option<usize>, Answer)| {
        let request = &item.value;
        let mut row = vec![
            print::text(request, "id"),
            print::text(request, "tool_name"),
            brief(item),
            print::text(request, "token"),
            print::text(request, "requester"),
            print::distance(request, "created_at", now),
            print::distance(request, "expires_at", now),
            approvals(request),
        ];
        // Those of one set stand together under one number.
        row.extend(with_sets.then(|| set.map(|set| set.to_string()).unwrap_or_default()));
        row
    };
    let mut columns = vec![
        Column::Fixed("ID"),
        Column::Text("TOOL"),
        Column::Text("ARGUMENTS"),
        Column::Text("ASKED BY"),
        Column::Text("REQUESTER"),
        Column::Fixed("AGE"),
        Column::Fixed("EXPIRES IN"),
        Column::Fixed("APPROVALS"),
    ];
    columns.extend(with_sets.then_some(Column::Fixed("SET")));
    table(&columns, &items.iter().map(row).collect::<Vec<_>>());
    page.tell_rest();
    Ok(())
}

/// How many approve, of how many that must; without the second number where the server does not tell it.
pub fn approvals(request: &Value) -> String {
    let votes = request["votes"].as_array().map_or(&[][..], Vec::as_slice);
    // Of an edited call only the approvals of that edit count; a server that knows no edits numbers none.
    let stands = request["edit"]["number"].as_u64().unwrap_or_default();
    let counts =
        |vote: &&Value| vote["decision"] == "approve" && vote["edit"].as_u64().unwrap_or_default() == stands;
    let have = votes.iter().filter(counts).count();
    match request["quorum"].as_u64() {
        Some(need) => format!("{have} of {need}"),
        None => have.to_string(),
    }
}

/// The arguments on one line, cut: enough to tell requests apart, never enough to decide on.
fn brief(request: &Answer) -> String {
    let args = request.exact("tool_args").map(|args| args.canonical());
    let args = print::foreign(&args.unwrap_or_else(|| "(not readable)".to_owned()));
    fit(&args, BRIEF.min(cells_of(&args)))
}

/// The answer to `approve` and `reject` as one sentence.
pub fn after_vote(request: &Value) -> String {
    let id = print::text(request, "id");
    match request["status"].as_str() {
        Some("pending") if request["armed"].as_array().is_some_and(|armed| !armed.is_empty()) => {
            let armed = request["armed"].as_array().map_or(&[][..], Vec::as_slice);
            let armed: Vec<String> = armed.iter().map(show::arm).collect();
            format!(
                "{id} still waits ({} approvals), and this counts only once it is completed: {}.",
                approvals(request),
                armed.join("; ")
            )
        }
        Some("pending") => format!(
            "Your vote counts; {id} still waits ({} approvals).",
            approvals(request)
        ),
        _ => format!("{id} is {}.", print::text(request, "status")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_shows_the_beginning_of_the_arguments() {
        let of = |args: &str| brief(&Answer::read(format!(r#"{{"tool_args":{args}}}"#).as_bytes()).unwrap());
        assert_eq!(
            of(r#"{ "to": "A", "amount": 10.50 }"#),
            r#"{"amount":10.5,"to":"A"}"#
        );
        let long = of(&format!(r#"{{"note":"{}"}}"#, "支".repeat(100)));
        assert!(long.ends_with('…') && cells_of(&long) <= BRIEF, "{long}");
        assert!(!of(r#"{"a":"\u001b[2J\u202e"}"#).contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn rejections_are_no_approvals() {
        let request = json!({"id": "cr_1", "status": "pending", "quorum": 2, "votes": [{"decision": "approve"}, {"decision": "reject"}]});
        assert_eq!(approvals(&request), "1 of 2");
        assert_eq!(
            after_vote(&request),
            "Your vote counts; cr_1 still waits (1 of 2 approvals)."
        );
        assert_eq!(
            after_vote(&json!({"id": "cr_1", "status": "approved"})),
            "cr_1 is approved."
        );
    }
}
