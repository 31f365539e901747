//! Text from servers, made safe for errors and logs.
//!
//! A server can send text of any length. It can contain line breaks that forge log lines,
//! control characters that rewrite a terminal, and the client's own credentials. All text
//! of a server goes through [`one_line`] or [`bounded`] before it gets into an error, a
//! note or a log.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer};

/// The most bytes of a server's text that an error repeats.
const MAX: usize = 512;

/// The replacement of a secret.
const MASK: &str = "***";

/// Returns text on one line, cut to a bounded length, with control characters escaped
/// and credentials masked; `None` if it is blank.
pub(crate) fn one_line(text: &str) -> Option<String> {
    // Masked before it is cut, so that no part of a secret is left at the end.
    let text = mask(&text[..text.floor_char_boundary(4 * MAX)]);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            if line.len() > MAX {
                break;
            }
            match is_unsafe(letter) {
                true => line.extend(letter.escape_unicode()),
                false => line.push(letter),
            }
        }
        if line.len() > MAX {
            line.truncate(line.floor_char_boundary(MAX));
            line.push('…');
            break;
        }
    }
    (!line.is_empty()).then_some(line)
}

/// Returns text on one line like [`one_line`], also if it is blank.
pub(crate) fn bounded(text: &str) -> String {
    one_line(text).unwrap_or_default()
}

/// Reads a member of JSON as [`bounded`] text.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(member: D) -> Result<String, D::Error> {
    String::deserialize(member).map(|text| bounded(&text))
}

/// Masks a secret that the client sent, wherever a text on one line repeats it, also
/// if the text is cut within it.
pub(crate) fn without(text: &str, secret: &str) -> String {
    const SHORTEST: usize = 6;
    let masked = text.replace(secret, MASK);
    let open = masked.strip_suffix('…').unwrap_or(&masked);
    let part = (SHORTEST..secret.len())
        .rev()
        .filter(|end| secret.is_char_boundary(*end))
        .find(|end| open.ends_with(&secret[..*end]));
    match part {
        Some(len) => format!("{}{MASK}", &open[..open.len() - len]),
        None => masked,
    }
}

/// Escapes the characters that would break a line, or hide a part of it.
pub(crate) fn escaped(text: Cow<'static, str>) -> Cow<'static, str> {
    if !text.contains(is_unsafe) {
        return text;
    }
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_unsafe(letter) {
            true => line.extend(letter.escape_unicode()),
            false => line.push(letter),
        }
    }
    line.into()
}

/// Control characters, line separators, and characters that reorder or hide others.
fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Masks what looks like credentials in HTTP.
fn mask(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((start, end)) = next_secret(text, &lower, at) {
        masked.push_str(&text[at..start]);
        masked.push_str(MASK);
        at = end;
    }
    masked.push_str(&text[at..]);
    masked
}

/// Returns the start and the end of the first secret from a position on.
fn next_secret(text: &str, lower: &str, from: usize) -> Option<(usize, usize)> {
    type Find = fn(&str) -> Option<(usize, usize)>;
    let words: [(&str, Find); 3] = [
        ("authorization", header_value),
        ("basic", basic),
        ("bearer", bearer),
    ];
    let first = |(word, find): (&str, Find)| {
        lower[from..].match_indices(word).find_map(|(at, _)| {
            let after = from + at + word.len();
            find(&text[after..]).map(|(start, end)| (after + start, after + end))
        })
    };
    words.into_iter().filter_map(first).min()
}

/// The value of a header, after its name.
fn header_value(rest: &str) -> Option<(usize, usize)> {
    let quote = |c: char| matches!(c, '"' | '\'' | '\\' | ' ' | '[');
    let value = rest.trim_start_matches(quote).strip_prefix([':', '='])?;
    let value = value.trim_start_matches(quote);
    let start = rest.len() - value.len();
    let end = value.find(['\r', '\n', '"', '\'', '<', '}', ']']);
    let end = start + end.unwrap_or(value.len());
    (start < end).then_some((start, end))
}

/// A user and a password, after the name of the scheme.
fn basic(rest: &str) -> Option<(usize, usize)> {
    let (start, end) = token(rest)?;
    let encoded = rest[start..end].replace("\\/", "/");
    let plain = STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?;
    plain.contains(&b':').then_some((start, end))
}

/// A token, after the name of the scheme.
fn bearer(rest: &str) -> Option<(usize, usize)> {
    token(rest).filter(|(start, end)| end - start >= 16)
}

/// The next word, if a blank comes before it.
fn token(rest: &str) -> Option<(usize, usize)> {
    let word = rest.trim_start_matches([' ', '\t', '+', ':', '=']);
    let word = word.strip_prefix("%20").unwrap_or(word);
    let start = rest.len() - word.len();
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ',' | ';' | ')' | '}' | ']')
    };
    let end = start + word.find(ends).unwrap_or(word.len());
    (start > 0 && start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_on_one_line_and_bounded() {
        assert_eq!(one_line(" a\r\n b "), Some("a b".to_owned()));
        assert_eq!(one_line("\n"), None);
        for long in [
            "ü".repeat(500_000),
            "\u{1b}".repeat(500_000),
            "a ".repeat(500_000),
        ] {
            let line = one_line(&long).unwrap();
            assert!(line.len() <= MAX + 3 && line.ends_with('…'), "{line}");
        }
    }

    #[test]
    fn characters_that_rewrite_a_line_are_escaped() {
        assert_eq!(bounded("a\u{1b}[2Jb\u{0}"), "a\\u{1b}[2Jb\\u{0}");
        assert_eq!(bounded("a\u{202e}b\u{2066}"), "a\\u{202e}b\\u{2066}");
        for text in ["x\ny", "x\u{2028}y", "x\u{85}y", "x\u{b}y", "x\u{c}y"] {
            let line = bounded(text);
            assert!(!line.contains(is_unsafe), "{line:?}");
        }
    }

    #[test]
    fn echoed_credentials_are_masked() {
        // app:secret
        let encoded = "YXBwOnNlY3JldA==";
        for text in [
            format!("bad header Authorization: Basic {encoded}\r\nHost: x"),
            format!(r#"{{"headers": {{"Authorization": "Basic {encoded}"}}}}"#),
            format!(r#"{{\"authorization\":[\"basic {encoded}\"]}}"#),
            format!("got basic {encoded}, and not what I want"),
            format!("BASIC%20{encoded}"),
            format!("<b>Proxy-Authorization = Basic {encoded}</b>"),
            format!("{}Basic {encoded}", "x".repeat(MAX - 10)),
        ] {
            let line = bounded(&text);
            assert!(!line.contains("YXBwOn"), "{line}");
        }
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhcHAifQ.x";
        assert_eq!(
            bounded(&format!("Bearer {token} expired")),
            "Bearer *** expired"
        );
        for harmless in [
            "basic authentication required",
            "authorization is missing",
            "the bearer of this message",
        ] {
            assert_eq!(bounded(harmless), harmless);
        }
    }

    #[test]
    fn a_known_secret_is_masked_also_if_it_is_cut() {
        assert_eq!(without("a c2VjcmV0 b", "c2VjcmV0"), "a *** b");
        assert_eq!(without("a c2VjcmV…", "c2VjcmV0"), "a ***");
        assert_eq!(without("a b", "c2VjcmV0"), "a b");
    }
}
