//! `gatepost approve ID` and `gatepost reject ID --reason TEXT`: an operator's answer from the command line.

use clap::Args;
use serde_json::json;

use super::api::{Api, ServerArgs, segment};
use super::stop::{Done, Stop};
use super::{pending, print};

/// Arguments of `gatepost approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The request, `cr_…`
    id: String,
    /// Why; it stands on the card and in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Arguments of `gatepost reject`.
#[derive(Debug, Args)]
pub struct RejectArgs {
    /// The request, `cr_…`
    id: String,
    /// Why; the agent is told, and it stands on the card and in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// Approves.
pub async fn approve(args: ApproveArgs, as_json: bool) -> Done {
    respond(&args.server, &args.id, "approve", args.reason.as_deref(), as_json).await
}

/// Rejects.
pub async fn reject(args: RejectArgs, as_json: bool) -> Done {
    if args.reason.trim().is_empty() {
        return Err(Stop::usage("a rejection needs a reason: --reason TEXT"));
    }
    respond(&args.server, &args.id, "reject", Some(&args.reason), as_json).await
}

async fn respond(server: &ServerArgs, id: &str, decision: &str, reason: Option<&str>, as_json: bool) -> Done {
    let api = Api::new(server)?;
    let id = segment(id)?;
    let body = json!({"decision": decision, "reason": reason});
    let request = api
        .post(&format!("/api/confirmations/{id}/respond"), &body)
        .await?;
    if as_json {
        print::line(request.text());
    } else {
        print::line(&pending::after_vote(&request.value));
    }
    Ok(())
}
