//! Commands that misbehave get a clear message, and nothing of them is left.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use steadfast_audit::{AuditError, AuditProtocol, AuditSettings, audit_http};

/// Audits a script of the shell that sends nothing, and returns the message.
async fn message(script: &str) -> String {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    let settings = AuditSettings {
        start_limit: Duration::from_secs(4),
        limit: Duration::from_millis(500),
        methods: vec!["GET".to_owned()],
        ..AuditSettings::new(command)
    };
    audit_http(&settings, |_| {}).await.unwrap_err().to_string()
}

/// Runs a script that writes the number of a process to a file; asserts that the process ended.
async fn message_and_end(script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let message = message(&script.replace("FILE", file.to_str().unwrap())).await;
    let id = std::fs::read_to_string(&file).unwrap();
    for _ in 0..200 {
        let stat = std::fs::read_to_string(Path::new("/proc").join(id.trim()).join("stat"));
        // Dead, and perhaps not yet reaped.
        if stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z ")) {
            return message;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {id} still runs");
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    let settings = AuditSettings::new(vec!["no-such-program".into()]);
    let error = audit_http(&settings, |_| {}).await.unwrap_err();
    assert!(matches!(error, AuditError::CannotStart { .. }), "{error}");
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

#[tokio::test]
async fn a_command_that_exits_at_once_is_shown_with_its_output() {
    let message = message("echo 'no module named requests' >&2; exit 3").await;
    assert!(message.contains("sent no request"), "{message}");
    assert!(message.contains("exit 3"), "{message}");
    assert!(message.contains("no module named requests"), "{message}");
}

#[tokio::test]
async fn garbage_is_neither_kept_nor_printed() {
    let message = message("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 1").await;
    assert!(message.contains("exit 1"), "{message}");
    assert!(message.contains("is not text"), "{message}");
    assert!(message.len() < 1000, "{}", message.len());
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_command_that_hangs_and_what_a_command_leaves_are_killed() {
    let (hangs, leaves, _) = tokio::join!(
        message_and_end("echo $$ > FILE; sleep 600"),
        message_and_end("sleep 600 & echo $! > FILE"),
        // It has left the group.
        message_and_end(
            "setsid sh -c 'echo $$ > FILE; exec sleep 600' & while ! [ -s FILE ]; do sleep 0.1; done"
        ),
    );
    assert!(hangs.contains("stopped after"), "{hangs}");
    assert!(hangs.contains("--start-limit"), "{hangs}");
    assert!(leaves.contains("left a process"), "{leaves}");
}

#[tokio::test]
async fn a_server_with_tls_says_why_no_request_came() {
    for (protocol, text) in [
        ((false, true), "the TLS handshake failed"),
        ((true, false), "the client sent no HTTP/2"),
    ] {
        let (http2, tls) = protocol;
        let settings = AuditSettings {
            protocol: AuditProtocol { http2, tls },
            methods: vec!["GET".to_owned()],
            ..AuditSettings::new(super::command("commands::client_in_plain_http1"))
        };
        let error = audit_http(&settings, |_| {}).await.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_in_plain_http1() {
    let url = std::env::var("AUDIT_URL").unwrap();
    let address = url.split('/').nth(2).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // Until the server ends the connection, or resets it.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[tokio::test]
async fn a_command_that_sends_more_than_one_request_cannot_be_judged() {
    let settings = AuditSettings {
        methods: vec!["GET".to_owned()],
        ..AuditSettings::new(super::command("commands::client_with_two_requests"))
    };
    let error = audit_http(&settings, |_| {}).await.unwrap_err();
    assert!(
        matches!(error, AuditError::ManyRequests { number: 2 }),
        "{error}"
    );
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_with_two_requests() {
    let policy = super::Policy::default();
    super::client::run(&policy);
    super::client::run(&policy);
}
