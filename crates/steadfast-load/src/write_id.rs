//! Identity of a write.
//!
//! An id names the worker and the number of the write among that worker's writes. It is
//! part of the key or of the value, so that an entry of the journal and the content of a
//! document can be attributed to a write.

use std::fmt;
use std::ops::Range;

/// The identity of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WriteId {
    pub(crate) worker: u16,
    /// Counts the worker's writes.
    pub(crate) number: u64,
}

impl WriteId {
    /// The length as text: four characters, a dash, twelve characters.
    const LEN: usize = 17;

    /// Finds the first id in these bytes.
    pub(crate) fn find(bytes: &[u8]) -> Option<Self> {
        bytes.windows(Self::LEN).find_map(Self::parse)
    }

    /// Finds all ids in these bytes, in order.
    pub(crate) fn find_all(bytes: &[u8]) -> Vec<Self> {
        let mut rest = bytes;
        let mut found = Vec::new();
        while let Some(window) = rest.get(..Self::LEN) {
            match Self::parse(window) {
                Some(id) => {
                    found.push(id);
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

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}-{:012x}", self.worker, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_anywhere() {
        let id = WriteId {
            worker: 0x1f,
            number: 0xabc_0123,
        };
        assert_eq!(id.to_string().len(), WriteId::LEN);
        for text in [
            format!("{id}"),
            format!("i:{id}"),
            format!("{{\"id\":\"{id}\",\"pad\":\"x-y\"}}"),
        ] {
            assert_eq!(WriteId::find(text.as_bytes()), Some(id), "{text}");
        }
    }

    #[test]
    fn other_text_is_not_an_id() {
        for text in [
            "",
            "0001-",
            "0001_000000000001",
            "000G-000000000001",
            "+001-000000000001",
        ] {
            assert_eq!(WriteId::find(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_id_of_a_list_is_found_also_a_repeated_one() {
        let id = |number| WriteId { worker: 7, number };
        let text = format!("\"\"{};{};{};", id(1), id(2), id(1));
        let found = WriteId::find_all(text.as_bytes());
        assert_eq!(found, [id(1), id(2), id(1)]);
    }
}
