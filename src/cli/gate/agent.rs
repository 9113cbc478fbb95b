//! Whether somebody still waits for the answer: a host that was killed leaves its hook command behind.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getppid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// How often is looked.
const EVERY: Duration = Duration::from_secs(1);

/// Why nobody waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The host told this command to end: its own timeout, or the user.
    Told,
    /// The host's process ended.
    Died,
}

impl Gone {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Told => "the hook command was told to end before anybody decided",
            Self::Died => "the agent that asked has ended",
        }
    }
}

/// Ends when a signal comes, when the parent of this process ends, or when the named process does.
pub async fn gone(agent: Option<i32>) -> Gone {
    tokio::select! {
        () = told(SignalKind::terminate()) => Gone::Told,
        () = told(SignalKind::interrupt()) => Gone::Told,
        () = told(SignalKind::hangup()) => Gone::Told,
        () = died(agent.map(Pid::from_raw), EVERY) => Gone::Died,
    }
}

async fn told(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

async fn died(agent: Option<Pid>, every: Duration) {
    let parent = getppid();
    // A process that is not seen from the start lives in another namespace.
    let agent = agent.filter(|pid| pid.as_raw() > 0 && lives(*pid));
    while getppid() == parent && agent.is_none_or(lives) {
        sleep(every).await;
    }
}

fn lives(pid: Pid) -> bool {
    kill(pid, None) != Err(Errno::ESRCH)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const OFTEN: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn a_process_that_ends_is_noticed_and_one_that_was_never_seen_is_not() {
        let mut child = tokio::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
        assert!(lives(pid));
        let watch = died(Some(pid), OFTEN);
        tokio::pin!(watch);
        assert!((&mut watch).now_or_never().is_none());
        child.kill().await.unwrap();
        watch.await;
        assert!(!lives(pid));
        assert!(died(Some(pid), OFTEN).now_or_never().is_none());
        assert!(died(None, OFTEN).now_or_never().is_none());
    }
}
