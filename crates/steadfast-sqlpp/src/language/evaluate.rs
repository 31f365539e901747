//! Evaluates expressions.
//!
//! `None` is MISSING, the value of a field that does not exist. It is not null, and
//! objects leave it out. A comparison with null or missing is neither true nor false,
//! so WHERE drops the row.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::LanguageError;
use super::expression::{Aggregate, AggregateKind, Expression, IsTest, Operator};
use super::function::{number_value, uuid};
use super::like::like;
use super::statement::{Projection, Term};

/// A source of random numbers.
pub type Random = fn() -> u128;

/// The arguments of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Parameters {
    pub random: Random,
    pub positional: Vec<Value>,
    pub named: BTreeMap<String, Value>,
}

/// A document as a statement sees it.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The key.
    pub key: String,
    /// The CAS.
    pub cas: u64,
    /// The flags.
    pub flags: u32,
    /// When it expires, in seconds since the Unix epoch; zero is never.
    pub expiry: u32,
    /// The content.
    pub value: Value,
}

/// The values that an expression can refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvalScope<'a> {
    pub parameters: &'a Parameters,
    /// The document, and the name it goes by.
    pub row: Option<(&'a str, &'a Row)>,
    /// The rows that aggregate functions go over, where there are such.
    pub group: Option<&'a [Row]>,
    /// The name of the documents in a group.
    pub alias: &'a str,
}

type Evaluated = Result<Option<Value>, LanguageError>;

impl EvalScope<'_> {
    /// Builds a row of the result.
    pub(crate) fn project(&self, projection: &Projection) -> Result<Value, LanguageError> {
        let terms = match projection {
            Projection::Raw(value) => return Ok(self.evaluate(value)?.unwrap_or(Value::Null)),
            Projection::Object(terms) => terms,
        };
        let mut object = Map::new();
        for term in terms {
            match term {
                Term::Everything => {
                    let (alias, row) = self.row.ok_or_else(|| {
                        LanguageError::Syntax("Ambiguous reference to field '*'.".into())
                    })?;
                    object.insert(alias.to_owned(), row.value.clone());
                }
                Term::FieldsOf(value) => {
                    if let Some(Value::Object(fields)) = self.evaluate(value)? {
                        object.extend(fields);
                    }
                }
                Term::Value(value, name) => {
                    if let Some(value) = self.evaluate(value)? {
                        object.insert(name.clone(), value);
                    }
                }
            }
        }
        Ok(Value::Object(object))
    }

    /// Returns whether a filter lets the row through.
    pub(crate) fn passes(&self, filter: Option<&Expression>) -> Result<bool, LanguageError> {
        match filter {
            None => Ok(true),
            Some(filter) => Ok(self.evaluate(filter)? == Some(Value::Bool(true))),
        }
    }

    /// The value of an expression.
    pub(crate) fn evaluate(&self, expression: &Expression) -> Evaluated {
        Ok(match expression {
            Expression::Literal(value) => Some(value.clone()),
            Expression::Missing => None,
            Expression::Positional(number) => Some(self.positional(*number)?),
            Expression::Named(name) => Some(self.named(name)?),
            Expression::Name(name) => self.name(name)?,
            Expression::Field(of, name) => field(self.evaluate(of)?, name),
            Expression::Element(of, index) => element(self.evaluate(of)?, self.evaluate(index)?),
            Expression::Array(items) => {
                let items = items.iter().map(|item| {
                    self.evaluate(item)
                        .map(|value| value.unwrap_or(Value::Null))
                });
                Some(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Expression::Object(fields) => {
                let mut object = Map::new();
                for (name, value) in fields {
                    if let Some(value) = self.evaluate(value)? {
                        object.insert(name.clone(), value);
                    }
                }
                Some(Value::Object(object))
            }
            Expression::Not(of) => not(self.evaluate(of)?),
            Expression::Negative(of) => {
                arithmetic(Operator::Subtract, json!(0), self.evaluate(of)?)
            }
            Expression::Binary(operator, left, right) => {
                binary(*operator, self.evaluate(left)?, self.evaluate(right)?)
            }
            Expression::Is(of, state, negated) => {
                let value = self.evaluate(of)?;
                let holds = match state {
                    IsTest::Null => value == Some(Value::Null),
                    IsTest::Missing => value.is_none(),
                    IsTest::Valued => value.is_some_and(|value| !value.is_null()),
                };
                Some(Value::Bool(holds != *negated))
            }
            Expression::Uuid => Some(uuid((self.parameters.random)()).into()),
            Expression::Meta => {
                let (_, row) = self
                    .row
                    .ok_or_else(|| LanguageError::Syntax("META() needs a keyspace.".into()))?;
                Some(json!({
                    "id": row.key,
                    "cas": row.cas,
                    "flags": row.flags,
                    "expiration": row.expiry,
                    "type": "json",
                }))
            }
            Expression::Like(text, pattern) => like(self.evaluate(text)?, self.evaluate(pattern)?),
            Expression::Aggregate(aggregate, of) => self.aggregate(*aggregate, of.as_deref())?,
            Expression::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| self.evaluate(argument));
                function.call(&arguments.collect::<Result<Vec<_>, _>>()?)
            }
        })
    }

    fn aggregate(&self, aggregate: Aggregate, of: Option<&Expression>) -> Evaluated {
        let Some(rows) = self.group else {
            return Err(LanguageError::Syntax(
                "Aggregate functions are for results, HAVING and ORDER BY.".into(),
            ));
        };
        let Some(of) = of else {
            return Ok(Some(rows.len().into()));
        };
        let mut values = Vec::new();
        for row in rows {
            let scope = EvalScope {
                row: (!self.alias.is_empty()).then_some((self.alias, row)),
                group: None,
                ..*self
            };
            // Null and missing do not take part.
            values.extend(scope.evaluate(of)?.filter(|value| !value.is_null()));
        }
        if aggregate.distinct {
            let mut seen = Vec::new();
            values.retain(|value| {
                let is_new = !seen.contains(value);
                if is_new {
                    seen.push(value.clone());
                }
                is_new
            });
        }
        let numbers = || values.iter().filter_map(Value::as_f64);
        let by_order = |a: &&Value, b: &&Value| collate(Some(a), Some(b));
        Ok(Some(match aggregate.kind {
            AggregateKind::Count => values.len().into(),
            AggregateKind::Sum if numbers().next().is_none() => Value::Null,
            AggregateKind::Sum => number_value(numbers().sum()),
            AggregateKind::Average if numbers().next().is_none() => Value::Null,
            AggregateKind::Average => {
                number_value(numbers().sum::<f64>() / numbers().count() as f64)
            }
            AggregateKind::Least => values.iter().min_by(by_order).cloned().unwrap_or_default(),
            AggregateKind::Greatest => values.iter().max_by(by_order).cloned().unwrap_or_default(),
            AggregateKind::Array => Value::Array(values),
        }))
    }

    fn positional(&self, number: usize) -> Result<Value, LanguageError> {
        let at = number.checked_sub(1);
        at.and_then(|at| self.parameters.positional.get(at))
            .cloned()
            .ok_or_else(|| {
                LanguageError::Evaluation(format!("No value for positional parameter ${number}."))
            })
    }

    fn named(&self, name: &str) -> Result<Value, LanguageError> {
        self.parameters.named.get(name).cloned().ok_or_else(|| {
            LanguageError::Evaluation(format!("No value for named parameter ${name}."))
        })
    }

    fn name(&self, name: &str) -> Evaluated {
        match self.row {
            Some((alias, row)) if alias == name => Ok(Some(row.value.clone())),
            Some((_, row)) => Ok(row.value.get(name).cloned()),
            // A group without rows has no document.
            None if self.group.is_some() => Ok(None),
            None => Err(LanguageError::Syntax(format!(
                "Ambiguous reference to field '{name}'."
            ))),
        }
    }
}

fn field(of: Option<Value>, name: &str) -> Option<Value> {
    match of {
        Some(Value::Object(mut object)) => object.remove(name),
        _ => None,
    }
}

fn element(of: Option<Value>, index: Option<Value>) -> Option<Value> {
    match (of?, index?) {
        (Value::Array(mut array), Value::Number(index)) => {
            let length = i64::try_from(array.len()).ok()?;
            let index = index.as_i64()?;
            let index = if index < 0 {
                length.checked_add(index)?
            } else {
                index
            };
            let index = usize::try_from(index)
                .ok()
                .filter(|index| *index < array.len())?;
            Some(array.swap_remove(index))
        }
        (Value::Object(mut object), Value::String(name)) => object.remove(&name),
        _ => None,
    }
}

fn not(value: Option<Value>) -> Option<Value> {
    match value? {
        Value::Bool(value) => Some(Value::Bool(!value)),
        _ => Some(Value::Null),
    }
}

fn binary(operator: Operator, left: Option<Value>, right: Option<Value>) -> Option<Value> {
    match operator {
        Operator::And | Operator::Or => return Some(logic(operator, &left, &right)),
        _ => {}
    }
    let (left, right) = (left?, right?);
    if left.is_null() || right.is_null() {
        return Some(Value::Null);
    }
    let ordered = || compare(&left, &right);
    Some(Value::Bool(match operator {
        Operator::Equal => is_equal(&left, &right),
        Operator::Unequal => !is_equal(&left, &right),
        Operator::Less => ordered()? == Ordering::Less,
        Operator::LessOrEqual => ordered()? != Ordering::Greater,
        Operator::Greater => ordered()? == Ordering::Greater,
        Operator::GreaterOrEqual => ordered()? != Ordering::Less,
        Operator::In => match &right {
            Value::Array(items) => items.iter().any(|item| is_equal(&left, item)),
            _ => return Some(Value::Null),
        },
        Operator::Concatenate => {
            return match (left, right) {
                (Value::String(left), Value::String(right)) => Some((left + &right).into()),
                _ => Some(Value::Null),
            };
        }
        Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::Remainder => {
            return arithmetic(operator, left, Some(right));
        }
        Operator::And | Operator::Or => unreachable!("logic was done above"),
    }))
}

/// False decides an AND, true an OR, whatever the other side is.
fn logic(operator: Operator, left: &Option<Value>, right: &Option<Value>) -> Value {
    let deciding = Value::Bool(operator == Operator::Or);
    let sides = [left.as_ref(), right.as_ref()];
    if sides.contains(&Some(&deciding)) {
        deciding
    } else if sides
        .iter()
        .all(|side| matches!(side, Some(Value::Bool(_))))
    {
        Value::Bool(operator != Operator::Or)
    } else {
        Value::Null
    }
}

fn arithmetic(operator: Operator, left: Value, right: Option<Value>) -> Option<Value> {
    let right = right?;
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        let exact = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Remainder => left.checked_rem(right),
            _ => left
                .checked_rem(right)
                .filter(|rest| *rest == 0)
                .and_then(|_| left.checked_div(right)),
        };
        if let Some(exact) = exact {
            return Some(exact.into());
        }
    }
    let (Some(left), Some(right)) = (left.as_f64(), right.as_f64()) else {
        return Some(Value::Null);
    };
    let result = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Remainder => left % right,
        _ => left / right,
    };
    // JSON has neither infinity nor NaN: they become null.
    Some(serde_json::Number::from_f64(result).map_or(Value::Null, Value::Number))
}

fn is_equal(left: &Value, right: &Value) -> bool {
    left == right || compare(left, right) == Some(Ordering::Equal)
}

/// The order of two numbers, strings or truth values; other pairs have none here.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The order of all values: missing, null, truth values, numbers, strings, arrays, objects.
pub(crate) fn collate(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    let rank = |value: Option<&Value>| match value {
        None => 0,
        Some(Value::Null) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Number(_)) => 3,
        Some(Value::String(_)) => 4,
        Some(Value::Array(_)) => 5,
        Some(Value::Object(_)) => 6,
    };
    rank(left)
        .cmp(&rank(right))
        .then_with(|| match (left, right) {
            (Some(Value::Array(left)), Some(Value::Array(right))) => {
                let items = left.iter().zip(right);
                let unequal = items
                    .map(|(a, b)| collate(Some(a), Some(b)))
                    .find(|order| order.is_ne());
                unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
            }
            (Some(left @ Value::Object(_)), Some(right)) => {
                left.to_string().cmp(&right.to_string())
            }
            (Some(left), Some(right)) => compare(left, right).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        })
}
