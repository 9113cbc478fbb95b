//! `gatepost approve ID`, `gatepost reject ID --reason TEXT` and `gatepost break-glass ID --reason TEXT`: an operator's answer from the command line.

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::api::{Api, Filters, ServerArgs, segment};
use super::client::ClientError;
use super::stop::{Done, Stop};
use super::{edit, find, pending, print};
use crate::gate::Arguments;

/// Arguments of `gatepost approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The request: its id `cr_…`, how it begins, or the code of the call
    id: String,
    /// Why; it stands on the card and in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Approve later calls like it too, for as long as the rule offers: `session`, `1h`, …
    #[arg(long, value_name = "SCOPE")]
    grant: Option<String>,
    /// Approve the call with other arguments, where the rule lets you: a JSON object, or a file that holds one
    #[arg(long, value_name = "FILE|JSON", conflicts_with_all = ["grant", "edit"])]
    args: Option<String>,
    /// Change the arguments in your editor, then approve what you saved
    #[arg(long, conflicts_with = "grant")]
    edit: bool,
    /// Approve the arguments as somebody changed them: the number of the edit, as `gatepost show` names it
    #[arg(long, value_name = "N")]
    edited: Option<u32>,
    /// What `--edit` starts
    #[arg(
        long,
        env = "EDITOR",
        value_name = "COMMAND",
        default_value = "vi",
        hide_env_values = true
    )]
    editor: String,
    /// A one-time code of your authenticator app, where the rule asks for one
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Arguments of `gatepost break-glass`.
#[derive(Debug, Args)]
pub struct BreakGlassArgs {
    /// The request: its id `cr_…`, how it begins, or the code of the call
    id: String,
    /// Why; everybody who is passed over is told, and it stands on the card and in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// A one-time code of your authenticator app, where the rule asks for one
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Where somebody changed the arguments: the number of the edit that you saw, as `gatepost show` names it
    #[arg(long, value_name = "N")]
    edited: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

/// What is sent.
#[derive(Debug, Serialize)]
struct Approval {
    decision: &'static str,
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Spelled exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_args: Option<Arguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit: Option<u64>,
}

/// Arguments of `gatepost reject`.
#[derive(Debug, Args)]
pub struct RejectArgs {
    /// The request: its id `cr_…`, how it begins, or the code of the call
    id: String,
    /// Why; the agent is told, and it stands on the card and in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// Approves.
pub async fn approve(args: ApproveArgs, as_json: bool) -> Done {
    let mut body = Approval {
        decision: "approve",
        reason: args.reason,
        grant: args.grant,
        code: args.code,
        edited_args: args.args.as_deref().map(edit::given).transpose()?,
        edit: args.edited.map(u64::from),
    };
    if args.edit {
        let api = Api::new(&args.server)?;
        let id = find::request(&api, &args.id).await?;
        let id = segment(&id)?;
        let request = api
            .ask(&format!("/api/confirmations/{id}"), &Filters::new())
            .await
            .map_err(|error| error.naming("request", id, "gatepost pending"))?;
        body.edited_args = Some(edit::in_editor(&request, &args.editor)?);
        body.edit = Some(edit::number(&request).unwrap_or_default());
    }
    respond(&args.server, &args.id, &body, as_json).await
}

/// Approves alone, past everybody who would be asked.
pub async fn break_glass(args: BreakGlassArgs, as_json: bool) -> Done {
    if args.reason.trim().is_empty() {
        return Err(Stop::usage("breaking the glass needs a reason: --reason TEXT"));
    }
    let mut body = json!({"decision": "approve", "break_glass": true, "reason": args.reason});
    if let Some(code) = args.code {
        body["code"] = code.into();
    }
    if let Some(number) = args.edited {
        body["edit"] = number.into();
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

async fn respond(server: &ServerArgs, id: &str, body: &(impl Serialize + Sync), as_json: bool) -> Done {
    let api = Api::new(server)?;
    let id = find::request(&api, id).await?;
    let id = segment(&id)?;
    let request = api
        .post(&format!("/api/confirmations/{id}/respond"), body)
        .await
        .map_err(|error| in_our_words(error.naming("request", id, "gatepost pending")))?;
    if as_json {
        print::line(request.text());
    } else {
        print::line(&pending::after_vote(&request.value));
    }
    Ok(())
}

/// A refusal with the options of this command in place of the members of the API.
fn in_our_words(error: ClientError) -> ClientError {
    const OPTIONS: [(&str, &str); 6] = [
        ("`code`", "`--code CODE`"),
        ("`grant`", "`--grant SCOPE`"),
        ("`reason`", "`--reason TEXT`"),
        ("`edit: ", "`--edited "),
        ("`edit`", "`--edited N`"),
        ("`edited_args`", "`--args`"),
    ];
    match error {
        ClientError::Refused { status, code, detail } => {
            let spell = |detail: String, (member, option): &(&str, &str)| detail.replace(member, option);
            let detail = OPTIONS.iter().fold(detail, spell);
            ClientError::Refused { status, code, detail }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_options_and_no_members() {
        for (said, told) in [
            (
                "answer again with `code`, a one-time code",
                "answer again with `--code CODE`, a one-time code",
            ),
            (
                "approve with `edit: 2` what stands there",
                "approve with `--edited 2` what stands there",
            ),
            ("answer without `edit`", "answer without `--edited N`"),
            ("as it is", "as it is"),
        ] {
            let refused = ClientError::Refused {
                status: 422,
                code: "a_code".to_owned(),
                detail: said.to_owned(),
            };
            assert_eq!(in_our_words(refused).to_string(), format!("{told} (a_code)"));
        }
    }
}
