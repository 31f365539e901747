//! What the workload needs of a client, so that the same workload runs through others.

mod steadfast;

use bytes::Bytes;
use serde::Serialize;

pub use self::steadfast::{Access, Steadfast};
use crate::measure::Decisions;

/// A client under test. Clones share its connections.
///
/// Dropping a future of it abandons the operation, which the workload does in the end only: with
/// reads, and with removals that clear away, when no more time is left for them.
pub trait Client: Clone + Send + Sync + 'static {
    /// Reads a document.
    fn get(&self, key: &str) -> impl Reply<Bytes>;
    /// Writes a document, durably if so asked.
    fn upsert(&self, key: &str, value: &Value<'_>, durable: bool) -> impl Reply<()>;
    /// Writes a new document.
    fn insert(&self, key: &str, value: &Value<'_>) -> impl Reply<()>;
    /// Removes a document.
    fn remove(&self, key: &str) -> impl Reply<()>;
    /// Adds to a counter that exists.
    fn increment(&self, key: &str, delta: u64) -> impl Reply<()>;
    /// Adds bytes to a document.
    fn append(&self, key: &str, bytes: String) -> impl Reply<()>;
    /// Adds an element to the array `a` of a document.
    fn array_append(&self, key: &str, element: &str) -> impl Reply<()>;
    /// Reads the `id` of a document by a statement; none if there is no such document.
    fn select(&self, key: &str) -> impl Reply<Option<String>>;
    /// Writes a new document by a statement.
    fn insert_statement(&self, key: &str, value: &Value<'_>) -> impl Reply<()>;
    /// Locks a document for a second, and returns the CAS that unlocks it.
    fn lock(&self, key: &str) -> impl Reply<u64>;
    /// Unlocks a document.
    fn unlock(&self, key: &str, cas: u64) -> impl Reply<()>;

    /// Takes a new password of the user.
    fn set_password(&self, user: &str, password: &str);

    /// The retries and refusals so far, if the client counts them.
    fn decisions(&self) -> Decisions {
        Decisions::default()
    }
}

/// What an operation comes to.
pub trait Reply<T>: Future<Output = Result<T, Trouble>> + Send {}

impl<T, F: Future<Output = Result<T, Trouble>> + Send> Reply<T> for F {}

/// What documents consist of.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Value<'a> {
    /// An identity first, so that the journal sees it, and something to fill it.
    Document {
        /// Which write it is.
        id: String,
        /// As large as documents are.
        padding: &'a str,
    },
    /// A counter that starts at nothing.
    Counter(u64),
    /// A text that others are appended to.
    Text(&'a str),
    /// An array that elements are appended to.
    Array {
        /// The array.
        a: [u64; 0],
    },
}

/// An operation that did not succeed.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// What happened.
    pub nature: Nature,
    /// Whether it may have been applied.
    pub ambiguous: bool,
    /// Whether the time was up.
    pub timeout: bool,
    /// The name of the error.
    pub name: String,
    /// All that the error says.
    pub history: String,
}

/// How an operation that did not succeed is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// The faults explain it: the time was up, a connection closed, a node was missing.
    Explained,
    /// There is no such document.
    NotFound,
    /// The credentials were refused.
    Authentication,
    /// Nothing explains it.
    Unexplained,
}

impl Trouble {
    /// Nobody waited for the answer any longer.
    pub(crate) fn unanswered() -> Self {
        Self {
            nature: Nature::Explained,
            ambiguous: false,
            timeout: true,
            name: "UnambiguousTimeout".to_owned(),
            history: "there was no answer, and no more time to wait for one".to_owned(),
        }
    }

    /// Whether it is an answer like any other: a document that is not there.
    pub fn is_answer(&self) -> bool {
        self.nature == Nature::NotFound
    }
}
