//! Failures outside of the command: full disks, closed ports, unwritable files.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Served, command, run, steadfast};

/// A bucket at a port where nothing listens.
const CLOSED: &str = "couchbase://127.0.0.1:1/travel";

#[test]
fn output_that_could_not_be_written_is_an_error() {
    let served = Served::start(|builder| builder.control(0));
    let travel = served.address("travel");
    let address = served.cluster().control_address().unwrap();
    let control = format!("{}@{address}", served.cluster().control_token());
    for (arguments, status) in [
        (&["explain", "kv", "get", "--status", "ETMPFAIL"][..], 1),
        // It was stored, so the status must be the ambiguous one.
        (&["upsert", &travel, "k", "1", "--json"], 4),
        // Reads have changed nothing; of a statement its metrics say so.
        (&["get", &travel, "k"], 1),
        (&["query", &travel, "SELECT 1 AS one"], 1),
        (&["query", &travel, "SELECT 1 AS one", "--json"], 1),
        (&["query", &travel, "SELECT 1 AS one", "--readonly"], 1),
        (&["fault", "list", "--json"], 1),
        (&["topology", "show"], 1),
        (&["fault", "add", "--opcode", "SET", "hold"], 4),
        (&["--help"], 1),
        (&["load", "--help"], 1),
        (&["--version"], 1),
        (&["completions", "bash"], 1),
        // Without its printed address the cluster is useless.
        (&["cluster", "--nodes", "1"], 1),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = command(arguments);
        command.env("STEADFAST_USER", "app");
        command.env("STEADFAST_PASSWORD", "secret");
        command.env("STEADFAST_CONTROL", &control);
        let process = command.stdout(full).stderr(Stdio::piped());
        let done = process.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains("could not be written"), "{said}");
    }
}

#[test]
fn a_refused_connection_is_reported_and_the_doctor_suggested() {
    let mut get = command(&["get", CLOSED, "k", "--user", "app", "--timeout", "300ms"]);
    get.env("STEADFAST_PASSWORD", "secret");
    let refused = run(get);
    assert_eq!(refused.status, 1, "{refused:?}");
    let first = refused.stderr.lines().next().unwrap();
    assert!(first.contains("Connection refused"), "{refused:?}");
    assert!(refused.stderr.contains("steadfast doctor"), "{refused:?}");
}

#[test]
fn an_unwritable_page_is_reported_before_the_run() {
    let refused = steadfast(&["load", "--html", "/nonexistent/page.html"]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    assert!(
        refused.stderr.contains("/nonexistent/page.html"),
        "{refused:?}"
    );
}

#[test]
fn a_probability_that_is_not_a_number_is_rejected() {
    let nan = ["--probability", "nan"];
    let add = ["fault", "add", "--opcode", "GET", nan[0], nan[1], "hold"];
    let refused = steadfast(&add);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("between 0 and 1"), "{refused:?}");
}

#[test]
fn connection_trouble_is_shown_long_before_the_timeout() {
    for arguments in [&["get", CLOSED, "k"][..], &["query", CLOSED, "SELECT 1"]] {
        let mut command = command(arguments);
        command.args(["--user", "app", "--timeout", "600s"]);
        command.env("STEADFAST_PASSWORD", "secret");
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        lines.read_line(&mut first).unwrap();
        // It still runs, so the line came before the timeout.
        assert!(process.try_wait().unwrap().is_none(), "{first}");
        process.kill().unwrap();
        process.wait().unwrap();
        for part in ["127.0.0.1:1", "Connection refused", "still trying"] {
            assert!(first.contains(part), "{part}: {first}");
        }
    }
}
