//! Faults in JSON, for the control endpoint and the command line.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use steadfast_wire::{Opcode, Status};

use super::rule::{Answer, Fault, Garble, Verdict, When};
use super::sense;
use crate::service::Service;
use crate::topology::NodeId;

/// A fault as JSON spells it. Parts that are left out match everything.
///
/// ```
/// use steadfast_cluster::fault::{Fault, FaultSpec};
///
/// let spec: FaultSpec = serde_json::from_str(
///     r#"{"opcode": "SET", "key_prefix": "u:", "times": 2, "verdict": "answer", "status": "0x86"}"#,
/// )?;
/// let fault = Fault::try_from(spec)?;
/// assert_eq!(fault.to_string(), "SET of keys from \"u:\", 2 times: answer ETMPFAIL (0x86)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSpec {
    /// The number of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// The name of a service. An opcode, and an answer without a service, are about `kv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// A command by name (`SET`) or number (`0x01`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    /// A key, or the path of an HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How keys or paths start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// A bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// How many requests to let pass first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<u64>,
    /// How many requests to hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The chance of each, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The seed of the chances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What happens: pass, delay, delay-answer, answer, hold, cut-before-reading,
    /// cut-before-applying, cut-after-applying, cut-mid-response, garble, silent.
    pub verdict: String,
    /// How long, for the delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The status of an answer, by name (`ETMPFAIL`) or number (`0x86`; `503` for HTTP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The body of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The context of an extended error body, instead of a body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What to damage: magic, opaque, length, body; for HTTP the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub garble: Option<String>,
}

/// Why a description is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

impl TryFrom<FaultSpec> for Fault {
    type Error = SpecError;

    fn try_from(spec: FaultSpec) -> Result<Self, SpecError> {
        sense::check(&spec)?;
        let verdict = verdict(&spec)?;
        let mut when = When {
            service: spec.service,
            bucket: spec.bucket,
            ..When::default()
        };
        if let Some(node) = spec.node {
            when.node = Some(
                NodeId::checked(node).ok_or_else(|| error(format!("there is no node {node}")))?,
            );
        }
        if let Some(opcode) = &spec.opcode {
            when.opcode = Some(parse_opcode(opcode)?);
        }
        // Statuses are the protocol's own, so an answer that names none is of this one.
        if spec.opcode.is_some() || matches!(verdict, Verdict::Answer(_)) {
            when.service.get_or_insert(Service::Kv);
        }
        when = match (spec.key, spec.key_prefix) {
            (Some(_), Some(_)) => return Err(error("give key or key_prefix, not both")),
            (Some(key), None) => when.key(key),
            (None, Some(prefix)) => when.key_prefix(prefix),
            (None, None) => when,
        };
        when.skip = spec.skip.unwrap_or(0);
        when.times = spec.times;
        if let Some(probability) = spec.probability {
            if !(0.0..=1.0).contains(&probability) {
                return Err(error(format!(
                    "a probability is between 0 and 1, not {probability}"
                )));
            }
            when.probability = Some(probability);
        }
        when.seed = spec.seed;
        Ok(when.then(verdict))
    }
}

fn verdict(spec: &FaultSpec) -> Result<Verdict, SpecError> {
    let delay = || {
        spec.delay_ms
            .map(Duration::from_millis)
            .ok_or_else(|| error(format!("{} needs delay_ms", spec.verdict)))
    };
    Ok(match spec.verdict.as_str() {
        "pass" => Verdict::Pass,
        "delay" => Verdict::Delay(delay()?),
        "delay-answer" => Verdict::DelayAnswer(delay()?),
        "answer" => Verdict::Answer(answer(spec)?),
        "hold" => Verdict::Hold,
        "cut-before-reading" => Verdict::CutBeforeReading,
        "cut-before-applying" => Verdict::CutBeforeApplying,
        "cut-after-applying" => Verdict::CutAfterApplying,
        "cut-mid-response" => Verdict::CutMidResponse,
        "garble" => Verdict::Garble(match spec.garble.as_deref() {
            None if is_http(spec.service).is_some() => Garble::Body,
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
        "silent" => Verdict::Silent,
        "" => return Err(error("a fault needs a verdict")),
        other => return Err(error(format!("{other:?} is no verdict"))),
    })
}

fn answer(spec: &FaultSpec) -> Result<Answer, SpecError> {
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
    let status = match is_http(spec.service) {
        Some(service) => sense::http_status(status, service)?,
        None => parse_status(status)?,
    };
    Ok(Answer {
        status,
        body: body.map(Bytes::from),
        json,
    })
}

/// The service, if it speaks HTTP.
fn is_http(service: Option<Service>) -> Option<Service> {
    service.filter(|service| *service != Service::Kv)
}

fn parse_opcode(text: &str) -> Result<Opcode, SpecError> {
    let by_name = || {
        Opcode::KNOWN
            .iter()
            .find(|known| is_named(known.name(), text))
            .copied()
    };
    let by_number = || {
        u8::try_from(parse_number(text)?)
            .ok()
            .map(Opcode::from_code)
    };
    by_number()
        .or_else(by_name)
        .ok_or_else(|| error(format!("{text:?} is no opcode")))
}

fn parse_status(text: &str) -> Result<u16, SpecError> {
    let by_name = || {
        Status::KNOWN
            .iter()
            .find(|known| is_named(known.name(), text))
    };
    parse_number(text)
        .and_then(|number| u16::try_from(number).ok())
        .or_else(|| by_name().map(|status| status.code()))
        .ok_or_else(|| error(format!("{text:?} is no status")))
}

fn is_named(name: Option<&str>, text: &str) -> bool {
    let text = text.replace('-', "_");
    name.is_some_and(|name| name.eq_ignore_ascii_case(&text))
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(super) fn error(text: impl Into<String>) -> SpecError {
    SpecError(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Fault, String> {
        let spec: FaultSpec = serde_json::from_str(json).map_err(|error| error.to_string())?;
        Fault::try_from(spec).map_err(|error| error.to_string())
    }

    #[test]
    fn every_verdict_can_be_spelled() {
        for (json, verdict) in [
            (r#"{"verdict":"pass"}"#, Verdict::Pass),
            (
                r#"{"verdict":"delay","delay_ms":5}"#,
                Verdict::Delay(Duration::from_millis(5)),
            ),
            (
                r#"{"verdict":"delay-answer","delay_ms":5}"#,
                Verdict::DelayAnswer(Duration::from_millis(5)),
            ),
            (
                r#"{"verdict":"answer","status":"ETMPFAIL"}"#,
                Verdict::Answer(Answer {
                    status: 0x86,
                    body: None,
                    json: false,
                }),
            ),
            (r#"{"verdict":"hold"}"#, Verdict::Hold),
            (
                r#"{"verdict":"cut-before-reading"}"#,
                Verdict::CutBeforeReading,
            ),
            (
                r#"{"verdict":"cut-before-applying"}"#,
                Verdict::CutBeforeApplying,
            ),
            (
                r#"{"verdict":"cut-after-applying"}"#,
                Verdict::CutAfterApplying,
            ),
            (r#"{"verdict":"cut-mid-response"}"#, Verdict::CutMidResponse),
            (
                r#"{"verdict":"garble","garble":"opaque"}"#,
                Verdict::Garble(Garble::Opaque),
            ),
            (r#"{"verdict":"silent"}"#, Verdict::Silent),
        ] {
            assert_eq!(parse(json).unwrap().verdict, verdict, "{json}");
        }
    }

    #[test]
    fn what_makes_no_sense_gets_a_sentence() {
        for (json, sentence) in [
            ("{}", "a fault needs a verdict"),
            (r#"{"verdict":"explode"}"#, "\"explode\" is no verdict"),
            (r#"{"verdict":"delay"}"#, "delay needs delay_ms"),
            (r#"{"verdict":"answer"}"#, "answer needs a status"),
            (r#"{"verdict":"answer","status":"x"}"#, "\"x\" is no status"),
            (
                r#"{"verdict":"hold","opcode":"FROB"}"#,
                "\"FROB\" is no opcode",
            ),
            (r#"{"verdict":"hold","node":64}"#, "there is no node 64"),
            (
                r#"{"verdict":"hold","probability":1.5}"#,
                "a probability is between 0 and 1, not 1.5",
            ),
            (r#"{"verdict":"hold","delay_ms":5}"#, "hold has no delay_ms"),
            (
                r#"{"verdict":"answer","status":"EBUSY","service":"views"}"#,
                "views answers with an HTTP status, 200 to 599; not \"EBUSY\"",
            ),
            (
                r#"{"verdict":"hold","opcode":"SET","service":"query"}"#,
                "opcodes are for kv; query speaks HTTP, and has paths (key)",
            ),
            (
                r#"{"verdict":"hold","key":"a","key_prefix":"b"}"#,
                "give key or key_prefix, not both",
            ),
        ] {
            assert_eq!(parse(json).unwrap_err(), sentence, "{json}");
        }
        assert!(
            parse(r#"{"verdict":"hold","sevrice":"kv"}"#)
                .unwrap_err()
                .contains("sevrice")
        );
    }
}
