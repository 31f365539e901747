//! Where a JSON value ends.
//!
//! Finding the end needs strings and brackets only; whether what is between them
//! is JSON is found out by whoever reads the value.

use super::splitter::Problem;

/// As deep as the JSON parser goes that reads the value afterwards.
const MAX_DEPTH: u32 = 127;

/// Looks for the end of one value, piece by piece.
#[derive(Debug)]
pub(super) struct ValueEnd {
    within: Within,
    depth: u32,
    /// A bit for each bracket that is open, set for objects.
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
    /// A string, behind a backslash.
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

    /// Looks at more of the value. Says how many of these bytes belong to it if
    /// it ends within them.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, Problem> {
        for (at, &byte) in bytes.iter().enumerate() {
            match self.within {
                Within::Nothing => match byte {
                    b'"' => self.within = Within::Text,
                    b'{' | b'[' => self.open(byte)?,
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.within = Within::Scalar,
                    _ => return Err(Problem::NoValue),
                },
                Within::Scalar => match byte {
                    b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' => return Ok(Some(at)),
                    b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E' => {}
                    _ => return Err(Problem::NoValue),
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
            return Err(Problem::TooDeep);
        }
        self.objects = self.objects << 1 | u128::from(bracket == b'{');
        self.depth += 1;
        self.within = Within::Brackets;
        Ok(())
    }

    fn close(&mut self, bracket: u8) -> Result<(), Problem> {
        if (self.objects & 1 == 1) != (bracket == b'}') {
            return Err(Problem::Brackets);
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
    fn values_of_every_kind_end_where_they_do() {
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
    fn what_is_no_value_is_refused() {
        for (text, wanted) in [
            ("}", Problem::NoValue),
            (",", Problem::NoValue),
            ("1\0", Problem::NoValue),
            ("[}", Problem::Brackets),
            (r#"{"a":]"#, Problem::Brackets),
        ] {
            assert_eq!(end(text), Err(wanted), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_by_what_can_be_read_afterwards() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = nested(127);
        assert_eq!(end(&deepest), Ok(Some(254)));
        assert!(serde_json::from_str::<serde_json::Value>(&deepest).is_ok());
        assert_eq!(end(&nested(128)), Err(Problem::TooDeep));
        assert!(serde_json::from_str::<serde_json::Value>(&nested(128)).is_err());
    }
}
