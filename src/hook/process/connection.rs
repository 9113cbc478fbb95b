//! One process and its streams: the greeting, one question at a time, events. Dropping it kills the process and its group.

use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tracing::{debug, warn};

use super::MAX_LINE;
use super::dialect::{Dialect, Question};
use super::envelope::{self, Incoming};

use crate::child::{Complaints, Group, Lines, NoLine, Sampler, Spawned, how_it_ended, spawn};
use crate::config::child::ChildConfig;
use crate::gate::Json;
use crate::hook::HookError;
use crate::hook::event::Event;
use crate::lifecycle::Tasks;

/// See the module.
pub(super) struct Connection {
    child: Child,
    group: Group,
    stdin: ChildStdin,
    lines: Lines<ChildStdout>,
    complaints: Complaints,
    sampler: Sampler,
    dialect: Dialect,
    last_id: u64,
    /// Up to this id nobody waits for an answer any more: one that comes is late, not wrong.
    given_up: u64,
    /// Whether the last question was written to its end.
    written: bool,
}

#[derive(Serialize)]
struct Call<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Hello<'a> {
    name: &'a str,
    version: u32,
    protocol_version: u32,
    modes: &'a [&'static str],
}

impl Connection {
    /// Starts the process and greets it. Its answer selects the dialect.
    pub(super) async fn open(
        name: &str,
        modes: &[&'static str],
        child: &ChildConfig,
        tasks: &Tasks,
    ) -> Result<Self, HookError> {
        let Spawned {
            child: process,
            group,
            stdin,
            stdout,
            stderr,
        } = spawn(child)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(HookError::Rule("its streams could not be had"));
        };
        let mut connection = Self {
            child: process,
            group,
            stdin,
            lines: Lines::new(stdout, MAX_LINE),
            complaints: Complaints::read(stderr, Sampler::new(child), tasks),
            sampler: Sampler::new(child),
            dialect: Dialect::Code,
            last_id: 0,
            given_up: 0,
            written: true,
        };
        let hello = Hello {
            name,
            version: 1,
            protocol_version: 1,
            modes,
        };
        let answer = connection.call("hook.hello", &hello).await?;
        connection.dialect = Dialect::selected(&answer)?;
        debug!(hook = %name, dialect = ?connection.dialect, "a hook process answered");
        Ok(connection)
    }

    pub(super) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the process is still there.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks, and waits for the answer as long as it takes: the limit is the caller's.
    pub(super) async fn ask(&mut self, question: &Question<'_>) -> Result<Json, HookError> {
        let (method, params) = self.dialect.question(question)?;
        self.call(method, &params).await
    }

    /// Tells of an event. In one dialect that is a notification, in the other a request whose answer says nothing.
    pub(super) async fn tell(&mut self, event: &Event, dropped: u64) -> Result<(), HookError> {
        let (method, params) = self.dialect.event(event, dropped);
        match self.dialect {
            Dialect::Code => {
                let line = spelled(None, method, &params)?;
                self.write(&line).await
            }
            Dialect::Page => self.call(method, &params).await.map(|_| ()),
        }
    }

    /// Nobody waits for the last answer any more.
    pub(super) const fn give_up(&mut self) {
        self.given_up = self.last_id;
    }

    /// Whether the last question was written to its end, so that another may follow it.
    pub(super) const fn is_written(&self) -> bool {
        self.written
    }

    /// Ends the process: TERM, a short grace, KILL.
    pub(super) async fn end(mut self, grace: Duration) {
        self.group.end(&mut self.child, grace).await;
    }

    async fn call(&mut self, method: &str, params: &impl Serialize) -> Result<Json, HookError> {
        self.last_id += 1;
        let line = spelled(Some(self.last_id), method, params)?;
        let id = self.last_id;
        let Self {
            stdin,
            lines,
            sampler,
            given_up,
            written,
            ..
        } = self;
        let given_up = *given_up;
        let wait = async {
            loop {
                let line = lines.next().await?;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                match envelope::read(&line, sampler).map_err(Broken::Said)? {
                    Incoming::Result(of, result) if of == id => return Ok(result),
                    Incoming::Error(of, message) if of == id => {
                        return Err(Broken::Said(HookError::Answered(message)));
                    }
                    Incoming::Result(of, _) | Incoming::Error(of, _) if of <= given_up => {
                        debug!(id = of, "a hook answered too late");
                    }
                    Incoming::Result(of, _) | Incoming::Error(of, _) => {
                        warn!(id = of, "a hook answered something that it was not asked");
                    }
                    Incoming::Own => {}
                }
            }
        };
        // A hook that answers before it has read all is no error; one that never reads is late.
        *written = false;
        let write = async {
            // A closed pipe is no error either: what the hook says, or that it ended, decides.
            let whole = stdin.write_all(line.as_bytes()).await.is_ok() && stdin.flush().await.is_ok();
            *written = whole;
            std::future::pending::<Result<Json, Broken>>().await
        };
        let answer = tokio::select! {
            answer = wait => answer,
            never = write => never,
        };
        match answer {
            Ok(result) => Ok(result),
            Err(Broken::Said(error)) => Err(error),
            Err(Broken::Line(NoLine::TooLong)) => Err(HookError::Unreadable(format!(
                "a line is longer than {MAX_LINE} bytes"
            ))),
            Err(Broken::Line(NoLine::Ended)) => Err(self.last_words().await),
        }
    }

    async fn write(&mut self, line: &str) -> Result<(), HookError> {
        self.written = false;
        let written = async {
            self.stdin.write_all(line.as_bytes()).await?;
            self.stdin.flush().await
        };
        match written.await {
            Ok(()) => {
                self.written = true;
                Ok(())
            }
            Err(_) => Err(self.last_words().await),
        }
    }

    /// How the process ended, with the end of what it complained about.
    async fn last_words(&mut self) -> HookError {
        let how = how_it_ended(&mut self.child).await;
        HookError::Ended(self.complaints.after(how).await)
    }
}

/// Why there is no answer.
enum Broken {
    Line(NoLine),
    Said(HookError),
}

impl From<NoLine> for Broken {
    fn from(why: NoLine) -> Self {
        Self::Line(why)
    }
}

fn spelled(id: Option<u64>, method: &str, params: &impl Serialize) -> Result<String, HookError> {
    let call = Call {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    let mut line = serde_json::to_string(&call)
        .map_err(|_| HookError::Rule("the question cannot be spelled as JSON"))?;
    line.push('\n');
    Ok(line)
}
