//! Percent-encoding of names in paths, queries and forms.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except those without a meaning in addresses.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Encodes a name as a segment of a path, or a value in a query or a form. A name
/// of only dots is encoded too: a server would read it as a step up the path.
pub(crate) fn segment(name: &str) -> String {
    if !name.is_empty() && name.bytes().all(|byte| byte == b'.') {
        return "%2E".repeat(name.len());
    }
    utf8_percent_encode(name, ESCAPED).to_string()
}

/// Encodes pairs as a query or a form.
pub(crate) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter();
    let pairs = pairs.map(|(name, value)| format!("{}={}", segment(name), segment(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("a/b?c#d%e ü"), "a%2Fb%3Fc%23d%25e%20%C3%BC");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("travel-sample_1.x~"), "travel-sample_1.x~");
        assert_eq!(pairs([("a", "1&b=2"), ("c", "")]), "a=1%26b%3D2&c=");
    }
}
