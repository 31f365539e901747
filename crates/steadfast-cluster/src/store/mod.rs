//! Documents and their history, without I/O and without a clock.
//!
//! Nothing here opens a socket or reads a clock. From the inside out:
//!
//! - [`document`]: one document; [`expiry`] and [`hlc`]: its times and its CAS;
//! - [`copy`]: one node's copy of one vbucket;
//! - [`vbucket`]: all copies of one vbucket, their roles, and replication;
//! - [`durability`]: the number of copies that a durable write waits for;
//! - [`operations`] and [`subdocument`]: the effect of key-value commands on an active copy;
//! - [`mod@write`]: the commit of a command's result.
//!
//! A bucket is a row of vbuckets, each behind its own lock, so that connections on different
//! vbuckets do not meet.

pub(crate) mod copy;
pub(crate) mod document;
pub(crate) mod durability;
pub(crate) mod expiry;
pub(crate) mod hlc;
pub(crate) mod operations;
pub(crate) mod scan;
pub(crate) mod subdocument;
pub(crate) mod vbucket;
pub(crate) mod write;

/// A map by the key of a document, with its collection in front. A key is hashed several
/// times for each command, and the hash of std takes as long as a response takes to encode.
/// This hash is seeded at random too, so that no fixed list of keys collides. It does not
/// resist a client that measures, which a test server need not.
pub(crate) type KeyMap<V> = foldhash::HashMap<bytes::Bytes, V>;
