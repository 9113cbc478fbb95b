//! The binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatepost::cli::main()
}
