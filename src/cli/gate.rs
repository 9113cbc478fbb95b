//! The hook command of agent hosts: reads the host's question on standard input, asks the server again and again until people
//! decided, and prints the answer in the host's dialect.
//!
//! Hosts take a crash, a timeout, silence and stray text as consent. So every way out of here prints one whole denial and
//! ends with code 0, except wrong usage, which ends with code 2 and thereby blocks. It needs an address and a token, no
//! configuration, and writes to stderr only when asked to.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use futures_util::FutureExt as _;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep};

use self::agent::Gone;
use self::server::{Reply, Server, Trouble};
use self::stdin::Chunk;
use super::{ServerArgs, print};
use crate::gate::DenyReason;
use crate::host::serve::refuse;
use crate::host::{Asking, HookVerdict, Host};
use crate::ids::{ConfirmationId, Ids as _, SystemIds};

mod agent;
mod server;
mod stdin;

/// How long one request to the server is held.
const HOLD: Duration = Duration::from_secs(25);
/// How long a server may be away (a restart) before the call is denied.
const GRACE: Duration = Duration::from_secs(10);
/// Between two attempts to reach a server that is away, and before asking again after an answer that came at once.
const PAUSE: Duration = Duration::from_millis(500);

/// What `gatepost gate` takes.
#[derive(Debug, Clone, Args)]
pub struct GateArgs {
    /// The agent host that runs this hook: claude-code
    #[arg(value_name = "HOST")]
    pub host: Host,
    /// Seconds until the call is denied if nobody has decided; must stay at least 20 below the host's own timeout
    #[arg(long, value_name = "SECONDS", default_value_t = 540, value_parser = clap::value_parser!(u64).range(1..=86_000))]
    pub deadline: u64,
    /// Say on stderr what happens
    #[arg(long)]
    pub verbose: bool,
    /// The process whose death withdraws the question, beside the parent
    #[arg(long, env = "CLAUDE_PID", value_name = "PID", hide = true)]
    pub agent_pid: Option<i32>,
    /// Where the server is and who asks.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Runs the command on the streams of this process. It always prints an answer.
pub async fn run(args: GateArgs) -> ExitCode {
    // What a panic would print helps no host, and it may repeat what was asked.
    std::panic::set_hook(Box::new(|_| ()));
    let chunks = stdin::pump(std::io::stdin());
    let gone = agent::gone(args.agent_pid);
    print::line(&answer(&args, chunks, gone).await);
    ExitCode::SUCCESS
}

/// The one JSON object that the host is told, whatever happens. `gone` ends when nobody waits for it any more.
pub async fn answer(args: &GateArgs, chunks: Receiver<Chunk>, gone: impl Future<Output = Gone>) -> String {
    let body = Mutex::new(None);
    let visit = AssertUnwindSafe(visit(args, chunks, gone, &body));
    if let Ok(said) = visit.catch_unwind().await {
        return said;
    }
    let body = body.into_inner().unwrap_or_else(PoisonError::into_inner);
    denial(args.host, body.as_deref(), "the hook command failed")
}

/// A denial of our own, in the form of the question where that is known.
fn denial(host: Host, body: Option<&[u8]>, what: &str) -> String {
    refuse(host, body, what, DenyReason::GateError).body
}

async fn visit(
    args: &GateArgs,
    chunks: Receiver<Chunk>,
    gone: impl Future<Output = Gone>,
    known: &Mutex<Option<Vec<u8>>>,
) -> String {
    let gone = std::pin::pin!(gone);
    let mut gone = gone.fuse();
    let body = tokio::select! {
        body = stdin::object(chunks, stdin::WITHIN) => body,
        why = &mut gone => return denial(args.host, None, why.as_str()),
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return denial(args.host, None, &error.to_string()),
    };
    *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(body.clone());
    let server = match Server::new(&args.server, args.host, SystemIds.fresh()) {
        Ok(server) => server,
        Err(error) => return denial(args.host, Some(&body), &error.to_string()),
    };
    let Some(asking) = args.host.dialect().asking(&body) else {
        // Nobody's call waits for this one; it is passed on and whatever comes of it changes nothing.
        tokio::select! {
            () = server.pass_on(body) => {}
            _ = &mut gone => {}
        }
        return args.host.dialect().silence();
    };
    let question = Question {
        args,
        asking,
        body: &body,
        server: &server,
        pending: Mutex::new(None),
    };
    tokio::select! {
        said = question.ask() => said,
        why = &mut gone => {
            question.note(why.as_str());
            question.withdraw().await;
            denial(args.host, Some(&body), why.as_str())
        }
    }
}

/// A question on its way.
struct Question<'a> {
    args: &'a GateArgs,
    asking: Asking,
    body: &'a [u8],
    server: &'a Server,
    /// The request that waits for people, once the server has named it.
    pending: Mutex<Option<ConfirmationId>>,
}

impl Question<'_> {
    /// Asks until there is a verdict, the deadline, or no server any more. The first question is not held, so that the
    /// request's name is known early and can be withdrawn.
    async fn ask(&self) -> String {
        let end = Instant::now() + Duration::from_secs(self.args.deadline);
        let mut hold = Duration::ZERO;
        let mut away_since = None;
        loop {
            let began = Instant::now();
            let pending = self.pending();
            match self
                .server
                .ask(self.asking, self.body, hold, pending.as_ref())
                .await
            {
                Ok(Reply {
                    verdict,
                    pending: None,
                }) => return self.speak(&verdict),
                Ok(Reply {
                    verdict: verdict @ HookVerdict::Deny { .. },
                    pending: Some(id),
                }) => {
                    if pending.as_ref() != Some(&id) {
                        self.note(&format!("{id} waits for a person"));
                    }
                    *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
                    if end.saturating_duration_since(Instant::now()) < Duration::from_secs(1) {
                        return self.speak(&verdict);
                    }
                    if hold > Duration::ZERO && began.elapsed() < PAUSE {
                        sleep(PAUSE).await;
                    }
                    away_since = None;
                }
                Ok(Reply { .. }) => return self.deny("the server contradicts itself"),
                Err(Trouble::Away(what)) => {
                    if away_since.is_none() {
                        self.note(&format!("{what}; trying again for {} seconds", GRACE.as_secs()));
                    }
                    let since = *away_since.get_or_insert(began);
                    let now = Instant::now();
                    if now >= end || now.duration_since(since) >= GRACE {
                        return self.deny(&what);
                    }
                    sleep(PAUSE).await;
                }
                Err(Trouble::Foreign(what)) => return self.deny(&what),
            }
            hold = HOLD.min(Duration::from_secs(
                end.saturating_duration_since(Instant::now()).as_secs(),
            ));
        }
    }

    /// Nobody waits for the answer any more: the request is withdrawn, if there is one.
    async fn withdraw(&self) {
        if let Some(id) = self.pending() {
            self.server.cancel(&id).await;
        }
    }

    fn pending(&self) -> Option<ConfirmationId> {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn speak(&self, verdict: &HookVerdict) -> String {
        self.args.host.dialect().speak(self.asking, verdict)
    }

    fn deny(&self, what: &str) -> String {
        denial(self.args.host, Some(self.body), what)
    }

    fn note(&self, what: &str) {
        if self.args.verbose {
            print::error(what);
        }
    }
}

#[cfg(test)]
#[path = "gate/gate_tests.rs"]
mod tests;
