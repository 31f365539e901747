//! A cluster in memory that does one thing wrong.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_wire::Opcode;
use tokio::time::Instant;

use super::lie::Lie;
use crate::client::{ClientError, ErrorClass, Value};
use crate::workload::{OpKind, RunState};

/// How long the client waits for a cluster that does not answer.
pub(super) const TIMEOUT: Duration = Duration::from_millis(2500);
pub(super) const HISTORY: &str = "#1 a lie";
const OPERATIONS: u64 = 1500;
const EVERY: u64 = 7;

/// A cluster in memory that does one thing wrong.
#[derive(Clone)]
pub(super) struct Liar {
    state: Arc<RunState>,
    pub(super) store: Arc<Mutex<Store>>,
    lie: Lie,
    kind: OpKind,
    falls_silent: bool,
    operations: Arc<AtomicU64>,
}

#[derive(Default)]
pub(super) struct Store {
    pub(super) documents: HashMap<String, Stored>,
    pub(super) journal: Vec<(Opcode, String, Vec<u8>, u64)>,
    /// The last CAS.
    pub(super) cas: u64,
    /// The number of writes of the kind that it lies about.
    writes: u64,
}

#[derive(Clone, Default)]
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    pub(super) cas: u64,
    pub(super) expiry: u32,
    pub(super) locked: Option<Instant>,
}

impl Stored {
    pub(super) fn is_locked(&self) -> bool {
        self.locked.is_some_and(|until| until > Instant::now())
    }
}

/// A write that a worker asks for.
pub(super) struct Asked<'a> {
    pub(super) kind: OpKind,
    pub(super) opcode: Opcode,
    pub(super) key: &'a str,
    pub(super) argument: Vec<u8>,
    /// The CAS that the document must have, if any.
    pub(super) cas: Option<u64>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(kind: OpKind, opcode: Opcode, key: &'a str, argument: Vec<u8>) -> Self {
        Self {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        }
    }
}

impl Liar {
    pub(super) fn new(
        state: Arc<RunState>,
        (lie, kind): (Lie, OpKind),
        falls_silent: bool,
    ) -> Self {
        Self {
            state,
            store: Arc::default(),
            lie,
            kind,
            falls_silent,
            operations: Arc::default(),
        }
    }

    /// Yields to others, and ends the run after enough operations.
    pub(super) async fn turn(&self) -> Result<(), ClientError> {
        if self.operations.fetch_add(1, Ordering::Relaxed) == OPERATIONS {
            self.state.end();
        }
        if self.falls_silent {
            tokio::task::yield_now().await;
        } else {
            // Operations that follow each other must not look concurrent.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if self.falls_silent && self.state.has_ended() {
            tokio::time::sleep(TIMEOUT).await;
            return Err(error(ErrorClass::Explained, false));
        }
        Ok(())
    }

    /// Returns whether operations of this kind ignore locks.
    fn ignores_lock(&self, kind: OpKind) -> bool {
        self.lie == Lie::LockIgnored && self.kind == kind
    }

    /// Rejects an operation, or calls the rejection ambiguous.
    pub(super) fn reject<T>(&self, class: ErrorClass) -> Result<T, ClientError> {
        Err(error(class, self.lie == Lie::CalledAmbiguous))
    }

    pub(super) async fn write(
        &self,
        asked: Asked<'_>,
        change: impl Fn(Option<&Stored>, Lie) -> Option<Stored>,
    ) -> Result<u64, ClientError> {
        self.turn().await?;
        let Asked {
            kind,
            opcode,
            key,
            argument,
            cas,
        } = asked;
        // A client waits until a lock is gone.
        loop {
            let is_free = {
                let store = self.store.lock();
                let current = store.documents.get(key);
                let is_open = |it: &Stored| !it.is_locked() || cas == Some(it.cas);
                current.is_none_or(is_open) || self.ignores_lock(kind)
            };
            if is_free {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut store = self.store.lock();
        let store = &mut *store;
        let current = store.documents.get(key);
        let class = match (opcode, current) {
            (Opcode::Add, Some(_)) => Some(ErrorClass::Exists),
            (Opcode::Set | Opcode::Add, _) => None,
            (_, None) => Some(ErrorClass::NotFound),
            (_, Some(current))
                if cas.is_some_and(|cas| cas != current.cas) && self.lie != Lie::CasIgnored =>
            {
                Some(ErrorClass::CasMismatch)
            }
            (_, Some(_)) => None,
        };
        if let Some(class) = class {
            return self.reject(class);
        }
        let lie = if kind == self.kind {
            store.writes += 1;
            let every = match kind {
                // These are rare.
                OpKind::Touch => 1,
                OpKind::Replace | OpKind::Prepend => 2,
                _ => EVERY,
            };
            let told = store.writes.is_multiple_of(every);
            if told { self.lie } else { Lie::None }
        } else {
            Lie::None
        };
        let (times, entries) = match lie {
            Lie::OnlyAcknowledged => (0, 0),
            Lie::Twice | Lie::TwiceAmbiguous => (2, 2),
            Lie::NotJournaled => (1, 0),
            _ => (1, 1),
        };
        let other = key.replace("r:0000", "r:0001");
        let key = if lie == Lie::Elsewhere { &*other } else { key };
        let before = store.documents.get(key).cloned();
        for time in 0..times.max(1) {
            store.cas += 1;
            if time < entries {
                let entry = (opcode, key.to_owned(), argument.clone(), store.cas);
                store.journal.push(entry);
            }
            if time >= times {
                continue;
            }
            match change(store.documents.get(key), lie) {
                Some(mut changed) => {
                    changed.cas = store.cas;
                    changed.locked = None;
                    store.documents.insert(key.to_owned(), changed);
                }
                None => drop(store.documents.remove(key)),
            }
        }
        if lie == Lie::Undone {
            match before {
                Some(before) => drop(store.documents.insert(key.to_owned(), before)),
                None => drop(store.documents.remove(key)),
            }
        }
        match lie {
            Lie::ReportedFailed => Err(error(ErrorClass::Explained, false)),
            Lie::TwiceAmbiguous => Err(error(ErrorClass::Explained, true)),
            Lie::WrongCas => Ok(store.cas + (1 << 40)),
            _ => Ok(store.cas),
        }
    }

    pub(super) async fn set(
        &self,
        kind: OpKind,
        (opcode, key): (Opcode, &str),
        value: &Value<'_>,
        cas: Option<u64>,
    ) -> Result<u64, ClientError> {
        let bytes = serde_json::to_vec(value).unwrap();
        let argument = bytes.iter().copied().take(47).collect();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas,
        };
        self.write(asked, |_, lie| {
            let mut bytes = bytes.clone();
            match lie {
                Lie::Corrupted => bytes[48] ^= 1,
                Lie::Truncated => bytes.truncate(40),
                _ => {}
            }
            Some(Stored {
                bytes,
                ..Stored::default()
            })
        })
        .await
    }

    /// Adds text to a document, in place of its last bytes.
    pub(super) async fn grow(
        &self,
        (kind, opcode, key): (OpKind, Opcode, &str),
        text: String,
        before: bool,
    ) -> Result<u64, ClientError> {
        let argument = text.clone().into_bytes();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        };
        self.write(asked, |current, lie| {
            let mut changed = current.unwrap().clone();
            let mut text = text.clone().into_bytes();
            match lie {
                Lie::Corrupted => text[16] ^= 1,
                Lie::Truncated => text.truncate(9),
                _ => {}
            }
            changed.bytes = match before != (lie == Lie::WrongEnd) {
                true => [text, changed.bytes].concat(),
                false => [changed.bytes, text].concat(),
            };
            Some(changed)
        })
        .await
    }

    pub(super) async fn read(&self, key: &str) -> Result<Stored, ClientError> {
        self.turn().await?;
        let found = self.store.lock().documents.get(key).cloned();
        match found {
            Some(found) => Ok(found),
            None => self.reject(ErrorClass::NotFound),
        }
    }
}

pub(super) fn error(class: ErrorClass, ambiguous: bool) -> ClientError {
    ClientError {
        class,
        ambiguous,
        timeout: false,
        name: "Lie".to_owned(),
        history: HISTORY.to_owned(),
    }
}
