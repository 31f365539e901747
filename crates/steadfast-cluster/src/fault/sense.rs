//! What a description of a fault must not say.
//!
//! A rule that can never match, or whose verdict means nothing to the requests that it
//! matches, looks like a fault that the client survived. So it is refused: a test that
//! passes because nothing was broken is worse than none.

use super::spec::{FaultSpec, SpecError, error};
use crate::service::Service;

/// The longest delay: an hour. Delays end by themselves only; what is to end with the rule is held.
const LONGEST_DELAY_MS: u64 = 3_600_000;

/// Refuses what belongs to another verdict, or to another protocol.
pub(super) fn check(spec: &FaultSpec) -> Result<(), SpecError> {
    check_verdict(spec)?;
    if spec.times == Some(0) {
        return Err(error("times is 1 or more: a rule with 0 never hits"));
    }
    if spec.probability == Some(0.0) {
        return Err(error("a rule with probability 0 never hits"));
    }
    match spec.service {
        Some(Service::Kv) => Ok(()),
        Some(service) => check_http(spec, service),
        None if spec.verdict == "answer" => check_unnamed(spec),
        None => Ok(()),
    }
}

fn check_verdict(spec: &FaultSpec) -> Result<(), SpecError> {
    let verdict = spec.verdict.as_str();
    let delays = matches!(verdict, "delay" | "delay-answer");
    let answers = verdict == "answer";
    for (name, is_there, belongs) in [
        ("delay_ms", spec.delay_ms.is_some(), delays),
        ("status", spec.status.is_some(), answers),
        ("body", spec.body.is_some(), answers),
        ("context", spec.context.is_some(), answers),
        ("garble", spec.garble.is_some(), verdict == "garble"),
    ] {
        if is_there && !belongs {
            return Err(error(format!("{verdict} has no {name}")));
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

/// A service that speaks HTTP has paths and statuses, and nothing else of what kv has.
fn check_http(spec: &FaultSpec, service: Service) -> Result<(), SpecError> {
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

/// Without a service an answer is one of kv, unless it looks as if HTTP was meant.
fn check_unnamed(spec: &FaultSpec) -> Result<(), SpecError> {
    match spec.status.as_deref().map(str::parse) {
        Some(Ok(status @ 100..=599u16)) => Err(error(format!(
            "{status} looks like an HTTP status: name the service (--service query); \
             a status of kv is written {status:#x}"
        ))),
        _ => Ok(()),
    }
}

/// The status of an HTTP answer.
pub(super) fn http_status(text: &str, service: Service) -> Result<u16, SpecError> {
    match text.parse() {
        // Those below are no answers, and those above no statuses.
        Ok(status @ 200..=599) => Ok(status),
        Ok(_) | Err(_) => Err(error(format!(
            "{service} answers with an HTTP status, 200 to 599; not {text:?}"
        ))),
    }
}
