//! `gatepost approve ID` and `gatepost reject ID --reason TEXT`: an operator's answer from the command line.

use clap::Args;
use serde_json::{Value, json};

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
    /// Approve later calls like it too, for as long as the rule offers: `session`, `1h`, …
    #[arg(long, value_name = "SCOPE")]
    grant: Option<String>,
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
    let mut body = json!({"decision": "approve", "reason": args.reason});
    if let Some(grant) = args.grant {
        body["grant"] = Value::String(grant);
    }
    respond(&args.server, &args.id, &body, as_json).await
}

/// Rejects.
pub async fn reject(args: RejectArgs, as_json: bool) -> Done {
    if args.reason.trim().is_empty() {
        return Err(Stop::usage("a rejection needs a reason: --reason TEXT"));
    }
    let body = json!({"decision": "reject", "reason": args.reason});
    respond(&args.server, &args.id, &body, as_json).await
}

async fn respond(server: &ServerArgs, id: &str, body: &Value, as_json: bool) -> Done {
    let api = Api::new(server)?;
    let id = segment(id)?;
    let request = api
        .post(&format!("/api/confirmations/{id}/respond"), body)
        .await
        .map_err(|error| error.naming("request", id, "gatepost pending"))?;
    if as_json {
        print::line(request.text());
    } else {
        print::line(&pending::after_vote(&request.value));
    }
    Ok(())
}
