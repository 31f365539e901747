//! Checks the names and the types of a request's options.
//!
//! A test must fail if its option has a typo or a value that a real service rejects, so an
//! unknown option is an error here too. Most known options have no effect.

use std::time::Duration;

use serde_json::Value;

use super::RequestOptions;
use crate::error::QueryError;

/// The type of an option's value.
#[derive(Clone, Copy)]
enum OptionType {
    Any,
    Text,
    Flag,
    Number,
    Duration,
    /// One of these words.
    OneOf(&'static str),
}

/// The options of each type.
const OPTIONS: &[(OptionType, &str)] = &[
    (
        OptionType::Any,
        "args creds scan_vector scan_vectors txdata use_replica",
    ),
    (
        OptionType::Text,
        "atrcollection client_context_id compression durability_level encoded_plan encoding \
         format namespace prepared query_context statement txid",
    ),
    (
        OptionType::Flag,
        "auto_execute auto_prepare controls metrics preserve_expiry pretty readonly signature \
         sort_projection tximplicit use_cbo use_fts",
    ),
    (
        OptionType::Number,
        "max_parallelism memory_quota numatrs pipeline_batch pipeline_cap scan_cap txstmtnum",
    ),
    (
        OptionType::Duration,
        "kvtimeout scan_wait timeout txtimeout",
    ),
    (OptionType::OneOf("off phases timings"), "profile"),
    (
        OptionType::OneOf("not_bounded request_plus statement_plus at_plus"),
        "scan_consistency",
    ),
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
            let known = |(_, names): &&(_, &str)| names.split(' ').any(|known| known == name);
            let Some((expected, _)) = OPTIONS.iter().find(known) else {
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
        OptionType::Any => Ok(()),
        OptionType::Text => of_type(text.is_some(), "string"),
        OptionType::Flag => {
            let is_flag = |text: &str| ["true", "false"].contains(&&*text.to_ascii_lowercase());
            of_type(value.is_boolean() || text.is_some_and(is_flag), "bool")
        }
        OptionType::Number => {
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
        OptionType::OneOf(values) => {
            of_type(text.is_some(), "string")?;
            let text = text.unwrap_or_default();
            match values
                .split(' ')
                .any(|known| known.eq_ignore_ascii_case(text))
            {
                true => Ok(()),
                false => {
                    let message = format!("Unknown {name} value: {text}");
                    Err(QueryError::new(1030, message))
                }
            }
        }
    }
}

/// Reads a duration as Go writes it: `15000ms`, `2m` or `1m14.5s`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    let mut rest = text;
    loop {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let (number, after) = rest.split_at(rest.find(|letter| !is_number(letter))?);
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        if after.is_empty() {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("15000ms"), Some(Duration::from_secs(15)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        assert_eq!(duration("1h2m3.5s"), Some(Duration::from_millis(3_723_500)));
        assert_eq!(duration("3µs"), Some(Duration::from_micros(3)));
        for bad in [
            "", "s", "15", "-1s", "1e400s", "1x", "1m15", "1m s", "1m-1s",
        ] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
