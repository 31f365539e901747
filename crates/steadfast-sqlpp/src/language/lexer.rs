//! Splits a statement into lexemes.

use serde_json::{Number, Value};

use super::LanguageError;

/// A part of a statement, and its offset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lexeme {
    pub kind: LexemeKind,
    pub at: usize,
}

/// The kind of a lexeme.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LexemeKind {
    /// A keyword or a plain name.
    Word(String),
    /// A name between backticks, which is never a keyword.
    Name(String),
    /// A string.
    Text(String),
    /// A number.
    Number(Number),
    /// A placeholder.
    Parameter(Placeholder),
    /// Anything else.
    Symbol(&'static str),
}

/// How a placeholder is spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// `$1`
    Numbered(usize),
    /// `?`
    Next,
    /// `$name`
    Named(String),
}

/// The longer come first, because the first that fits is taken.
const SYMBOLS: &[&str] = &[
    "||", "==", "!=", "<>", "<=", ">=", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "=", "<",
    ">", "+", "-", "*", "/", "%",
];

/// Splits a statement; white space and comments are left out.
pub(crate) fn split(text: &str) -> Result<Vec<Lexeme>, LanguageError> {
    let mut lexemes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        if first.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if rest.starts_with("--") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or_else(|| unfinished("comment", at))?;
            rest = &rest[end + 2..];
            continue;
        }
        let (kind, length) = match first {
            '`' => quoted(rest, '`', at).map(|(name, length)| (LexemeKind::Name(name), length))?,
            '"' | '\'' => quoted(rest, first, at)
                .map(|(string, length)| (LexemeKind::Text(string), length))?,
            '0'..='9' => number(rest, at)?,
            '$' | '@' => parameter(rest, at)?,
            '?' => (LexemeKind::Parameter(Placeholder::Next), 1),
            _ if is_word(first) => {
                let length = word_length(rest);
                (LexemeKind::Word(rest[..length].to_owned()), length)
            }
            _ => {
                let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
                let symbol = symbol
                    .ok_or_else(|| LanguageError::syntax_at(at, &rest[..first.len_utf8()]))?;
                (LexemeKind::Symbol(symbol), symbol.len())
            }
        };
        lexemes.push(Lexeme { kind, at });
        rest = &rest[length..];
    }
    Ok(lexemes)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|letter| !is_word(letter)).unwrap_or(text.len())
}

fn parameter(text: &str, at: usize) -> Result<(LexemeKind, usize), LanguageError> {
    let name = &text[1..1 + word_length(&text[1..])];
    if name.is_empty() {
        return Err(LanguageError::syntax_at(at, &text[..1]));
    }
    let placeholder = match name.parse() {
        Ok(number) => Placeholder::Numbered(number),
        Err(_) => Placeholder::Named(name.to_owned()),
    };
    Ok((LexemeKind::Parameter(placeholder), 1 + name.len()))
}

fn number(text: &str, at: usize) -> Result<(LexemeKind, usize), LanguageError> {
    let mut end = 0;
    let bytes = text.as_bytes();
    while end < bytes.len() {
        let sign = matches!(bytes[end], b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
        if !(sign || bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'e' | b'E')) {
            break;
        }
        end += 1;
    }
    match serde_json::from_str::<Value>(&text[..end]) {
        Ok(Value::Number(number)) => Ok((LexemeKind::Number(number), end)),
        _ => Err(LanguageError::syntax_at(at, &text[..end])),
    }
}

/// A quoted piece: the quote itself is doubled, or escaped by a backslash, which works as in JSON.
fn quoted(text: &str, quote: char, at: usize) -> Result<(String, usize), LanguageError> {
    let mut found = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((index, letter)) = letters.next() {
        if letter == quote {
            if letters.peek().is_some_and(|(_, next)| *next == quote) {
                letters.next();
                found.push(quote);
                continue;
            }
            return Ok((found, index + 1));
        }
        if letter != '\\' || quote == '`' {
            found.push(letter);
            continue;
        }
        let Some((_, escaped)) = letters.next() else {
            break;
        };
        found.push(match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let digits: String = letters.by_ref().take(4).map(|(_, digit)| digit).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                code.and_then(char::from_u32)
                    .ok_or_else(|| LanguageError::syntax_at(at, &digits))?
            }
            other => other,
        });
    }
    Err(unfinished("quote", at))
}

fn unfinished(what: &str, at: usize) -> LanguageError {
    LanguageError::Syntax(format!("syntax error - unfinished {what} at offset {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<LexemeKind> {
        let lexemes = split(text).unwrap();
        lexemes.into_iter().map(|lexeme| lexeme.kind).collect()
    }

    #[test]
    fn every_kind_of_lexeme_is_recognised() {
        use LexemeKind::*;
        let word = |text: &str| Word(text.to_owned());
        assert_eq!(
            kinds("SELECT `a``b` /* c */, 'it''s' -- d\n , 1.5e-3 $1 ? $né <= \"\\u00fc\\n\""),
            [
                word("SELECT"),
                Name("a`b".into()),
                Symbol(","),
                Text("it's".into()),
                Symbol(","),
                Number(serde_json::Number::from_f64(1.5e-3).unwrap()),
                Parameter(Placeholder::Numbered(1)),
                Parameter(Placeholder::Next),
                Parameter(Placeholder::Named("né".into())),
                Symbol("<="),
                Text("ü\n".into()),
            ]
        );
    }
}
