//! Removes secrets from messages.
//!
//! Addresses contain no password, but other databases accept
//! `scheme://user:password@host`, so people type one. The error message goes to logs and
//! must not repeat it.

/// The replacement of a secret.
const MASK: &str = "***";

/// Parts of option names whose values are secrets.
const SECRET_OPTIONS: [&str; 5] = ["password", "passwd", "pwd", "secret", "token"];

/// Masks what looks like a password: user and password before an `@`, and the value of
/// options such as `password=`.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for word in text.split_inclusive(is_end) {
        let (word, end) = match word.char_indices().next_back() {
            Some((at, last)) if is_end(last) => word.split_at(at),
            _ => (word, ""),
        };
        masked.push_str(&options(&userinfo(word)));
        masked.push_str(end);
    }
    masked
}

/// Decides whether a character ends an address within a message.
fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '<' | '>')
}

/// Masks everything between the scheme and the last `@`, plain or encoded, since passwords
/// may contain slashes, colons and question marks. Without a colon it is a path or a mail address.
fn userinfo(word: &str) -> String {
    let ends = [
        word.rfind('@').map(|at| at + 1),
        word.rfind("%40").map(|at| at + 3),
    ];
    let front = ends.into_iter().flatten().max();
    match front.map(|at| word.split_at(at)) {
        Some((front, rest)) if front.contains(':') => {
            let scheme = front
                .find("://")
                .map_or("", |at| &front[..at + "://".len()]);
            format!("{scheme}{MASK}@{rest}")
        }
        _ => word.to_owned(),
    }
}

/// Masks the values of secret options.
fn options(word: &str) -> String {
    let mut parts = word.split_inclusive(['?', '&']);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('=') {
            Some((name, value)) if is_secret(name) => {
                let end = if value.ends_with('&') { "&" } else { "" };
                masked.push_str(&format!("{name}={MASK}{end}"));
            }
            _ => masked.push_str(part),
        }
    }
    masked
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_OPTIONS.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passwords_are_masked() {
        for (text, masked) in [
            ("couchbase://app:x@h/b", "couchbase://***@h/b"),
            (
                "invalid value 'couchbase://app:x@h' for",
                "invalid value 'couchbase://***@h' for",
            ),
            ("a:b/c?d@e@h:1", "***@h:1"),
            ("couchbase://app:x%40h/b", "couchbase://***@h/b"),
            ("couchbase://app:p%40q@h/b", "couchbase://***@h/b"),
            ("couchbase://h/b?password=x", "couchbase://h/b?password=***"),
            ("h?a=1&PassWord=x&b=2", "h?a=1&PassWord=***&b=2"),
            ("h?kv_timeout=1s", "h?kv_timeout=1s"),
            ("couchbase://h/b", "couchbase://h/b"),
            (
                "set STEADFAST_PASSWORD; two  words\n",
                "set STEADFAST_PASSWORD; two  words\n",
            ),
            ("é 'ü:@ß' ", "é '***@ß' "),
            ("cannot read /srv/a@b/ca.pem", "cannot read /srv/a@b/ca.pem"),
            ("", ""),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }
}
