//! Cuts a response into its rows and its other members.
//!
//! ```text
//!     Start ─{─► Name ─:─► BeforeValue ──► Value ──┐
//!                  ▲           │                    ▼
//!                  │           └─[─► Rows ──]─► AfterValue ─}─► Done
//!                  └───────────────,───────────────┘
//! ```
//!
//! It never panics, and never holds more than one row and the members, both of
//! which are bounded.

use bytes::{Buf, Bytes, BytesMut};
use serde::de::DeserializeOwned;

use super::value::ValueEnd;
use crate::services::http::ReadError;

/// The most members that a response may have besides its rows. Services send a
/// dozen. Each is compared with all others, so a million of them, which would fit
/// into the allowed bytes, would keep a thread busy for hours.
const MAX_MEMBERS: usize = 256;

/// Limits on the parts of a response that a server can make large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimits {
    /// The most bytes of a row.
    pub(crate) row: usize,
    /// The most bytes of everything but the rows.
    pub(crate) members: usize,
}

impl Default for SizeLimits {
    /// A row of 64 MiB holds three documents of the greatest size. The members are a
    /// few kilobytes, and some more with a profile of the plan.
    fn default() -> Self {
        Self {
            row: 64 * 1024 * 1024,
            members: 8 * 1024 * 1024,
        }
    }
}

/// Takes a response in pieces, and returns it row by row.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The name of the member that has the rows.
    rows: &'static str,
    limits: SizeLimits,
    state: SplitterState,
    /// The part of the last piece that was not read yet.
    input: Bytes,
    /// The number of bytes that were read before.
    consumed: u64,
    /// The part of the current value that came in earlier pieces.
    held: BytesMut,
    value: ValueEnd,
    /// The name of the current member.
    name: String,
    members: Members,
    members_size: usize,
    had_rows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitterState {
    /// Before the object.
    Start,
    /// Before a name; `first` if the object may also end here.
    BeforeName { first: bool },
    /// Within a name.
    Name,
    /// After a name.
    Colon,
    /// Before a member's value.
    BeforeValue,
    /// Within it.
    Value,
    /// After it, or after the rows.
    AfterValue,
    /// Before a row; `first` if the rows may also end here.
    BeforeRow { first: bool },
    /// Within it.
    Row,
    /// After it.
    AfterRow,
    /// After the object.
    Done,
}

/// The members of a response's object, except the rows.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: Vec<(String, Bytes)>,
}

/// A message that says what is wrong with a response, without quoting it.
pub(super) type Problem = &'static str;

const NO_NAME: Problem = "there is no name where one should be";
const NO_ARRAY: Problem = "its rows are no array";
const TWICE: Problem = "it has a member twice";

impl Splitter {
    /// Makes a splitter for a response with its rows in this member.
    pub(crate) fn new(rows: &'static str, limits: SizeLimits) -> Self {
        Self {
            rows,
            limits,
            state: SplitterState::Start,
            input: Bytes::new(),
            consumed: 0,
            held: BytesMut::new(),
            value: ValueEnd::new(),
            name: String::new(),
            members: Members::default(),
            members_size: 0,
            had_rows: false,
        }
    }

    /// Takes the next piece, once [`next_row`](Self::next_row) returned `None` for
    /// the one before.
    pub(crate) fn push(&mut self, piece: Bytes) {
        debug_assert!(
            self.input.is_empty(),
            "a piece is taken when the last one was read"
        );
        self.input = piece;
    }

    /// Returns the next complete row; `None` if another piece has to come first.
    pub(crate) fn next_row(&mut self) -> Result<Option<Bytes>, ReadError> {
        self.advance().map_err(|problem| self.malformed(problem))
    }

    /// Checks that the response was complete when it ended.
    pub(crate) fn finish(&self) -> Result<(), ReadError> {
        match self.state {
            SplitterState::Done if self.had_rows => Ok(()),
            SplitterState::Done => Err(self.malformed("it has no rows")),
            _ => Err(self.malformed("it breaks off")),
        }
    }

    /// Whether the object is complete, with rows or without.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == SplitterState::Done
    }

    /// Whether a row has begun that is not complete.
    pub(super) fn is_in_row(&self) -> bool {
        self.state == SplitterState::Row
    }

    /// Returns the members that have come so far.
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    fn advance(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(&byte) = self.input.first() {
            if let SplitterState::Name | SplitterState::Value | SplitterState::Row = self.state {
                if let Some(row) = self.scan()? {
                    return Ok(Some(row));
                }
                continue;
            }
            if let b' ' | b'\t' | b'\n' | b'\r' = byte {
                self.skip();
                continue;
            }
            self.state = match (self.state, byte) {
                (SplitterState::Start, b'{') => SplitterState::BeforeName { first: true },
                (SplitterState::BeforeName { first: true }, b'}')
                | (SplitterState::AfterValue, b'}') => SplitterState::Done,
                (SplitterState::BeforeName { .. }, b'"') => {
                    self.begin(SplitterState::Name);
                    continue;
                }
                (SplitterState::Colon, b':') => SplitterState::BeforeValue,
                (SplitterState::BeforeValue, _) if self.name != self.rows => {
                    self.begin(SplitterState::Value);
                    continue;
                }
                (SplitterState::BeforeValue, b'[') if !self.had_rows => {
                    self.had_rows = true;
                    SplitterState::BeforeRow { first: true }
                }
                // Some services send `null` if there are no rows.
                (SplitterState::BeforeValue, b'n') if !self.had_rows => {
                    self.had_rows = true;
                    self.begin(SplitterState::Value);
                    continue;
                }
                (SplitterState::BeforeRow { first: true } | SplitterState::AfterRow, b']') => {
                    SplitterState::AfterValue
                }
                (SplitterState::BeforeRow { .. }, _) => {
                    self.begin(SplitterState::Row);
                    continue;
                }
                (SplitterState::AfterRow, b',') => SplitterState::BeforeRow { first: false },
                (SplitterState::AfterValue, b',') => SplitterState::BeforeName { first: false },
                (SplitterState::Start, _) => return Err("it is no JSON object"),
                (SplitterState::BeforeName { .. }, _) => return Err(NO_NAME),
                (SplitterState::Colon, _) => return Err("there is no colon after a name"),
                (SplitterState::BeforeValue, _) if self.had_rows => return Err(TWICE),
                (SplitterState::BeforeValue, _) => return Err(NO_ARRAY),
                (SplitterState::AfterValue | SplitterState::AfterRow, _) => {
                    return Err("there is neither a comma nor an end after a value");
                }
                (SplitterState::Done, _) => return Err("there is more after its end"),
                (SplitterState::Name | SplitterState::Value | SplitterState::Row, _) => {
                    unreachable!("values are scanned above")
                }
            };
            self.skip();
        }
        Ok(None)
    }

    fn skip(&mut self) {
        self.input.advance(1);
        self.consumed += 1;
    }

    fn begin(&mut self, state: SplitterState) {
        self.state = state;
        self.value = ValueEnd::new();
        self.held.clear();
    }

    /// Reads on in the current value. Returns it if it is a row and complete.
    fn scan(&mut self) -> Result<Option<Bytes>, Problem> {
        let (most, problem) = match self.state {
            SplitterState::Row => (self.limits.row, "a row is too long"),
            _ => (
                self.limits.members - self.members_size,
                "there is too much around the rows",
            ),
        };
        let end = self.value.find(&self.input)?;
        let part = self.input.split_to(end.unwrap_or(self.input.len()));
        self.consumed += part.len() as u64;
        if self.held.len() + part.len() > most {
            return Err(problem);
        }
        if end.is_none() {
            self.held.extend_from_slice(&part);
            return Ok(None);
        }
        let value = if self.held.is_empty() {
            part
        } else {
            self.held.extend_from_slice(&part);
            self.held.split().freeze()
        };
        if self.state == SplitterState::Row {
            self.state = SplitterState::AfterRow;
            return Ok(Some(value));
        }
        self.members_size += value.len();
        self.member_part(value)?;
        Ok(None)
    }

    /// Takes a complete name, or the complete value of a member.
    fn member_part(&mut self, value: Bytes) -> Result<(), Problem> {
        if self.state == SplitterState::Name {
            self.name = serde_json::from_slice(&value).map_err(|_| NO_NAME)?;
            self.state = SplitterState::Colon;
            return Ok(());
        }
        self.state = SplitterState::AfterValue;
        if self.name == self.rows {
            return if &value[..] == b"null" {
                Ok(())
            } else {
                Err(NO_ARRAY)
            };
        }
        // A copy, so that a member does not keep a whole piece alive.
        let value = Bytes::copy_from_slice(&value);
        self.members.push(std::mem::take(&mut self.name), value)
    }

    fn malformed(&self, problem: Problem) -> ReadError {
        let at = self.consumed;
        ReadError::Malformed(format!("the response is invalid at byte {at}: {problem}"))
    }
}

impl Members {
    /// Returns the member of this name, unless it is missing or `null`.
    ///
    /// # Errors
    /// Says which member has another shape, without quoting it.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        let Some((_, value)) = self.list.iter().find(|(each, _)| each == name) else {
            return Ok(None);
        };
        serde_json::from_slice(value)
            .map_err(|_| format!("the response is invalid: {name:?} has another shape"))
    }

    /// Returns the member of this name, if there is one and it has this shape. For
    /// information that no operation depends on.
    pub(crate) fn hint<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.get(name).ok().flatten()
    }

    fn push(&mut self, name: String, value: Bytes) -> Result<(), Problem> {
        if self.list.len() == MAX_MEMBERS {
            return Err("it has too many members");
        }
        if self.list.iter().any(|(each, _)| *each == name) {
            return Err(TWICE);
        }
        self.list.push((name, value));
        Ok(())
    }
}

#[cfg(fuzzing)]
pub(super) mod fuzzing;
#[cfg(test)]
mod tests;
