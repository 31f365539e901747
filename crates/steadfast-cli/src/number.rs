//! Numbers, as people write them, and what to say if they are none.

use steadfast_cluster::topology::MAX_NODES;

/// A whole number, 0 or more.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) if is_number => Err(format!("it is at most {}", u64::MAX)),
        Err(_) => Err("it is a whole number, 0 or more".to_owned()),
    }
}

/// The same where the number counts things in memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let size = whole(text)?;
    usize::try_from(size).map_err(|_| format!("it is at most {}", usize::MAX))
}

/// A whole number, 1 or more.
pub(crate) fn at_least_one(text: &str) -> Result<u64, String> {
    match whole(text) {
        Ok(0) | Err(_) => Err("it is a whole number, 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// The number of a node that a cluster can have.
pub(crate) fn node(text: &str) -> Result<u64, String> {
    match whole(text)? {
        node if node < MAX_NODES as u64 => Ok(node),
        node => Err(format!(
            "there is no node {node}: they are numbered from 0, and there are at most {MAX_NODES}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_digits_only_and_bounds() {
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
        assert!(node("64").unwrap_err().contains("no node 64"));
    }
}
