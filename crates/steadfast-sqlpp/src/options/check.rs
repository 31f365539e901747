//! Checks the names and the types of a request's options.
//!
//! A test must fail if its option has a typo or a value that a real service rejects, so an
//! unknown option is an error here too. Most known options have no effect.

use std::time::Duration;

use serde_json::Value;

use super::RequestOptions;
use crate::error::QueryError;

/// The values that an option takes.
#[derive(Clone, Copy)]
enum OptionType {
    Any,
    Text,
    Flag,
    Number,
    Duration,
    OneOf(&'static [&'static str]),
}

use OptionType::{Any, Flag, Number, OneOf, Text};

const OPTIONS: &[(&str, OptionType)] = &[
    ("args", Any),
    ("atrcollection", Text),
    ("auto_execute", Flag),
    ("auto_prepare", Flag),
    ("client_context_id", Text),
    ("compression", Text),
    ("controls", Flag),
    ("creds", Any),
    ("durability_level", Text),
    ("encoded_plan", Text),
    ("encoding", Text),
    ("format", Text),
    ("kvtimeout", OptionType::Duration),
    ("max_parallelism", Number),
    ("memory_quota", Number),
    ("metrics", Flag),
    ("namespace", Text),
    ("numatrs", Number),
    ("pipeline_batch", Number),
    ("pipeline_cap", Number),
    ("prepared", Text),
    ("preserve_expiry", Flag),
    ("pretty", Flag),
    ("profile", OneOf(&["off", "phases", "timings"])),
    ("query_context", Text),
    ("readonly", Flag),
    ("scan_cap", Number),
    (
        "scan_consistency",
        OneOf(&["not_bounded", "request_plus", "statement_plus", "at_plus"]),
    ),
    ("scan_vector", Any),
    ("scan_vectors", Any),
    ("scan_wait", OptionType::Duration),
    ("signature", Flag),
    ("sort_projection", Flag),
    ("statement", Text),
    ("timeout", OptionType::Duration),
    ("txdata", Any),
    ("txid", Text),
    ("tximplicit", Flag),
    ("txstmtnum", Number),
    ("txtimeout", OptionType::Duration),
    ("use_cbo", Flag),
    ("use_fts", Flag),
    ("use_replica", Any),
];

impl RequestOptions {
    /// Rejects an option that a real service does not know, or whose value it cannot read.
    ///
    /// # Errors
    /// The first such option, in the order of the request.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        for (name, value) in &self.members {
            if name.starts_with(['$', '@']) {
                continue;
            }
            let Some((_, expected)) = OPTIONS.iter().find(|(known, _)| known == name) else {
                let message = format!("Unrecognized parameter in request: {name}");
                return Err(QueryError::new(1065, message));
            };
            check_value(name, *expected, value)?;
        }
        Ok(())
    }
}

fn check_value(name: &str, expected: OptionType, value: &Value) -> Result<(), QueryError> {
    let text = value.as_str();
    let of_type = |is: bool, kind: &str| match is {
        true => Ok(()),
        false => {
            let message = format!("Type mismatch: {name} must be of type {kind}");
            Err(QueryError::new(1070, message))
        }
    };
    match expected {
        _ if value.is_null() => Ok(()),
        Any => Ok(()),
        Text => of_type(text.is_some(), "string"),
        Flag => {
            let is_flag = |text: &str| ["true", "false"].contains(&&*text.to_ascii_lowercase());
            of_type(value.is_boolean() || text.is_some_and(is_flag), "bool")
        }
        Number => {
            let is_number = |text: &str| text.parse::<f64>().is_ok();
            of_type(value.is_number() || text.is_some_and(is_number), "number")
        }
        OptionType::Duration => {
            of_type(text.is_some(), "string")?;
            let text = text.unwrap_or_default();
            match duration(text.trim_start_matches('-')) {
                Some(_) => Ok(()),
                None => {
                    let cause = format!("{text:?} has no unit, or is not a duration");
                    let message = format!("Error processing {name} - cause: {cause}");
                    Err(QueryError::new(1040, message))
                }
            }
        }
        OneOf(values) => {
            of_type(text.is_some(), "string")?;
            let text = text.unwrap_or_default();
            match values.iter().any(|known| known.eq_ignore_ascii_case(text)) {
                true => Ok(()),
                false => {
                    let message = format!("Unknown {name} value: {text}");
                    Err(QueryError::new(1030, message))
                }
            }
        }
    }
}

/// Reads a duration such as `15000ms`, `15s` or `2m`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    let seconds = match &text[digits.len()..] {
        "" if number == 0.0 => 0.0,
        "ns" => number / 1e9,
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("15000ms"), Some(Duration::from_secs(15)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        for bad in ["", "s", "15", "-1s", "1e400s", "1x"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn unknown_options_and_values_are_errors() {
        let code = |options: Value| {
            let Value::Object(members) = options else {
                panic!("not an object")
            };
            let checked = RequestOptions::from(members).check();
            checked.err().map(|error| error.code)
        };
        for good in [
            json!({"readonly": true, "metrics": "false", "timeout": "75s", "$a": 1, "@b": 2}),
            json!({"scan_consistency": "REQUEST_PLUS", "max_parallelism": "4", "timeout": "-1s"}),
            json!({"args": null, "timeout": "0"}),
        ] {
            assert_eq!(code(good.clone()), None, "{good}");
        }
        for (bad, wanted) in [
            (json!({"readnoly": true}), 1065),
            (json!({"scan_consistency": "bogus"}), 1030),
            (json!({"profile": "all"}), 1030),
            (json!({"timeout": "10"}), 1040),
            (json!({"timeout": 10}), 1070),
            (json!({"readonly": 1}), 1070),
            (json!({"max_parallelism": "many"}), 1070),
        ] {
            assert_eq!(code(bad.clone()), Some(wanted), "{bad}");
        }
    }
}
