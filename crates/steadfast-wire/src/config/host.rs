//! The placeholder of nodes that do not know their own name.

/// Stands in a config for the host that the config was fetched from.
const HOST_PLACEHOLDER: &str = "$HOST";

/// Replaces the placeholder in `text`, a host or a host and a port.
///
/// An IPv6 address gets brackets if a port follows.
pub(super) fn fill_in(text: &str, origin: &str) -> String {
    let Some(rest) = text.strip_prefix(HOST_PLACEHOLDER) else {
        return text.to_owned();
    };
    if rest.starts_with(':') {
        format!("{}{rest}", bracketed(origin))
    } else {
        format!("{origin}{rest}")
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_placeholder_is_replaced() {
        assert_eq!(fill_in("$HOST:11210", "db1"), "db1:11210");
        assert_eq!(fill_in("$HOST", "db1"), "db1");
        assert_eq!(fill_in("db2:11210", "db1"), "db2:11210");
    }

    #[test]
    fn an_ipv6_address_gets_brackets_before_a_port() {
        assert_eq!(fill_in("$HOST:11210", "::1"), "[::1]:11210");
        assert_eq!(fill_in("$HOST:11210", "[::1]"), "[::1]:11210");
        assert_eq!(fill_in("$HOST", "::1"), "::1");
    }
}
