//! A few fixed seeds, each in its own process.
//!
//! This is the check of most bugs that `.ci/mutations` plants in the client and the cluster, so it
//! is short: `steadfast simulate` plays more seeds, and longer ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use steadfast_sim::{RunPlan, run};

const SEEDS: [u64; 4] = [2, 3, 4, 5];
const LENGTH: Duration = Duration::from_secs(8);
const RATE: u32 = 300;
/// Seeds that are played without faults of the network. Then operations must not wait for others
/// that the cluster holds.
const CALM_SEEDS: [u64; 2] = [6, 7];
const CALM_LENGTH: Duration = Duration::from_secs(20);
/// How many seeds are played at a time.
const AT_ONCE: usize = 2;
/// Names the seed of a process.
const SEED: &str = "STEADFAST_TEST_SEED";
/// Says that a process plays its seed without faults of the network.
const CALM: &str = "STEADFAST_TEST_CALM";

#[test]
fn fixed_seeds_hold() {
    hold(&SEEDS, false);
}

#[test]
fn seeds_without_faults_of_the_network_hold() {
    hold(&CALM_SEEDS, true);
}

fn hold(seeds: &[u64], calm: bool) {
    for seeds in seeds.chunks(AT_ONCE) {
        let processes: Vec<_> = seeds.iter().map(|seed| start(*seed, calm)).collect();
        for (seed, process) in seeds.iter().zip(processes) {
            let ended = process.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&ended.stdout);
            assert!(text.contains("1 passed"), "seed {seed}: {}", ended.status);
        }
    }
}

/// Starts this program again, with a test that plays one seed.
fn start(seed: u64, calm: bool) -> Child {
    let calm = calm.then_some((CALM, "yes"));
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_seed_holds", "--ignored", "--nocapture"])
        .env(SEED, seed.to_string())
        .envs(calm)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "fixed_seeds_hold runs it, in a process for each seed"]
fn one_seed_holds() {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let plan = match std::env::var_os(CALM) {
        Some(_) => RunPlan {
            network_faults: Vec::new(),
            ..RunPlan::new(seed, CALM_LENGTH, RATE)
        },
        None => RunPlan::new(seed, LENGTH, RATE),
    };
    let outcome = run(&plan).unwrap();
    assert!(outcome.operations > 0, "{outcome:?}");
    assert!(outcome.holds, "{:#?}", outcome.violations);
}
