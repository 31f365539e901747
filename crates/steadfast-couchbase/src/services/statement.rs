//! What requests of query and analytics have in common: a statement, its
//! parameters, and options as the members of one JSON object.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, ErrorKind, HttpContext};

/// The options of a request, encoded.
#[derive(Clone, Default)]
pub(crate) struct Options {
    members: BTreeMap<String, Box<RawValue>>,
    positional: Vec<Box<RawValue>>,
    /// The scope in which names are looked up; the same as the member.
    query_context: Option<String>,
}

impl Options {
    /// Sets an option whose value is the client's own and can always be encoded.
    pub(crate) fn set(&mut self, name: &str, value: impl Serialize) {
        let value = to_raw_value(&value).expect("texts, numbers and flags can be encoded");
        self.members.insert(name.to_owned(), value);
    }

    /// Sets the scope in which names are looked up.
    pub(crate) fn within(&mut self, bucket: &str, scope: &str) {
        let context = format!("default:{}.{}", quoted(bucket), quoted(scope));
        self.set("query_context", &context);
        self.query_context = Some(context);
    }

    /// The scope in which names are looked up.
    pub(crate) fn query_context(&self) -> Option<&str> {
        self.query_context.as_deref()
    }

    /// Sets an option to a value of the user's.
    pub(crate) fn set_raw(
        &mut self,
        operation: &'static str,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        let value = encode(operation, name, value)?;
        self.members.insert(name.to_owned(), value);
        Ok(())
    }

    /// Sets a named parameter; a dollar before its name is left out or not.
    pub(crate) fn named(
        &mut self,
        operation: &'static str,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        let name = format!("${}", name.strip_prefix('$').unwrap_or(name));
        self.set_raw(operation, &name, value)
    }

    /// Adds a positional parameter.
    pub(crate) fn positional(
        &mut self,
        operation: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        let name = format!("${}", self.positional.len() + 1);
        self.positional.push(encode(operation, &name, value)?);
        Ok(())
    }

    /// Sets what the service is told of every request: its id, a new one if it has
    /// none yet, and whether it only reads. Returns the id.
    pub(crate) fn identify(&mut self, context_id: Option<String>, readonly: bool) -> String {
        let context_id = context_id.unwrap_or_else(new_context_id);
        self.set("client_context_id", &context_id);
        if readonly {
            self.set("readonly", true);
        }
        context_id
    }

    /// Whether an option is set.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// The request's body.
    pub(crate) fn to_body(&self) -> Vec<u8> {
        let mut members: BTreeMap<&str, &RawValue> = self
            .members
            .iter()
            .map(|(name, value)| (name.as_str(), &**value))
            .collect();
        let positional = to_raw_value(&self.positional).expect("encoded values can be encoded");
        if !self.positional.is_empty() {
            members.insert("args", &positional);
        }
        serde_json::to_vec(&members).expect("encoded values can be encoded")
    }
}

/// Encodes a value of the user's. An error names the parameter; its own words may
/// quote the value, and so are not repeated.
pub(crate) fn encode(
    operation: &'static str,
    name: &str,
    value: &(impl Serialize + ?Sized),
) -> Result<Box<RawValue>, Error> {
    to_raw_value(value).map_err(|_| {
        Error::new(ErrorKind::EncodingFailure, operation)
            .because(format!("the value for {name:?} cannot be written as JSON"))
    })
}

/// A time as the services read it.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// A new id under which a service knows a request.
fn new_context_id() -> String {
    let id = format!("{:032x}", fastrand::u128(..));
    format!(
        "{}-{}-{}-{}-{}",
        &id[..8],
        &id[8..12],
        &id[12..16],
        &id[16..20],
        &id[20..]
    )
}

/// What an error says of such a request: never its parameters.
pub(crate) fn describe(statement: &str, context_id: &str) -> HttpContext {
    HttpContext {
        statement: Some(statement.to_owned()),
        client_context_id: Some(context_id.to_owned()),
        ..HttpContext::default()
    }
}

/// A name as query and analytics quote it.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Reads a time as these services write it: `1.5ms`, `1m30.25s`.
pub(crate) fn go_duration<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = <String as serde::Deserialize>::deserialize(deserializer)?;
    parse_duration(&text).ok_or_else(|| serde::de::Error::custom("this is no duration"))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, behind) = rest.split_at(number);
        let unit = behind
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(amount.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = behind;
    }
    Some(total)
}

/// The methods of a builder of such a request, by its fields `options`, `context_id`
/// and `place`, and the constant `OPERATION` beside it.
macro_rules! statement_methods {
    () => {
        /// Within a scope, so that collections need no longer names.
        pub(crate) fn within(
            mut self,
            bucket: &std::sync::Arc<str>,
            scope: &std::sync::Arc<str>,
        ) -> Self {
            self.options.within(bucket, scope);
            self.place = $crate::error::Place {
                scope: Some(scope.clone()),
                ..$crate::error::Place::of_bucket(bucket)
            };
            self
        }

        /// Gives the parameter `$name` its value.
        ///
        /// # Errors
        /// If the value cannot be written as JSON.
        pub fn named(
            mut self,
            name: &str,
            value: &(impl serde::Serialize + ?Sized),
        ) -> Result<Self, $crate::error::Error> {
            self.options.named(OPERATION, name, value)?;
            Ok(self)
        }

        /// Gives the next of the parameters `$1`, `$2`, … its value.
        ///
        /// # Errors
        /// If the value cannot be written as JSON.
        pub fn positional(
            mut self,
            value: &(impl serde::Serialize + ?Sized),
        ) -> Result<Self, $crate::error::Error> {
            self.options.positional(OPERATION, value)?;
            Ok(self)
        }

        /// Sets how recent what it sees must be.
        pub fn consistency(
            mut self,
            consistency: $crate::services::query::ScanConsistency,
        ) -> Self {
            self.options.set("scan_consistency", consistency.name());
            self
        }

        /// Names the id under which the service knows the request, in place of a
        /// random one.
        pub fn client_context_id(mut self, id: impl Into<String>) -> Self {
            self.context_id = Some(id.into());
            self
        }

        /// Sets an option of the service that has no method here.
        ///
        /// # Errors
        /// If the value cannot be written as JSON.
        pub fn raw(
            mut self,
            name: &str,
            value: &(impl serde::Serialize + ?Sized),
        ) -> Result<Self, $crate::error::Error> {
            self.options.set_raw(OPERATION, name, value)?;
            Ok(self)
        }
    };
}

pub(super) use statement_methods;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_the_services_write_them() {
        for (text, wanted) in [
            ("1.5ms", Some(Duration::from_micros(1500))),
            ("2m3.5s", Some(Duration::from_millis(123_500))),
            ("12µs", Some(Duration::from_micros(12))),
            ("0s", Some(Duration::ZERO)),
            ("", Some(Duration::ZERO)),
            ("1", None),
            ("ms", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("9999999999999999999999h", None),
            ("1 s", None),
        ] {
            assert_eq!(parse_duration(text), wanted, "{text}");
        }
    }

    #[test]
    fn names_are_quoted_so_that_they_cannot_end_early() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
