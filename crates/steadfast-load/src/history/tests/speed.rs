//! The speed of the check, printed. `docs/load.md` has the numbers.

#![allow(clippy::print_stdout, reason = "this test is a measurement")]

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_wire::Opcode;

use super::super::recorder::History;
use super::*;

const OPERATIONS: u64 = 500_000;
/// The time between two effects, in microseconds. About eight operations are under way at a time.
const STEP: u64 = 16;
/// The time between two readings of the journal, in microseconds.
const READING: u64 = 1000;
/// How long after its end an ambiguous operation may take effect, in microseconds.
const LATE: u64 = 15_000;

/// A half of the operations are reads, the others upserts. So many upserts in a thousand get no
/// response, and have taken effect.
fn generated(ambiguous: u64) -> Vec<Operation> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut state = None;
    let operations = (0..OPERATIONS).map(|number| {
        let at = (number + 2) * STEP;
        let begin = at - random.u64(1..STEP * STEP / 2).min(at - 1);
        let end = at + random.u64(1..STEP * STEP / 2);
        match state {
            Some((cas, body)) if random.bool() => {
                during(begin, end, Action::Read, found(cas, body))
            }
            _ => {
                let (cas, body) = (number + 1, text(&number.to_string()));
                state = Some((cas, body));
                let outcome = match random.u64(..1000) < ambiguous {
                    true => Outcome::Ambiguous,
                    false => done(cas),
                };
                Operation {
                    end,
                    ..during(begin, end, Action::Upsert(body), outcome)
                }
            }
        }
    });
    operations.collect()
}

/// Returns the operations per second of processor time, and how many were given up.
fn speed(operations: Vec<Operation>, has_journal: bool) -> (f64, u64) {
    // What happens in time: beginnings, effects, ends.
    let mut events = BTreeMap::new();
    for (number, operation) in operations.iter().enumerate() {
        let at = (number as u64 + 2) * STEP;
        events.insert((operation.begin, 0, number), ());
        events.insert((at, 1, number), ());
        events.insert((operation.end, 2, number), ());
    }
    let writes = operations
        .iter()
        .map(|operation| operation.action != Action::Read);
    let is_write: Vec<bool> = writes.collect();
    let mut operations: Vec<_> = operations.into_iter().map(Some).collect();
    let mut tokens = BTreeMap::new();
    let history = History::new(has_journal, LATE);
    let (mut read, mut unread) = (0, Vec::new());
    let started = processor_time();
    for (now, what, number) in events.into_keys() {
        let tag = (Opcode::Set, number as u64 + 1);
        match what {
            0 => drop(tokens.insert(number, history.begin(now))),
            1 if is_write[number] => unread.push((tag, number as u64 + 1)),
            1 => {}
            _ => {
                let (token, operation) = (tokens.remove(&number), operations[number].take());
                history.end(&token.unwrap(), tag, operation.unwrap());
            }
        }
        if has_journal && now > read + READING {
            read = now;
            for (tag, cas) in unread.drain(..) {
                history.applied(tag, cas, now);
            }
            history.catch_up(now);
        }
    }
    for (tag, cas) in unread {
        history.applied(tag, cas, u64::MAX);
    }
    let closed = history.close(never());
    let took = (processor_time() - started).as_secs_f64();
    assert!(closed.violations.is_empty(), "{:?}", closed.violations[0]);
    (OPERATIONS as f64 / took, closed.unchecked)
}

/// Returns the processor time of this thread: other programs do not count. Only Linux has it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "it measures a speed; run it by hand"]
fn speed_of_the_check() {
    for ambiguous in [0, 1, 10] {
        for has_journal in [true, false] {
            let (speed, given_up) = speed(generated(ambiguous), has_journal);
            println!(
                "journal: {has_journal}, {ambiguous} of 1000 writes ambiguous: {speed:.0} operations/s, {given_up} given up"
            );
        }
    }
}
