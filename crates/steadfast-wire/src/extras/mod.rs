//! The fixed fields of each command, which stand between the framing extras and the key.
//!
//! | command | request | response |
//! |---|---|---|
//! | Get, GetReplica | none | [`DocumentFlags`] |
//! | GetAndTouch | [`Expiry`] | [`DocumentFlags`] |
//! | GetLocked | [`LockTime`] | [`DocumentFlags`] |
//! | GetRandomKey | optionally [`RandomKeyCollection`] | [`DocumentFlags`] |
//! | Touch | [`Expiry`] | none |
//! | Set, Add, Replace | [`Store`] | optionally [`MutationToken`] |
//! | Delete, Append, Prepend | none | optionally [`MutationToken`] |
//! | Increment, Decrement | [`Counter`] | optionally [`MutationToken`]; the value is a [`CounterValue`] |
//! | GetMeta | optionally [`GetMetaVersion`] | [`DocumentMeta`] |
//! | GetClusterConfig | optionally [`ConfigVersion`](crate::config::ConfigVersion) | none |
//! | GetCollectionId | none | [`CollectionIdFound`](crate::collections::CollectionIdFound) |
//! | GetScopeId | none | [`ScopeIdFound`](crate::collections::ScopeIdFound) |
//! | subdocument commands | see [`subdoc`](crate::subdoc) | optionally [`MutationToken`] |
//! | notification of a config | [`NotifiedVersion`](crate::config::NotifiedVersion) | none |
//!
//! A mutation is answered with a [`MutationToken`] where HELLO granted `MutationSeqno`. All other
//! commands have no extras in either direction.

mod document;
pub(crate) mod layout;
mod meta;

pub use document::{
    Counter, CounterValue, DocumentFlags, Expiry, LockTime, MutationToken, RandomKeyCollection,
    Store,
};
pub use meta::{DocumentMeta, GetMetaVersion};
