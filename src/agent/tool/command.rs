//! A tool that is a command: one child process a call, the stored arguments as JSON on its standard input.

use std::time::Duration;

use super::{Carried, as_text};
use crate::child::{Ended, Heard, How, Keep, NotStarted, Overflow, Request, run};
use crate::config::child::ChildConfig;

/// How long a group may take to end after it was asked to, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// See the module.
pub struct CommandTool {
    child: ChildConfig,
}

impl CommandTool {
    /// The tool that starts this child.
    pub const fn new(child: ChildConfig) -> Self {
        Self { child }
    }

    /// Runs one child and keeps at most `limit` bytes of each of its streams.
    pub(super) async fn carry_out(&self, args: &str, timeout: Duration, limit: usize) -> Carried {
        let request = Request {
            input: args.as_bytes(),
            limit: timeout,
            grace: GRACE,
            out: Keep::Head(limit),
            err: Keep::Head(limit),
            overflow: Overflow::Drop,
        };
        let Ended { how, out, err } = match run(&self.child, request).await {
            Ok(ended) => ended,
            Err(why) => return Carried::Failed(not_started(why)),
        };
        match how {
            How::Exited(0) => Carried::Done(text(&out, limit)),
            How::Exited(code) => Carried::Failed(format!(
                "the command ended with exit code {code}\n{}",
                said(&out, &err, limit)
            )),
            // A program that did not come to its own end has not said how far it came.
            How::Signalled(signal) => Carried::Unknown(format!(
                "the command was ended by signal {signal}; what it did until then is done\n{}",
                said(&out, &err, limit)
            )),
            How::TimedOut(patience) => Carried::Unknown(format!(
                "the command took longer than {} ms and was ended; what it did until then is done\n{}",
                patience.as_millis(),
                said(&out, &err, limit)
            )),
            How::TooMuch | How::Lost(_) => Carried::Unknown(format!("the command: {how}")),
        }
    }
}

fn not_started(why: NotStarted) -> String {
    match why {
        NotStarted::NotFound => "the command could not be started: not found".to_owned(),
        NotStarted::Refused(kind) => format!("the command could not be started: {kind}"),
    }
}

fn text(heard: &Heard, limit: usize) -> String {
    as_text(heard.bytes(), heard.is_cut().then_some(limit))
}

fn said(out: &Heard, err: &Heard, limit: usize) -> String {
    let mut said = text(out, limit);
    let complaint = text(err, limit);
    if !complaint.trim().is_empty() {
        said.push_str("\n[stderr]\n");
        said.push_str(&complaint);
    }
    said
}
