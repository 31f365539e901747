//! The rules of each opcode: what the server knows of a command before it runs it.

use steadfast_wire::{Datatype, Opcode};

use crate::version::ServerVersion;

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
    /// Whether it may have a durability requirement.
    pub durable: bool,
    /// Whether it may keep the expiry of a document.
    pub preserves_expiry: bool,
    /// The lengths that its extras may have; any if there is none.
    pub extras: &'static [usize],
    pub key: Part,
    pub value: Part,
    pub cas: Part,
    /// The datatypes that its value may have.
    pub datatypes: Datatype,
}

/// Whether a part of a request may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Absent,
    Optional,
    Required,
}

use Part::{Absent, Optional, Required};

const SUBDOC_LOOKUP: &[usize] = &[3, 4];
const SUBDOC_MUTATION: &[usize] = &[3, 4, 7, 8];

impl CommandRules {
    /// The rules of a command about which nothing is known.
    const UNKNOWN: Self = Self {
        before_login: false,
        document_key: false,
        reordered: false,
        durable: false,
        preserves_expiry: false,
        extras: &[],
        key: Optional,
        value: Optional,
        cas: Optional,
        datatypes: Datatype::all(),
    };

    /// A command on a bucket or on the cluster, with the lengths of its extras.
    const fn other(extras: &'static [usize], key: Part, value: Part) -> Self {
        Self {
            extras,
            key,
            value,
            cas: Absent,
            datatypes: Datatype::RAW,
            ..Self::UNKNOWN
        }
    }

    /// A command that sets a connection up.
    const fn setup(key: Part, value: Part) -> Self {
        Self {
            before_login: true,
            ..Self::other(&[0], key, value)
        }
    }

    /// A command on a document, which may be reordered.
    const fn document(extras: &'static [usize], value: Part, cas: Part) -> Self {
        Self {
            document_key: true,
            reordered: true,
            cas,
            ..Self::other(extras, Required, value)
        }
    }

    /// A command that writes a document, and may be durable.
    const fn write(extras: &'static [usize], value: Part, cas: Part) -> Self {
        Self {
            durable: true,
            preserves_expiry: true,
            ..Self::document(extras, value, cas)
        }
    }

    /// The same for a value that may be JSON and compressed.
    const fn with_body(self) -> Self {
        Self {
            datatypes: Datatype::JSON.union(Datatype::SNAPPY),
            ..self
        }
    }

    const fn without_preserved_expiry(self) -> Self {
        Self {
            preserves_expiry: false,
            ..self
        }
    }

    const fn with_cas(self) -> Self {
        Self {
            cas: Optional,
            ..self
        }
    }

    const fn in_order(self) -> Self {
        Self {
            reordered: false,
            ..self
        }
    }

    const fn with_json(self) -> Self {
        Self {
            datatypes: Datatype::JSON,
            ..self
        }
    }

    /// Returns the rules of an opcode.
    pub(super) const fn of(opcode: Opcode, version: ServerVersion) -> Self {
        match opcode {
            Opcode::Get | Opcode::GetReplica => Self::document(&[0], Absent, Absent),
            Opcode::Set | Opcode::Replace => Self::write(&[8], Optional, Optional).with_body(),
            Opcode::Add => Self::write(&[8], Optional, Absent)
                .with_body()
                .without_preserved_expiry(),
            Opcode::Delete => Self::write(&[0], Absent, Optional).without_preserved_expiry(),
            Opcode::Increment | Opcode::Decrement => Self::write(&[20], Absent, Absent),
            Opcode::Append | Opcode::Prepend => Self::write(&[0], Optional, Optional).with_body(),
            Opcode::Touch | Opcode::GetAndTouch => {
                Self::write(&[4], Absent, Absent).without_preserved_expiry()
            }
            Opcode::GetLocked => Self::document(&[0, 4], Absent, Absent),
            Opcode::UnlockKey => Self::document(&[0], Absent, Required),
            Opcode::GetMeta => Self::document(&[0, 1], Absent, Absent).in_order(),
            Opcode::SubdocGet | Opcode::SubdocExists | Opcode::SubdocGetCount => {
                Self::document(SUBDOC_LOOKUP, Optional, Optional)
            }
            Opcode::SubdocMultiLookup => Self::document(&[0, 1], Optional, Optional),
            Opcode::SubdocDictAdd
            | Opcode::SubdocDictUpsert
            | Opcode::SubdocDelete
            | Opcode::SubdocReplace
            | Opcode::SubdocArrayPushLast
            | Opcode::SubdocArrayPushFirst
            | Opcode::SubdocArrayInsert
            | Opcode::SubdocArrayAddUnique
            | Opcode::SubdocReplaceBodyWithXattr
            | Opcode::SubdocCounter => Self::write(SUBDOC_MUTATION, Optional, Optional),
            Opcode::SubdocMultiMutation => Self::write(&[0, 1, 4, 5, 8, 9], Optional, Optional),
            Opcode::GetClusterConfig if version.rules().reorders_configs => Self {
                reordered: true,
                ..Self::other(&[0, 16], Absent, Absent)
            },
            Opcode::GetClusterConfig | Opcode::GetCollectionsManifest => {
                Self::other(&[0], Absent, Absent)
            }
            Opcode::Observe => Self::other(&[0], Absent, Required),
            Opcode::ObserveSeqno => Self::other(&[0], Absent, Required).with_cas(),
            Opcode::GetRandomKey => Self::other(&[0, 4], Absent, Absent),
            Opcode::GetCollectionId | Opcode::GetScopeId => Self::other(&[0], Optional, Optional),
            Opcode::RangeScanCreate => Self::other(&[0], Absent, Required).with_json(),
            Opcode::RangeScanContinue => Self::other(&[], Absent, Absent),
            Opcode::RangeScanCancel => Self::other(&[], Absent, Absent),
            Opcode::SelectBucket => Self::other(&[0], Optional, Absent).with_cas(),
            Opcode::Stat => Self::other(&[0], Optional, Optional).with_json(),
            Opcode::Hello => Self::setup(Optional, Optional),
            Opcode::SaslAuth | Opcode::SaslStep => Self::setup(Required, Optional),
            Opcode::GetErrorMap => Self::setup(Absent, Required),
            Opcode::SaslListMechs | Opcode::Noop | Opcode::Version | Opcode::Quit => {
                Self::setup(Absent, Absent)
            }
            Opcode::GetEx | Opcode::GetExReplica => Self {
                document_key: true,
                ..Self::UNKNOWN
            },
            Opcode::Unknown(_) => Self::UNKNOWN,
        }
    }
}
