//! Checks that operations on shared documents have an order that explains all results.
//!
//! Several workers use a document at the same time, so none of them knows what it must find.
//! But some order of the operations must explain every result, in which each operation takes
//! effect at one moment between its beginning and its end (linearizability). An ambiguous
//! operation takes effect at any time after its beginning, or never.
//!
//! - `operation`: what an operation does to the state of a document, and what it may return.
//! - `checker`: the search for an order, online and with bounded memory.
//! - `recorder`: records the operations on one document; workers wait for nothing else.
//! - `document`: puts them in order of time, with the journal's entries, for the checker.
//! - `counterexample`: the smallest part of a history that shows a violation.
//!
//! A CAS grows with every change of a document, so it names the place of a write in the order.
//! With the cluster's journal, ambiguous writes have a CAS, too. Then only one order is
//! possible, and the check is a sweep. Without a CAS, the checker keeps a set of
//! configurations: states that the document may be in.
//!
//! Whole histories in memory (as in other checkers) were rejected, because a soak of hours must
//! need no more memory than a minute.

mod checker;
mod counterexample;
mod digest;
mod document;
mod operation;
mod recorder;
#[cfg(test)]
mod tests;

pub(crate) use counterexample::{Bar, Counterexample};
pub(crate) use digest::Digest;
pub(crate) use operation::{Action, Body, DocumentValue, Operation, Outcome};
pub(crate) use recorder::{History, Tag, Token};
