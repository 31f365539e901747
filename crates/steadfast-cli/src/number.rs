//! Parsers of numbers, with messages that state the valid range.

use steadfast_cluster::topology::MAX_NODES;

/// Parses a whole number, 0 or more.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) if is_number => Err(format!("must be at most {}", u64::MAX)),
        Err(_) => Err("must be a whole number, 0 or more".to_owned()),
    }
}

/// Parses a whole number that fits into memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let size = whole(text)?;
    usize::try_from(size).map_err(|_| format!("must be at most {}", usize::MAX))
}

/// Parses a whole number, 1 or more.
pub(crate) fn at_least_one(text: &str) -> Result<u64, String> {
    match whole(text) {
        Ok(0) | Err(_) => Err("must be a whole number, 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// Parses the number of a node.
pub(crate) fn node(text: &str) -> Result<u64, String> {
    match whole(text)? {
        node if node < MAX_NODES as u64 => Ok(node),
        node => Err(format!(
            "no node {node}: a cluster has at most {MAX_NODES} nodes, numbered from 0"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_only_digits_and_are_bounded() {
        assert_eq!(whole("0"), Ok(0));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "-1", "1.5", "x", "1e3", " 1"] {
            assert!(whole(text).unwrap_err().contains("0 or more"), "{text}");
        }
        assert!(
            whole("18446744073709551616")
                .unwrap_err()
                .contains("at most")
        );
        assert_eq!(at_least_one("1"), Ok(1));
        assert!(at_least_one("0").is_err() && at_least_one("-1").is_err());
        assert_eq!(node("63"), Ok(63));
        assert!(node("128").unwrap_err().contains("no node 128"));
    }
}
