//! A tool that is a command: one child process a call, the stored arguments as JSON on its standard input.

use std::time::Duration;

use super::{Carried, MAX_OUTPUT, as_text};
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

    pub(super) async fn carry_out(&self, args: &str, timeout: Duration) -> Carried {
        let request = Request {
            input: args.as_bytes(),
            limit: timeout,
            grace: GRACE,
            out: Keep::Head(MAX_OUTPUT),
            err: Keep::Head(MAX_OUTPUT),
            overflow: Overflow::Drop,
        };
        let Ended { how, out, err } = match run(&self.child, request).await {
            Ok(ended) => ended,
            Err(why) => return Carried::Failed(not_started(why)),
        };
        match how {
            How::Exited(0) => Carried::Done(text(&out)),
            How::Exited(code) => Carried::Failed(format!(
                "the command ended with exit code {code}\n{}",
                said(&out, &err)
            )),
            How::Signalled(signal) => Carried::Failed(format!(
                "the command was ended by signal {signal}\n{}",
                said(&out, &err)
            )),
            How::TimedOut(limit) => Carried::Failed(format!(
                "the command took longer than {} ms and was ended; what it did until then is done\n{}",
                limit.as_millis(),
                said(&out, &err)
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

fn text(heard: &Heard) -> String {
    as_text(heard.bytes(), heard.is_cut())
}

fn said(out: &Heard, err: &Heard) -> String {
    let mut said = text(out);
    let complaint = text(err);
    if !complaint.trim().is_empty() {
        said.push_str("\n[stderr]\n");
        said.push_str(&complaint);
    }
    said
}
