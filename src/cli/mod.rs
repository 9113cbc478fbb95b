//! The command line: what can be typed, and the exit codes. Each command is a file.
//!
//! Exit codes: 0 done, 1 refused or failed, 2 wrong usage (but `gate`, whose codes are its host's). The environment and the
//! terminal are touched here and nowhere else; [`print`] is the only place that writes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod answer;
pub mod api;
mod approve;
mod audit;
mod away;
mod bench;
mod check;
pub mod client;
mod config;
mod demo;
mod doctor;
mod edit;
mod find;
mod gate;
mod grants;
mod import;
mod job;
mod migrate;
mod pending;
pub mod print;
mod schema;
mod serve;
mod show;
mod stop;
mod table;
mod watch;

pub use api::ServerArgs;

/// An approval gate for AI agents: a call that needs a person becomes a durable request and a card, and a verified click
/// decides it.
#[derive(Debug, Parser)]
#[command(name = "gatepost", version, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage.\nFirst steps: `gatepost demo`, then `gatepost check` on a configuration of your own."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON on stdout, for programs; messages stay text on stderr. `serve` logs in JSON
    #[arg(long, global = true)]
    json: bool,
}

/// Which configuration.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "gatepost.yaml")]
    pub config: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the main job with nothing to set up: an agent wants to pay an invoice, a person decides
    #[command(
        after_help = "Examples:\n  gatepost demo               shows the card and an address; you decide\n  gatepost demo --auto        decides by itself, for a first look and for tests\n  gatepost demo --keep /tmp/d leaves configuration and database to look at"
    )]
    Demo(demo::DemoArgs),
    /// Run the server until it is told to stop
    #[command(
        after_help = "Examples:\n  gatepost serve\n  gatepost serve --config /etc/gatepost.yaml\n\nSIGTERM and SIGINT stop it: it takes nothing new and finishes what it accepted, for ten seconds at most. A second one stops it at once. GATEPOST_LOG filters the log, such as `warn,gatepost=debug`."
    )]
    Serve(ConfigArgs),
    /// Read and check the configuration, pieces and templates
    #[command(
        after_help = "Examples:\n  gatepost check\n  gatepost check --config /etc/gatepost.yaml --json"
    )]
    Check(ConfigArgs),
    /// Ask every platform whether its channel works, and look at database, key and clock; nothing is posted
    #[command(
        after_help = "Examples:\n  gatepost doctor\n  gatepost doctor --config /etc/gatepost.yaml --json"
    )]
    Doctor(ConfigArgs),
    /// Hook command for an agent host: reads the host's JSON on stdin, answers in its dialect
    #[command(
        after_help = "Examples:\n  gatepost gate claude-code\n\nGATEPOST_URL and GATEPOST_TOKEN name the server and the token of an agent. Whatever goes wrong is a denial with exit code 0; wrong usage ends with 2, which blocks as well."
    )]
    Gate(gate::GateArgs),
    /// List the requests that wait for a person
    #[command(
        after_help = "Examples:\n  gatepost pending\n  gatepost pending --tool oa__purchase_pay\n  gatepost pending --stuck --json"
    )]
    Pending(pending::PendingArgs),
    /// Show one request with its arguments, votes and cards
    #[command(
        after_help = "Examples:\n  gatepost show cr_0198…\n  gatepost show K7QF-2M9X\n  gatepost show cr_0198… --full"
    )]
    Show(show::ShowArgs),
    /// Approve a request
    #[command(
        after_help = "Examples:\n  gatepost approve cr_0198… --reason 'checked with the supplier'\n  gatepost approve K7QF-2M9X --code 123456         with a one-time code of your authenticator app\n  gatepost approve cr_0198… --grant 1h             and later calls like it for an hour\n  gatepost approve cr_0198… --args '{\"amount\": 4000}'\n  gatepost approve cr_0198… --edit                 changes the arguments in your editor\n\nThe request is named by its id, by how its id begins, or by the code of the call, as `gatepost show` and the card have it. What a rule offers (--grant), takes (--args, --edit) or asks for (--code), `gatepost show` says."
    )]
    Approve(approve::ApproveArgs),
    /// Reject a request
    #[command(after_help = "Examples:\n  gatepost reject cr_0198… --reason 'wrong account'")]
    Reject(approve::RejectArgs),
    /// Approve a request alone, past everybody who would be asked, where the rule lets you
    #[command(
        after_help = "Examples:\n  gatepost break-glass cr_0198… --reason 'payments stand still, nobody of finance answers'"
    )]
    BreakGlass(approve::BreakGlassArgs),
    /// List what was approved for later calls too, and take it back
    #[command(after_help = "Examples:\n  gatepost grants\n  gatepost grants revoke gr_0198…")]
    Grants(grants::GrantsArgs),
    /// Be away, with somebody who acts meanwhile; be back; see who is away
    #[command(
        after_help = "Examples:\n  gatepost away --until 2026-12-24T18:00:00+01:00 --substitute noor\n  gatepost away --for 3d\n  gatepost away --back\n  gatepost away --list"
    )]
    Away(away::AwayArgs),
    /// Submit and watch agent jobs
    #[command(
        after_help = "Examples:\n  gatepost job submit --piece pay-invoice --input 'pay invoice 4711' --wait\n  gatepost job show job_0198…\n  gatepost job answer job_0198… done"
    )]
    Job(job::JobArgs),
    /// Look into the audit log
    #[command(
        after_help = "Examples:\n  gatepost audit list --kind vote.cast\n  gatepost audit verify\n  gatepost audit export > audit.jsonl"
    )]
    Audit(audit::AuditArgs),
    /// Print the entries of `agent.tools` that a description of an API leads to
    #[command(
        after_help = "Examples:\n  gatepost import openapi shop.yaml --name shop\n  gatepost import openapi shop.json --name shop --include 'list*' --include getOrder --base-url https://shop.example/v1"
    )]
    Import(import::ImportArgs),
    /// Bring the database up to date
    #[command(after_help = "Examples:\n  gatepost migrate --config /etc/gatepost.yaml")]
    Migrate(ConfigArgs),
    /// Measure this machine's limits, and Gatepost beside them
    #[command(
        after_help = "Examples:\n  gatepost bench --quick\n  gatepost bench --dir /var/lib/gatepost --json\n  gatepost bench --store sqlite,postgres://postgres@127.0.0.1/postgres --only P1,P2,P3\n\nNothing but files below --dir and databases of their own names is touched, and both are removed."
    )]
    Bench(bench::BenchArgs),
    /// Print the description of the API (OpenAPI 3.1)
    #[command(after_help = "Examples:\n  gatepost openapi > openapi.json")]
    Openapi,
    /// Print a JSON Schema, for editors
    #[command(after_help = "Examples:\n  gatepost schema > gatepost.schema.json")]
    Schema(schema::SchemaArgs),
}

/// Reads the arguments and runs the command. Wrong usage ends the process with 2 and an explanation.
pub fn main() -> ExitCode {
    let cli = parse();
    // The one TLS provider of the process; nobody else was before us.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let code = stop::Stop::failed(format!("the runtime cannot start: {error}")).tell();
            // For an agent host only 2 blocks.
            let is_gate = matches!(cli.command, Command::Gate(_));
            return if is_gate { ExitCode::from(2) } else { code };
        }
    };
    runtime.block_on(run(cli))
}

/// Reads the arguments. The usage that an error shows is that of `--help`: clap's own would list what the environment set, as
/// if it had to be typed.
fn parse() -> Cli {
    let mut command = Cli::command();
    command.build();
    let matches = with_plain_usage(command).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn with_plain_usage(mut command: clap::Command) -> clap::Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    command.override_usage(usage).mut_subcommands(with_plain_usage)
}

async fn run(Cli { command, json }: Cli) -> ExitCode {
    let done = match command {
        Command::Gate(args) => return gate::run(args).await,
        Command::Demo(args) => demo::run(args, json).await,
        Command::Serve(args) => serve::run(&args, json).await,
        Command::Doctor(args) => doctor::run(&args, json).await,
        Command::Check(args) => check::run(&args, json),
        Command::Pending(args) => pending::run(args, json).await,
        Command::Show(args) => show::run(args, json).await,
        Command::Approve(args) => approve::approve(args, json).await,
        Command::Reject(args) => approve::reject(args, json).await,
        Command::BreakGlass(args) => approve::break_glass(args, json).await,
        Command::Grants(args) => grants::run(args, json).await,
        Command::Away(args) => away::run(args, json).await,
        Command::Job(args) => job::run(args, json).await,
        Command::Audit(args) => audit::run(args, json).await,
        Command::Import(args) => import::run(args, json),
        Command::Migrate(args) => migrate::run(&args, json).await,
        Command::Bench(args) => bench::run(&args, json).await,
        Command::Openapi => {
            print::line(crate::http::openapi::DOCUMENT.trim_end());
            Ok(())
        }
        Command::Schema(args) => {
            schema::run(&args);
            Ok(())
        }
    };
    done.map_or_else(|stop| stop.tell(), |()| ExitCode::SUCCESS)
}

/// Looks an environment variable up; one that is not UTF-8 is none.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line is where the environment is read"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_an_error_is_that_of_the_help() {
        let mut command = Cli::command();
        command.build();
        let command = with_plain_usage(command);
        let told = |words: &[&str]| {
            let error = command.clone().try_get_matches_from(words).unwrap_err();
            error.to_string()
        };
        for words in [
            &["gatepost", "approve", "--url", "http://x"][..],
            &["gatepost", "approve", "--help"],
            &["gatepost", "help", "approve"],
        ] {
            let said = told(words);
            assert!(
                said.contains("Usage: gatepost approve [OPTIONS] <ID>\n"),
                "{words:?}: {said}"
            );
        }
        assert!(told(&["gatepost", "help"]).contains("Usage: gatepost [OPTIONS] <COMMAND>\n"));
        assert!(told(&["gatepost", "help", "job", "submit"]).contains("--piece"));
    }

    #[test]
    fn every_command_says_what_it_is_for() {
        fn walk(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            command.get_subcommands().for_each(walk);
        }
        Cli::command().debug_assert();
        walk(&Cli::command());
    }
}
