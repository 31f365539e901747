//! Signals at each phase of a command on a document.
#![cfg(unix)]

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use steadfast_cluster::fault::Fault;
use steadfast_wire::Opcode;

use crate::support::{Served, command, is_shown, read_to_end, read_until};

/// Starts a command as the user of the cluster.
fn start(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command
        .env("STEADFAST_USER", "app")
        .env("STEADFAST_PASSWORD", "secret")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn end(process: Child) -> (Option<i32>, String) {
    let output = process.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

/// Waits for a condition that another process brings about.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_interrupted_write_says_that_it_may_have_been_applied() {
    let served = Served::start(|builder| builder);
    let travel = served.address("travel");
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let held = served.cluster().fault(Fault::on(Opcode::Set).hold());

        let write = start(&["upsert", &travel, "k", "1"]);
        wait_for("the write arrives", || held.fired() == 1);
        signal(name, write.id());
        let (ended, text) = end(write);
        assert_eq!(ended, Some(status), "{text}");
        assert!(text.contains("may have been applied"), "{text}");

        let write = start(&["upsert", &travel, "k", "1", "--json"]);
        wait_for("the second write arrives", || held.fired() == 2);
        signal(name, write.id());
        let (ended, text) = end(write);
        assert_eq!(ended, Some(status), "{text}");
        let error: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"], "Interrupted");
        assert_eq!(error["ambiguous"], true);
    }
}

#[test]
fn an_interrupted_read_says_that_nothing_was_changed() {
    let served = Served::start(|builder| builder);
    let travel = served.address("travel");
    let held = served.cluster().fault(Fault::on(Opcode::Get).hold());
    let read = start(&["get", &travel, "k"]);
    wait_for("the read arrives", || held.fired() == 1);
    signal("INT", read.id());
    let (status, text) = end(read);
    assert_eq!(status, Some(130), "{text}");
    assert!(text.contains("nothing was changed"), "{text}");
}

#[test]
fn a_signal_at_the_password_prompt_restores_the_echo() {
    for by_key in [true, false] {
        let (mut terminal, end) = pty_process::blocking::open().unwrap();
        let get = command(&["get", "couchbase://127.0.0.1:1/t", "k", "--user", "app"]);
        let mut get = pty_process::blocking::Command::from(get)
            .spawn(end)
            .unwrap();
        let mut seen = String::new();
        read_until(&mut terminal, &mut seen, "Password of app: ");
        wait_for("the echo is off", || !is_shown(&terminal));
        match by_key {
            true => terminal.write_all(b"\x03").unwrap(),
            false => signal("TERM", get.id()),
        }
        let status = get.wait().unwrap();
        assert_eq!(status.code(), Some(if by_key { 130 } else { 143 }));
        assert!(is_shown(&terminal), "the echo is still off: {seen}");
        read_to_end(&mut terminal, &mut seen);
        assert!(seen.contains("interrupted; nothing was changed"), "{seen}");
    }
}
