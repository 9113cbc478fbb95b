//! `gatepost away`: being away, with somebody who acts meanwhile; being back; and who is away.

use clap::Args;
use serde_json::{Value, json};

use super::api::{Api, ServerArgs};
use super::print;
use super::stop::{Done, Stop};
use super::table::{Column, table};
use crate::clock::{Clock as _, SystemClock, parse_rfc3339, rfc3339};
use crate::config::duration::Span;

/// Arguments of `gatepost away`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct AwayArgs {
    /// Until when, in RFC 3339
    #[arg(long, value_name = "TIME", group = "what")]
    until: Option<String>,
    /// For how long, such as 8h or 3d
    #[arg(long = "for", value_name = "SPAN", group = "what")]
    span: Option<Span>,
    /// You are back: what was set ends now
    #[arg(long, group = "what")]
    back: bool,
    /// Who is away now or later
    #[arg(long, group = "what")]
    list: bool,
    /// From when on, in RFC 3339; left out, from now
    #[arg(long, value_name = "TIME", conflicts_with_all = ["back", "list"])]
    from: Option<String>,
    /// Who acts meanwhile: one of your `substitutes` in the configuration; left out, the first
    #[arg(long, value_name = "NAME", conflicts_with_all = ["back", "list"])]
    substitute: Option<String>,
    /// Whose absence; only an admin's token sets that of others
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    operator: Option<String>,
    /// With --back: take back what is planned next, where none holds now
    #[arg(long, requires = "back")]
    planned: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Sets, ends or lists.
pub async fn run(args: AwayArgs, as_json: bool) -> Done {
    if args.list {
        return list(&Api::new(&args.server)?, as_json).await;
    }
    let (path, body) = if args.back {
        let body = json!({"operator": args.operator, "planned": args.planned});
        ("/api/absences/end", body)
    } else {
        let from = args
            .from
            .as_deref()
            .map(|text| instant("from", text))
            .transpose()?;
        let until = match (&args.until, args.span) {
            (Some(text), _) => instant("until", text)?,
            (None, Some(span)) => {
                let begin = from.as_deref().and_then(parse_rfc3339);
                rfc3339(begin.unwrap_or_else(|| SystemClock.now()).plus(span.get()))
            }
            (None, None) => return Err(Stop::usage("say until when: --until TIME or --for SPAN")),
        };
        let body =
            json!({"operator": args.operator, "from": from, "until": until, "substitute": args.substitute});
        ("/api/absences", body)
    };
    let absence = Api::new(&args.server)?.post(path, &given(body)).await?;
    if as_json {
        print::line(absence.text());
    } else {
        let say = |name| print::text(&absence.value, name);
        print::line(&if args.back {
            format!(
                "{} is back: {} no longer acts in their place.",
                say("operator"),
                say("substitute")
            )
        } else {
            format!(
                "{} is away from {} until {}; {} acts in their place.",
                say("operator"),
                say("from"),
                say("until"),
                say("substitute")
            )
        });
    }
    Ok(())
}

/// Without the members that hold nothing.
fn given(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

fn instant(name: &str, text: &str) -> Result<String, Stop> {
    if parse_rfc3339(text).is_some() {
        return Ok(text.to_owned());
    }
    Err(Stop::usage(format!(
        "--{name} takes a time in RFC 3339, such as 2026-12-24T18:00:00+01:00"
    )))
}

async fn list(api: &Api, as_json: bool) -> Done {
    let listed = api.get("/api/absences").await?;
    if as_json {
        print::line(listed.text());
        return Ok(());
    }
    let items = listed.value["items"].as_array().map_or(&[][..], Vec::as_slice);
    if items.is_empty() {
        print::line("Nobody is away.");
        return Ok(());
    }
    let now = SystemClock.now();
    let row = |absence: &Value| {
        let at = |name: &str| absence[name].as_str().and_then(parse_rfc3339);
        let holds =
            at("from").is_some_and(|from| from <= now) && at("until").is_some_and(|until| now < until);
        let mut cells: Vec<_> = ["operator", "from", "until", "substitute", "source"]
            .iter()
            .map(|name| print::text(absence, name))
            .collect();
        cells.push(if holds { "now" } else { "" }.to_owned());
        cells
    };
    table(
        &[
            Column::Text("OPERATOR"),
            Column::Fixed("FROM"),
            Column::Fixed("UNTIL"),
            Column::Text("SUBSTITUTE"),
            Column::Fixed("SET BY"),
            Column::Fixed("HOLDS"),
        ],
        &items.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(())
}
