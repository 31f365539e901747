//! Options of a query or analytics request, from a JSON body or a form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::HttpRequest;
use super::super::language::Parameters;

/// A request's options: the members of its JSON body, or its form.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct RequestOptions {
    members: Map<String, Value>,
}

impl RequestOptions {
    /// Reads the options; the sentence says what is wrong with them.
    pub(in crate::http) fn read(request: &HttpRequest) -> Result<Self, String> {
        let mut members = Map::new();
        for (name, value) in &request.parameters {
            // Forms carry JSON where a value is not plain text.
            let value = match name.as_str() {
                "statement" | "prepared" | "encoded_plan" | "client_context_id"
                | "query_context" => Value::String(value.clone()),
                _ => serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone())),
            };
            members.insert(name.clone(), value);
        }
        let is_form = request
            .headers
            .get(hyper::header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        if !is_form && !request.body.is_empty() {
            let body: Value = serde_json::from_slice(&request.body)
                .map_err(|error| format!("unable to parse JSON: {error}"))?;
            match body {
                Value::Object(body) => members.extend(body),
                _ => return Err("unable to parse JSON: the body is not an object".into()),
            }
        }
        Ok(Self { members })
    }

    /// An option that is text.
    pub(in crate::http) fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    /// An option of any kind; null if it is not there.
    pub(in crate::http) fn value(&self, name: &str) -> &Value {
        self.members.get(name).unwrap_or(&Value::Null)
    }

    /// An option that is on or off, and off if it is not there.
    pub(in crate::http) fn flag(&self, name: &str) -> bool {
        match self.members.get(name) {
            Some(Value::Bool(on)) => *on,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// The arguments of the statement.
    pub(in crate::http) fn parameters(&self) -> Result<Parameters, String> {
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
        Ok(Parameters { positional, named })
    }
}
