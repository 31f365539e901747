//! The rules of each opcode: what the server knows of a command before it runs it.

use steadfast_wire::Opcode;

/// The rules of an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandRules {
    /// Whether a client may send it before it has authenticated.
    pub before_login: bool,
    /// Whether its key is a document's, with the collection in front.
    pub document_key: bool,
    /// Whether it may overtake others and be overtaken, with unordered execution. Every other
    /// command is a barrier: it starts when all before it on its connection are done, and those
    /// after it start when it is done.
    pub reordered: bool,
}

impl CommandRules {
    /// The rules of a command on a document.
    const DOCUMENT: Self = Self {
        before_login: false,
        document_key: true,
        reordered: true,
    };
    /// The rules of a command on a document that is a barrier.
    const DOCUMENT_IN_ORDER: Self = Self {
        reordered: false,
        ..Self::DOCUMENT
    };
    /// The rules of a command on a bucket or on the cluster.
    const OTHER: Self = Self {
        document_key: false,
        ..Self::DOCUMENT_IN_ORDER
    };
    /// The rules of a command that sets a connection up.
    const BEFORE_LOGIN: Self = Self {
        before_login: true,
        ..Self::OTHER
    };

    /// Returns the rules of an opcode.
    pub(super) const fn of(opcode: Opcode) -> Self {
        match opcode {
            Opcode::Get
            | Opcode::Set
            | Opcode::Add
            | Opcode::Replace
            | Opcode::Delete
            | Opcode::Increment
            | Opcode::Decrement
            | Opcode::Append
            | Opcode::Prepend
            | Opcode::Touch
            | Opcode::GetAndTouch
            | Opcode::GetLocked
            | Opcode::UnlockKey
            | Opcode::GetReplica
            | Opcode::SubdocGet
            | Opcode::SubdocExists
            | Opcode::SubdocGetCount
            | Opcode::SubdocDictAdd
            | Opcode::SubdocDictUpsert
            | Opcode::SubdocDelete
            | Opcode::SubdocReplace
            | Opcode::SubdocArrayPushLast
            | Opcode::SubdocArrayPushFirst
            | Opcode::SubdocArrayInsert
            | Opcode::SubdocArrayAddUnique
            | Opcode::SubdocCounter
            | Opcode::SubdocReplaceBodyWithXattr
            | Opcode::SubdocMultiLookup
            | Opcode::SubdocMultiMutation => Self::DOCUMENT,
            Opcode::GetMeta | Opcode::GetEx | Opcode::GetExReplica => Self::DOCUMENT_IN_ORDER,
            Opcode::GetClusterConfig => Self {
                reordered: true,
                ..Self::OTHER
            },
            Opcode::Observe
            | Opcode::ObserveSeqno
            | Opcode::GetRandomKey
            | Opcode::GetCollectionsManifest
            | Opcode::GetCollectionId
            | Opcode::GetScopeId
            | Opcode::RangeScanCreate
            | Opcode::RangeScanContinue
            | Opcode::RangeScanCancel
            | Opcode::SelectBucket
            | Opcode::Stat
            | Opcode::Unknown(_) => Self::OTHER,
            Opcode::Hello
            | Opcode::SaslListMechs
            | Opcode::SaslAuth
            | Opcode::SaslStep
            | Opcode::GetErrorMap
            | Opcode::Noop
            | Opcode::Version
            | Opcode::Quit => Self::BEFORE_LOGIN,
        }
    }
}
