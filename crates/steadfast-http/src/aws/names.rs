//! Names of operations that live as long as the program.
//!
//! The engine's names are `&'static str`, and so are those in generated clients,
//! but these hand them out with a shorter life. There are as many as a program
//! has operations, so each is kept once; should there be no end of them, they are
//! made up, and go without a name.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

const MOST: usize = 4096;

static KNOWN: RwLock<Option<HashSet<&'static str>>> = RwLock::new(None);

/// The same name.
pub(super) fn lasting(name: &str) -> &'static str {
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
    if known.len() >= MOST || name.is_empty() {
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
    fn a_name_is_kept_once_and_of_too_many_the_rest_have_none() {
        let first = lasting(&String::from("SendMessage"));
        assert_eq!(first, "SendMessage");
        assert!(std::ptr::eq(first, lasting("SendMessage")));
        assert_eq!(lasting(""), "call");
        for number in 0..MOST {
            lasting(&format!("Operation{number}"));
        }
        assert_eq!(lasting("OneMore"), "call");
        assert!(std::ptr::eq(first, lasting("SendMessage")));
    }
}
