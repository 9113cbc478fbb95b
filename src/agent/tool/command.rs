//! A tool that is a command: one child process a call, without a shell, with nothing of our environment, the stored arguments
//! as JSON on its standard input. The child leads a process group of its own, so that all of it can be ended.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::{Carried, MAX_OUTPUT, as_text};
use crate::config::child::ChildConfig;

/// How long a group may take to end after it was asked to, before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long what the child wrote may still arrive after it ended, when somebody else holds its pipes open.
const LINGER: Duration = Duration::from_millis(500);

/// See the module.
pub struct CommandTool {
    child: ChildConfig,
}

/// A process group that is killed when this is dropped, unless it ended.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .filter(|id| *id > 1)
                .map(Pid::from_raw),
        )
    }

    fn send(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // A group that is gone already is what was wanted.
            let _ = killpg(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::SIGKILL);
    }
}

/// What a child wrote, up to the bound; the rest was read and dropped, so that it never blocks on a full pipe.
#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    more: bool,
}

impl CommandTool {
    /// The tool that starts this child.
    pub const fn new(child: ChildConfig) -> Self {
        Self { child }
    }

    pub(super) async fn carry_out(&self, args: &str, timeout: Duration) -> Carried {
        let mut command = Command::new(&self.child.program);
        command
            .args(&self.child.args)
            .env_clear()
            .envs(self.child.env.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if !self.child.dir.as_os_str().is_empty() {
            command.current_dir(&self.child.dir);
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return Carried::Failed(format!("the command could not be started: {}", error.kind()));
            }
        };
        let mut group = Group::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (Heard::default(), Heard::default());
        let ended = {
            let write = async {
                if let Some(mut stdin) = stdin {
                    // A child that does not read its input closes the pipe: that is its business.
                    let _ = stdin.write_all(args.as_bytes()).await;
                    let _ = stdin.shutdown().await;
                }
            };
            let mut talk = std::pin::pin!(async {
                tokio::join!(write, listen(stdout, &mut out), listen(stderr, &mut err));
            });
            let mut quiet = false;
            let mut deadline = std::pin::pin!(tokio::time::sleep(timeout));
            let ended = loop {
                tokio::select! {
                    () = &mut talk, if !quiet => quiet = true,
                    status = child.wait() => break Some(status),
                    () = &mut deadline => break None,
                }
            };
            let ended = if ended.is_none() {
                stop(&mut child, &group).await;
                None
            } else {
                ended
            };
            if !quiet && tokio::time::timeout(LINGER, &mut talk).await.is_err() {
                // A descendant holds the pipes open. It belongs to the call, and the call is over.
                group.send(Signal::SIGKILL);
                let _ = tokio::time::timeout(LINGER, talk).await;
            } else if ended.is_some() {
                // Nobody of the group is known to be left; its number may soon be another's.
                group.0 = None;
            }
            ended
        };
        match ended {
            None => Carried::Failed(format!(
                "the command took longer than {} ms and was ended; what it did until then is done\n{}",
                timeout.as_millis(),
                said(&out, &err)
            )),
            Some(Ok(status)) if status.success() => Carried::Done(as_text(&out.bytes, out.more)),
            Some(Ok(status)) => Carried::Failed(format!("{}\n{}", how(status), said(&out, &err))),
            Some(Err(error)) => {
                Carried::Unknown(format!("the command could not be waited for: {}", error.kind()))
            }
        }
    }
}

/// Asks the whole group to end, then ends it.
async fn stop(child: &mut Child, group: &Group) {
    group.send(Signal::SIGTERM);
    let _ = tokio::time::timeout(GRACE, child.wait()).await;
    group.send(Signal::SIGKILL);
    let _ = child.wait().await;
}

async fn listen(pipe: Option<impl AsyncRead + Unpin>, heard: &mut Heard) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let read = chunk.get(..count).unwrap_or_default();
        let room = MAX_OUTPUT.saturating_sub(heard.bytes.len());
        heard.more |= count > room;
        heard.bytes.extend_from_slice(read.get(..room).unwrap_or(read));
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the command ended with exit code {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command failed".to_owned(),
    }
}

fn said(out: &Heard, err: &Heard) -> String {
    let mut text = as_text(&out.bytes, out.more);
    let complaint = as_text(&err.bytes, err.more);
    if !complaint.trim().is_empty() {
        text.push_str("\n[stderr]\n");
        text.push_str(&complaint);
    }
    text
}
