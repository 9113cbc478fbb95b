//! The start of a child: without a shell, with nothing of our environment, as the leader of a process group of its own.

use std::io::ErrorKind;
use std::process::Stdio;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::Group;
use crate::config::child::ChildConfig;

/// A child that runs, with its three pipes. Dropping it kills its group.
pub struct Spawned {
    /// The process.
    pub child: Child,
    /// The group that it leads.
    pub group: Group,
    /// Where its input is written.
    pub stdin: Option<ChildStdin>,
    /// Where its output is read.
    pub stdout: Option<ChildStdout>,
    /// Where its complaints are read.
    pub stderr: Option<ChildStderr>,
}

/// A child that could not be started. The text names neither the program nor its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// There is no such program, or no such folder to start it in.
    #[error("it could not be started: not found")]
    NotFound,
    /// The system refused.
    #[error("it could not be started: {0}")]
    Refused(ErrorKind),
}

/// Starts a child. Must be called inside a runtime.
pub fn spawn(config: &ChildConfig) -> Result<Spawned, NotStarted> {
    let mut command = Command::new(&config.program);
    command
        .args(&config.args)
        .env_clear()
        .envs(config.env.iter().map(|(name, value)| (name, value.expose())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if !config.dir.as_os_str().is_empty() {
        command.current_dir(&config.dir);
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => NotStarted::NotFound,
        kind => NotStarted::Refused(kind),
    })?;
    Ok(Spawned {
        group: Group::of(&child),
        stdin: child.stdin.take(),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        child,
    })
}
