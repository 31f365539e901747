//! Failures outside of the command: full disks, closed ports, unwritable files.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::process::Stdio;

use crate::support::{Served, command, run, steadfast};

#[test]
fn output_that_could_not_be_written_is_an_error() {
    let served = Served::start(|builder| builder);
    let travel = served.address("travel");
    for (arguments, status) in [
        (&["explain", "kv", "get", "--status", "ETMPFAIL"][..], 1),
        // It was stored, so the status must be the ambiguous one.
        (&["upsert", &travel, "k", "1", "--json"], 4),
        // Without its printed address the cluster is useless.
        (&["cluster", "--nodes", "1"], 1),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = command(arguments);
        command.env("STEADFAST_USER", "app");
        command.env("STEADFAST_PASSWORD", "secret");
        let process = command.stdout(full).stderr(Stdio::piped());
        let done = process.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains("could not be written"), "{said}");
    }
}

#[test]
fn a_refused_connection_is_reported_and_the_doctor_suggested() {
    // Bound and released, so that probably nothing listens there.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let address = format!("couchbase://{port}/travel");
    let mut get = command(&["get", &address, "k", "--user", "app", "--timeout", "300ms"]);
    get.env("STEADFAST_PASSWORD", "secret");
    let refused = run(get);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("Connection refused"), "{refused:?}");
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
