//! Conditions: CEL expressions, compiled when policy is loaded and evaluated for each call.
//!
//! Whatever goes wrong in evaluating is one answer, [`Answer::Unevaluable`]; what follows from it is the rule's matter.

use std::{
    cell::OnceCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cel::{Context, Env, ExecutionError, Program, Value, extensions};
use thiserror::Error;

use super::{
    Limits,
    facts::CallFacts,
    scope::{self, Fact, Read},
    value::convert,
};
use crate::gate::json::{Json, Object};

/// What somebody is called of whom no rule knows.
const STRANGER: &str = "\u{2039}a stranger to every rule\u{203a}";

/// A condition that compiled, and the facts that it reads.
pub(super) struct Condition {
    program: Program,
    facts: Vec<Fact>,
    /// Metadata that holds something unheard-of wherever the condition looks.
    strange: Value,
}

/// What a condition says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Met,
    NotMet,
    /// An error, a panic, or a value that is no boolean.
    Unevaluable(Unevaluable),
}

/// Why a condition could not be evaluated. It tells nothing of what the call holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Unevaluable {
    /// A member or an item is not there.
    #[error("it reads something that this call does not have")]
    Missing,
    /// The call is larger than conditions may read.
    #[error("the arguments or the metadata of this call are larger than conditions may read")]
    TooLarge,
    /// Values of types that cannot be compared or combined.
    #[error("it compares or combines values whose types do not go together in this call")]
    Types,
    /// A division by zero or an overflow.
    #[error("a calculation in it has no result for this call")]
    Arithmetic,
    /// The result is no boolean.
    #[error("its result is neither true nor false for this call")]
    NotBoolean,
    /// Anything else.
    #[error("evaluating it failed")]
    Failed,
}

impl From<&ExecutionError> for Unevaluable {
    fn from(error: &ExecutionError) -> Self {
        use ExecutionError as E;
        match error {
            E::NoSuchKey(_) | E::IndexOutOfBounds(_) => Self::Missing,
            // Names are checked when the condition is compiled; only data over the limit is left out.
            E::UndeclaredReference(_) => Self::TooLarge,
            E::DivisionByZero(_) | E::RemainderByZero(_) | E::Overflow(..) => Self::Arithmetic,
            E::UnsupportedTargetType { .. }
            | E::NotSupportedAsMethod { .. }
            | E::UnsupportedKeyType(_)
            | E::UnexpectedType { .. }
            | E::NoSuchOverload(_)
            | E::ValuesNotComparable(..)
            | E::UnsupportedBinaryOperator(..)
            | E::UnsupportedIndex(..) => Self::Types,
            _ => Self::Failed,
        }
    }
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
        let Read { facts, members } = scope::check(program.expression())?;
        let strange = unbounded(&strange(&members));
        Ok(Self {
            program,
            facts,
            strange,
        })
    }

    /// The facts it reads of those that are only the agent's word.
    pub(super) fn asserted(&self) -> impl Iterator<Item = &'static str> {
        self.facts
            .iter()
            .filter(|fact| fact.is_asserted())
            .map(|fact| fact.name())
    }

    /// What it says of the call.
    pub(super) fn answer(&self, call: &Call<'_>) -> Answer {
        self.evaluate(&call.said)
    }

    /// Whether it holds for the same call when its agent says nothing of itself. Where silence cannot be judged, somebody of
    /// whom no rule has heard says it; what cannot be judged even so, does not hold.
    pub(super) fn holds_unsaid(&self, call: &Call<'_>) -> bool {
        let tries: [&dyn Fn() -> Answer; 3] = [
            &|| self.evaluate(call.silent()),
            &|| self.evaluate(call.blank()),
            &|| self.evaluate(&call.context(Some(STRANGER), Some(STRANGER), Some(self.strange.clone()))),
        ];
        let evaluable = |answer: &Answer| !matches!(answer, Answer::Unevaluable(_));
        tries.iter().map(|answer| answer()).find(evaluable) == Some(Answer::Met)
    }

    fn evaluate(&self, context: &Context<'_, '_>) -> Answer {
        match catch_unwind(AssertUnwindSafe(|| self.program.execute(context))) {
            Ok(Ok(Value::Bool(true))) => Answer::Met,
            Ok(Ok(Value::Bool(false))) => Answer::NotMet,
            Ok(Ok(_)) => Answer::Unevaluable(Unevaluable::NotBoolean),
            Ok(Err(error)) => Answer::Unevaluable(Unevaluable::from(&error)),
            Err(_) => Answer::Unevaluable(Unevaluable::Failed),
        }
    }
}

/// A value of our own making, which is small.
fn unbounded(json: &Json) -> Value {
    let mut budget = usize::MAX;
    convert(json, &mut budget).unwrap_or(Value::Null)
}

/// An object in which each of these paths leads to something unheard-of.
fn strange(members: &[Vec<String>]) -> Json {
    let mut object = Object::default();
    for path in members {
        let Some((first, _)) = path
            .split_first()
            .filter(|(first, _)| object.get(first).is_none())
        else {
            continue;
        };
        let below: Vec<_> = members
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(key, rest)| *key == first && !rest.is_empty())
            .map(|(_, rest)| rest.to_vec())
            .collect();
        let value = if below.is_empty() {
            Json::from(STRANGER)
        } else {
            strange(&below)
        };
        object.insert(first.clone(), value);
    }
    Json::Object(object)
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// A call's facts as variables. Data over the limit is left out, so that reading it is an error.
pub(super) struct Call<'a> {
    facts: &'a CallFacts<'a>,
    env: &'a Arc<Env>,
    args: Option<Value>,
    /// As the agent says.
    said: Context<'static, 'static>,
    /// With nothing that the agent says of itself.
    silent: OnceCell<Context<'static, 'static>>,
    /// The same, with metadata that is there and empty.
    blank: OnceCell<Context<'static, 'static>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(facts: &'a CallFacts<'a>, env: &'a Arc<Env>, limits: &Limits) -> Self {
        let mut budget = limits.data_bytes;
        let args = convert(facts.args, &mut budget);
        let metadata = facts
            .metadata
            .map_or(Some(Value::Null), |metadata| convert(metadata, &mut budget));
        let mut call = Self {
            facts,
            env,
            args,
            said: Context::with_env(Arc::clone(env)),
            silent: OnceCell::new(),
            blank: OnceCell::new(),
        };
        call.said = call.context(facts.agent, facts.requester, metadata);
        call
    }

    fn silent(&self) -> &Context<'static, 'static> {
        self.silent
            .get_or_init(|| self.context(None, None, Some(Value::Null)))
    }

    fn blank(&self) -> &Context<'static, 'static> {
        self.blank
            .get_or_init(|| self.context(None, None, Some(unbounded(&Json::Object(Object::default())))))
    }

    fn context(
        &self,
        agent: Option<&str>,
        requester: Option<&str>,
        metadata: Option<Value>,
    ) -> Context<'static, 'static> {
        let text = |text: &str| Value::String(Arc::new(text.to_owned()));
        let mut metadata = Some(metadata);
        let mut context = Context::with_env(Arc::clone(self.env));
        for fact in Fact::ALL {
            let value = match fact {
                Fact::Tool => Some(text(self.facts.tool.as_str())),
                Fact::Args => self.args.clone(),
                Fact::Agent => Some(agent.map_or(Value::Null, text)),
                Fact::Requester => Some(requester.map_or(Value::Null, text)),
                Fact::Org => Some(text(self.facts.org)),
                Fact::Metadata => metadata.take().flatten(),
                Fact::Token => Some(text(self.facts.token)),
            };
            if let Some(value) = value {
                context.add_variable_from_value(fact.name(), value);
            }
        }
        context
    }
}
