//! What lookups and mutations of parts of a document have in common.

use steadfast_wire::subdoc::MAX_SPECS;

use super::check;
use crate::error::Result;
use crate::kv::operation::KvOperation;

/// Refuses to name no path, or more than the protocol takes.
pub(super) fn check_count(operation: KvOperation, count: usize) -> Result<()> {
    match count {
        0 => Err(check::invalid(operation, "there is no path")),
        1..=MAX_SPECS => Ok(()),
        count => {
            let problem = format!("there are {count} paths, and {MAX_SPECS} are the most");
            Err(check::invalid(operation, problem))
        }
    }
}

/// The order in which paths are sent: extended attributes first, as servers want
/// it, and else as the user named them (SDK RFC 0053). Each entry is the place
/// where the user named that path; users keep counting as they did.
pub(super) fn order(is_xattr: impl Iterator<Item = bool>) -> Vec<u8> {
    let (mut first, mut then) = (Vec::new(), Vec::new());
    // There are sixteen at most.
    for (place, is_xattr) in (0_u8..).zip(is_xattr) {
        if is_xattr { &mut first } else { &mut then }.push(place);
    }
    first.append(&mut then);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_go_first_and_nothing_else_changes_places() {
        let sent = order([false, true, false, true].into_iter());
        assert_eq!(sent, [1, 3, 0, 2]);
        assert_eq!(order([false; 3].into_iter()), [0, 1, 2]);
    }

    #[test]
    fn one_to_sixteen_paths_can_be_sent() {
        let operation = KvOperation::LookupIn;
        assert!(check_count(operation, 0).is_err());
        assert!(check_count(operation, 1).is_ok());
        assert!(check_count(operation, 16).is_ok());
        let error = check_count(operation, 17).unwrap_err().to_string();
        assert!(error.contains("17 paths"), "{error}");
    }
}
