//! The identity of a write.
//!
//! A token names the worker that made a write and its place among that worker's
//! writes. It is spelled out in the key or in the value of the write, so that
//! whoever finds it, in the cluster's journal or in a document, knows which write
//! it was.

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

/// Which write it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    /// The worker that made it.
    pub worker: u16,
    /// Its place among the worker's writes.
    pub number: u64,
}

impl Token {
    /// How many characters it takes: four, a dash, twelve.
    pub const LEN: usize = 17;

    /// The first token in these bytes.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        bytes.windows(Self::LEN).find_map(Self::parse)
    }

    /// All tokens in these bytes, one after the other.
    pub fn find_all(bytes: &[u8]) -> Vec<Self> {
        let mut rest = bytes;
        let mut found = Vec::new();
        while let Some(window) = rest.get(..Self::LEN) {
            match Self::parse(window) {
                Some(token) => {
                    found.push(token);
                    rest = &rest[Self::LEN..];
                }
                None => rest = &rest[1..],
            }
        }
        found
    }

    fn parse(text: &[u8]) -> Option<Self> {
        if text.get(4) != Some(&b'-') {
            return None;
        }
        let number = |range: Range<usize>| {
            let digits = text.get(range)?;
            let plain = digits
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            let digits = std::str::from_utf8(digits).ok().filter(|_| plain)?;
            u64::from_str_radix(digits, 16).ok()
        };
        Some(Self {
            worker: u16::try_from(number(0..4)?).ok()?,
            number: number(5..Self::LEN)?,
        })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}-{:012x}", self.worker, self.number)
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_wherever_it_stands() {
        let token = Token {
            worker: 0x1f,
            number: 0xabc_0123,
        };
        assert_eq!(token.to_string().len(), Token::LEN);
        for text in [
            format!("{token}"),
            format!("i:{token}"),
            format!("{{\"id\":\"{token}\",\"pad\":\"x-y\"}}"),
        ] {
            assert_eq!(Token::find(text.as_bytes()), Some(token), "{text}");
        }
    }

    #[test]
    fn what_is_no_token_is_not_taken_for_one() {
        for text in [
            "",
            "0001-",
            "0001_000000000001",
            "000G-000000000001",
            "+001-000000000001",
        ] {
            assert_eq!(Token::find(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_token_of_a_list_is_found_also_one_that_stands_there_twice() {
        let token = |number| Token { worker: 7, number };
        let text = format!("\"\"{};{};{};", token(1), token(2), token(1));
        let found = Token::find_all(text.as_bytes());
        assert_eq!(found, [token(1), token(2), token(1)]);
    }
}
