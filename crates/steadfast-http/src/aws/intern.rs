//! Interns the names of operations.
//!
//! The engine needs `&'static str`, and generated clients hand out a shorter
//! lifetime. A program has few operations, so each name is leaked once, up to a
//! limit.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

const MAX_NAMES: usize = 4096;

static KNOWN: RwLock<Option<HashSet<&'static str>>> = RwLock::new(None);

/// Returns the same name with a static lifetime, or "call" beyond the limit.
pub(super) fn intern(name: &str) -> &'static str {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_ref().and_then(|known| known.get(name)) {
        return known;
    }
    drop(known);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(known) = known.get(name) {
        return known;
    }
    if known.len() >= MAX_NAMES || name.is_empty() {
        return "call";
    }
    let name: &'static str = name.to_owned().leak();
    known.insert(name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_names_beyond_the_limit_are_dropped() {
        let first = intern(&String::from("SendMessage"));
        assert_eq!(first, "SendMessage");
        assert!(std::ptr::eq(first, intern("SendMessage")));
        assert_eq!(intern(""), "call");
        for number in 0..MAX_NAMES {
            intern(&format!("Operation{number}"));
        }
        assert_eq!(intern("OneMore"), "call");
        assert!(std::ptr::eq(first, intern("SendMessage")));
    }
}
