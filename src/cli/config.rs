//! The configuration as a command needs it: loaded, its warnings told, its problems told all at once.

use super::stop::Stop;
use super::{ConfigArgs, environment, print};
use crate::config::{Config, Loaded};

/// Loads it. Warnings go to stderr; problems go there, all of them, and end the command.
pub fn load(args: &ConfigArgs) -> Result<Loaded, Stop> {
    match Config::load(&args.config, &environment) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                print::note(&print::lines(&format!("warning: {warning}")));
            }
            Ok(loaded)
        }
        Err(problems) => {
            for problem in problems.as_slice() {
                print::note(&print::lines(&format!("error: {problem}")));
            }
            Err(Stop::Told)
        }
    }
}
