//! Runs the planned operations and checks their results.
//!
//! - `registers`: documents that the worker overwrites.
//! - `shared`: documents that all workers use, and `call`, which records their histories.
//! - `documents`: documents that are made once, and those that grow.
//! - `read_back`: checks of documents, and their removal.
//! - `operation`: measurement and logging of every operation.

mod call;
mod documents;
mod operation;
mod read_back;
mod registers;
mod shared;

pub(crate) use call::FinalRead;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::expected::{Counter, Document, Register};
use super::keys::REGISTERS;
use super::kind::OpKind;
use super::pace::Pace;
use super::plan::PlannedOperation;
use super::run_state::RunState;
use super::value::{Shape, document};
use crate::accounting::WriteLog;
use crate::client::Client;
use crate::measure::WorkerStats;
use crate::write_id::WriteId;

/// The number of documents that wait to be read back.
const READ_BACKS: usize = 12;
/// The number of removed documents that wait to be looked up: those of some seconds, so that
/// a failover may come between.
const REMOVED: usize = 256;

/// One worker.
pub(crate) struct Worker<C> {
    number: u16,
    client: C,
    state: Arc<RunState>,
    log: Arc<Mutex<WriteLog>>,
    stats: Arc<WorkerStats>,
    pace: Arc<Pace>,
    /// The start of the next operation. Operations that follow from it wait for their own.
    start: Mutex<Option<Instant>>,
    operations: u64,
    registers: [Register; REGISTERS],
    /// The text and the array to append to.
    growing: [Option<Document>; 2],
    counter: Option<Counter>,
    read_backs: VecDeque<Document>,
    /// Documents whose removal was acknowledged, to be looked up later.
    removed: VecDeque<WriteId>,
    /// Documents that may still exist after an ambiguous result; removed later.
    unsure: VecDeque<WriteId>,
    /// The last error that prevented a document from being read back.
    unread_because: Option<String>,
}

impl<C: Client> Worker<C> {
    pub(crate) fn new(
        number: u16,
        client: C,
        state: Arc<RunState>,
        log: Arc<Mutex<WriteLog>>,
        stats: Arc<WorkerStats>,
        pace: Arc<Pace>,
    ) -> Self {
        Self {
            number,
            client,
            state,
            log,
            stats,
            pace,
            start: Mutex::new(None),
            operations: 0,
            registers: Default::default(),
            growing: Default::default(),
            counter: None,
            read_backs: VecDeque::new(),
            removed: VecDeque::new(),
            unsure: VecDeque::new(),
            unread_because: None,
        }
    }

    /// Works until the run ends, then reads back the remaining documents. Returns the keys of
    /// documents that may still exist.
    ///
    /// Dropping the future abandons an operation, which the accounting reports.
    pub(crate) async fn run(mut self) -> Vec<String> {
        while let Some(start) = self.pace.next(&self.state).await {
            *self.start.get_mut() = Some(start);
            let planned = PlannedOperation::new(self.state.seed, self.number, self.operations);
            self.operations += 1;
            self.execute(planned).await;
            if self.read_backs.len() > READ_BACKS {
                self.read_back_one().await;
            }
            if self.operations.is_multiple_of(256) {
                self.log.lock().settle(self.state.now());
                self.remove_unsure().await;
            }
        }
        // The schedule may be over before the faults are.
        self.state.wait(Duration::MAX).await;
        if self.operations == 0 {
            return Vec::new();
        }
        self.finish().await
    }

    async fn execute(&mut self, planned: PlannedOperation) {
        if planned.on_shared {
            return self.use_shared(&planned).await;
        }
        match planned.kind {
            OpKind::Get if self.removed.len() > REMOVED => self.check_removed().await,
            OpKind::Get
            | OpKind::Remove
            | OpKind::Lookup
            | OpKind::Replace
            | OpKind::Prepend
            | OpKind::Touch
            | OpKind::Unlock => self.get(planned.register).await,
            OpKind::Select if self.client.has_query() => self.select(planned.register).await,
            OpKind::Select => self.get(planned.register).await,
            OpKind::Upsert | OpKind::DurableUpsert => {
                self.upsert(planned.register, &planned.padding).await;
            }
            OpKind::Insert | OpKind::InsertStatement => {
                let value = |id| document(id, &planned.padding);
                let kind = match self.client.has_query() {
                    true => planned.kind,
                    false => OpKind::Insert,
                };
                let inserted = self.insert(kind, Shape::Document, value).await;
                self.read_backs.extend(inserted);
            }
            OpKind::Increment => self.increment().await,
            OpKind::Append | OpKind::ArrayAppend => self.append(planned.kind).await,
            OpKind::Lock
                if self.state.is_locking() && self.registers[planned.register].exists() =>
            {
                self.upsert_locked(planned.register, &planned.padding).await;
            }
            OpKind::Lock => self.get(planned.register).await,
        }
    }
}
