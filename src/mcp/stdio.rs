//! A server that is a child process: one message a line, on its standard streams. What it writes beside that, on either
//! output, is read and dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::MAX_MESSAGE;
use super::wire::{self, Incoming, NotSent, Outgoing};
use crate::child::{Group, Heard, How, Keep, Lines, NoLine, NotStarted, Sampler, Spawned, spawn};
use crate::config::child::ChildConfig;
use crate::lifecycle::Tasks;

/// What is kept of standard error: the end.
const KEPT_STDERR: usize = 4 * 1024;
/// How long a pipe is still read after the server was asked to stop.
const LINGER: Duration = Duration::from_secs(8);
/// How long the end of a process that closed its output is waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The most lines in a row that are no message.
const MOST_NOISE: u32 = 1_000;

/// The process, for whoever ends it.
pub(super) struct Process {
    child: Child,
    group: Group,
    complaints: Arc<Mutex<Heard>>,
    /// Closed when the complaints were read to their end.
    drained: watch::Receiver<()>,
    sampler: Sampler,
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
    let complaints = Arc::new(Mutex::new(Heard::new(Keep::Tail(KEPT_STDERR))));
    let (draining, drained) = watch::channel(());
    tasks.spawn(drain(stderr, Arc::clone(&complaints), draining, tasks.clone()));
    let process = Process {
        child,
        group,
        complaints,
        drained,
        sampler: Sampler::new(config),
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
        let how = match tokio::time::timeout(LAST_WORDS, self.child.wait()).await {
            Ok(ended) => How::from(ended).to_string(),
            Err(_) => "it closed its output".to_owned(),
        };
        self.group.end(&mut self.child, grace).await;
        let _ = tokio::time::timeout(LAST_WORDS, self.drained.changed()).await;
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = self.sampler.tail(&complaints);
        if tail.is_empty() {
            how
        } else {
            format!("{how}: {tail}")
        }
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

/// Reads the complaints as long as there are any, so that a talkative server never blocks on them.
async fn drain(mut stderr: ChildStderr, kept: Arc<Mutex<Heard>>, draining: watch::Sender<()>, tasks: Tasks) {
    let read = async {
        let mut chunk = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            let heard = chunk.get(..count).unwrap_or_default();
            kept.lock().unwrap_or_else(PoisonError::into_inner).take(heard);
        }
    };
    let stopped = async {
        tasks.stopping().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        () = read => {}
        () = stopped => {}
    }
    drop(draining);
}
