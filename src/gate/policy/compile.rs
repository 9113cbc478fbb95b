//! From policy as it is written to rules that can be asked; every problem is found in one go.

use std::{collections::HashSet, fmt, sync::Arc, thread};

use cel::Env;
use thiserror::Error;

use super::{
    Policy,
    glob::ToolGlobs,
    rule::Rule,
    source::{Approvers, ConfirmSource, Effect, PolicySource, RuleSource},
    terms,
    when::{Condition, environment},
};
use crate::gate::{
    decision::MAX_STAGES,
    edit::{self, EditScope},
    grant::{GrantArguments, MAX_SCOPES},
    json::Pointer,
};

/// The parser of conditions recurses over what is written; this is room for everything the limits admit.
const COMPILER_STACK: usize = 64 << 20;

/// What policy may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rules in a policy.
    pub rules: usize,
    /// Bytes of a condition.
    pub condition_bytes: usize,
    /// Globs of a rule.
    pub globs: usize,
    /// Characters of a glob.
    pub glob_characters: usize,
    /// Pointers that a rule redacts.
    pub pointers: usize,
    /// Bytes of arguments and metadata that conditions evaluate, counting 16 for each value; a condition that reads
    /// more cannot be evaluated.
    pub data_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rules: 1_000,
            condition_bytes: 2_048,
            globs: 64,
            glob_characters: 256,
            pointers: 64,
            data_bytes: 512 << 10,
        }
    }
}

/// Which rule a problem is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its name as written.
    pub name: String,
}

/// One thing that is wrong with a policy; the configuration adds file and line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct CompileProblem {
    /// The rule; `None` is the policy itself.
    pub rule: Option<RuleRef>,
    /// The field: `when`, `tools[0]`, `redact[1]`, `confirm.quorum`, …
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for CompileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "rule {} ({}), {}: ", rule.index, rule.name, self.field)?,
            None => write!(f, "policy, {}: ", self.field)?,
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl Policy {
    /// Compiles a policy, or tells everything that is wrong with it.
    pub fn compile(source: &PolicySource, limits: &Limits) -> Result<Self, Vec<CompileProblem>> {
        let failed = || {
            vec![about_policy(
                "rules",
                "the policy could not be compiled",
                "simplify its conditions",
            )]
        };
        thread::scope(|scope| {
            thread::Builder::new()
                .name("policy-compiler".to_owned())
                .stack_size(COMPILER_STACK)
                .spawn_scoped(scope, || compile(source, limits))
                .map_err(|_| failed())?
                .join()
                .map_err(|_| failed())?
        })
    }
}

fn about_policy(field: &str, problem: &str, remedy: &str) -> CompileProblem {
    CompileProblem {
        rule: None,
        field: field.to_owned(),
        problem: problem.to_owned(),
        remedy: remedy.to_owned(),
    }
}

fn compile(source: &PolicySource, limits: &Limits) -> Result<Policy, Vec<CompileProblem>> {
    let env = environment().map_err(|problem| vec![about_policy("rules", &problem, "report this")])?;
    if source.rules.len() > limits.rules {
        return Err(vec![about_policy(
            "rules",
            "there are too many rules",
            "merge rules by means of globs",
        )]);
    }
    let mut problems: Vec<_> = terms::out_of_range(&source.confirm)
        .into_iter()
        .map(|(field, problem, remedy)| about_policy(&format!("confirm.{field}"), problem, remedy))
        .collect();
    let mut names = HashSet::new();
    let mut rules = Vec::new();
    for (index, written) in source.rules.iter().enumerate() {
        let mut compiler = RuleCompiler {
            index,
            written,
            env: &env,
            limits,
            problems: &mut problems,
        };
        if written.name.is_empty() || !names.insert(written.name.as_str()) {
            compiler.problem(
                "name",
                "the name is empty or used before",
                "give every rule a name of its own",
            );
        }
        rules.extend(compiler.rule(&source.confirm));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let terms = terms::resolve(&ConfirmSource::default(), &source.confirm, &[]);
    Ok(Policy {
        env,
        limits: *limits,
        default: source.default,
        terms,
        rules,
    })
}

/// A field did not compile; its problem is recorded.
struct Refused;

struct RuleCompiler<'a> {
    index: usize,
    written: &'a RuleSource,
    env: &'a Arc<Env>,
    limits: &'a Limits,
    problems: &'a mut Vec<CompileProblem>,
}

impl RuleCompiler<'_> {
    fn rule(&mut self, defaults: &ConfirmSource) -> Option<Rule> {
        let tools = self.tools();
        let when = self.when();
        let redact = self.redact();
        if self.written.orgs.as_ref().is_some_and(Vec::is_empty) {
            self.problem(
                "orgs",
                "the rule holds for nobody",
                "name an organisation, or leave `orgs` out",
            );
        }
        for (field, problem, remedy) in terms::out_of_range(&self.written.confirm) {
            self.problem(field, problem, remedy);
        }
        self.stages();
        self.grants();
        self.edits(&redact);
        self.break_glass();
        let terms = terms::resolve(&self.written.confirm, defaults, &redact);
        if self.written.effect == Effect::Confirm {
            if terms.channels.is_empty() {
                self.problem(
                    "channels",
                    "nobody would be asked",
                    "name channels here or in `policy.confirm`",
                );
            }
            if terms.approvers.is_empty() {
                self.problem(
                    "approvers",
                    "nobody may decide",
                    "name roles or operators here or in `policy.confirm`",
                );
            }
        }
        let RuleSource {
            name,
            effect,
            reason,
            orgs,
            trust_asserted,
            verified_requester,
            ..
        } = self.written.clone();
        Some(Rule {
            name,
            tools: tools.ok()?,
            when: when.ok()?,
            effect,
            reason,
            orgs,
            trust_asserted,
            verified_requester,
            redact,
            terms,
        })
    }

    /// Stages stand alone, each with a name of its own and somebody to ask.
    fn stages(&mut self) {
        let confirm = &self.written.confirm;
        let Some(stages) = &confirm.stages else { return };
        if confirm.approvers.is_some() || confirm.quorum.is_some() {
            self.problem(
                "stages",
                "the rule names approvers or a quorum beside its stages",
                "name them in each stage",
            );
        }
        if stages.is_empty() || stages.len() > MAX_STAGES {
            self.problem(
                "stages",
                "there are no stages, or too many",
                "name between 1 and 16 stages, or leave `stages` out",
            );
        }
        let mut names = HashSet::new();
        for (at, stage) in stages.iter().enumerate().take(MAX_STAGES) {
            if stage.name.is_empty() || !names.insert(stage.name.as_str()) {
                self.problem(
                    &format!("stages[{at}].name"),
                    "the name is empty or used before",
                    "give every stage a name of its own",
                );
            }
            if stage.approvers.is_empty() {
                self.problem(
                    &format!("stages[{at}].approvers"),
                    "nobody may decide",
                    "name roles or operators",
                );
            }
            if stage.quorum == 0 {
                self.problem(
                    &format!("stages[{at}].quorum"),
                    "no person would have to agree",
                    "name at least 1 person",
                );
            }
        }
    }

    /// A grant holds for a while, and for calls that can be told to be alike.
    fn grants(&mut self) {
        let Some(grants) = &self.written.confirm.grants else {
            return;
        };
        if grants.scopes.is_empty() || grants.scopes.len() > MAX_SCOPES {
            self.problem(
                "grants.scopes",
                "no scope is offered, or too many",
                "name between 1 and 4 of `session` and spans such as `1h`, or leave `grants` out",
            );
        }
        if grants.max_uses == Some(0) {
            self.problem(
                "grants.max_uses",
                "no later call could run",
                "name at least 1 call, or leave `max_uses` out",
            );
        }
        if let GrantArguments::At(pointers) = &grants.arguments {
            let vague = |pointer: &Pointer| {
                pointer.segments().is_empty() || pointer.segments().iter().any(|segment| segment == "*")
            };
            if pointers.is_empty() || pointers.len() > self.limits.pointers || pointers.iter().any(vague) {
                self.problem(
                    "grants.arguments",
                    "the pointers do not name single values",
                    "name single values such as `/payee`, or write `same` or `any`",
                );
            }
        }
    }

    /// What people may change is named below the root, and nothing of it is hidden from them.
    fn edits(&mut self, hidden: &[Pointer]) {
        let Some(EditScope::At(places)) = &self.written.confirm.edits else {
            return;
        };
        let whole = |pointer: &Pointer| pointer.segments().is_empty();
        if places.is_empty() || places.len() > self.limits.pointers || places.iter().any(whole) {
            self.problem(
                "accepts_edits",
                "nothing could be changed, or the pointers do not name places in the arguments",
                "name places such as `/amount`, write `true` for all of the arguments, or leave `accepts_edits` out",
            );
        }
        let unseen = |place: &Pointer| hidden.iter().any(|hidden| edit::covers(hidden, place));
        if places.iter().any(unseen) {
            self.problem(
                "accepts_edits",
                "a place may be changed that `redact` hides",
                "take it out of one of the two: nobody changes what they do not see",
            );
        }
    }

    /// Somebody may do it, so and so often.
    fn break_glass(&mut self) {
        let Some(glass) = &self.written.confirm.break_glass else {
            return;
        };
        let nobody = glass.lists.is_empty() || glass.lists.iter().any(Approvers::is_empty);
        if nobody || glass.uses == 0 || glass.per_ms < 1 {
            self.problem(
                "break_glass",
                "nobody could ever do it",
                "name who may, at least 1 use, and a window, or leave `break_glass` out",
            );
        }
    }

    fn tools(&mut self) -> Result<ToolGlobs, Refused> {
        match ToolGlobs::compile(&self.written.tools, self.limits) {
            Ok(tools) => Ok(tools),
            Err(found) => {
                for glob in found {
                    let field = glob.at.map_or("tools".to_owned(), |at| format!("tools[{at}]"));
                    self.problem(
                        &field,
                        &glob.problem,
                        "write globs over tool names; `*` is every tool",
                    );
                }
                Err(Refused)
            }
        }
    }

    fn when(&mut self) -> Result<Option<Condition>, Refused> {
        let Some(source) = &self.written.when else {
            return Ok(None);
        };
        match Condition::compile(source, self.env, self.limits) {
            Ok(condition) => {
                let asserted: Vec<_> = condition.asserted().collect();
                if self.written.effect == Effect::Allow
                    && !self.written.trust_asserted
                    && !asserted.is_empty()
                {
                    let problem = format!(
                        "an allow rule reads {}, which the agent only asserts",
                        asserted.join(", ")
                    );
                    self.problem(
                        "when",
                        &problem,
                        "read `token` instead, or set `trust_asserted: true`",
                    );
                }
                Ok(Some(condition))
            }
            Err(problem) => {
                self.problem(
                    "when",
                    &problem,
                    "write a CEL condition over tool, args, agent, requester, org, metadata, token",
                );
                Err(Refused)
            }
        }
    }

    fn redact(&mut self) -> Vec<Pointer> {
        if self.written.redact.len() > self.limits.pointers {
            self.problem(
                "redact",
                "there are too many pointers",
                "use `*` for all items of an array",
            );
        }
        let mut pointers = Vec::new();
        for (at, written) in self.written.redact.iter().take(self.limits.pointers).enumerate() {
            match written.parse::<Pointer>() {
                Ok(pointer) if !written.is_empty() => pointers.push(pointer),
                Ok(_) => self.problem(
                    &format!("redact[{at}]"),
                    "the pointer is empty",
                    "name single values",
                ),
                Err(problem) => {
                    self.problem(
                        &format!("redact[{at}]"),
                        &problem.to_string(),
                        "write it like `/card/number`",
                    );
                }
            }
        }
        pointers
    }

    fn problem(&mut self, field: &str, problem: &str, remedy: &str) {
        let rule = RuleRef {
            index: self.index,
            name: self.written.name.clone(),
        };
        self.problems.push(CompileProblem {
            rule: Some(rule),
            ..about_policy(field, problem, remedy)
        });
    }
}
