//! What the command says when the world around it does not play along.

use std::fs::OpenOptions;
use std::net::TcpListener;

use crate::support::{command, run, steadfast};

#[test]
fn output_that_could_not_be_written_is_an_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut explain = command(&["explain", "kv", "get", "--status", "ETMPFAIL"]);
    let process = explain.stdout(full).stderr(std::process::Stdio::piped());
    let done = process.spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("could not be written"), "{said}");
}

#[test]
fn a_port_where_nobody_listens_is_named_and_so_is_the_doctor() {
    // Bound and let go again, so that nobody else is likely to be there.
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
fn a_page_that_cannot_be_written_is_told_before_the_run() {
    let refused = steadfast(&["load", "--html", "/nonexistent/page.html"]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    assert!(
        refused.stderr.contains("/nonexistent/page.html"),
        "{refused:?}"
    );
}

#[test]
fn a_chance_that_is_no_number_is_refused() {
    let nan = ["--probability", "nan"];
    let add = ["fault", "add", "--opcode", "GET", nan[0], nan[1], "hold"];
    let refused = steadfast(&add);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("between 0 and 1"), "{refused:?}");
}
