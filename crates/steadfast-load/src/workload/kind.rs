//! Kinds of operations.

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum OpKind {
    /// Reads a document.
    Get,
    /// Writes a document.
    Upsert,
    /// Writes a document with majority durability.
    DurableUpsert,
    /// Writes a new document.
    Insert,
    /// Removes a document.
    Remove,
    /// Adds to a counter.
    Increment,
    /// Appends bytes to a document.
    Append,
    /// Appends an element to an array in a document.
    ArrayAppend,
    /// Reads a document with a query.
    Select,
    /// Writes a new document with a query.
    InsertStatement,
    /// Locks and unlocks a document.
    Lock,
}

impl OpKind {
    pub(crate) const ALL: [Self; 11] = [
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

    pub(crate) const fn name(self) -> &'static str {
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

    /// Returns the kind that a write has in the journal, which does not tell how a document was
    /// inserted. None for reads.
    pub(crate) const fn journaled_as(self) -> Option<Self> {
        match self {
            Self::Get | Self::Select | Self::Lock => None,
            Self::Insert | Self::InsertStatement => Some(Self::Insert),
            Self::Upsert
            | Self::DurableUpsert
            | Self::Remove
            | Self::Increment
            | Self::Append
            | Self::ArrayAppend => Some(self),
        }
    }

    /// Returns whether each write is searched for in its document. For the other kinds, the final
    /// content is compared.
    pub(crate) const fn is_read_back(self) -> bool {
        matches!(
            self,
            Self::Insert | Self::InsertStatement | Self::Append | Self::ArrayAppend
        )
    }

    /// Returns its share of a thousand planned operations. Removals follow insertions and are not
    /// planned.
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
    fn the_shares_add_up_to_a_thousand() {
        assert_eq!(
            OpKind::ALL.iter().map(|kind| kind.share()).sum::<u32>(),
            1000
        );
    }
}
