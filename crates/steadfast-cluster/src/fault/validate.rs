//! Validation of fault descriptions.
//!
//! A rule that can never match, or whose effect cannot apply to the requests that it
//! matches, is rejected. Otherwise a test would pass although nothing was broken.

use super::spec::{FaultSpec, InvalidFault, error};
use crate::Service;

/// The longest delay: an hour. Removing the rule does not end a delay; it ends a hold.
const LONGEST_DELAY_MS: u64 = 3_600_000;

/// Rejects fields that belong to another effect or to another protocol.
pub(super) fn check(spec: &FaultSpec) -> Result<(), InvalidFault> {
    check_effect(spec)?;
    if spec.times == Some(0) {
        return Err(error("times is 1 or more: a rule with 0 never hits"));
    }
    if spec.probability == Some(0.0) {
        return Err(error("a rule with probability 0 never hits"));
    }
    match spec.service {
        Some(Service::KeyValue) => Ok(()),
        Some(service) => check_http(spec, service),
        None if spec.effect == "answer" => check_unnamed(spec),
        None => Ok(()),
    }
}

fn check_effect(spec: &FaultSpec) -> Result<(), InvalidFault> {
    let effect = spec.effect.as_str();
    let delays = matches!(effect, "delay" | "delay-answer");
    let answers = effect == "answer";
    for (name, is_there, belongs) in [
        ("delay_ms", spec.delay_ms.is_some(), delays),
        ("status", spec.status.is_some(), answers),
        ("body", spec.body.is_some(), answers),
        ("context", spec.context.is_some(), answers),
        ("garble", spec.garble.is_some(), effect == "garble"),
    ] {
        if is_there && !belongs {
            return Err(error(format!("{effect} has no {name}")));
        }
    }
    if spec.delay_ms.is_some_and(|delay| delay > LONGEST_DELAY_MS) {
        let longest = format!("a delay is at most {LONGEST_DELAY_MS} ms, an hour");
        return Err(error(format!(
            "{longest}; hold waits until the rule is removed"
        )));
    }
    Ok(())
}

/// Rejects what only kv has: an HTTP service has paths and statuses, and no opcodes.
fn check_http(spec: &FaultSpec, service: Service) -> Result<(), InvalidFault> {
    let of_kv = [
        ("opcodes", spec.opcode.is_some()),
        ("buckets", spec.bucket.is_some()),
        ("contexts of errors", spec.context.is_some()),
    ];
    if let Some((what, _)) = of_kv.iter().find(|(_, is_there)| *is_there) {
        let text = format!("{what} are for kv; {service} speaks HTTP, and has paths (key)");
        return Err(error(text));
    }
    let path = spec.key.as_ref().or(spec.key_prefix.as_ref());
    if let Some(path) = path.filter(|path| !path.starts_with('/')) {
        let text = format!("the key of {service} is the path of a request, which begins with /");
        return Err(error(format!("{text}; not {path:?}")));
    }
    if let Some(part @ ("magic" | "opaque" | "length")) = spec.garble.as_deref() {
        let text = format!("an answer of {service} has no {part}: garble its body");
        return Err(error(text));
    }
    Ok(())
}

/// Rejects an HTTP status without a service: an answer without a service belongs to kv.
fn check_unnamed(spec: &FaultSpec) -> Result<(), InvalidFault> {
    match spec.status.as_deref().map(str::parse) {
        Some(Ok(status @ 100..=599u16)) => Err(error(format!(
            "{status} looks like an HTTP status: name the service (--service query); \
             a status of kv is written {status:#x}"
        ))),
        _ => Ok(()),
    }
}

/// Parses the status of an HTTP answer.
pub(super) fn http_status(text: &str, service: Service) -> Result<u16, InvalidFault> {
    match text.parse() {
        // Statuses below 200 do not end a request, and those above 599 do not exist.
        Ok(status @ 200..=599) => Ok(status),
        Ok(_) | Err(_) => Err(error(format!(
            "{service} answers with an HTTP status, 200 to 599; not {text:?}"
        ))),
    }
}
