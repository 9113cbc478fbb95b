//! The command line as a person meets it: the real program, its words, and its exit codes.

mod bad_config;
mod demo;
mod doctor;
mod serve;
mod usage;

use std::process::{Command, Output, Stdio};

use crate::support::temp_dir::TempDir;

/// What a run left behind.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// What stood on stdout.
    pub out: String,
    /// What stood on stderr.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit, no signal"),
            out: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            err: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

/// The program with these arguments, an empty environment and no input, in `dir`.
pub fn gatepost_in(dir: &TempDir, arguments: &[&str]) -> Ran {
    command(arguments)
        .current_dir(dir.path())
        .output()
        .expect("a started program")
        .into()
}

/// Like [`gatepost_in`], where the folder does not matter.
pub fn gatepost(arguments: &[&str]) -> Ran {
    gatepost_in(&TempDir::new(), arguments)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}
