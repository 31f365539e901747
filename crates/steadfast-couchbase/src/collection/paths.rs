//! Number and order of subdocument paths.

use steadfast_wire::subdoc::MAX_SPECS;

/// Rejects a list of no paths, or of more than the protocol allows.
pub(super) fn check_count(count: usize) -> Result<(), String> {
    match count {
        0 => Err("there is no path".to_owned()),
        1..=MAX_SPECS => Ok(()),
        count => Err(format!("there are {count} paths; the limit is {MAX_SPECS}")),
    }
}

/// The order in which paths are sent: extended attributes first, as servers require,
/// then the others in the user's order (SDK RFC 0053). Each entry is the path's
/// index in the user's list.
pub(super) fn order(is_xattr: impl Iterator<Item = bool>) -> Box<[u8]> {
    let (mut first, mut then) = (Vec::new(), Vec::new());
    // There are sixteen at most.
    for (place, is_xattr) in (0_u8..).zip(is_xattr) {
        if is_xattr { &mut first } else { &mut then }.push(place);
    }
    first.append(&mut then);
    first.into()
}
