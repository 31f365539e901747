//! JSON form of a fault, for the control endpoint and the command line.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::rule::{Effect, Fault, FaultAnswer, FaultCondition, Garble};
use super::{validate, vocabulary};
use crate::Service;
use crate::topology::NodeId;

/// The JSON form of a [`Fault`]. A field that is missing or null matches everything.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FaultSpec {
    /// The number of a node.
    pub(super) node: Option<u64>,
    /// The name of a service. An opcode, and an answer without a service, are about `kv`.
    pub(super) service: Option<Service>,
    /// A command by name (`SET`) or number (`0x01`).
    pub(super) opcode: Option<String>,
    /// A key, or the path of an HTTP request.
    pub(super) key: Option<String>,
    /// A prefix of keys or paths.
    pub(super) key_prefix: Option<String>,
    /// A bucket.
    pub(super) bucket: Option<String>,
    /// The number of matching requests to spare first.
    pub(super) skip: Option<u64>,
    /// The number of requests to hit.
    pub(super) times: Option<u64>,
    /// The probability of a hit, between 0 and 1.
    pub(super) probability: Option<f64>,
    /// The seed of the random choices.
    pub(super) seed: Option<u64>,
    /// The name of the effect.
    pub(super) effect: String,
    /// The length of a delay.
    pub(super) delay_ms: Option<u64>,
    /// The status of an answer, by name (`ETMPFAIL`) or number (`0x86`; `503` for HTTP).
    #[serde(deserialize_with = "text_or_number")]
    pub(super) status: Option<String>,
    /// The body of an answer.
    pub(super) body: Option<String>,
    /// The context of an extended error body, instead of a body.
    pub(super) context: Option<String>,
    /// The part to damage: magic, opaque, length, body; for HTTP the body.
    pub(super) garble: Option<String>,
}

/// The reason why a description is not a valid fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidFault(String);

/// A fault as JSON, before its fields are read.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct FaultJson(Value);

impl TryFrom<FaultJson> for Fault {
    type Error = InvalidFault;

    /// Reads a fault, or names the field that is wrong and what it takes.
    fn try_from(FaultJson(value): FaultJson) -> Result<Self, InvalidFault> {
        for (name, value) in value.as_object().into_iter().flatten() {
            let takes = vocabulary::check_field(name).map_err(error)?;
            let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
            if FaultSpec::deserialize(&alone).is_err() {
                return Err(error(format!("{name} is {value}, and takes {takes}")));
            }
        }
        FaultSpec::deserialize(&value)
            .map_err(|invalid| error(invalid.to_string()))?
            .try_into()
    }
}

impl TryFrom<FaultSpec> for Fault {
    type Error = InvalidFault;

    fn try_from(spec: FaultSpec) -> Result<Self, InvalidFault> {
        validate::check(&spec)?;
        let effect = effect(&spec)?;
        let mut condition = FaultCondition {
            service: spec.service,
            bucket: spec.bucket,
            ..FaultCondition::default()
        };
        if let Some(node) = spec.node {
            condition.node = Some(
                NodeId::checked(node).ok_or_else(|| error(format!("there is no node {node}")))?,
            );
        }
        if let Some(opcode) = &spec.opcode {
            condition.opcode = Some(vocabulary::parse_opcode(opcode).map_err(error)?);
        }
        // An answer without a service has a status of key-value.
        if spec.opcode.is_some() || matches!(effect, Effect::Answer(_)) {
            condition.service.get_or_insert(Service::KeyValue);
        }
        condition = match (spec.key, spec.key_prefix) {
            (Some(_), Some(_)) => return Err(error("give key or key_prefix, not both")),
            (Some(key), None) => condition.key(key),
            (None, Some(prefix)) => condition.key_prefix(prefix),
            (None, None) => condition,
        };
        condition.skip = spec.skip.unwrap_or(0);
        condition.times = spec.times;
        if let Some(probability) = spec.probability {
            if !(0.0..=1.0).contains(&probability) {
                return Err(error(format!(
                    "a probability is between 0 and 1, not {probability}"
                )));
            }
            condition.probability = Some(probability);
        }
        condition.seed = spec.seed;
        Ok(condition.then(effect))
    }
}

/// Reads a status: for an HTTP service a number, for key-value a name.
pub(crate) fn text_or_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) if number.is_u64() => Ok(Some(number.to_string())),
        Some(_) => Err(serde::de::Error::custom("neither text nor a number")),
    }
}

fn effect(spec: &FaultSpec) -> Result<Effect, InvalidFault> {
    let delay = || {
        spec.delay_ms
            .map(Duration::from_millis)
            .ok_or_else(|| error(format!("{} needs delay_ms", spec.effect)))
    };
    Ok(match spec.effect.as_str() {
        "pass" => Effect::Pass,
        "delay" => Effect::Delay(delay()?),
        "delay-answer" => Effect::DelayAnswer(delay()?),
        "answer" => Effect::Answer(answer(spec)?),
        "hold" => Effect::Hold,
        "cut-before-reading" => Effect::CutBeforeReading,
        "cut-before-applying" => Effect::CutBeforeApplying,
        "cut-after-applying" => Effect::CutAfterApplying,
        "cut-mid-response" => Effect::CutMidResponse,
        "garble" => Effect::Garble(match spec.garble.as_deref() {
            None if http_service(spec.service).is_some() => Garble::Body,
            None | Some("magic") => Garble::Magic,
            Some("opaque") => Garble::Opaque,
            Some("length") => Garble::Length,
            Some("body") => Garble::Body,
            Some(other) => {
                return Err(error(format!(
                    "garble is magic, opaque, length or body, not {other:?}"
                )));
            }
        }),
        "silent" => Effect::Silent,
        "mute" => Effect::Mute,
        "" => return Err(error("a fault needs an effect")),
        other => return Err(error(vocabulary::unknown_effect(other))),
    })
}

fn answer(spec: &FaultSpec) -> Result<FaultAnswer, InvalidFault> {
    let status = spec
        .status
        .as_deref()
        .ok_or_else(|| error("answer needs a status"))?;
    let body = match (&spec.body, &spec.context) {
        (Some(_), Some(_)) => return Err(error("give body or context, not both")),
        (Some(body), None) => Some(body.clone()),
        (None, Some(context)) => {
            Some(serde_json::json!({"error": {"context": context}}).to_string())
        }
        (None, None) => None,
    };
    let json = body
        .as_ref()
        .is_some_and(|body| crate::store::document::is_json(body.as_bytes()));
    let status = match http_service(spec.service) {
        Some(service) => validate::http_status(status, service)?,
        None => vocabulary::parse_status(status).map_err(error)?,
    };
    Ok(FaultAnswer {
        status,
        body: body.map(Bytes::from),
        json,
    })
}

/// Returns the service if it speaks HTTP.
fn http_service(service: Option<Service>) -> Option<Service> {
    service.filter(|service| *service != Service::KeyValue)
}

pub(super) fn error(text: impl Into<String>) -> InvalidFault {
    InvalidFault(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Fault, String> {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    #[test]
    fn every_effect_has_its_name_in_json() {
        for [name, ..] in vocabulary::effects() {
            let fields = match &*name {
                "delay" | "delay-answer" => r#", "delay_ms": 5"#,
                "answer" => r#", "status": "ETMPFAIL""#,
                _ => "",
            };
            let fault = parse(&format!(r#"{{"effect": "{name}"{fields}}}"#)).unwrap();
            let variant = format!("{:?}", fault.effect);
            let variant = variant.split('(').next().unwrap_or_default().to_owned();
            assert_eq!(variant.to_ascii_lowercase(), name.replace('-', ""));
        }
        let delay = parse(r#"{"effect":"delay-answer","delay_ms":5}"#)
            .unwrap()
            .effect;
        assert_eq!(delay, Effect::DelayAnswer(Duration::from_millis(5)));
        let garbled = parse(r#"{"effect":"garble","garble":"opaque"}"#)
            .unwrap()
            .effect;
        assert_eq!(garbled, Effect::Garble(Garble::Opaque));
    }

    #[test]
    fn an_invalid_fault_is_rejected_with_an_explanation() {
        let invalid = r#"
            {} => a fault needs an effect
            {"effect":"cut-after-appling"} => "cut-after-appling" is not an effect; did you mean cut-after-applying?
            {"effect":"hold","node":"one"} => node is "one", and takes a number
            {"effect":"answer","status":[503],"service":"query"} => status is [503], and takes text or a number: for kv a name (ETMPFAIL) or a number (0x86), for other services an HTTP status (503)
            {"effect":"hold","sevrice":"kv"} => "sevrice" is not a field of a fault; did you mean service?
            {"effect":"delay"} => delay needs delay_ms
            {"effect":"answer"} => answer needs a status
            {"effect":"answer","status":"x"} => "x" is not a status: give a name such as KEY_ENOENT, or a number
            {"effect":"hold","opcode":"FROBNICATE"} => "FROBNICATE" is not an opcode: give a name such as SET, or a number
            {"effect":"hold","node":128} => there is no node 128
            {"effect":"hold","probability":1.5} => a probability is between 0 and 1, not 1.5
            {"effect":"hold","delay_ms":5} => hold has no delay_ms
            {"effect":"answer","status":"EBUSY","service":"views"} => views answers with an HTTP status, 200 to 599; not "EBUSY"
            {"effect":"hold","opcode":"SET","service":"query"} => opcodes are for kv; query speaks HTTP, and has paths (key)
            {"effect":"hold","key":"a","key_prefix":"b"} => give key or key_prefix, not both
        "#;
        for row in invalid.lines().filter(|row| row.contains("=>")) {
            let (json, sentence) = row.split_once(" => ").unwrap();
            assert_eq!(parse(json).unwrap_err(), sentence, "{json}");
        }
        let numbered = r#"{"effect":"answer","status":503,"service":"query"}"#;
        let written = r#"{"effect":"answer","status":"503","service":"query"}"#;
        assert_eq!(parse(numbered), parse(written));
    }
}
