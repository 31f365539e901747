//! What can be seen to be wrong before anything is sent.

use steadfast_wire::DocumentKey;
use steadfast_wire::collections::DEFAULT_NAME;

use super::Expiry;
use crate::collections::Collection;
use crate::error::{Error, ErrorKind, Result};
use crate::kv::operation::KvOperation;

/// The largest value that servers keep, uncompressed.
pub(super) const MAX_VALUE: usize = 20 << 20;

/// What the id of a collection may take up of a key, beyond the one byte that the
/// default collection's does.
const LONGEST_COLLECTION: usize = 4;

/// What was asked for makes no sense.
#[cold]
pub(super) fn invalid(operation: KvOperation, problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, operation.name()).because(problem)
}

/// Refuses keys that no server takes.
pub(super) fn key(operation: KvOperation, collection: &Collection, id: &str) -> Result<()> {
    const EVERYWHERE: usize = DocumentKey::MAX_ID_LEN - LONGEST_COLLECTION;
    match id.len() {
        1..=EVERYWHERE => Ok(()),
        0 => Err(invalid(operation, "the key is empty")),
        len => {
            let is_default = [&*collection.scope, &*collection.name] == [DEFAULT_NAME; 2];
            let longest = if is_default {
                DocumentKey::MAX_ID_LEN
            } else {
                EVERYWHERE
            };
            if len <= longest {
                return Ok(());
            }
            let problem = format!("the key has {len} bytes, and {longest} are the most");
            Err(invalid(operation, problem))
        }
    }
}

/// Refuses the CAS that stands for any version: a check that is silently not made
/// is worse than one that was never asked for.
pub(super) fn cas(operation: KvOperation, cas: Option<u64>) -> Result<u64> {
    match cas {
        None => Ok(0),
        Some(0) => Err(invalid(operation, "a CAS of 0 is no version")),
        Some(cas) => Ok(cas),
    }
}

/// Whether the document that is written must exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// It must.
    Exist,
    /// It must not.
    NotExist,
    /// It may or may not.
    Neither,
}

/// Refuses options of a write that make no sense together.
pub(super) fn together(
    operation: KvOperation,
    must: Must,
    cas: Option<u64>,
    preserve_expiry: bool,
    expiry: Expiry,
) -> Result<()> {
    let problem = match must {
        Must::NotExist if cas.is_some() => "a document that must not exist has no CAS",
        Must::NotExist if preserve_expiry => "a document that must not exist has no expiry to keep",
        Must::Exist if preserve_expiry && !expiry.is_never() => {
            "the expiry of the document is to be kept, and to be another"
        }
        Must::Exist | Must::NotExist | Must::Neither => return Ok(()),
    };
    Err(invalid(operation, problem))
}

/// Refuses values that no server keeps.
pub(super) fn value(operation: KvOperation, value: &[u8]) -> Result<()> {
    if value.len() <= MAX_VALUE {
        return Ok(());
    }
    let problem = format!(
        "the value has {} bytes, and {MAX_VALUE} are the most",
        value.len()
    );
    Err(Error::new(ErrorKind::ValueTooLarge, operation.name()).because(problem))
}

/// Refuses an expiry that the protocol cannot say.
pub(super) fn expiry(operation: KvOperation, expiry: Expiry) -> Result<u32> {
    expiry
        .encode()
        .map_err(|problem| invalid(operation, problem))
}
