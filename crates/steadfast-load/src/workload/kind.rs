//! What the workload does.

use serde::Serialize;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads a document.
    Get,
    /// Writes a document.
    Upsert,
    /// Writes a document that a majority must have.
    DurableUpsert,
    /// Writes a new document.
    Insert,
    /// Removes a document.
    Remove,
    /// Adds to a counter.
    Increment,
    /// Adds bytes to a document.
    Append,
    /// Adds an element to an array within a document.
    ArrayAppend,
    /// Reads a document by a statement.
    Select,
    /// Writes a new document by a statement.
    InsertStatement,
    /// Locks a document, and unlocks it.
    Lock,
}

/// How a write stands in the journal: which command, on which documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Set, on a document that one worker writes again and again.
    Register,
    /// Set, on a document of all workers.
    Shared,
    /// Added, by its own name.
    New,
    /// Deleted.
    Gone,
    /// Added to a counter.
    Counter,
    /// Appended to a text.
    Text,
    /// Appended to an array.
    Array,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Get,
        Self::Upsert,
        Self::DurableUpsert,
        Self::Insert,
        Self::Remove,
        Self::Increment,
        Self::Append,
        Self::ArrayAppend,
        Self::Select,
        Self::InsertStatement,
        Self::Lock,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Upsert => "upsert",
            Self::DurableUpsert => "durable upsert",
            Self::Insert => "insert",
            Self::Remove => "remove",
            Self::Increment => "increment",
            Self::Append => "append",
            Self::ArrayAppend => "array append",
            Self::Select => "select",
            Self::InsertStatement => "insert statement",
            Self::Lock => "lock",
        }
    }

    /// How it stands in the journal, if it writes.
    pub const fn place(self) -> Option<Place> {
        match self {
            Self::Upsert => Some(Place::Register),
            Self::DurableUpsert => Some(Place::Shared),
            Self::Insert | Self::InsertStatement => Some(Place::New),
            Self::Remove => Some(Place::Gone),
            Self::Increment => Some(Place::Counter),
            Self::Append => Some(Place::Text),
            Self::ArrayAppend => Some(Place::Array),
            Self::Get | Self::Select | Self::Lock => None,
        }
    }

    /// Whether each of its writes is looked for in its document afterwards. Of the others, what
    /// is there in the end is compared.
    pub const fn is_read_back(self) -> bool {
        match self {
            Self::Insert | Self::InsertStatement | Self::Append | Self::ArrayAppend => true,
            Self::Get
            | Self::Upsert
            | Self::DurableUpsert
            | Self::Remove
            | Self::Increment
            | Self::Select
            | Self::Lock => false,
        }
    }

    /// How many of a thousand operations a worker begins are of this kind. Removals follow
    /// insertions and have no share of their own.
    pub(super) const fn share(self) -> u32 {
        match self {
            Self::Get => 410,
            Self::Upsert => 190,
            Self::DurableUpsert => 50,
            Self::Insert => 90,
            Self::Remove => 0,
            Self::Increment => 90,
            Self::Append => 60,
            Self::ArrayAppend => 60,
            Self::Select => 20,
            Self::InsertStatement => 10,
            Self::Lock => 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_of_a_thousand() {
        assert_eq!(Kind::ALL.iter().map(|kind| kind.share()).sum::<u32>(), 1000);
    }
}
