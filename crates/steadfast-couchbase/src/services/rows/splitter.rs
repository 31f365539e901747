//! Cuts an answer into its rows and its other members.
//!
//! ```text
//!     Start ─{─► Name ─:─► Value ──► Member ─┐
//!                 ▲ ▲        │               │
//!                 │ └───,────┼──── Behind ◄──┤
//!                 │          ▼       │       │
//!                 │        Rows ──]──┘       │
//!                 └──────────────────────────┘     Behind ─}─► Done
//! ```
//!
//! Whatever arrives, it never panics and never holds more than a row and the
//! members: both are bounded.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use super::Members;
use super::value::ValueEnd;

/// What a server may make large, and how large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most bytes of a row.
    pub(crate) row: usize,
    /// The most bytes of everything but the rows.
    pub(crate) members: usize,
}

impl Default for Limits {
    /// A row of 64 MiB holds three documents of the greatest size; what is said
    /// around rows is a few kilobytes, with a profile of the plan some more.
    fn default() -> Self {
        Self {
            row: 64 * 1024 * 1024,
            members: 8 * 1024 * 1024,
        }
    }
}

/// Takes an answer in pieces, gives it out in rows.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The name of the member that has the rows.
    rows: &'static str,
    limits: Limits,
    state: State,
    /// What has come and was not looked at.
    input: Bytes,
    /// How many bytes were looked at before.
    consumed: u64,
    /// The part of the value under way that came in earlier pieces.
    held: BytesMut,
    value: ValueEnd,
    /// The name of the member under way.
    name: String,
    members: Members,
    members_size: usize,
    had_rows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the object.
    Start,
    /// Before a name; `first` if the object may also end here.
    BeforeName { first: bool },
    /// Within a name.
    Name,
    /// Behind a name.
    Colon,
    /// Before a member's value.
    BeforeValue,
    /// Within it.
    Value,
    /// Behind it, or behind the rows.
    Behind,
    /// Before a row; `first` if the rows may also end here.
    BeforeRow { first: bool },
    /// Within it.
    Row,
    /// Behind it.
    BehindRow,
    /// Behind the object.
    Done,
}

/// An answer that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    problem: Problem,
    member: Option<String>,
    at: u64,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    NoObject,
    NoValue,
    NoName,
    NoColon,
    NoEnd,
    Brackets,
    TooDeep,
    Twice,
    NoArray,
    MemberTooLong,
    TooManyMembers,
    RowTooLong,
    More,
    Ended,
    NoRows,
    Member,
}

impl Splitter {
    /// For an answer that has its rows under this name.
    pub(crate) fn new(rows: &'static str, limits: Limits) -> Self {
        Self {
            rows,
            limits,
            state: State::Start,
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

    /// Takes the next piece. The one before must be used up: [`next_row`] has
    /// said `None`.
    ///
    /// [`next_row`]: Self::next_row
    pub(crate) fn push(&mut self, piece: Bytes) {
        debug_assert!(
            self.input.is_empty(),
            "a piece is taken when the last is used up"
        );
        self.input = piece;
    }

    /// The next row that has come whole; `None` if more has to come first.
    pub(crate) fn next_row(&mut self) -> Result<Option<Bytes>, Malformed> {
        self.advance().map_err(|problem| self.malformed(problem))
    }

    /// Says that nothing more will come.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        match self.state {
            State::Done if self.had_rows => Ok(()),
            State::Done => Err(self.malformed(Problem::NoRows)),
            _ => Err(self.malformed(Problem::Ended)),
        }
    }

    /// Whether the object is whole, with rows or without.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == State::Done
    }

    /// What was said around the rows, so far.
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    fn advance(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(&byte) = self.input.first() {
            if let State::Name | State::Value | State::Row = self.state {
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
                (State::Start, b'{') => State::BeforeName { first: true },
                (State::BeforeName { first: true }, b'}') | (State::Behind, b'}') => State::Done,
                (State::BeforeName { .. }, b'"') => {
                    self.begin(State::Name);
                    continue;
                }
                (State::Colon, b':') => State::BeforeValue,
                (State::BeforeValue, _) if self.name != self.rows => {
                    self.begin(State::Value);
                    continue;
                }
                (State::BeforeValue, b'[') if !self.had_rows => {
                    self.had_rows = true;
                    State::BeforeRow { first: true }
                }
                // Some services say that there are no rows by `null`.
                (State::BeforeValue, b'n') if !self.had_rows => {
                    self.had_rows = true;
                    self.begin(State::Value);
                    continue;
                }
                (State::BeforeRow { first: true } | State::BehindRow, b']') => State::Behind,
                (State::BeforeRow { .. }, _) => {
                    self.begin(State::Row);
                    continue;
                }
                (State::BehindRow, b',') => State::BeforeRow { first: false },
                (State::Behind, b',') => State::BeforeName { first: false },
                (State::Start, _) => return Err(Problem::NoObject),
                (State::BeforeName { .. }, _) => return Err(Problem::NoName),
                (State::Colon, _) => return Err(Problem::NoColon),
                (State::BeforeValue, _) if self.had_rows => return Err(Problem::Twice),
                (State::BeforeValue, _) => return Err(Problem::NoArray),
                (State::Behind | State::BehindRow, _) => return Err(Problem::NoEnd),
                (State::Done, _) => return Err(Problem::More),
                (State::Name | State::Value | State::Row, _) => {
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

    fn begin(&mut self, state: State) {
        self.state = state;
        self.value = ValueEnd::new();
        self.held.clear();
    }

    /// Goes on with the value under way. A row if it is one and it ended.
    fn scan(&mut self) -> Result<Option<Bytes>, Problem> {
        let (most, problem) = match self.state {
            State::Row => (self.limits.row, Problem::RowTooLong),
            _ => (
                self.limits.members - self.members_size,
                Problem::MemberTooLong,
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
        if self.state == State::Row {
            self.state = State::BehindRow;
            return Ok(Some(value));
        }
        self.members_size += value.len();
        self.member_part(value)?;
        Ok(None)
    }

    /// A name or a member's value has come whole.
    fn member_part(&mut self, value: Bytes) -> Result<(), Problem> {
        if self.state == State::Name {
            self.name = serde_json::from_slice(&value).map_err(|_| Problem::NoName)?;
            self.state = State::Colon;
            return Ok(());
        }
        self.state = State::Behind;
        if self.name == self.rows {
            return if &value[..] == b"null" {
                Ok(())
            } else {
                Err(Problem::NoArray)
            };
        }
        // A copy, so that a member does not keep a whole piece alive.
        let value = Bytes::copy_from_slice(&value);
        self.members.push(std::mem::take(&mut self.name), value)
    }

    fn malformed(&self, problem: Problem) -> Malformed {
        Malformed {
            problem,
            member: None,
            at: self.consumed,
        }
    }
}

impl Malformed {
    /// A member has not the shape that it should have.
    pub(super) fn member(name: &str) -> Self {
        Self {
            problem: Problem::Member,
            member: Some(name.to_owned()),
            at: 0,
        }
    }
}

/// Says where, and never quotes what.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::NoObject => "it is no JSON object",
            Problem::NoValue => "there is no JSON value where one should be",
            Problem::NoName => "there is no name where one should be",
            Problem::NoColon => "there is no colon behind a name",
            Problem::NoEnd => "there is neither a comma nor an end behind a value",
            Problem::Brackets => "its brackets do not match",
            Problem::TooDeep => "it is nested too deeply",
            Problem::Twice => "it says something twice",
            Problem::NoArray => "its rows are no array",
            Problem::MemberTooLong => "there is too much around the rows",
            Problem::TooManyMembers => "it has too many members",
            Problem::RowTooLong => "a row is too long",
            Problem::More => "there is more behind its end",
            Problem::Ended => "it breaks off",
            Problem::NoRows => "it has no rows",
            Problem::Member => {
                let member = self.member.as_deref().unwrap_or_default();
                return write!(f, "the answer makes no sense: {member:?} has another shape");
            }
        };
        write!(
            f,
            "the answer makes no sense at byte {}: {problem}",
            self.at
        )
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests;
