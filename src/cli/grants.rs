//! `gatepost grants`: what lets later calls run without a person, and taking it back.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::api::{Api, Filters, ServerArgs, segment};
use super::print;
use super::stop::Done;
use super::table::{Column, table};
use crate::clock::{Clock as _, SystemClock};

/// Arguments of `gatepost grants`.
#[derive(Debug, Args)]
pub struct GrantsArgs {
    #[command(subcommand)]
    command: Option<GrantsCommand>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum GrantsCommand {
    /// List grants, the newest first; without `--all` only those that hold
    #[command(after_help = "Examples:\n  gatepost grants list\n  gatepost grants list --all --json")]
    List(ListArgs),
    /// Take a grant back: calls like that need a person again, at once
    #[command(after_help = "Examples:\n  gatepost grants revoke gr_0198…")]
    Revoke(Which),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Those that have ended, too
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Args)]
struct Which {
    /// The grant, `gr_…`
    id: String,
}

/// Runs the command; without one it lists what holds.
pub async fn run(args: GrantsArgs, as_json: bool) -> Done {
    let api = Api::new(&args.server)?;
    match args.command {
        None => list(&api, false, 100, as_json).await,
        Some(GrantsCommand::List(ListArgs { all, limit })) => list(&api, all, limit, as_json).await,
        Some(GrantsCommand::Revoke(Which { id })) => {
            let grant = api
                .delete(&format!("/api/grants/{}", segment(&id)?))
                .await
                .map_err(|error| error.naming("grant", &id, "gatepost grants list --all"))?;
            if as_json {
                print::line(grant.text());
            } else {
                print::line(&format!(
                    "{} is revoked; {} used it.",
                    print::text(&grant.value, "id"),
                    calls(&grant.value)
                ));
            }
            Ok(())
        }
    }
}

async fn list(api: &Api, all: bool, limit: usize, as_json: bool) -> Done {
    let filters = Filters::new().with("active", (!all).then_some("true"));
    let page = api.list("/api/grants", &filters, limit).await?;
    if as_json {
        page.print_json();
        return Ok(());
    }
    if page.items.is_empty() {
        print::line(if all {
            "There are no grants."
        } else {
            "No grant holds."
        });
        return Ok(());
    }
    let now = SystemClock.now();
    let row = |grant: &Value| {
        let by = grant["operators"].as_array().map_or(&[][..], Vec::as_slice);
        vec![
            print::text(grant, "id"),
            print::text(grant, "status"),
            print::text(grant, "tool_name"),
            print::text(grant, "token"),
            print::text(grant, "scope"),
            print::distance(grant, "expires_at", now),
            uses(grant),
            by.iter().map(print::inert).collect::<Vec<_>>().join(", "),
        ]
    };
    table(
        &[
            Column::Fixed("ID"),
            Column::Fixed("STATUS"),
            Column::Text("TOOL"),
            Column::Text("TOKEN"),
            Column::Fixed("SCOPE"),
            Column::Fixed("EXPIRES IN"),
            Column::Fixed("USES"),
            Column::Text("BY"),
        ],
        &page.items.iter().map(|item| row(&item.value)).collect::<Vec<_>>(),
    );
    page.tell_rest();
    Ok(())
}

fn uses(grant: &Value) -> String {
    match grant["max_uses"].as_u64() {
        Some(most) => format!("{} of {most}", grant["uses"]),
        None => grant["uses"].to_string(),
    }
}

fn calls(grant: &Value) -> String {
    match grant["uses"].as_u64() {
        Some(1) => "one call".to_owned(),
        Some(uses) => format!("{uses} calls"),
        None => "some calls".to_owned(),
    }
}
