//! A few fixed seeds, each in a process of its own.
//!
//! This is the check of most bugs that `.ci/mutations` plants in the client and the cluster, so it
//! is short: `steadfast simulate` plays more seeds, and longer ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use steadfast_sim::{Plan, run};

const SEEDS: [u64; 4] = [2, 3, 4, 5];
const LENGTH: Duration = Duration::from_secs(8);
const RATE: u32 = 300;
/// How many seeds are played at a time.
const AT_ONCE: usize = 2;
/// Names the seed of a process.
const SEED: &str = "STEADFAST_TEST_SEED";

#[test]
fn fixed_seeds_hold() {
    for seeds in SEEDS.chunks(AT_ONCE) {
        let processes: Vec<_> = seeds.iter().map(|seed| start(*seed)).collect();
        for (seed, process) in seeds.iter().zip(processes) {
            let ended = process.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&ended.stdout);
            assert!(text.contains("1 passed"), "seed {seed}: {}", ended.status);
        }
    }
}

/// Starts this program again, with a test that plays one seed.
fn start(seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_seed_holds", "--ignored", "--nocapture"])
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "fixed_seeds_hold runs it, in a process for each seed"]
fn one_seed_holds() {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let outcome = run(&Plan::new(seed, LENGTH, RATE)).unwrap();
    assert!(outcome.operations > 0, "{outcome:?}");
    assert!(outcome.holds, "{:#?}", outcome.violations);
}
