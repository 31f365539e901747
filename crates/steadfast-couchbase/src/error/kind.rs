//! Kinds of errors: the ones in SDK RFC 0058 that the client raises.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The kind of an error, by the names of SDK RFC 0058.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name in metrics and in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// The operation timed out and may have been applied.
    AmbiguousTimeout = "timed out";
    /// The operation timed out and was not applied, or is idempotent.
    UnambiguousTimeout = "timed out";
    /// The operation was in progress when its connection or the client was closed.
    RequestCanceled = "cancelled";
    /// An argument is invalid.
    InvalidArgument = "invalid argument";
    /// The cluster does not have the service.
    ServiceNotAvailable = "service not available";
    /// The server failed internally.
    InternalServerFailure = "internal server failure";
    /// The credentials are wrong or insufficient.
    AuthenticationFailure = "authentication failure";
    /// The server is temporarily unable to do it, or the client shed the operation.
    TemporaryFailure = "temporary failure";
    /// The server does not understand the statement.
    ParsingFailure = "parsing failure";
    /// The document has changed, or another CAS holds its lock.
    CasMismatch = "CAS mismatch";
    /// There is no such bucket.
    BucketNotFound = "bucket not found";
    /// There is no such collection.
    CollectionNotFound = "collection not found";
    /// There is no such scope.
    ScopeNotFound = "scope not found";
    /// The server does not know this operation.
    UnsupportedOperation = "unsupported operation";
    /// The server, the bucket or this connection lacks what the operation needs.
    FeatureNotAvailable = "feature not available";
    /// There is no such index.
    IndexNotFound = "index not found";
    /// The index exists already.
    IndexExists = "index exists";
    /// The value could not be encoded.
    EncodingFailure = "encoding failure";
    /// The value, or the server's response, could not be decoded.
    DecodingFailure = "decoding failure";
    /// The user exceeds a rate limit.
    RateLimited = "rate limited";
    /// The request would exceed a quota.
    QuotaLimited = "quota limited";
    /// There is no such document.
    DocumentNotFound = "document not found";
    /// No copy of the document could be read.
    DocumentUnretrievable = "document unretrievable";
    /// Another client holds a lock on the document.
    DocumentLocked = "document locked";
    /// The document is not locked.
    DocumentNotLocked = "document not locked";
    /// The value is larger than the server allows.
    ValueTooLarge = "value too large";
    /// The document exists already.
    DocumentExists = "document exists";
    /// The server does not know the durability level.
    DurabilityLevelNotAvailable = "durability level not available";
    /// There are not enough nodes for this durability.
    DurabilityImpossible = "durability impossible";
    /// The server cannot say whether the write became durable.
    DurabilityAmbiguous = "durability ambiguous";
    /// A durable write to the document is not finished.
    DurableWriteInProgress = "durable write in progress";
    /// A durable write to the document is being committed again.
    DurableWriteReCommitInProgress = "durable write re-commit in progress";
    /// The document has no such path.
    PathNotFound = "path not found";
    /// The path does not fit the document's structure.
    PathMismatch = "path mismatch";
    /// The path is invalid.
    PathInvalid = "path invalid";
    /// The path is too long.
    PathTooBig = "path too big";
    /// The path has too many parts.
    PathTooDeep = "path too deep";
    /// The value would make the document too deep.
    ValueTooDeep = "value too deep";
    /// The value is not JSON, or does not fit there.
    ValueInvalid = "value invalid";
    /// The document is not JSON.
    DocumentNotJson = "document not JSON";
    /// The number is out of range.
    NumberTooBig = "number too big";
    /// The delta is out of range, or the document is not a number.
    DeltaInvalid = "delta invalid";
    /// The path exists already.
    PathExists = "path exists";
    /// The server does not know the macro.
    XattrUnknownMacro = "unknown macro";
    /// These extended attributes cannot be used in one operation.
    XattrInvalidKeyCombo = "invalid combination of extended attributes";
    /// The server does not know the virtual attribute.
    XattrUnknownVirtualAttribute = "unknown virtual attribute";
    /// Virtual attributes can only be read.
    XattrCannotModifyVirtualAttribute = "cannot modify a virtual attribute";
    /// The user has no rights on the extended attribute.
    XattrNoAccess = "no access to the extended attribute";
    /// The query could not be planned.
    PlanningFailure = "planning failure";
    /// The index failed.
    IndexFailure = "index failure";
    /// The prepared statement cannot be used.
    PreparedStatementFailure = "prepared statement failure";
    /// A statement that changes documents failed.
    DmlFailure = "DML failure";
    /// The analytics statement could not be compiled.
    CompilationFailure = "compilation failure";
    /// Analytics has too many jobs.
    JobQueueFull = "job queue full";
    /// There is no such analytics dataset.
    DatasetNotFound = "dataset not found";
    /// There is no such analytics dataverse.
    DataverseNotFound = "dataverse not found";
    /// The analytics dataset exists already.
    DatasetExists = "dataset exists";
    /// The analytics dataverse exists already.
    DataverseExists = "dataverse exists";
    /// There is no such analytics link.
    LinkNotFound = "link not found";
    /// There is no such view.
    ViewNotFound = "view not found";
    /// The bucket exists already.
    BucketExists = "bucket exists";
    /// The scope exists already.
    ScopeExists = "scope exists";
    /// The collection exists already.
    CollectionExists = "collection exists";
    /// Another error; the context describes it.
    Couchbase = "failed";
}

impl ErrorKind {
    /// Returns whether the operation did its work, and this is what it found: the document or
    /// the path is there or not, or the document has changed. Metrics do not count it as a
    /// failure.
    pub const fn is_answer(self) -> bool {
        matches!(
            self,
            Self::DocumentNotFound
                | Self::DocumentExists
                | Self::CasMismatch
                | Self::DocumentNotLocked
                | Self::PathNotFound
                | Self::PathExists
        )
    }

    /// Whether it is a timeout.
    pub const fn is_timeout(self) -> bool {
        matches!(self, Self::AmbiguousTimeout | Self::UnambiguousTimeout)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
