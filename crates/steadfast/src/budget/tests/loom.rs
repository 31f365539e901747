//! Every interleaving of payments and refunds, tried out by loom.
//!
//! A run is right if its results are those of some order in which the same
//! operations are made one after the other: then no payment is lost, none is
//! made twice, and the level is never negative nor above the capacity.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::OnceLock;

use loom::sync::Arc;
use loom::thread;

use crate::budget::level::Level;

const CAPACITY: u32 = 10;

#[derive(Clone, Copy, Debug)]
enum Op {
    Take(u32),
    Give(u32),
}

/// What an operation answered: `None` for a refund, which answers nothing.
type Reply = Option<Result<(), u32>>;

#[test]
fn of_two_payments_that_fit_one_by_one_but_not_together_one_is_made() {
    check(5, &[&[Op::Take(3)], &[Op::Take(3)]]);
}

#[test]
fn payments_and_refunds_at_once_lose_nothing() {
    check(3, &[&[Op::Take(2)], &[Op::Give(2)]]);
    check(1, &[&[Op::Take(2)], &[Op::Give(1)], &[Op::Give(1)]]);
    check(
        6,
        &[&[Op::Take(5), Op::Give(5)], &[Op::Take(5), Op::Give(5)]],
    );
}

#[test]
fn refunds_at_once_do_not_fill_above_the_capacity() {
    check(CAPACITY - 1, &[&[Op::Give(1)], &[Op::Give(1)]]);
    check(
        CAPACITY - 3,
        &[&[Op::Give(5)], &[Op::Give(5)], &[Op::Take(1)]],
    );
}

/// Makes an operation.
fn apply(level: &Level, op: Op) -> Reply {
    match op {
        Op::Take(cost) => Some(level.take(cost)),
        Op::Give(amount) => {
            level.give(amount, CAPACITY);
            None
        }
    }
}

/// Runs each list of operations on a thread of its own, in every interleaving,
/// and compares replies and final level with those of all orders without
/// concurrency.
fn check(initial: u32, threads: &'static [&'static [Op]]) {
    // Loom's atomics work inside of a model only, also where nothing is at once.
    let known = std::sync::Arc::new(OnceLock::new());
    let right = std::sync::Arc::clone(&known);
    loom::model(move || {
        known
            .set(without_concurrency(initial, threads))
            .expect("there is one way to do nothing at once");
    });
    loom::model(move || {
        let level = Arc::new(Level::new(initial));
        let running: Vec<_> = threads
            .iter()
            .map(|ops| {
                let level = Arc::clone(&level);
                thread::spawn(move || -> Vec<Reply> {
                    ops.iter().map(|op| apply(&level, *op)).collect()
                })
            })
            .collect();
        let replies = running.into_iter().map(joined).collect();
        let right = right.get().expect("the first model has run");
        assert_in((replies, level.get()), right);
    });
}

/// The replies and the final level of every order.
fn without_concurrency(initial: u32, threads: &[&[Op]]) -> HashSet<(Vec<Vec<Reply>>, u32)> {
    let steps: Vec<usize> = threads.iter().map(|ops| ops.len()).collect();
    let run = |order: Vec<usize>| {
        let level = Level::new(initial);
        let mut replies = vec![Vec::new(); threads.len()];
        for thread in order {
            let op = threads[thread][replies[thread].len()];
            replies[thread].push(apply(&level, op));
        }
        (replies, level.get())
    };
    orders(&steps).into_iter().map(run).collect()
}

/// All orders in which threads can take turns that have so many steps each.
fn orders(steps: &[usize]) -> Vec<Vec<usize>> {
    if steps.iter().all(|left| *left == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for thread in (0..steps.len()).filter(|thread| steps[*thread] > 0) {
        let mut left = steps.to_vec();
        left[thread] -= 1;
        for rest in orders(&left) {
            all.push([vec![thread], rest].concat());
        }
    }
    all
}

fn assert_in<T: Debug + Eq + Hash>(seen: T, right: &HashSet<T>) {
    assert!(right.contains(&seen), "{seen:?} is none of {right:?}");
}

fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    thread.join().expect("no thread panics")
}
