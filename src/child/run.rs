//! One child from start to end: input in, outputs out, a limit on everything.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::Notify;

use super::{Heard, Keep, NotStarted, Spawned, spawn};
use crate::config::child::ChildConfig;

/// How long what the child wrote may still arrive after it ended, when somebody else holds its pipes open.
const LINGER: Duration = Duration::from_millis(250);

/// What a child is given and what it may take.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it reads from its standard input.
    pub input: &'a [u8],
    /// How long it may take.
    pub limit: Duration,
    /// How long its group has between TERM and KILL.
    pub grace: Duration,
    /// What is kept of its standard output.
    pub out: Keep,
    /// What is kept of its standard error.
    pub err: Keep,
    /// What follows when it writes more than is kept of its standard output.
    pub overflow: Overflow,
}

/// What follows when a child writes more than is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The rest is dropped.
    Drop,
    /// The child is ended.
    End,
}

/// A child that ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub how: How,
    /// What it said.
    pub out: Heard,
    /// What it complained about.
    pub err: Heard,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum How {
    /// With an exit code.
    #[error("it ended with exit code {0}")]
    Exited(i32),
    /// By a signal that we did not send.
    #[error("it was ended by signal {0}")]
    Signalled(i32),
    /// At its limit, by us.
    #[error("it timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// By us, since it wrote too much.
    #[error("it wrote more than it may to its standard output")]
    TooMuch,
    /// It could not be waited for.
    #[error("it could not be waited for: {0}")]
    Lost(ErrorKind),
}

impl From<std::io::Result<ExitStatus>> for How {
    fn from(ended: std::io::Result<ExitStatus>) -> Self {
        match ended {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Self::Exited(code),
                (None, signal) => Self::Signalled(signal.unwrap_or_default()),
            },
            Err(error) => Self::Lost(error.kind()),
        }
    }
}

/// Runs a child. It answers within the limit, the grace and half a second, whatever the child does. When the future is dropped
/// the group is killed.
pub async fn run(config: &ChildConfig, request: Request<'_>) -> Result<Ended, NotStarted> {
    let Spawned {
        mut child,
        mut group,
        stdin,
        stdout,
        stderr,
    } = spawn(config)?;
    let (mut out, mut err) = (Heard::new(request.out), Heard::new(request.err));
    let full = Notify::new();
    let how = {
        let end_when_full = (request.overflow == Overflow::End).then_some(&full);
        let write = async {
            if let Some(mut stdin) = stdin {
                // A child that does not read its input closes the pipe: that is its business.
                let _ = stdin.write_all(request.input).await;
                let _ = stdin.shutdown().await;
            }
        };
        let mut talk = std::pin::pin!(async {
            tokio::join!(write, out.listen(stdout, end_when_full), err.listen(stderr, None));
        });
        let mut quiet = false;
        let mut deadline = std::pin::pin!(tokio::time::sleep(request.limit));
        let how = loop {
            tokio::select! {
                () = &mut talk, if !quiet => quiet = true,
                () = full.notified() => break How::TooMuch,
                ended = child.wait() => break How::from(ended),
                () = &mut deadline => break How::TimedOut(request.limit),
            }
        };
        if matches!(how, How::TooMuch | How::TimedOut(_)) {
            group.end(&mut child, request.grace).await;
        } else {
            // What it left behind in its group belongs to the call, and the call is over.
            group.kill();
        }
        if !quiet {
            let _ = tokio::time::timeout(LINGER, talk).await;
        }
        how
    };
    let how = if request.overflow == Overflow::End && out.is_cut() {
        How::TooMuch
    } else {
        how
    };
    Ok(Ended { how, out, err })
}
