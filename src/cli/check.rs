//! `gatepost check`: everything that is wrong with the configuration, its pieces and the card templates, in one go.
//!
//! Exit code 1 when something must be mended; warnings alone leave it at 0. Nothing is started, opened or asked.

use serde_json::json;

use super::stop::{Done, Stop};
use super::{ConfigArgs, environment, print};
use crate::agent::agents;
use crate::config::context::Complaint;
use crate::config::{Config, Loaded, Problem, ProblemKind, Warning};
use crate::delivery::phrase::Phrasebook;
use crate::hook;

/// What a check found.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
    /// What is wrong with the program's own templates; they have no line of the reader's.
    templates: Option<String>,
}

/// Checks, tells, and stops when something must be mended.
pub fn run(args: &ConfigArgs, as_json: bool) -> Done {
    let found = look(args);
    let ok = found.problems.is_empty() && found.templates.is_none();
    if as_json {
        print::json(&json!({
            "ok": ok,
            "problems": found.problems,
            "warnings": found.warnings,
            "templates": found.templates,
        }));
    } else {
        found.tell(args);
    }
    if ok { Ok(()) } else { Err(Stop::Told) }
}

fn look(args: &ConfigArgs) -> Findings {
    let mut found = Findings {
        templates: Phrasebook::load().err().map(|error| error.to_string()),
        ..Findings::default()
    };
    match Config::load(&args.config, &environment) {
        Ok(Loaded { config, warnings, .. }) => {
            found.warnings = warnings;
            match agents::pieces(&config.agent) {
                Ok(pieces) => found.warnings.extend(pieces.warnings().iter().cloned()),
                Err(problems) => found.problems = problems,
            }
            if let Err(error) = hook::check(&config.hooks) {
                let complaint = Complaint::new(ProblemKind::BadValue, error.to_string());
                found
                    .problems
                    .push(complaint.remedy("see docs/HOOK-PROTOCOL.md").at(
                        &args.config.display().to_string(),
                        None,
                        "hooks",
                    ));
            }
        }
        Err(problems) => found.problems = problems.as_slice().to_vec(),
    }
    found
}

impl Findings {
    fn tell(&self, args: &ConfigArgs) {
        for problem in &self.problems {
            print::line(&print::lines(&format!("error: {problem}")));
        }
        for warning in &self.warnings {
            print::line(&print::lines(&format!("warning: {warning}")));
        }
        if let Some(templates) = &self.templates {
            print::line(&format!("error: {templates}"));
        }
        let errors = self.problems.len() + usize::from(self.templates.is_some());
        let file = print::foreign(&args.config.display().to_string());
        print::line(&match (errors, self.warnings.len()) {
            (0, 0) => format!("{file} is fine."),
            (0, warnings) => format!("{file} can be used; {}.", count(warnings, "warning")),
            (errors, 0) => format!("{file} cannot be used: {}.", count(errors, "error")),
            (errors, warnings) => {
                format!(
                    "{file} cannot be used: {}, {}.",
                    count(errors, "error"),
                    count(warnings, "warning")
                )
            }
        });
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
