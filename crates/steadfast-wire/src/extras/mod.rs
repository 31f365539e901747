//! Extras: the fixed fields of each command, between the framing extras and the key.
//!
//! | command | request | response |
//! |---|---|---|
//! | Get, GetReplica | none | [`DocumentFlags`] |
//! | GetAndTouch | [`ExpiryExtras`] | [`DocumentFlags`] |
//! | GetLocked | [`LockTime`] | [`DocumentFlags`] |
//! | GetRandomKey | optionally the id of a collection | [`DocumentFlags`] |
//! | Touch | [`ExpiryExtras`] | none |
//! | Set, Add, Replace | [`StoreExtras`] | optionally [`MutationTokenExtras`] |
//! | Delete, Append, Prepend | none | optionally [`MutationTokenExtras`] |
//! | Increment, Decrement | [`CounterExtras`] | optionally [`MutationTokenExtras`]; the value is a [`CounterValue`] |
//! | GetMeta | optionally [`GetMetaVersion`] | [`DocumentMeta`] |
//! | GetClusterConfig | optionally [`ConfigVersion`](crate::config::ConfigVersion) | none |
//! | GetCollectionId | none | [`CollectionIdFound`](crate::collections::CollectionIdFound) |
//! | GetScopeId | none | the uid of the manifest and the id |
//! | subdocument commands | see [`subdoc`](crate::subdoc) | optionally [`MutationTokenExtras`] |
//! | notification of a config | [`NotifiedVersion`](crate::config::NotifiedVersion) | none |
//!
//! A mutation is answered with a [`MutationTokenExtras`] where HELLO granted `MutationSeqno`. All other
//! commands have no extras in either direction.

mod document;
pub(crate) mod layout;
mod meta;

pub use document::{
    CounterExtras, CounterValue, DocumentFlags, ExpiryExtras, LockTime, MutationTokenExtras,
    StoreExtras,
};
pub use meta::{DocumentMeta, GetMetaVersion};
