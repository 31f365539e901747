//! Scripts in JSON, for the control endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Script;
use crate::Service;
use crate::fault::text_or_number;
use crate::topology::NodeId;

/// A script as JSON spells it.
///
/// ```
/// use steadfast_cluster::script::{Script, ScriptSpec};
///
/// let spec: ScriptSpec = serde_json::from_str(
///     r#"{"service": "views", "matching": "_view/by_name", "status": 503, "times": 1,
///         "headers": {"Retry-After": "2"}, "body": {"error": "busy"}}"#,
/// )?;
/// let script = Script::try_from(spec)?;
/// assert_eq!(script.to_string(), "any views request with \"_view/by_name\", 1 times: answer 503");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// The service.
    pub service: Service,
    /// Text that is in the path, the statement or the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<String>,
    /// The number of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// How many requests to let pass first.
    #[serde(default)]
    pub skip: u64,
    /// How many requests to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The HTTP status, 200 if it is left out.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "status"
    )]
    pub status: Option<u16>,
    /// Headers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: text as it is, anything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Rows instead of a body, in the service's own envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<Value>>,
    /// An error after the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Whether the connection ends after the rows, without the rest.
    #[serde(default)]
    pub cut: bool,
    /// A pause before each row.
    #[serde(default)]
    pub pause_ms: u64,
}

/// The reason why a description is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptSpecError(String);

impl TryFrom<ScriptSpec> for Script {
    type Error = ScriptSpecError;

    fn try_from(spec: ScriptSpec) -> Result<Self, ScriptSpecError> {
        let status = spec.status.unwrap_or(200);
        if !(200..=999).contains(&status) {
            return Err(error(format!("{status} is not the status of a response")));
        }
        if spec.service == Service::KeyValue {
            return Err(error("key-value has no scripts: use a fault"));
        }
        if spec.error.is_some() && spec.cut {
            return Err(error("give error or cut, not both"));
        }
        let streams = spec.rows.is_some() || spec.error.is_some() || spec.cut;
        let mut script = match (spec.body, streams) {
            (Some(_), true) => {
                return Err(error("give a body, or rows with error or cut, not both"));
            }
            (Some(Value::String(text)), false) => Self::on(spec.service).answer(status, text),
            (Some(body), false) => Self::on(spec.service).answer(status, body.to_string()),
            (None, false) => Self::on(spec.service).answer(status, ""),
            (None, true) => {
                let rows = spec.rows.unwrap_or_default();
                let rows = Self::on(spec.service).answer(status, "").rows(rows);
                let rows = rows.pause(Duration::from_millis(spec.pause_ms));
                match (spec.error, spec.cut) {
                    (Some(error), _) => rows.then_error(error),
                    (None, true) => rows.then_cut(),
                    (None, false) => rows,
                }
            }
        };
        for (name, value) in &spec.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
            let (Some(name), Ok(value)) = (parsed, HeaderValue::from_str(value)) else {
                return Err(error(format!("{name:?}: {value:?} is not a header")));
            };
            script = script.header(name, value);
        }
        if let Some(text) = spec.matching {
            script = script.matching(text);
        }
        if let Some(node) = spec.node {
            let node = NodeId::checked(node);
            script = script.node(node.ok_or_else(|| error("there is no such node"))?);
        }
        if let Some(times) = spec.times {
            script = script.times(times);
        }
        Ok(script.skip(spec.skip))
    }
}

/// Reads a status, also as text, as a fault has it.
fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let text = text_or_number(deserializer)?;
    let number = |text: String| {
        let invalid = || format!("status is {text:?}, and takes an HTTP status such as 503");
        text.parse()
            .map_err(|_| serde::de::Error::custom(invalid()))
    };
    text.map(number).transpose()
}

fn error(text: impl Into<String>) -> ScriptSpecError {
    ScriptSpecError(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<String, String> {
        let spec: ScriptSpec = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let script = Script::try_from(spec).map_err(|error| error.to_string())?;
        Ok(script.to_string())
    }

    #[test]
    fn descriptions_are_read_or_rejected_with_a_sentence() {
        let rows = r#"
            {"service":"query"} => any query request: answer 200
            {"service":"query","status":"503"} => any query request: answer 503
            {"service":"query","node":1,"skip":2,"times":3,"status":503,"body":"x"} => any query request on node 1, after the first 2, 3 times: answer 503
            {"service":"analytics","rows":[1],"error":{"code":23000}} => any analytics request: answer 200 with 1 rows, then an error
            {"service":"search","cut":true,"pause_ms":1} => any search request: answer 200 with 0 rows, then cut
            {} => missing field `service`
            {"service":"kv"} => use a fault
            {"service":"query","status":100} => 100 is not the status
            {"service":"query","status":"busy"} => status is "busy", and takes an HTTP status
            {"service":"query","body":1,"rows":[]} => not both
            {"service":"query","error":1,"cut":true} => not both
            {"service":"query","headers":{"a b":"c"}} => is not a header
            {"service":"query","node":128} => no such node
            {"service":"query","nope":1} => nope
        "#;
        for row in rows.lines().filter(|row| row.contains("=>")) {
            let (json, part) = row.split_once(" => ").unwrap();
            match parse(json) {
                Ok(script) => assert_eq!(script, part, "{json}"),
                Err(error) => assert!(error.contains(part), "{json}: {error}"),
            }
        }
    }
}
