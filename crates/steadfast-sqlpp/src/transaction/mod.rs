//! Transactions that statements take part in.
//!
//! The SDKs define the protocol, so that transactions of statements and of clients
//! see each other. A change is *staged* in the attribute `txn` of its document: only its
//! own transaction sees it. An entry in a *record*, a document with a well-known key, says
//! whether the transaction is pending or committed.
//!
//! A transaction begins with `BEGIN WORK`, on one node, and ends there. A client that has
//! staged changes by itself sends their list along, and the statements go on from there.
//!
//! - [`Transactions`]: the transactions that are open; [`Transaction`]: one of them;
//! - `staging`: staged changes in documents; `record`: the entry in the record;
//! - `steps`: begin, commit, rollback and savepoints;
//! - `documents`: the statements with which an SDK reads and writes single documents.

mod documents;
mod record;
mod staging;
mod steps;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::error::QueryError;
use crate::language::uuid;
use crate::options::{RequestOptions, duration};
use crate::session::{NodeRun, Session};

/// The most transactions that are open at a time.
const MAX_OPEN: usize = 1024;
/// The most savepoints of a transaction.
const MAX_SAVEPOINTS: usize = 64;
/// How long a transaction may take if its client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest time that a client may ask for.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// The open transactions of a cluster, by their id.
#[derive(Debug, Default)]
pub struct Transactions {
    open: Mutex<HashMap<String, Arc<Transaction>>>,
}

impl Transactions {
    /// Opens a transaction. Others that have expired are rolled back.
    fn open(
        &self,
        transaction: &Arc<Transaction>,
        session: &Arc<dyn Session>,
    ) -> Result<(), QueryError> {
        let now = session.now();
        // One that executes a statement ends with it.
        let is_over = |other: &Transaction| {
            let is_idle = !other.in_use.load(Ordering::Acquire);
            other.run.has_ended() || (other.expires <= now && is_idle)
        };
        let over: Vec<Arc<Transaction>> = {
            let mut open = self.open.lock();
            let over = open.extract_if(|_, other| is_over(other));
            over.map(|(_, other)| other).collect()
        };
        for other in over.iter().filter(|other| !other.run.has_ended()) {
            // If the rollback fails, the record stays, and clients clean up.
            if let Err(error) = other.roll_back(session) {
                tracing::debug!(%other.id, %error.message, "an expired transaction remains");
            }
        }
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            return Err(QueryError::new(17_021, "Too many transactions are open."));
        }
        if open.contains_key(&transaction.id) {
            let message = format!("The transaction {} has begun already.", transaction.id);
            return Err(QueryError::new(17_006, message));
        }
        open.insert(transaction.id.clone(), Arc::clone(transaction));
        Ok(())
    }

    /// Returns the transaction with this id, in use until the result is dropped.
    pub(crate) fn join(&self, id: &str, session: &Arc<dyn Session>) -> Result<Joined, QueryError> {
        let found = self.open.lock().get(id).cloned();
        let Some(transaction) = found.filter(|found| found.is_of(&**session)) else {
            return Err(QueryError::no_transaction(id));
        };
        if transaction.in_use.swap(true, Ordering::AcqRel) {
            let message = format!("The transaction {id} executes another statement.");
            return Err(QueryError::new(17_013, message));
        }
        let joined = Joined(transaction);
        if joined.0.expires <= session.now() {
            self.close(id);
            joined.0.roll_back(session)?;
            return Err(QueryError::new(
                17_010,
                format!("The transaction {id} has timed out."),
            ));
        }
        Ok(joined)
    }

    fn close(&self, id: &str) {
        self.open.lock().remove(id);
    }
}

/// A transaction that is busy with a statement, until this is dropped.
pub(crate) struct Joined(pub Arc<Transaction>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.in_use.store(false, Ordering::Release);
    }
}

/// An open transaction. One statement at a time uses it.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// The id that its statements carry. In an SDK it is the id of an attempt.
    pub id: String,
    /// The id that the attempts of an SDK have in common.
    family: String,
    user: String,
    /// The node on which it began.
    run: Arc<dyn NodeRun>,
    timeout: Duration,
    /// Since the Unix epoch.
    expires: Duration,
    in_use: AtomicBool,
    changes: Mutex<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    staged: Staged,
    savepoints: Vec<(String, Staged)>,
    /// Where its record is to be, if the client says.
    wanted_record: Option<(String, u32)>,
    /// The document with its entry, once there is one.
    record: Option<Place>,
}

/// The staged changes of a transaction.
pub(crate) type Staged = BTreeMap<Place, StagedChange>;

/// A document's place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    bucket: String,
    collection: u32,
    key: String,
}

/// A change that waits for its transaction to end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StagedChange {
    kind: ChangeKind,
    value: Arc<Value>,
    flags: u32,
    /// The CAS of the document with the change in it.
    cas: u64,
}

/// The kind of change, by the name that it has in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Insert,
    Replace,
    Remove,
}

impl ChangeKind {
    const ALL: [Self; 3] = [Self::Insert, Self::Replace, Self::Remove];

    const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Replace => "replace",
            Self::Remove => "remove",
        }
    }

    fn read(name: &Value) -> Option<Self> {
        let name = name.as_str()?;
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Transaction {
    /// Creates a transaction. `Transactions::open` registers it.
    fn new(
        id: String,
        family: String,
        options: &RequestOptions,
        session: &Arc<dyn Session>,
    ) -> Self {
        let left = options.value("txdata")["state"]["timeLeftMs"].as_u64();
        let timeout = options
            .text("txtimeout")
            .and_then(duration)
            .or_else(|| left.map(Duration::from_millis))
            .unwrap_or(DEFAULT_TIMEOUT)
            .min(MAX_TIMEOUT);
        Self {
            id,
            family,
            user: session.user().to_owned(),
            run: session.node_run(),
            timeout,
            expires: session.now().saturating_add(timeout),
            in_use: AtomicBool::new(true),
            changes: Mutex::default(),
        }
    }

    /// A transaction of one statement.
    pub(crate) fn implicit(options: &RequestOptions, session: &Arc<dyn Session>) -> Arc<Self> {
        let (id, family) = (random_id(&**session), random_id(&**session));
        Arc::new(Self::new(id, family, options, session))
    }

    fn is_of(&self, session: &dyn Session) -> bool {
        let here = self.run.node() == session.node_run().node() && !self.run.has_ended();
        here && self.user == session.user()
    }
}

fn random_id(session: &dyn Session) -> String {
    uuid(session.random()())
}
