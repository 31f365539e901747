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
    /// Reads a document and its expiry, or a part of it.
    Lookup,
    /// Writes a document that has a certain CAS.
    Replace,
    /// Prepends bytes to a document.
    Prepend,
    /// Sets the expiry of a document.
    Touch,
    /// Unlocks a document that was locked on its own.
    Unlock,
}

impl OpKind {
    pub(crate) const ALL: [Self; 16] = [
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
        Self::Lookup,
        Self::Replace,
        Self::Prepend,
        Self::Touch,
        Self::Unlock,
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
            Self::Lookup => "lookup",
            Self::Replace => "replace",
            Self::Prepend => "prepend",
            Self::Touch => "touch",
            Self::Unlock => "unlock",
        }
    }

    /// Returns the kind that a write has in the journal, which does not tell how a document was
    /// inserted and whether an upsert is durable. None for reads, and for touches, which carry no id.
    pub(crate) const fn journaled_as(self) -> Option<Self> {
        match self {
            Self::Get | Self::Select | Self::Lock | Self::Lookup | Self::Touch | Self::Unlock => {
                None
            }
            Self::Insert | Self::InsertStatement => Some(Self::Insert),
            Self::Upsert | Self::DurableUpsert => Some(Self::Upsert),
            Self::Remove
            | Self::Increment
            | Self::Append
            | Self::ArrayAppend
            | Self::Replace
            | Self::Prepend => Some(self),
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

    /// Returns whether it only reads, so that it is never ambiguous.
    pub(crate) const fn only_reads(self) -> bool {
        matches!(self, Self::Get | Self::Select | Self::Lookup)
    }

    /// Returns its share of a thousand planned operations: on documents of the worker itself, and
    /// on those of all workers. A worker removes its documents after reading them back, which is
    /// not planned.
    pub(super) const fn shares(self) -> [u32; 2] {
        match self {
            Self::Get => [300, 110],
            Self::Upsert => [120, 30],
            Self::DurableUpsert => [0, 50],
            Self::Insert => [90, 10],
            Self::Remove => [0, 10],
            Self::Increment => [60, 30],
            Self::Append => [40, 15],
            Self::ArrayAppend => [40, 15],
            Self::Select => [20, 0],
            Self::InsertStatement => [10, 0],
            Self::Lock => [10, 10],
            Self::Lookup => [0, 10],
            Self::Replace => [0, 10],
            Self::Prepend => [0, 5],
            Self::Touch => [0, 5],
            Self::Unlock => [0, 0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_add_up_to_a_thousand() {
        assert_eq!(
            OpKind::ALL
                .iter()
                .flat_map(|kind| kind.shares())
                .sum::<u32>(),
            1000
        );
    }
}
