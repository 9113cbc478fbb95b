//! Conditions: CEL expressions, compiled when policy is loaded and evaluated for each call.
//!
//! Whatever goes wrong in evaluating is one answer, [`Answer::Unevaluable`]; what follows from it is the rule's matter.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cel::{Context, Env, Program, Value, extensions};

use super::{
    Limits,
    facts::CallFacts,
    scope::{self, Fact},
    value::convert,
};

/// A condition that compiled, and the facts that it reads.
pub(super) struct Condition {
    program: Program,
    facts: Vec<Fact>,
}

/// What a condition says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Met,
    NotMet,
    /// An error, a panic, or a value that is no boolean.
    Unevaluable,
}

/// The functions and macros that conditions are compiled and evaluated with.
pub(super) fn environment() -> Result<Arc<Env>, String> {
    let mut env = Env::stdlib().with_optional_support(false);
    env.add_extension(extensions::strings)
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(env))
}

impl Condition {
    pub(super) fn compile(source: &str, env: &Env, limits: &Limits) -> Result<Self, String> {
        if source.len() > limits.condition_bytes {
            return Err(format!(
                "the condition is longer than {} bytes",
                limits.condition_bytes
            ));
        }
        let program = catch_unwind(AssertUnwindSafe(|| env.compile(source)))
            .map_err(|_| "the condition does not compile".to_owned())?
            .map_err(|error| match error.errors.first() {
                Some(first) => format!(
                    "the condition does not compile: {} (column {})",
                    first.msg, first.pos.1
                ),
                None => "the condition does not compile".to_owned(),
            })?;
        let facts = scope::check(program.expression())?;
        Ok(Self { program, facts })
    }

    /// The facts it reads of those that are only the agent's word.
    pub(super) fn asserted(&self) -> impl Iterator<Item = &'static str> {
        self.facts
            .iter()
            .filter(|fact| fact.is_asserted())
            .map(|fact| fact.name())
    }

    pub(super) fn answer(&self, call: &Call) -> Answer {
        match catch_unwind(AssertUnwindSafe(|| self.program.execute(&call.0))) {
            Ok(Ok(Value::Bool(true))) => Answer::Met,
            Ok(Ok(Value::Bool(false))) => Answer::NotMet,
            _ => Answer::Unevaluable,
        }
    }
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// A call's facts as variables. Data over the limit is left out, so that reading it is an error.
pub(super) struct Call(Context<'static, 'static>);

impl Call {
    pub(super) fn new(facts: &CallFacts<'_>, env: &Arc<Env>, limits: &Limits) -> Self {
        let text = |text: &str| Value::String(Arc::new(text.to_owned()));
        let mut budget = limits.data_bytes;
        let mut data = |json| convert(json, &mut budget);
        let mut context = Context::with_env(Arc::clone(env));
        for fact in Fact::ALL {
            let value = match fact {
                Fact::Tool => Some(text(facts.tool.as_str())),
                Fact::Args => data(facts.args),
                Fact::Agent => Some(facts.agent.map_or(Value::Null, text)),
                Fact::Requester => Some(facts.requester.map_or(Value::Null, text)),
                Fact::Org => Some(text(facts.org)),
                Fact::Metadata => facts.metadata.map_or(Some(Value::Null), &mut data),
                Fact::Token => Some(text(facts.token)),
            };
            if let Some(value) = value {
                context.add_variable_from_value(fact.name(), value);
            }
        }
        Self(context)
    }
}
