//! Suggestions for names that are not known.

/// Returns the message about an unknown name: with the nearest known name, or with all of
/// them if there is none. `kind` is a noun with its article.
pub fn unknown<'a>(typed: &str, kind: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(typed, &known) {
        Some(name) => format!("{typed:?} is not {kind}; did you mean {name}?"),
        None => format!("{typed:?} is not {kind}: give one of {}", known.join(", ")),
    }
}

/// Returns the known name that is most like the typed one, if any is.
pub fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.replace('-', "_").to_ascii_lowercase();
    let typed = plain(typed);
    let distance = |name: &str| strsim::damerau_levenshtein(&typed, &plain(name));
    let nearest = known.iter().min_by_key(|name| distance(name))?;
    (distance(nearest) <= 1 + nearest.len() / 4).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_otherwise_all_are_listed() {
        let known = ["GET", "ETMPFAIL", "SUBDOC_MULTI_LOOKUP"];
        assert_eq!(nearest("GTE", &known), Some("GET"));
        assert_eq!(nearest("etmpfial", &known), Some("ETMPFAIL"));
        assert_eq!(
            nearest("subdoc-multi-lokup", &known),
            Some("SUBDOC_MULTI_LOOKUP")
        );
        assert_eq!(nearest("frobnicate", &known), None);
        assert_eq!(
            unknown("frobnicate", "an opcode", known),
            "\"frobnicate\" is not an opcode: give one of GET, ETMPFAIL, SUBDOC_MULTI_LOOKUP"
        );
    }
}
