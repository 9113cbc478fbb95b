//! A server that is a child process: one message a line, on its standard streams. What it writes beside that, on either
//! output, is read and dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::MAX_MESSAGE;
use super::wire::{self, Incoming, NotSent, Outgoing};
use crate::child::{Complaints, Group, Lines, NoLine, NotStarted, Sampler, Spawned, how_it_ended, spawn};
use crate::config::child::ChildConfig;
use crate::lifecycle::Tasks;

/// The most lines in a row that are no message.
const MOST_NOISE: u32 = 1_000;

/// The process, for whoever ends it.
pub(super) struct Process {
    child: Child,
    group: Group,
    complaints: Complaints,
}

/// Its streams, for the SDK.
pub(super) struct Stdio {
    stdin: Arc<tokio::sync::Mutex<ChildStdin>>,
    lines: Lines<ChildStdout>,
    waiting: Arc<AtomicUsize>,
    noise: u32,
    why: Arc<OnceLock<String>>,
    _closed: DropGuard,
}

/// Starts the process. `closed` is cancelled when its streams are given up; `why` then says the reason, if we had one.
pub(super) fn open(
    config: &ChildConfig,
    tasks: &Tasks,
    closed: &CancellationToken,
    why: &Arc<OnceLock<String>>,
) -> Result<(Process, Stdio), NotStarted> {
    let Spawned {
        child,
        group,
        stdin,
        stdout,
        stderr,
    } = spawn(config)?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(NotStarted::Refused(std::io::ErrorKind::BrokenPipe));
    };
    let process = Process {
        child,
        group,
        complaints: Complaints::read(stderr, Sampler::new(config), tasks),
    };
    let streams = Stdio {
        stdin: Arc::new(tokio::sync::Mutex::new(stdin)),
        lines: Lines::new(stdout, MAX_MESSAGE),
        waiting: Arc::default(),
        noise: 0,
        why: Arc::clone(why),
        _closed: closed.clone().drop_guard(),
    };
    Ok((process, streams))
}

impl Process {
    /// Resolves when the process itself has ended, whoever holds its pipes.
    pub(super) async fn ended(&mut self) {
        // An error means that there is nothing to wait for.
        let _ = self.child.wait().await;
    }

    /// Ends it, and says how it ended if it did so by itself, with the end of what it complained about.
    pub(super) async fn end(mut self, grace: Duration) -> String {
        let how = how_it_ended(&mut self.child).await;
        self.group.end(&mut self.child, grace).await;
        self.complaints.after(how).await
    }
}

impl Stdio {
    fn give_up(&self, why: &str) -> Option<Incoming> {
        // The first reason stands.
        let _ = self.why.set(why.to_owned());
        None
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = NotSent;

    fn send(&mut self, message: Outgoing) -> impl Future<Output = Result<(), NotSent>> + Send + 'static {
        let (stdin, waiting) = (Arc::clone(&self.stdin), Arc::clone(&self.waiting));
        waiting.fetch_add(1, Ordering::SeqCst);
        async move {
            let sent = async {
                let mut line = wire::spell(&message)?;
                line.push('\n');
                let mut stdin = stdin.lock().await;
                wire::depart(wire::parcel(&message))?;
                let written = async {
                    stdin.write_all(line.as_bytes()).await?;
                    stdin.flush().await
                };
                written.await.map_err(|_| NotSent::Closed)
            };
            let sent = sent.await;
            waiting.fetch_sub(1, Ordering::SeqCst);
            sent
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            let line = match self.lines.next().await {
                Ok(line) => line,
                Err(NoLine::Ended) => return None,
                Err(NoLine::TooLong) => {
                    return self.give_up(&format!("it wrote a line of more than {MAX_MESSAGE} bytes"));
                }
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let Some(message) = wire::read(&line) else {
                self.noise += 1;
                if self.noise > MOST_NOISE {
                    return self.give_up("what it writes to its standard output is not MCP");
                }
                continue;
            };
            self.noise = 0;
            if wire::wants_something(&message) && self.waiting.load(Ordering::SeqCst) > wire::MOST_WAITING {
                return self.give_up(wire::GREEDY);
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), NotSent> {
        // Whoever still writes holds the lock; the process is ended right after this anyway.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            let _ = stdin.shutdown().await;
        }
        Ok(())
    }
}
