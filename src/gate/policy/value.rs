//! JSON as conditions see it, so that comparing loses nothing.
//!
//! A number is an `int` where it is whole and fits in 64 bits, else a `double` where a double holds exactly its decimal
//! value. Any other number is equal only to itself, and ordering it or calculating with it is an error: the condition
//! cannot be evaluated, which never weakens a verdict. So `50000.000000000000000001` cannot pass as `50000`.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Value,
    objects::{Key, Map, Opaque},
};

use crate::gate::{json::Json, number::Number};

/// What a value costs besides its text.
const NODE: usize = 16;

/// 2^63. An `int` next to it compares as if it were equal, so this one double is not used.
const JUST_BEYOND_INT: f64 = 9_223_372_036_854_775_808.0;

/// A number that neither an `int` nor a `double` holds.
#[derive(Debug, PartialEq, Eq)]
struct ExactNumber(Number);

impl Opaque for ExactNumber {
    fn runtime_type_name(&self) -> &'static str {
        "gatepost.number"
    }
}

/// Converts a value as long as the budget lasts.
pub(super) fn convert(json: &Json, budget: &mut usize) -> Option<Value> {
    pay(budget, NODE)?;
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => convert_number(number),
        Json::String(text) => {
            pay(budget, text.len())?;
            Value::String(Arc::new(text.clone()))
        }
        Json::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| convert(item, budget)).collect();
            Value::List(Arc::new(items?))
        }
        Json::Object(object) => {
            let members = object.iter().map(|(key, value)| {
                pay(budget, key.len())?;
                Some((Key::String(Arc::new(key.to_owned())), convert(value, budget)?))
            });
            let members: Option<HashMap<_, _>> = members.collect();
            Value::Map(Map {
                map: Arc::new(members?),
            })
        }
    })
}

fn convert_number(number: &Number) -> Value {
    if let Some(whole) = number.as_i64() {
        return Value::Int(whole);
    }
    match number.as_held_f64() {
        Some(double) if double.abs() < JUST_BEYOND_INT || double.abs() > JUST_BEYOND_INT => {
            Value::Float(double)
        }
        _ => Value::Opaque(Arc::new(ExactNumber(number.clone()))),
    }
}

fn pay(budget: &mut usize, price: usize) -> Option<()> {
    *budget = budget.checked_sub(price)?;
    Some(())
}
