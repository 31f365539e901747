//! Does what the seed says, and knows what must have come of it.
//!
//! - `registers`: documents that are written again and again.
//! - `documents`: documents that are made once, and those that grow.
//! - `checks`: reading back.
//! - `operation`: what every operation has in common.

mod checks;
mod documents;
mod operation;
mod registers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::book::{Check, Content, Counter, Growing, Register};
use super::keys::REGISTERS;
use super::kind::Kind;
use super::plan::Step;
use super::scene::Scene;
use crate::accounting::Ledger;
use crate::client::{Client, Value};
use crate::measure::Lane;
use crate::token::Token;

/// How many documents wait to be read back.
const CHECKS: usize = 12;

/// One worker.
pub struct Worker<C> {
    number: u16,
    client: C,
    scene: Arc<Scene>,
    ledger: Arc<Mutex<Ledger>>,
    lane: Arc<Lane>,
    /// How long it waits from one step to the next, so that all together keep to a rate.
    pace: Option<Duration>,
    step: u64,
    registers: [Register; REGISTERS],
    text: Option<Growing>,
    array: Option<Growing>,
    counter: Option<Counter>,
    checks: VecDeque<Check>,
    /// Documents that may be there, and that nobody will look for again: to be swept up.
    unsure: VecDeque<Token>,
    /// Why a document could not be read back, the last time that one could not.
    unread_because: Option<String>,
}

/// What a worker leaves behind, to be compared when all have ended.
pub struct Remains {
    /// Its counter.
    pub counter: Option<String>,
    /// Its documents that were written again and again.
    pub registers: Vec<String>,
    /// Documents that may be there: what was told of their making or removal was not sure.
    pub unsure: Vec<String>,
}

impl<C: Client> Worker<C> {
    /// A worker that has done nothing yet.
    pub fn new(
        number: u16,
        client: C,
        scene: Arc<Scene>,
        ledger: Arc<Mutex<Ledger>>,
        lane: Arc<Lane>,
        pace: Option<Duration>,
    ) -> Self {
        Self {
            number,
            client,
            scene,
            ledger,
            lane,
            pace,
            step: 0,
            registers: Default::default(),
            text: None,
            array: None,
            counter: None,
            checks: VecDeque::new(),
            unsure: VecDeque::new(),
            unread_because: None,
        }
    }

    /// Works until the run ends, and then reads back what is left to be.
    ///
    /// Dropping the future abandons an operation, which the accounting will miss.
    pub async fn run(mut self) -> Remains {
        let mut due = tokio::time::Instant::now();
        while !self.scene.has_ended() {
            if let Some(pace) = self.pace {
                // What could not be begun in time is not made up for.
                due = (due + pace).max(tokio::time::Instant::now());
                let wait = due.saturating_duration_since(tokio::time::Instant::now());
                self.scene.wait(wait).await;
                if self.scene.has_ended() {
                    break;
                }
            }
            let step = Step::of(self.scene.seed, self.number, self.step);
            self.step += 1;
            self.take(step).await;
            if self.checks.len() > CHECKS {
                self.check_one().await;
            }
            if self.step.is_multiple_of(256) {
                self.ledger.lock().settle(self.scene.now());
                self.sweep().await;
            }
        }
        self.finish().await
    }

    async fn take(&mut self, step: Step) {
        match step.kind {
            Kind::Get | Kind::Remove => self.get(step.register).await,
            Kind::Select => self.select(step.register).await,
            Kind::Upsert => self.upsert(step.register, &step.padding).await,
            Kind::DurableUpsert => self.upsert_shared(step.shared, &step.padding).await,
            Kind::Insert | Kind::InsertStatement => {
                let id = String::new();
                let padding = &step.padding;
                let value = Value::Document { id, padding };
                if let Some(made) = self.insert(step.kind, value).await {
                    self.check_later(made, Content::Itself);
                }
            }
            Kind::Increment => self.increment().await,
            Kind::Append => self.append().await,
            Kind::ArrayAppend => self.array_append().await,
            Kind::Lock if self.scene.is_locking() && self.registers[step.register].exists() => {
                self.upsert_locked(step.register, &step.padding).await;
            }
            Kind::Lock => self.get(step.register).await,
        }
    }
}

fn document(token: Token, padding: &str) -> Value<'_> {
    let id = token.to_string();
    Value::Document { id, padding }
}
