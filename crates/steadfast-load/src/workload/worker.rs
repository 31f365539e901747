//! Does what the seed says, and knows what must have come of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::book::{Check, Counter, Growing, Register};
use super::keys::{self, REGISTERS};
use super::kind::Kind;
use super::plan::Step;
use super::scene::Scene;
use crate::accounting::{Ledger, Outcome, Violation, Wrong};
use crate::client::{Client, Nature, Trouble, Value};
use crate::measure::Lane;
use crate::token::Token;

/// How many writes a document takes before it is read back.
const GROWN: usize = 64;
/// How many documents wait to be read back.
const CHECKS: usize = 12;
/// How often reading a document back is tried at the end, when nothing is broken any more.
const TRIES: u32 = 20;
/// How long a document stays locked, unless its unlocking is lost.
const LOCKED: Duration = Duration::from_millis(30);

/// How long a worker rests whose credentials were refused.
const LOCKED_OUT: Duration = Duration::from_millis(5);

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
}

/// What a worker leaves behind, to be compared when all have ended.
pub struct Remains {
    /// Its counter.
    pub counter: Option<String>,
    /// Its documents that were written again and again.
    pub registers: Vec<String>,
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
                tokio::time::sleep_until(due).await;
            }
            let step = Step::of(self.scene.seed, self.number, self.step);
            self.step += 1;
            self.take(step).await;
            if self.checks.len() > CHECKS {
                self.check_one().await;
            }
            if self.step.is_multiple_of(256) {
                self.ledger.lock().settle(self.scene.now());
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
                    self.check_later(made, Vec::new());
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

    async fn get(&self, register: usize) {
        let key = self.register(register);
        let found = match self.timed(Kind::Get, self.client.get(&key)).await {
            Ok(document) => match Token::find(&document) {
                Some(token) => Some(token),
                None => {
                    return self.suspect(
                        Kind::Get,
                        &key,
                        "what was read is no document of this run",
                    );
                }
            },
            Err(trouble) if trouble.nature == Nature::NotFound => None,
            Err(trouble) => return self.explain(Kind::Get, &key, &trouble),
        };
        self.compare(Kind::Get, register, &key, found);
    }

    async fn select(&self, register: usize) {
        let key = self.register(register);
        match self.timed(Kind::Select, self.client.select(&key)).await {
            Ok(id) => {
                let found = id.and_then(|id| Token::find(id.as_bytes()));
                self.compare(Kind::Select, register, &key, found);
            }
            Err(trouble) => self.explain(Kind::Select, &key, &trouble),
        }
    }

    async fn upsert(&mut self, register: usize, padding: &str) {
        let key = self.register(register);
        let (token, outcome) = self.write_register(&key, padding).await;
        self.registers[register].ended(token, outcome, self.scene.now(), self.scene.late);
    }

    /// Writes a document that is locked meanwhile: it has to wait for the end of the lock.
    async fn upsert_locked(&mut self, register: usize, padding: &str) {
        let key = self.register(register);
        let locked = self.timed(Kind::Lock, self.client.lock(&key)).await;
        let unlock = async {
            match locked {
                Ok(cas) => {
                    tokio::time::sleep(LOCKED).await;
                    // A lock that went away meanwhile, by its time or with its node, is no harm.
                    let _ = self.client.unlock(&key, cas).await;
                }
                Err(trouble) => self.explain(Kind::Lock, &key, &trouble),
            }
        };
        let ((), (token, outcome)) = tokio::join!(unlock, self.write_register(&key, padding));
        self.registers[register].ended(token, outcome, self.scene.now(), self.scene.late);
    }

    async fn write_register(&self, key: &str, padding: &str) -> (Token, Outcome) {
        let token = self.ledger.lock().begin(Kind::Upsert);
        let value = document(token, padding);
        let written = self.client.upsert(key, &value, false);
        (token, self.write(Kind::Upsert, token, key, written).await)
    }

    async fn upsert_shared(&self, shared: usize, padding: &str) {
        let key = keys::shared(&self.scene.prefix, shared);
        let token = self.ledger.lock().begin(Kind::DurableUpsert);
        let value = document(token, padding);
        let written = self.client.upsert(&key, &value, true);
        self.write(Kind::DurableUpsert, token, &key, written).await;
    }

    /// Writes a new document. If it may be there it is returned, and else of no more interest.
    async fn insert(&mut self, kind: Kind, value: Value<'_>) -> Option<Token> {
        let token = {
            let mut ledger = self.ledger.lock();
            let token = ledger.begin(kind);
            ledger.set_aside(Kind::Remove);
            token
        };
        let value = match value {
            Value::Document { padding, .. } => document(token, padding),
            other => other,
        };
        let key = self.own(token);
        let outcome = if kind == Kind::InsertStatement {
            let written = self.client.insert_statement(&key, &value);
            self.write(kind, token, &key, written).await
        } else {
            let written = self.client.insert(&key, &value);
            self.write(kind, token, &key, written).await
        };
        match outcome {
            Outcome::Acknowledged => Some(token),
            Outcome::Failed | Outcome::Ambiguous => {
                self.check_later(token, Vec::new());
                None
            }
        }
    }

    async fn increment(&mut self) {
        if self.counter.is_none() {
            let made = self.insert(Kind::Insert, Value::Counter(0)).await;
            // It is not read back as a document: what must be in it is not in it once, but added.
            if let Some(made) = made {
                // Nor is it removed, and the number for that must not hold up all that follow.
                let (removal, now) = (keys::removal_of(made), self.scene.now());
                let mut ledger = self.ledger.lock();
                ledger.found(made, 1);
                ledger.give_back(removal, now);
                drop(ledger);
                self.counter = Some(Counter::new(made));
            }
            return;
        }
        let Some(made) = self.counter.as_ref().map(|counter| counter.made) else {
            return;
        };
        let key = self.own(made);
        let token = self.ledger.lock().begin(Kind::Increment);
        let added = self.client.increment(&key, token.number);
        let outcome = self.write(Kind::Increment, token, &key, added).await;
        if let Some(counter) = &mut self.counter {
            counter.ended(token.number, outcome);
        }
    }

    async fn append(&mut self) {
        let Some(mut text) = self.text.take() else {
            let made = self.insert(Kind::Insert, Value::Text("")).await;
            self.text = made.map(grows);
            return;
        };
        let key = self.own(text.made);
        let token = self.ledger.lock().begin(Kind::Append);
        let appended = self.client.append(&key, format!("{token};"));
        self.write(Kind::Append, token, &key, appended).await;
        text.writes.push(token);
        self.text = self.check_grown(text);
    }

    async fn array_append(&mut self) {
        let Some(mut array) = self.array.take() else {
            let made = self.insert(Kind::Insert, Value::Array { a: [] }).await;
            self.array = made.map(grows);
            return;
        };
        let key = self.own(array.made);
        let token = self.ledger.lock().begin(Kind::ArrayAppend);
        let element = token.to_string();
        let appended = self.client.array_append(&key, &element);
        self.write(Kind::ArrayAppend, token, &key, appended).await;
        array.writes.push(token);
        self.array = self.check_grown(array);
    }

    /// Lets a document grow on, or has it read back.
    fn check_grown(&mut self, growing: Growing) -> Option<Growing> {
        if growing.writes.len() < GROWN {
            return Some(growing);
        }
        self.check_later(growing.made, growing.writes);
        None
    }

    fn check_later(&mut self, made: Token, writes: Vec<Token>) {
        self.checks.push_back(Check {
            made,
            writes,
            tries: 0,
        });
    }

    /// Reads the document back that has waited longest, and removes it.
    async fn check_one(&mut self) {
        let Some(mut check) = self.checks.pop_front() else {
            return;
        };
        let key = self.own(check.made);
        let found = match self.timed(Kind::Get, self.client.get(&key)).await {
            Ok(document) => Some(Token::find_all(&document)),
            Err(trouble) if trouble.nature == Nature::NotFound => None,
            Err(trouble) => {
                self.explain(Kind::Get, &key, &trouble);
                check.tries += 1;
                // What cannot be read back even in the end is a violation by the ledger's rules.
                if check.tries < TRIES || !self.scene.has_ended() {
                    self.checks.push_back(check);
                }
                return;
            }
        };
        let removal = keys::removal_of(check.made);
        {
            let mut ledger = self.ledger.lock();
            ledger.found(check.made, usize::from(found.is_some()));
            let found = found.as_deref().unwrap_or_default();
            for write in &check.writes {
                let times = found.iter().filter(|token| *token == write).count();
                ledger.found(*write, times);
            }
        }
        if found.is_none() {
            let now = self.scene.now();
            self.ledger.lock().give_back(removal, now);
            return;
        }
        self.ledger.lock().begin_aside(removal);
        let removed = self.client.remove(&key);
        let removed = self.write(Kind::Remove, removal, &key, removed).await;
        check.tries += 1;
        if removed == Outcome::Failed && (check.tries < TRIES || !self.scene.has_ended()) {
            // It was not applied, so it is still to be done, before its number is settled.
            check.writes.clear();
            self.checks.push_front(check);
        }
    }

    async fn finish(mut self) -> Remains {
        for growing in [self.text.take(), self.array.take()].into_iter().flatten() {
            self.check_later(growing.made, growing.writes);
        }
        while !self.checks.is_empty() {
            self.check_one().await;
        }
        for register in 0..REGISTERS {
            self.get(register).await;
        }
        if let Some(counter) = &self.counter {
            self.check_counter(counter).await;
        }
        Remains {
            counter: self.counter.as_ref().map(|counter| self.own(counter.made)),
            registers: (0..REGISTERS).map(|index| self.register(index)).collect(),
        }
    }

    async fn check_counter(&self, counter: &Counter) {
        let key = self.own(counter.made);
        match self.timed(Kind::Get, self.client.get(&key)).await {
            Ok(document) => {
                let value = std::str::from_utf8(&document).ok();
                let wrong = match value.and_then(|text| text.parse().ok()) {
                    Some(value) => counter.judge(value),
                    None => Some(Wrong::Unexplained("the counter is no number")),
                };
                if let Some(wrong) = wrong {
                    let violation = Violation::of(wrong, "increment", key);
                    self.ledger.lock().violate(violation);
                }
            }
            Err(trouble) => self.explain(Kind::Get, &key, &trouble),
        }
    }

    /// Makes a write to its end, and enters it into the ledger.
    async fn write(
        &self,
        kind: Kind,
        token: Token,
        key: &str,
        written: impl Future<Output = Result<(), Trouble>>,
    ) -> Outcome {
        let ended = self.timed(kind, written).await;
        let (outcome, history) = match &ended {
            Ok(()) => (Outcome::Acknowledged, None),
            Err(trouble) if trouble.ambiguous => (Outcome::Ambiguous, Some(&*trouble.history)),
            Err(trouble) => (Outcome::Failed, Some(&*trouble.history)),
        };
        let now = self.scene.now();
        self.ledger.lock().ended(token, outcome, history, now);
        if let Err(trouble) = &ended {
            self.explain(kind, key, trouble);
        }
        outcome
    }

    async fn timed<T>(
        &self,
        kind: Kind,
        operation: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let began = self.lane.begin();
        let ended = operation.await;
        self.lane.end(kind, began, ended.as_ref().err());
        if let Err(trouble) = &ended
            && trouble.nature == Nature::Authentication
        {
            // Who is refused at once and tries again at once does nothing else.
            tokio::time::sleep(LOCKED_OUT).await;
        }
        ended
    }

    /// Notes an error that nothing explains.
    fn explain(&self, kind: Kind, key: &str, trouble: &Trouble) {
        let why = match trouble.nature {
            Nature::Explained => return,
            Nature::Authentication if self.scene.may_refuse_credentials() => return,
            Nature::Authentication => "the credentials were refused, and were right",
            Nature::NotFound => "a document that is there was not found",
            Nature::Unexplained => "no fault explains this error",
        };
        let violation = Violation::of(Wrong::Unexplained(why), kind.name(), key);
        let violation = violation.with_history(&*trouble.history);
        self.ledger.lock().violate(violation);
    }

    fn compare(&self, kind: Kind, register: usize, key: &str, found: Option<Token>) {
        if !self.registers[register].may_be(found) {
            let wrong = Wrong::Lost("a read did not find the last write that was acknowledged");
            let found = found.map_or_else(|| "nothing".to_owned(), |token| token.to_string());
            let what = format!("{key}, found {found}");
            let violation = Violation::of(wrong, kind.name(), what);
            self.ledger.lock().violate(violation);
        }
    }

    fn suspect(&self, kind: Kind, key: &str, why: &'static str) {
        let violation = Violation::of(Wrong::Unexplained(why), kind.name(), key);
        self.ledger.lock().violate(violation);
    }

    fn register(&self, index: usize) -> String {
        keys::register(&self.scene.prefix, self.number, index)
    }

    fn own(&self, token: Token) -> String {
        keys::own(&self.scene.prefix, token)
    }
}

fn document(token: Token, padding: &str) -> Value<'_> {
    let id = token.to_string();
    Value::Document { id, padding }
}

fn grows(made: Token) -> Growing {
    let writes = Vec::with_capacity(GROWN);
    Growing { made, writes }
}
