//! What a condition may say: known names, known functions, and only loops whose cost grows with the arguments and not
//! with their square.
//!
//! The rules of loops (`exists`, `all`, `exists_one`):
//! - a loop over data (`args`, `metadata`, or an item of an outer such loop) reads no data in its body but its own item;
//! - a loop over anything else, such as a list in the condition itself, stands inside no other loop;
//! - loops nest at most three deep, and none builds a list (`map`, `filter`).
//!
//! With that, evaluation takes time in the order of the condition's length times the size of the call's data.

use cel::{
    IdedExpr,
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
};

/// How deep an expression may nest, so that evaluating it fits any thread's stack.
const MAX_DEPTH: usize = 48;

/// How deep loops may nest.
const MAX_LOOPS: usize = 3;

/// From here to `DOUBLE_OUTGROWS` a double literal may stand between two whole arguments that compare alike to it.
const DOUBLE_SKIPS: f64 = 9_007_199_254_740_992.0;
const DOUBLE_OUTGROWS: f64 = 9_223_372_036_854_775_808.0;

const FUNCTIONS: [&str; 12] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "lowerAscii",
    "upperAscii",
    "trim",
    "int",
    "double",
    "string",
    "bool",
    "type",
];

const OPERATORS: [&str; 18] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::IN,
];

const TYPES: [&str; 8] = [
    "bool",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
];

/// A fact that a condition can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    Tool,
    Args,
    Agent,
    Requester,
    Org,
    Metadata,
    Token,
}

impl Fact {
    pub(super) const ALL: [Self; 7] = [
        Self::Tool,
        Self::Args,
        Self::Agent,
        Self::Requester,
        Self::Org,
        Self::Metadata,
        Self::Token,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Args => "args",
            Self::Agent => "agent",
            Self::Requester => "requester",
            Self::Org => "org",
            Self::Metadata => "metadata",
            Self::Token => "token",
        }
    }

    /// Whether it is only what the agent says of itself.
    pub(super) fn is_asserted(self) -> bool {
        matches!(self, Self::Agent | Self::Requester | Self::Metadata)
    }

    /// Whether its size is up to the caller. Such facts have members; the others are texts.
    fn is_data(self) -> bool {
        matches!(self, Self::Args | Self::Metadata)
    }
}

/// What an expression reads.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// The facts, each once.
    pub(super) facts: Vec<Fact>,
    /// The members of the metadata that it names, as paths.
    pub(super) members: Vec<Vec<String>>,
}

/// Checks an expression and tells what it reads.
pub(super) fn check(expression: &IdedExpr) -> Result<Read, String> {
    let mut scope = Scope {
        read: Read::default(),
        names: Vec::new(),
        item: None,
        loops: 0,
    };
    scope.walk(expression, 0)?;
    Ok(scope.read)
}

struct Scope<'a> {
    read: Read,
    /// Names that loops bind, the innermost last, and whether they hold data.
    names: Vec<(&'a str, bool)>,
    /// The item of the innermost loop over data, as an index into `names`.
    item: Option<usize>,
    loops: usize,
}

impl<'a> Scope<'a> {
    /// Refuses a member of a fact that is a text: such a condition could never be evaluated.
    fn has_members(&self, operand: &IdedExpr, field: &str) -> Result<(), String> {
        let Expr::Ident(name) = &operand.expr else {
            return Ok(());
        };
        let bound = self.names.iter().any(|(bound, _)| bound == name);
        match Fact::ALL.iter().find(|fact| fact.name() == name) {
            Some(fact) if !bound && !fact.is_data() => Err(format!(
                "the condition reads `{name}.{field}`, but `{name}` is a text without members"
            )),
            _ => Ok(()),
        }
    }

    /// The path of a member of the metadata, where the expression names one.
    fn member(&self, expression: &IdedExpr) -> Option<Vec<String>> {
        let (within, key) = match &expression.expr {
            Expr::Select(select) => (&*select.operand, select.field.clone()),
            Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
                [within, key] => match &key.expr {
                    Expr::Literal(LiteralValue::String(key)) => (within, key.inner().to_owned()),
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        let mut path = match &within.expr {
            Expr::Ident(name) if name == ".metadata" => Vec::new(),
            Expr::Ident(name) if name == "metadata" && !self.names.iter().any(|(bound, _)| bound == name) => {
                Vec::new()
            }
            _ => self.member(within)?,
        };
        path.push(key);
        Some(path)
    }

    /// Tells whether the expression reads data.
    fn walk(&mut self, expression: &'a IdedExpr, depth: usize) -> Result<bool, String> {
        let depth = depth + 1;
        if depth > MAX_DEPTH {
            return Err(format!("the condition nests deeper than {MAX_DEPTH} levels"));
        }
        self.read.members.extend(self.member(expression));
        match &expression.expr {
            Expr::Ident(name) => self.name(name),
            Expr::Literal(literal) => literal_is_exact(literal).map(|()| false),
            Expr::Select(select) => {
                self.has_members(&select.operand, &select.field)?;
                self.walk(&select.operand, depth)
            }
            Expr::List(list) => self.all(&list.elements, depth),
            Expr::Map(map) => {
                let mut data = false;
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err("the condition builds a message".to_owned());
                    };
                    data |= self.walk(&entry.key, depth)? | self.walk(&entry.value, depth)?;
                }
                Ok(data)
            }
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                if !FUNCTIONS.contains(&name)
                    && !OPERATORS.contains(&name)
                    && name != operators::NOT_STRICTLY_FALSE
                {
                    return Err(format!("the condition calls `{name}`, which is not available"));
                }
                let target = match &call.target {
                    Some(target) => self.walk(target, depth)?,
                    None => false,
                };
                Ok(target | self.all(&call.args, depth)?)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, depth),
            Expr::Struct(_) | Expr::Unspecified => Err("the condition builds a message".to_owned()),
        }
    }

    fn all(&mut self, expressions: &'a [IdedExpr], depth: usize) -> Result<bool, String> {
        expressions
            .iter()
            .try_fold(false, |data, expression| Ok(data | self.walk(expression, depth)?))
    }

    fn name(&mut self, written: &str) -> Result<bool, String> {
        // A leading dot skips what loops bind.
        let (absolute, name) = written
            .strip_prefix('.')
            .map_or((false, written), |name| (true, name));
        let bound = if absolute {
            None
        } else {
            self.names.iter().rposition(|(bound, _)| *bound == name)
        };
        if let Some(at) = bound {
            let data = self.names.get(at).is_some_and(|(_, data)| *data);
            return if data {
                self.reads_data(name, Some(at))
            } else {
                Ok(false)
            };
        }
        if let Some(fact) = Fact::ALL.into_iter().find(|fact| fact.name() == name) {
            if !self.read.facts.contains(&fact) {
                self.read.facts.push(fact);
            }
            return if fact.is_data() {
                self.reads_data(name, None)
            } else {
                Ok(false)
            };
        }
        if TYPES.contains(&name) {
            Ok(false)
        } else {
            Err(format!("the condition reads `{name}`, which is no fact"))
        }
    }

    fn reads_data(&self, name: &str, at: Option<usize>) -> Result<bool, String> {
        if self.item.is_none() || self.item == at {
            return Ok(true);
        }
        Err(format!(
            "a loop over data reads `{name}` in its body, so its cost grows with the square of the data"
        ))
    }

    fn comprehension(&mut self, loop_: &'a ComprehensionExpr, depth: usize) -> Result<bool, String> {
        if matches!(loop_.accu_init.expr, Expr::List(_)) {
            return Err("`map` and `filter` are not available".to_owned());
        }
        if self.loops == MAX_LOOPS {
            return Err(format!("loops nest deeper than {MAX_LOOPS} levels"));
        }
        let data = self.walk(&loop_.iter_range, depth)?;
        if !data && self.loops > 0 {
            return Err("a loop over a fixed list stands inside another loop".to_owned());
        }
        let (outer_item, outer_names) = (self.item, self.names.len());
        self.names.push((&loop_.accu_var, false));
        self.names
            .extend(loop_.iter_var2.iter().map(|name| (name.as_str(), false)));
        if data {
            self.item = Some(self.names.len());
        }
        self.names.push((&loop_.iter_var, data));
        self.loops += 1;
        let parts = [
            &loop_.accu_init,
            &loop_.loop_cond,
            &loop_.loop_step,
            &loop_.result,
        ];
        let body = parts.into_iter().try_fold(false, |data, part| {
            Ok::<_, String>(data | self.walk(part, depth)?)
        });
        self.loops -= 1;
        self.names.truncate(outer_names);
        self.item = outer_item;
        body.map(|_| data)
    }
}

fn literal_is_exact(literal: &LiteralValue) -> Result<(), String> {
    let LiteralValue::Double(double) = literal else {
        return Ok(());
    };
    let size = double.inner().abs();
    if !size.is_finite() || (DOUBLE_SKIPS..=DOUBLE_OUTGROWS).contains(&size) {
        return Err("the condition has a decimal number too large to compare exactly".to_owned());
    }
    Ok(())
}
