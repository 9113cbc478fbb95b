//! The command line: what can be typed, and the exit codes. Each command is a file.
//!
//! Exit codes: 0 done, 1 refused or failed, 2 wrong usage (but `gate`, whose codes are its host's). The environment and the
//! terminal are touched here and nowhere else.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod approve;
mod audit;
mod check;
mod client;
mod demo;
mod doctor;
mod gate;
mod job;
mod migrate;
mod pending;
mod print;
mod serve;

/// An approval gate for AI agents: a call that needs a person becomes a durable request and a card, and a verified click
/// decides it.
#[derive(Debug, Parser)]
#[command(name = "gatepost", version, about, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Where the server is and who asks.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Address of the server
    #[arg(long, env = "GATEPOST_URL", default_value = "http://127.0.0.1:8460", global = true)]
    pub url: String,
    /// Bearer token of the API
    #[arg(long, env = "GATEPOST_TOKEN", hide_env_values = true, default_value = "", global = true)]
    pub token: String,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
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
    /// Run the main job with nothing to set up: an agent asks to pay an invoice, a person decides
    #[command(after_help = "Examples:\n  gatepost demo          print an address; decide on the page\n  gatepost demo --auto   decide by itself, for a first look and for tests")]
    Demo(demo::DemoArgs),
    /// Run the server
    #[command(after_help = "Examples:\n  gatepost serve\n  gatepost serve --config /etc/gatepost.yaml")]
    Serve(ConfigArgs),
    /// Read and check the configuration, pieces and templates
    #[command(after_help = "Examples:\n  gatepost check\n  gatepost check --config /etc/gatepost.yaml --json")]
    Check(check::CheckArgs),
    /// Ask every platform whether its channel works
    #[command(after_help = "Examples:\n  gatepost doctor --config /etc/gatepost.yaml")]
    Doctor(doctor::DoctorArgs),
    /// Hook command for an agent host: reads the host's JSON on stdin, answers in its dialect
    #[command(after_help = "Examples:\n  gatepost gate claude-code   (GATEPOST_URL and GATEPOST_TOKEN in the environment)")]
    Gate(gate::GateArgs),
    /// List the requests that wait for a person
    #[command(after_help = "Examples:\n  gatepost pending\n  gatepost pending --stuck --json")]
    Pending(pending::PendingArgs),
    /// Show one request with its votes and cards
    #[command(after_help = "Examples:\n  gatepost show cr_0198…")]
    Show(pending::ShowArgs),
    /// Approve a request
    #[command(after_help = "Examples:\n  gatepost approve cr_0198… --reason 'checked with the supplier'")]
    Approve(approve::ApproveArgs),
    /// Reject a request
    #[command(after_help = "Examples:\n  gatepost reject cr_0198… --reason 'wrong account'")]
    Reject(approve::RejectArgs),
    /// Submit and watch agent jobs
    #[command(after_help = "Examples:\n  gatepost job submit --piece pay-invoice --input 'invoice 4711'\n  gatepost job show job_0198…\n  gatepost job answer job_0198… done")]
    Job(job::JobArgs),
    /// Look into the audit log
    #[command(after_help = "Examples:\n  gatepost audit list --kind vote.cast\n  gatepost audit verify\n  gatepost audit export > audit.jsonl")]
    Audit(audit::AuditArgs),
    /// Bring the database up to date
    #[command(after_help = "Examples:\n  gatepost migrate --config /etc/gatepost.yaml")]
    Migrate(ConfigArgs),
    /// Print the description of the API (OpenAPI 3.1)
    Openapi,
    /// Print the JSON Schema of the configuration
    #[command(after_help = "Examples:\n  gatepost schema > gatepost.schema.json")]
    Schema,
}

/// Reads the arguments and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::error(&format!("the runtime cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run(cli.command))
}

async fn run(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Gate(args) => return gate::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Serve(args) => serve::run(args).await,
        Command::Check(args) => check::run(args),
        Command::Doctor(args) => doctor::run(args).await,
        Command::Pending(args) => pending::run(args).await,
        Command::Show(args) => pending::show(args).await,
        Command::Approve(args) => approve::approve(args).await,
        Command::Reject(args) => approve::reject(args).await,
        Command::Job(args) => job::run(args).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::Openapi => {
            print::line(crate::http::OPENAPI);
            Ok(())
        }
        Command::Schema => {
            print::line(crate::config::schema::SCHEMA);
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
