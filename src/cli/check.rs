//! `gatepost check`: everything that is wrong with the configuration, its pieces and the card templates, in one go.
//!
//! Exit code 1 when something must be mended; warnings alone leave it at 0. Nothing is started, opened or asked.

use serde_json::json;

use super::stop::{Done, Stop};
use super::{ConfigArgs, environment, print};
use crate::agent::agents;
use crate::config::agent::ToolConfig;
use crate::config::context::Complaint;
use crate::config::hook::HooksConfig;
use crate::config::mcp::McpReach;
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
    /// The MCP servers there are, one line each.
    servers: Vec<String>,
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
            "templates": {"ok": found.templates.is_none(), "problem": found.templates},
            "mcp_servers": found.servers,
        }));
    } else {
        found.tell(args);
    }
    if ok { Ok(()) } else { Err(Stop::Told) }
}

/// What an MCP server is, without its environment, headers and the arguments of its command.
fn server(tool: &ToolConfig) -> Option<String> {
    let ToolConfig::Mcp(server) = tool else {
        return None;
    };
    let reach = match &server.reach {
        McpReach::Child(child) => format!("the command {}", child.program),
        McpReach::Http { url, .. } => url.to_string(),
    };
    let terms = &server.terms;
    let asks = match (terms.requires_confirmation, terms.confirm.is_empty()) {
        (true, _) if terms.allow.is_empty() => "every call needs a person".to_owned(),
        (true, _) => format!("a call needs a person, except of {}", terms.allow.join(", ")),
        (false, false) => format!("a call of {} needs a person", terms.confirm.join(", ")),
        (false, true) => "the policy alone judges its calls".to_owned(),
    };
    Some(format!("mcp server {}: {reach}; {asks}", server.name))
}

fn look(args: &ConfigArgs) -> Findings {
    let mut found = Findings {
        templates: Phrasebook::load().err().map(|error| error.to_string()),
        ..Findings::default()
    };
    match Config::load(&args.config, &environment) {
        Ok(Loaded { config, warnings, .. }) => {
            found.warnings = warnings;
            found.servers = config.agent.tools.iter().filter_map(server).collect();
            let file = args.config.display().to_string();
            match agents::pieces(&config.agent) {
                Ok(pieces) => {
                    found.warnings.extend(pieces.warnings().iter().cloned());
                    for piece in pieces.all() {
                        let at = format!("piece {}", piece.name);
                        if let Some(block) = &piece.hooks {
                            found.look_for_absent(block, &at);
                        }
                    }
                }
                Err(problems) => found.problems = problems,
            }
            found.look_at_hooks(&config.hooks, &file);
        }
        Err(problems) => found.problems = problems.as_slice().to_vec(),
    }
    found
}

impl Findings {
    /// Hooks that cannot be built, and events that hooks wait for in vain. Those of pieces are built as pieces are read.
    fn look_at_hooks(&mut self, block: &HooksConfig, file: &str) {
        if let Err(error) = hook::check(block) {
            let complaint = Complaint::new(ProblemKind::BadValue, error.to_string());
            let complaint = complaint.remedy("see docs/HOOK-PROTOCOL.md");
            self.problems.push(complaint.at(file, None, "hooks"));
        }
        self.look_for_absent(block, file);
    }

    fn look_for_absent(&mut self, block: &HooksConfig, file: &str) {
        let absent = hook::absent(block).into_iter();
        self.warnings.extend(absent.map(|(key, message)| Warning {
            file: file.to_owned(),
            at: None,
            key,
            message,
        }));
    }

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
        for server in &self.servers {
            print::line(&print::foreign(server));
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
