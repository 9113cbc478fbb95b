//! `gatepost job …`: submit an agent job, watch it, answer what it waits for, cancel it.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::answer::Answer;
use super::api::{Api, Filters, ServerArgs, segment};
use super::print;
use super::stop::{Done, Stop};
use super::table::{Column, table};
use super::watch;
use crate::clock::{Clock as _, SystemClock};

/// How often a waiting command looks.
const LOOK: Duration = Duration::from_millis(500);
/// Longer inputs are refused before they are sent.
const LONGEST_INPUT: u64 = 1024 * 1024;

/// Arguments of `gatepost job`.
#[derive(Debug, Args)]
pub struct JobArgs {
    #[command(subcommand)]
    command: JobCommand,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    /// Submit a job
    #[command(
        after_help = "Examples:\n  gatepost job submit --piece pay-invoice --input 'pay invoice 4711'\n  gatepost job submit --piece pay-invoice --input-file order.txt --requester dana --wait"
    )]
    Submit(SubmitArgs),
    /// List jobs, the newest first
    #[command(after_help = "Examples:\n  gatepost job list\n  gatepost job list --status waiting_human")]
    List(ListArgs),
    /// Show one job
    #[command(after_help = "Examples:\n  gatepost job show job_0198…")]
    Show(Which),
    /// Watch a job until it has ended; exit code 1 unless it completed
    #[command(
        after_help = "Examples:\n  gatepost job watch job_0198…\n  gatepost job watch job_0198… --json"
    )]
    Watch(Which),
    /// Answer what a job waits for: a question of its agent, or whether an interrupted call was done
    #[command(
        after_help = "Examples:\n  gatepost job answer job_0198… 'use the second account'\n  gatepost job answer job_0198… done --question t0003c000q1"
    )]
    Answer(AnswerArgs),
    /// Cancel a job with its open requests
    #[command(after_help = "Examples:\n  gatepost job cancel job_0198…")]
    Cancel(Which),
}

#[derive(Debug, Args)]
struct SubmitArgs {
    /// The piece to play
    #[arg(long, value_name = "NAME")]
    piece: String,
    /// What the agent is to do
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "input_file",
        conflicts_with = "input_file"
    )]
    input: Option<String>,
    /// A file that says what the agent is to do; `-` is standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// For whom: an operator's id, e-mail or platform identity, or free text
    #[arg(long, value_name = "WHO")]
    requester: Option<String>,
    /// The agent's id
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The session's id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// From -100 to 100: jobs of a higher priority run first
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i32>,
    /// Not before this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Wait until the job has ended; exit code 1 unless it completed
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only jobs of this status
    #[arg(long, value_name = "STATUS", value_parser = ["queued", "running", "waiting_human", "waiting_subtasks", "completed", "aborted", "cancelled", "error"])]
    status: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

#[derive(Debug, Args)]
struct Which {
    /// The job, `job_…`
    id: String,
}

#[derive(Debug, Args)]
struct AnswerArgs {
    /// The job, `job_…`
    id: String,
    /// The answer
    answer: String,
    /// The question that is answered, as `gatepost job show` has it; an answer to another one is refused
    #[arg(long, value_name = "ID")]
    question: Option<String>,
}

/// Runs the command.
pub async fn run(args: JobArgs, as_json: bool) -> Done {
    let api = Api::new(&args.server)?;
    match args.command {
        JobCommand::Submit(args) => submit(&api, args, as_json).await,
        JobCommand::List(args) => list(&api, args, as_json).await,
        JobCommand::Show(Which { id }) => {
            let job = api
                .get(&format!("/api/jobs/{}", segment(&id)?))
                .await
                .map_err(|error| error.naming("job", &id, "gatepost job list"))?;
            tell(&job, as_json);
            Ok(())
        }
        JobCommand::Watch(Which { id }) => watch::run(&api, &id, as_json).await,
        JobCommand::Answer(AnswerArgs { id, answer, question }) => {
            let path = format!("/api/jobs/{}/answer", segment(&id)?);
            let mut body = json!({ "answer": answer });
            if let Some(question) = question {
                body["question_id"] = Value::String(question);
            }
            let job = api.post(&path, &body).await?;
            tell(&job, as_json);
            Ok(())
        }
        JobCommand::Cancel(Which { id }) => {
            let job = api
                .post(&format!("/api/jobs/{}/cancel", segment(&id)?), &json!({}))
                .await?;
            tell(&job, as_json);
            Ok(())
        }
    }
}

async fn submit(api: &Api, args: SubmitArgs, as_json: bool) -> Done {
    let input = match (args.input, args.input_file) {
        (Some(input), _) => input,
        (None, Some(file)) => read_input(&file)?,
        (None, None) => return Err(Stop::usage("no input: --input TEXT or --input-file FILE")),
    };
    let mut body = json!({"piece": args.piece, "input": input});
    for (member, value) in [
        ("requester", args.requester),
        ("agent_id", args.agent),
        ("session_id", args.session),
        ("run_at", args.at),
    ] {
        if let Some(value) = value {
            body[member] = Value::String(value);
        }
    }
    if let Some(priority) = args.priority {
        body["priority"] = json!(priority);
    }
    let mut job = api.post("/api/jobs", &body).await?;
    if args.wait {
        job = wait(api, job).await?;
    }
    tell(&job, as_json);
    if args.wait && job.value["status"] != "completed" {
        Err(Stop::Told)
    } else {
        Ok(())
    }
}

fn read_input(file: &std::path::Path) -> Result<String, Stop> {
    let cannot = |error: std::io::Error| Stop::failed(format!("{} cannot be read: {error}", file.display()));
    let reader: Box<dyn std::io::Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file).map_err(cannot)?)
    };
    let mut text = String::new();
    reader
        .take(LONGEST_INPUT + 1)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    if text.len() as u64 > LONGEST_INPUT {
        return Err(Stop::failed(format!(
            "{} is longer than {LONGEST_INPUT} bytes",
            file.display()
        )));
    }
    Ok(text)
}

/// The job once it has ended; what it waits for meanwhile is told on stderr.
async fn wait(api: &Api, mut job: Answer) -> Result<Answer, Stop> {
    let id = job.value["id"].as_str().unwrap_or_default().to_owned();
    let path = format!("/api/jobs/{}", segment(&id)?);
    let mut told = String::new();
    while !has_ended(&job.value) {
        let now = state(&job.value);
        if now != told {
            print::note(&format!("{id} {now}"));
            told = now;
        }
        tokio::time::sleep(LOOK).await;
        job = api.get(&path).await?;
    }
    Ok(job)
}

/// Whether nothing more can come of the job.
pub fn has_ended(job: &Value) -> bool {
    matches!(
        job["status"].as_str(),
        Some("completed" | "aborted" | "cancelled" | "error")
    )
}

pub(super) fn state(job: &Value) -> String {
    let status = print::text(job, "status");
    match job["wait_reason"].as_str() {
        Some(reason) => format!("{status} ({})", print::foreign(reason)),
        None => status,
    }
}

async fn list(api: &Api, args: ListArgs, as_json: bool) -> Done {
    let filters = Filters::new().with("status", args.status.as_deref());
    let page = api.list("/api/jobs", &filters, args.limit).await?;
    if as_json {
        page.print_json();
        return Ok(());
    }
    if page.items.is_empty() {
        print::line("There are no such jobs.");
        return Ok(());
    }
    let now = SystemClock.now();
    let row = |job: &Value| {
        vec![
            print::text(job, "id"),
            print::text(job, "piece"),
            state(job),
            print::text(job, "movement"),
            print::distance(job, "updated_at", now),
        ]
    };
    let columns = [
        Column::Fixed("ID"),
        Column::Text("PIECE"),
        Column::Text("STATUS"),
        Column::Text("MOVEMENT"),
        Column::Fixed("SINCE"),
    ];
    table(
        &columns,
        &page.items.iter().map(|item| row(&item.value)).collect::<Vec<_>>(),
    );
    page.tell_rest();
    Ok(())
}

fn tell(answer: &Answer, as_json: bool) {
    const FACTS: [(&str, &str); 10] = [
        ("question", "question"),
        ("question id", "question_id"),
        ("piece", "piece"),
        ("movement", "movement"),
        ("parent", "parent_id"),
        ("not before", "run_at"),
        ("created", "created_at"),
        ("updated", "updated_at"),
        ("error", "error"),
        ("resumes in", "resume_movement"),
    ];
    if as_json {
        print::line(answer.text());
        return;
    }
    let job = &answer.value;
    let mut facts = vec![("job", print::text(job, "id")), ("status", state(job))];
    let known = FACTS.iter().filter(|(_, member)| !job[member].is_null());
    facts.extend(known.map(|(name, member)| (*name, print::text(job, member))));
    for request in job["confirmation_ids"].as_array().into_iter().flatten() {
        facts.push(("request", print::inert(request)));
    }
    print::facts(&facts);
    if let Some(result) = job["result"].as_str() {
        print::line("\nresult");
        print::line(&print::block(result, "  "));
    } else if !job["result"].is_null() {
        print::line("\nresult");
        print::line(&print::block(&job["result"].to_string(), "  "));
    }
}
