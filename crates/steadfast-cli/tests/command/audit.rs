//! `steadfast audit`: exit statuses, outputs and messages. The ratings are tested in their crate.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{Output, steadfast};

/// Audits a client of this binary that sends a GET once.
fn audit(options: &[&str]) -> Output {
    let binary = std::env::current_exe().unwrap();
    let client = [
        "--",
        binary.to_str().unwrap(),
        "--ignored",
        "--exact",
        "audit::client",
    ];
    let only = ["audit", "http", "--only", "closed/once"];
    steadfast(&[&only, options, &client[..]].concat())
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client() {
    let url = std::env::var("AUDIT_URL").unwrap();
    let (address, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[test]
fn a_report_says_what_was_not_seen() {
    let output = audit(&[]);
    assert!(output.ok(), "{output:?}");
    for text in [
        "such as a payment? NOT KNOWN",
        "gives up early     1   one more attempt",
        "POST: the command sent GET",
        "GET  request read, connection closed, once",
        "exit 101",
    ] {
        assert!(
            output.stdout.contains(text),
            "{text} is not in {}",
            output.stdout
        );
    }
}

#[test]
fn the_exit_status_follows_the_demand() {
    let unseen = audit(&["--expect", "safe"]);
    assert_eq!(unseen.status, 7, "{unseen:?}");
    assert!(
        unseen.stderr.contains("cannot be called safe"),
        "{unseen:?}"
    );
    let early = audit(&["--expect", "good"]);
    assert_eq!(early.status, 6, "{early:?}");
    assert!(
        early.stderr.contains("the client is not good: 1 cases"),
        "{early:?}"
    );
}

#[test]
fn a_report_can_be_json_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("audit.html");
    let output = audit(&["--json", "--html", page.to_str().unwrap()]);
    assert!(output.ok(), "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["cases"][0]["id"], "get/closed/once");
    assert_eq!(report["cases"][0]["rating"], "gives_up_early");
    assert_eq!(report["cases"][0]["arrivals"][0]["method"], "GET");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<svg") && page.contains("get/closed/once"),
        "{page}"
    );
}

#[test]
fn what_cannot_be_audited_is_an_error() {
    for (arguments, status, text) in [
        (&["http"][..], 2, "COMMAND"),
        (
            &["http", "--methods", "get", "--", "true"],
            2,
            "in capitals",
        ),
        (&["http", "--jobs", "0", "--", "true"], 2, "--jobs"),
        (
            &["http", "--expect", "fast", "--", "true"],
            2,
            "safe, calm, polite or good",
        ),
        (
            &["http", "--", "no-such-program"],
            127,
            "cannot run no-such-program",
        ),
        #[cfg(unix)]
        (&["http", "--", "false"], 1, "sent no request"),
    ] {
        let output = steadfast(&[&["audit"], arguments].concat());
        assert_eq!(output.status, status, "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(text), "{arguments:?}: {output:?}");
    }
    let output = audit(&["--only", "nothing", "--only", "less"]);
    assert!(output.ok(), "{output:?}");
}
