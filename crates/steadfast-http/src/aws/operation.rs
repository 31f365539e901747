//! The operation of a request, and a table of all operations.
//!
//! The engine needs names of type `&'static str`, and generated clients hand out a
//! shorter lifetime. A program has few operations. So each of them is kept once for the
//! rest of the program, up to a limit, and all its requests share it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_types::config_bag::ConfigBag;

/// The operation of a request; the context that observers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwsOperation {
    /// The service, such as `SQS`.
    pub service: &'static str,
    /// The operation, such as `SendMessage`.
    pub name: &'static str,
}

impl AwsOperation {
    pub(super) fn load(cfg: &ConfigBag) -> Arc<Self> {
        match cfg.load::<Metadata>() {
            Some(metadata) => KNOWN.get(metadata.service(), metadata.name()),
            None => Arc::new(UNKNOWN),
        }
    }
}

impl fmt::Display for AwsOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service, self.name)
    }
}

const MAX_NAMES: usize = 4096;
const MAX_SERVICES_PER_NAME: usize = 512;

/// An operation without a name, or beyond the limit.
const UNKNOWN: AwsOperation = AwsOperation {
    service: "call",
    name: "call",
};

static KNOWN: Operations = Operations(RwLock::new(None));

/// Operations by name. Most names belong to one service.
struct Operations(RwLock<Option<ByName>>);

type ByName = HashMap<&'static str, Vec<Arc<AwsOperation>>>;

impl Operations {
    /// Returns the operation with these names, or an unknown one beyond the limit.
    fn get(&self, service: &str, name: &str) -> Arc<AwsOperation> {
        let find = |known: &ByName| {
            let mut operations = known.get(name)?.iter();
            operations.find(|each| each.service == service).cloned()
        };
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(operation) = known.as_ref().and_then(find) {
            return operation;
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(operation) = find(known) {
            return operation;
        }
        let is_full = match known.get(name) {
            Some(same_name) => same_name.len() >= MAX_SERVICES_PER_NAME,
            None => known.len() >= MAX_NAMES,
        };
        if is_full || name.is_empty() {
            return Arc::new(UNKNOWN);
        }
        let operation = Arc::new(AwsOperation {
            service: service.to_owned().leak(),
            name: name.to_owned().leak(),
        });
        let same_name = known.entry(operation.name).or_default();
        same_name.push(Arc::clone(&operation));
        operation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_kept_once_and_those_beyond_the_limit_are_unknown() {
        let known = Operations(RwLock::new(None));
        let first = known.get("SQS", &String::from("SendMessage"));
        assert_eq!(first.to_string(), "SQS SendMessage");
        assert!(Arc::ptr_eq(&first, &known.get("SQS", "SendMessage")));
        assert_eq!(known.get("SES", "SendMessage").service, "SES");
        assert_eq!(*known.get("SQS", ""), UNKNOWN);
        for number in 0..MAX_NAMES {
            known.get("SQS", &format!("Operation{number}"));
        }
        assert_eq!(*known.get("SQS", "OneMore"), UNKNOWN);
        for number in 0..MAX_SERVICES_PER_NAME {
            known.get(&format!("Service{number}"), "SendMessage");
        }
        assert_eq!(*known.get("OneMore", "SendMessage"), UNKNOWN);
        assert!(Arc::ptr_eq(&first, &known.get("SQS", "SendMessage")));
    }
}
