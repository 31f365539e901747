//! Options of a query or analytics request.

mod check;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::language::{Parameters, Random};

pub(crate) use check::duration;

/// A request's options, by name: the members of its JSON body, or its form.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    members: Map<String, Value>,
}

impl From<Map<String, Value>> for RequestOptions {
    fn from(members: Map<String, Value>) -> Self {
        Self { members }
    }
}

impl RequestOptions {
    /// An option that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    /// An option of any kind; null if it is not there.
    pub fn value(&self, name: &str) -> &Value {
        self.members.get(name).unwrap_or(&Value::Null)
    }

    /// An option that is on or off, and off if it is not there.
    pub fn flag(&self, name: &str) -> bool {
        match self.members.get(name) {
            Some(Value::Bool(on)) => *on,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// Returns whether an option that is usually on was turned off.
    pub fn is_off(&self, name: &str) -> bool {
        match self.members.get(name) {
            Some(Value::Bool(on)) => !on,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("false"),
            _ => false,
        }
    }

    /// The time that the request may take, if it is limited.
    pub fn timeout(&self) -> Option<Duration> {
        let timeout = duration(self.text("timeout")?);
        timeout.filter(|timeout| !timeout.is_zero())
    }

    /// The arguments of the statement.
    pub(crate) fn parameters(&self, random: Random) -> Result<Parameters, String> {
        let positional = match self.members.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values.clone(),
            Some(_) => return Err("args is not an array".into()),
        };
        let named: BTreeMap<String, Value> = self
            .members
            .iter()
            .filter_map(|(name, value)| {
                let name = name.strip_prefix(['$', '@'])?;
                Some((name.to_owned(), value.clone()))
            })
            .collect();
        Ok(Parameters {
            random,
            positional,
            named,
        })
    }
}
