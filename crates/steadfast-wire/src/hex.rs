//! Numbers that JSON carries as hexadecimal text, without a prefix: `"1f"`.

use crate::DecodeError;

/// The number that `text` is.
pub(crate) fn parse(what: &'static str, text: &str) -> Result<u64, DecodeError> {
    // The standard parser would accept a sign.
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(DecodeError::Text {
            what,
            problem: "is not a hexadecimal number",
        });
    }
    u64::from_str_radix(text, 16).map_err(|_| DecodeError::Text {
        what,
        problem: "is not a hexadecimal number of 64 bits",
    })
}

/// The text for a number.
pub(crate) fn write(number: u64) -> String {
    format!("{number:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_hexadecimal_is_a_number() {
        for (text, number) in [
            ("0", 0),
            ("1f", 31),
            ("FFFFFFFFFFFFFFFF", u64::MAX),
            ("00a", 10),
        ] {
            assert_eq!(parse("it", text), Ok(number));
        }
        for text in ["", "0x1f", "+1", "-1", " 1", "g", "10000000000000000"] {
            assert!(parse("it", text).is_err(), "{text:?}");
        }
    }
}
