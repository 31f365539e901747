//! Finds the end of a JSON value.
//!
//! That needs strings and brackets only. The parser that reads the value checks
//! the rest.

use super::splitter::Problem;

/// The depth to which the JSON parser goes that reads the value afterwards.
const MAX_DEPTH: u32 = 127;

const NO_VALUE: Problem = "there is no JSON value where one should be";
const BRACKETS: Problem = "its brackets do not match";
const TOO_DEEP: Problem = "it is nested too deeply";

/// Searches for the end of one value, piece by piece.
#[derive(Debug)]
pub(super) struct ValueEnd {
    within: Within,
    depth: u32,
    /// One bit for each open bracket, set for objects.
    objects: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// Nothing yet.
    Nothing,
    /// A number, `true`, `false` or `null` that is the whole value.
    Scalar,
    /// An array or object, outside of strings.
    Brackets,
    /// A string.
    Text,
    /// A string, after a backslash.
    Escape,
}

impl ValueEnd {
    pub(super) const fn new() -> Self {
        Self {
            within: Within::Nothing,
            depth: 0,
            objects: 0,
        }
    }

    /// Reads more of the value. Returns how many of these bytes belong to it if it
    /// ends within them.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, Problem> {
        for (at, &byte) in bytes.iter().enumerate() {
            match self.within {
                Within::Nothing => match byte {
                    b'"' => self.within = Within::Text,
                    b'{' | b'[' => self.open(byte)?,
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.within = Within::Scalar,
                    _ => return Err(NO_VALUE),
                },
                Within::Scalar => match byte {
                    b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' => return Ok(Some(at)),
                    b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E' => {}
                    _ => return Err(NO_VALUE),
                },
                Within::Brackets => match byte {
                    b'"' => self.within = Within::Text,
                    b'{' | b'[' => self.open(byte)?,
                    b'}' | b']' => {
                        self.close(byte)?;
                        if self.depth == 0 {
                            return Ok(Some(at + 1));
                        }
                    }
                    _ => {}
                },
                Within::Text => match byte {
                    b'"' if self.depth == 0 => return Ok(Some(at + 1)),
                    b'"' => self.within = Within::Brackets,
                    b'\\' => self.within = Within::Escape,
                    _ => {}
                },
                Within::Escape => self.within = Within::Text,
            }
        }
        Ok(None)
    }

    fn open(&mut self, bracket: u8) -> Result<(), Problem> {
        if self.depth == MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        self.objects = self.objects << 1 | u128::from(bracket == b'{');
        self.depth += 1;
        self.within = Within::Brackets;
        Ok(())
    }

    fn close(&mut self, bracket: u8) -> Result<(), Problem> {
        if (self.objects & 1 == 1) != (bracket == b'}') {
            return Err(BRACKETS);
        }
        self.objects >>= 1;
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Result<Option<usize>, Problem> {
        ValueEnd::new().find(text.as_bytes())
    }

    #[test]
    fn values_of_every_kind_have_their_end_found() {
        for (text, wanted) in [
            ("1, 2", Some(1)),
            ("-1.5e+3]", Some(7)),
            ("null\n", Some(4)),
            ("true}", Some(4)),
            (r#""a,]\"}" ,"#, Some(8)),
            (r#"{"a":[1,{}],"b":"]}"},"#, Some(21)),
            ("[]", Some(2)),
            ("12", None),
            (r#""\"#, None),
            ("[[]", None),
        ] {
            assert_eq!(end(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, wanted) in [
            ("}", NO_VALUE),
            (",", NO_VALUE),
            ("1\0", NO_VALUE),
            ("[}", BRACKETS),
            (r#"{"a":]"#, BRACKETS),
        ] {
            assert_eq!(end(text), Err(wanted), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_like_in_the_parser() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = nested(127);
        assert_eq!(end(&deepest), Ok(Some(254)));
        assert!(serde_json::from_str::<serde_json::Value>(&deepest).is_ok());
        assert_eq!(end(&nested(128)), Err(TOO_DEEP));
        assert!(serde_json::from_str::<serde_json::Value>(&nested(128)).is_err());
    }
}
