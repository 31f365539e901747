//! Scalar functions.

use serde_json::{Value, json};

use super::LanguageError;

type Arguments<'a> = &'a [Option<Value>];

/// A scalar function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    name: &'static str,
    /// The least and the most arguments.
    arguments: (usize, usize),
    call: fn(Arguments<'_>) -> Option<Value>,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const fn function(
    name: &'static str,
    arguments: (usize, usize),
    call: fn(Arguments<'_>) -> Option<Value>,
) -> Function {
    Function {
        name,
        arguments,
        call,
    }
}

const FUNCTIONS: &[Function] = &[
    function("UPPER", (1, 1), |a| {
        text(a, |text| text.to_uppercase().into())
    }),
    function("LOWER", (1, 1), |a| {
        text(a, |text| text.to_lowercase().into())
    }),
    function("TRIM", (1, 1), |a| text(a, |text| text.trim().into())),
    function("LENGTH", (1, 1), |a| text(a, |text| text.len().into())),
    function("CONTAINS", (2, 2), |a| {
        let part = a[1].clone()?;
        text(a, |text| match part.as_str() {
            Some(part) => text.contains(part).into(),
            None => Value::Null,
        })
    }),
    function("ABS", (1, 1), |a| number(a, f64::abs)),
    function("CEIL", (1, 1), |a| number(a, f64::ceil)),
    function("FLOOR", (1, 1), |a| number(a, f64::floor)),
    function("ROUND", (1, 1), |a| number(a, f64::round)),
    function("TOSTRING", (1, 1), to_string),
    function("TO_STRING", (1, 1), to_string),
    function("TONUMBER", (1, 1), to_number),
    function("TO_NUMBER", (1, 1), to_number),
    function("ARRAY_LENGTH", (1, 1), |a| {
        Some(match a[0].as_ref()? {
            Value::Array(items) => items.len().into(),
            _ => Value::Null,
        })
    }),
    function("ARRAY_CONTAINS", (2, 2), |a| {
        let wanted = a[1].as_ref()?;
        Some(match a[0].as_ref()? {
            Value::Array(items) => items.contains(wanted).into(),
            _ => Value::Null,
        })
    }),
    function("IFMISSING", (1, usize::MAX), |a| {
        a.iter().flatten().next().cloned()
    }),
    function("IFNULL", (1, usize::MAX), |a| {
        let found = a.iter().find(|value| **value != Some(Value::Null));
        found.cloned().unwrap_or(Some(Value::Null))
    }),
    function("IFMISSINGORNULL", (1, usize::MAX), first_known),
    function("COALESCE", (1, usize::MAX), first_known),
    function("NVL", (2, 2), first_known),
    function("TYPE", (1, 1), |a| {
        Some(json!(match &a[0] {
            None => "missing",
            Some(Value::Null) => "null",
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(_)) => "number",
            Some(Value::String(_)) => "string",
            Some(Value::Array(_)) => "array",
            Some(Value::Object(_)) => "object",
        }))
    }),
];

/// A random number as a UUID is written.
pub(crate) fn uuid(random: u128) -> String {
    let id = format!("{random:032x}");
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    parts.join("-")
}

impl Function {
    /// The function of a name in capital letters.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        FUNCTIONS
            .iter()
            .find(|function| function.name == name)
            .copied()
    }

    /// Rejects a wrong number of arguments.
    pub(crate) fn check(&self, arguments: usize) -> Result<(), LanguageError> {
        let (least, most) = self.arguments;
        if (least..=most).contains(&arguments) {
            return Ok(());
        }
        Err(LanguageError::Syntax(format!(
            "Number of arguments to function {} must be {least}.",
            self.name
        )))
    }

    /// Calls it. Missing arguments are `None`.
    pub(crate) fn call(&self, arguments: &[Option<Value>]) -> Option<Value> {
        (self.call)(arguments)
    }
}

fn text(arguments: Arguments<'_>, of: impl FnOnce(&str) -> Value) -> Option<Value> {
    Some(match arguments[0].as_ref()? {
        Value::String(text) => of(text),
        _ => Value::Null,
    })
}

fn number(arguments: Arguments<'_>, of: fn(f64) -> f64) -> Option<Value> {
    let result = arguments[0].as_ref()?.as_f64().map(of);
    Some(result.map_or(Value::Null, number_value))
}

fn to_string(arguments: Arguments<'_>) -> Option<Value> {
    Some(match arguments[0].as_ref()? {
        Value::String(text) => text.as_str().into(),
        value @ (Value::Number(_) | Value::Bool(_)) => value.to_string().into(),
        _ => Value::Null,
    })
}

fn to_number(arguments: Arguments<'_>) -> Option<Value> {
    Some(match arguments[0].as_ref()? {
        Value::Number(number) => Value::Number(number.clone()),
        Value::Bool(truth) => i64::from(*truth).into(),
        Value::String(text) => text.trim().parse().map_or(Value::Null, number_value),
        _ => Value::Null,
    })
}

fn first_known(arguments: Arguments<'_>) -> Option<Value> {
    let known = arguments.iter().flatten().find(|value| !value.is_null());
    Some(known.cloned().unwrap_or(Value::Null))
}

/// A number as JSON, whole where it can be.
pub(crate) fn number_value(number: f64) -> Value {
    // Every whole number below 2^53 is exact.
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        return (number as i64).into();
    }
    serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
}
