//! A Couchbase client whose retry handling follows the documents to the letter:
//! SDK RFC 0049 revision 16, RFC 0005 and RFC 0013.
#![forbid(unsafe_code)]

pub mod reason;
