//! `gatepost audit …`: what happened, whether the chain holds, and all of it as JSON lines.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::api::{Api, Filters, ServerArgs};
use super::print;
use super::stop::{Done, Stop};
use super::table::{Column, table};
use crate::config::nearest::nearest;

/// So many events are looked at for the words that there are.
const LOOKED_AT: usize = 1_000;
/// So many words are named where none is near.
const SHOWN: usize = 12;

/// Arguments of `gatepost audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// List events
    #[command(
        after_help = "Examples:\n  gatepost audit list --kind vote.cast --since 2026-07-01T00:00:00Z\n  gatepost audit list --confirmation cr_0198… --json"
    )]
    List(ListArgs),
    /// Check the chain; exit code 1 when it is broken
    #[command(
        after_help = "Examples:\n  gatepost audit verify\n  gatepost audit verify --head acme:1024:9f86d081…   finds a tail that was cut off, too"
    )]
    Verify(VerifyArgs),
    /// Write events as JSON lines
    #[command(
        after_help = "Examples:\n  gatepost audit export > audit.jsonl\n  gatepost audit export --since 2026-07-01T00:00:00Z > july.jsonl"
    )]
    Export(Which),
}

/// The filters of the API.
#[derive(Debug, Args)]
struct Which {
    /// Only events of this kind, such as `vote.cast`
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only what this person, token or part of the server did, such as `operator:dana`, `token:build-agent` or `system`
    #[arg(long, value_name = "WHO")]
    actor: Option<String>,
    /// Only what concerns this request
    #[arg(long, value_name = "ID")]
    confirmation: Option<String>,
    /// Only what concerns this job
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Only what concerns this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only events at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    which: Which,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// A head that was kept elsewhere: the chain must still hold this event
    #[arg(long, value_name = "ORG:SEQ:HASH")]
    head: Option<Head>,
}

/// A link of the chain that was written down elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    org: String,
    seq: u64,
    hash: String,
}

impl std::str::FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a head is ORG:SEQ:HASH, the hash in 64 hexadecimal digits".to_owned();
        let mut parts = text.rsplitn(3, ':');
        let (hash, seq, org) = (parts.next(), parts.next(), parts.next());
        let hash = hash
            .filter(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
            .ok_or_else(wrong)?;
        let seq = seq.and_then(|seq| seq.parse().ok()).ok_or_else(wrong)?;
        let org = org.filter(|org| !org.is_empty()).ok_or_else(wrong)?;
        Ok(Self {
            org: org.to_owned(),
            seq,
            hash: hash.to_ascii_lowercase(),
        })
    }
}

impl Which {
    fn filters(&self) -> Result<Filters, Stop> {
        Filters::new()
            .with("kind", self.kind.as_deref())
            .with("actor", self.actor.as_deref())
            .with("confirmation_id", self.confirmation.as_deref())
            .with("job_id", self.job.as_deref())
            .with("channel", self.channel.as_deref())
            .time("since", self.since.as_deref())?
            .time("until", self.until.as_deref())
    }
}

/// Runs the command.
pub async fn run(args: AuditArgs, as_json: bool) -> Done {
    let api = Api::new(&args.server)?;
    match args.command {
        AuditCommand::List(args) => list(&api, &args, as_json).await,
        AuditCommand::Verify(args) => verify(&api, args.head, as_json).await,
        AuditCommand::Export(which) => {
            let anything = api.copy("/api/audit/export", &which.filters()?).await?;
            if !anything {
                print::note(&nothing(&api, &which).await);
            }
            Ok(())
        }
    }
}

async fn list(api: &Api, args: &ListArgs, as_json: bool) -> Done {
    let page = api.list("/api/audit", &args.which.filters()?, args.limit).await?;
    if as_json {
        page.print_json();
        return Ok(());
    }
    if page.items.is_empty() {
        print::line(&nothing(api, &args.which).await);
        return Ok(());
    }
    let row = |event: &Value| {
        let about = ["confirmation_id", "job_id", "channel"]
            .into_iter()
            .find(|member| !event[*member].is_null());
        vec![
            print::text(event, "seq"),
            print::text(event, "at"),
            print::text(event, "kind"),
            print::text(event, "actor"),
            about.map_or_else(|| "-".to_owned(), |member| print::text(event, member)),
            why(event),
        ]
    };
    let columns = [
        Column::Fixed("SEQ"),
        Column::Fixed("AT"),
        Column::Fixed("KIND"),
        Column::Text("ACTOR"),
        Column::Text("ABOUT"),
        Column::Text("REASON"),
    ];
    table(
        &columns,
        &page.items.iter().map(|item| row(&item.value)).collect::<Vec<_>>(),
    );
    page.tell_rest();
    Ok(())
}

/// Why it happened, where the event says so: the word of a refusal, an error, or what a person gave as their reason.
fn why(event: &Value) -> String {
    let data = &event["data"];
    let said = ["reason", "reason_code", "refusal", "error"]
        .into_iter()
        .find_map(|member| data[member].as_str());
    said.map_or_else(|| "-".to_owned(), print::foreign)
}

/// What is said when no event fits: a word that no event of the log has may be a slip, and then the nearest one is named.
async fn nothing(api: &Api, which: &Which) -> String {
    let mut said = "There are no such events.".to_owned();
    if which.kind.is_none() && which.actor.is_none() {
        return said;
    }
    // Without these words the list answered a moment ago; should it not now, there is just less to say.
    let Ok(page) = api.list("/api/audit", &Filters::new(), LOOKED_AT).await else {
        return said;
    };
    let known = |member: &str| -> BTreeSet<String> {
        let all = page.items.iter().map(|item| print::text(&item.value, member));
        all.collect()
    };
    for word in which.kind.iter().flat_map(|kinds| kinds.split(',')) {
        said.push_str(&strange("the kind", word.trim(), &known("kind")));
    }
    if let Some(actor) = &which.actor {
        said.push_str(&strange("the actor", actor, &known("actor")));
    }
    said
}

/// One sentence about a word that is not among the known ones; nothing about one that is.
fn strange(what: &str, word: &str, known: &BTreeSet<String>) -> String {
    if known.contains(word) || known.is_empty() {
        return String::new();
    }
    // `dana` for `operator:dana` is the usual slip.
    let bare = |known: &&String| known.split_once(':').is_some_and(|(_, name)| name == word);
    let meant = known
        .iter()
        .find(bare)
        .map(String::as_str)
        .or_else(|| nearest(word, known.iter().map(String::as_str)));
    let word = print::foreign(word);
    if let Some(meant) = meant {
        return format!(" No event has {what} `{word}`; did you mean `{meant}`?");
    }
    let shown: Vec<&str> = known.iter().map(String::as_str).take(SHOWN).collect();
    let more = if known.len() > SHOWN { ", …" } else { "" };
    format!(
        " No event has {what} `{word}`; there are {}{more}.",
        shown.join(", ")
    )
}

async fn verify(api: &Api, head: Option<Head>, as_json: bool) -> Done {
    let query = head
        .as_ref()
        .map(|head| format!("{}:{}:{}", head.org, head.seq, head.hash));
    let filters = Filters::new().with("head", query.as_deref());
    let checked = api.ask("/api/audit/verify", &filters).await?;
    let answer = &checked.value;
    let holds = answer["ok"] == true;
    if as_json {
        print::line(checked.text());
    } else if holds {
        print::line(&format!(
            "The chain holds: {} events.",
            print::text(answer, "events")
        ));
        // To be kept elsewhere, in the spelling of `--head`.
        let [org, seq, hash] = ["org", "seq", "hash"].map(|member| print::text(&answer["head"], member));
        print::line(&format!("head {org}:{seq}:{hash}"));
    } else {
        print::line(&format!("The chain is broken {}.", place(&answer["first_bad"])));
    }
    if holds { Ok(()) } else { Err(Stop::Told) }
}

/// Where it is broken, and how.
fn place(first_bad: &Value) -> String {
    let [org, seq, what] = ["org", "seq", "what"].map(|member| print::text(first_bad, member));
    format!("at event {seq} of {org}: {}", what.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_head_is_read_whole_or_refused() {
        let hash = "ab".repeat(32);
        let head: Head = format!("team:red:7:{}", hash.to_uppercase())
            .parse()
            .expect("a head");
        assert_eq!(
            head,
            Head {
                org: "team:red".to_owned(),
                seq: 7,
                hash: hash.clone()
            }
        );
        for wrong in [
            "",
            "acme",
            "acme:7",
            "acme:7:abc",
            &format!(":7:{hash}"),
            &format!("acme:x:{hash}"),
            &format!("acme:-1:{hash}"),
        ] {
            assert!(wrong.parse::<Head>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_that_no_event_has_is_named_with_the_nearest() {
        let known = ["operator:dana", "token:build-agent", "vote.cast"]
            .map(str::to_owned)
            .into();
        for (word, says) in [
            ("vote.csat", "; did you mean `vote.cast`?"),
            ("dana", "; did you mean `operator:dana`?"),
            ("zz", "; there are operator:dana, token:build-agent, vote.cast."),
        ] {
            let said = strange("the kind", word, &known);
            assert_eq!(said, format!(" No event has the kind `{word}`{says}"));
        }
        assert_eq!(strange("the kind", "vote.cast", &known), "");
        assert_eq!(strange("the kind", "vote.cast", &BTreeSet::new()), "");
    }

    #[test]
    fn why_is_told_where_an_event_says_so() {
        let event = |data: Value| json!({"seq": 1, "kind": "callback.refused", "data": data});
        assert_eq!(
            why(&event(json!({"reason": "timestamp_stale", "error": "x"}))),
            "timestamp_stale"
        );
        assert_eq!(
            why(&event(json!({"reason_code": "denied_by_rule"}))),
            "denied_by_rule"
        );
        assert_eq!(why(&event(json!({"error": "gone\u{1b}[2J"}))), "gone\\x1b[2J");
        for silent in [json!({}), json!(null), json!({"reason": 4})] {
            assert_eq!(why(&event(silent)), "-");
        }
    }

    #[test]
    fn the_place_of_a_break_is_named() {
        let gap = json!({"org": "acme", "seq": 17, "what": "broken_link"});
        assert_eq!(place(&gap), "at event 17 of acme: broken link");
    }
}
