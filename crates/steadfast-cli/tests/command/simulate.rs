//! `steadfast simulate`: replay, plans and results that merge.

#[cfg(unix)]
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::{Command, Stdio};

use serde_json::Value;

#[cfg(unix)]
use crate::support::command;
use crate::support::steadfast;

const SMALL: [&str; 4] = ["--duration", "2s", "--rate", "100"];

fn outcome(seed: &str) -> Value {
    let output = steadfast(&[&["simulate", "--json", "--seed", seed], &SMALL[..]].concat());
    assert!(output.ok(), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_seed_replays_to_the_last_byte_and_another_one_differs() {
    let (first, again) = (outcome("3"), outcome("3"));
    for field in ["trace", "journal", "bytes", "operations", "virtual_s"] {
        assert_eq!(first[field], again[field], "{field}");
    }
    assert!(first["operations"].as_u64().unwrap() > 50, "{first}");
    assert_ne!(first["trace"], outcome("4")["trace"]);
}

#[test]
fn results_of_different_seeds_merge_and_of_the_same_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for seeds in ["1..2", "2..3"] {
        let output = steadfast(&[&["simulate", "--json", "--seeds", seeds], &SMALL[..]].concat());
        assert!(output.ok(), "{output:?}");
        std::fs::write(file(seeds), output.stdout).unwrap();
    }
    let (a, b) = (file("1..2"), file("2..3"));
    let merged = steadfast(&["simulate", "--merge", &a, &b]);
    assert!(merged.ok(), "{merged:?}");
    assert!(merged.stdout.starts_with("2 seeds: 2 held"), "{merged:?}");
    let twice = steadfast(&["simulate", "--merge", &a, &a]);
    assert_eq!(twice.status, 2, "{twice:?}");
}

#[test]
#[cfg(unix)]
fn an_interrupt_keeps_the_seeds_that_ran() {
    let many = [
        "simulate",
        "--seeds",
        "1..1000000",
        "--duration",
        "100ms",
        "--rate",
        "100",
    ];
    let mut simulate = command(&many)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(simulate.stderr.take().unwrap()).lines();
    assert_eq!(progress.next().unwrap().unwrap(), "1 seed, 0 failed");
    let id = simulate.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let rest: Vec<_> = progress.map(Result::unwrap).collect();
    let output = simulate.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    let found = String::from_utf8(output.stdout).unwrap();
    let (runs, text) = found.split_once(" seed").unwrap();
    assert!(runs.parse::<u64>().unwrap() >= 1, "{found}");
    assert!(text.contains(&format!(": {runs} held")), "{found}");
}

#[test]
fn an_empty_range_and_a_file_that_is_no_plan_are_refused() {
    for arguments in [
        &["simulate", "--seeds", "5..5"][..],
        &["simulate", "--seeds", "5"],
        &["simulate", "--plan", "/no/such/file"],
        &["simulate", "--merge", "Cargo.toml"],
    ] {
        let output = steadfast(arguments);
        assert_eq!(output.status, 2, "{arguments:?} {output:?}");
    }
}

#[test]
fn a_run_that_takes_too_long_in_real_time_fails_and_the_next_seed_runs() {
    let limited = [
        "simulate",
        "--seeds",
        "5..7",
        "--limit",
        "1ms",
        "--no-shrink",
    ];
    let output = steadfast(&[&limited, &SMALL[..]].concat());
    assert_eq!(output.status, 1, "{output:?}");
    assert!(
        output.stdout.starts_with("2 seeds: 0 held, 2 failed"),
        "{output:?}"
    );
    for seed in [5, 6] {
        let named = format!("seed {seed} failed\n  the run takes more than 1ms of real time");
        assert!(output.stdout.contains(&named), "{output:?}");
    }
}
