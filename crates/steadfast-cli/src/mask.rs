//! Secrets, taken out of what is about to be said.
//!
//! An address has no place for a password, and people put one there all the same:
//! other databases take `scheme://user:password@host`. It is refused, and the refusal
//! goes to logs, so it must not repeat the password.

/// What stands in place of a secret.
const MASK: &str = "***";

/// The options of an address whose values are nobody's business.
const SECRET_OPTIONS: [&str; 5] = ["password", "passwd", "pwd", "secret", "token"];

/// The text without what looks like a password: a user and a password in front of an
/// `@`, and the value of `password=` and the like.
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

/// What ends a word that could be an address, where it is shown.
fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '<' | '>')
}

/// A word without what is before its last `@`, but for the scheme: passwords have
/// slashes, colons and question marks in them. Without a colon it is none, but a path
/// or the address of a mailbox.
fn userinfo(word: &str) -> String {
    match word.rsplit_once('@') {
        Some((front, rest)) if front.contains(':') => {
            let scheme = front
                .find("://")
                .map_or("", |at| &front[..at + "://".len()]);
            format!("{scheme}{MASK}@{rest}")
        }
        _ => word.to_owned(),
    }
}

/// A word without the values of options that are secrets.
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
    fn what_looks_like_a_password_is_masked_and_the_rest_is_not() {
        for (text, masked) in [
            ("couchbase://app:x@h/b", "couchbase://***@h/b"),
            (
                "invalid value 'couchbase://app:x@h' for",
                "invalid value 'couchbase://***@h' for",
            ),
            ("a:b/c?d@e@h:1", "***@h:1"),
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
