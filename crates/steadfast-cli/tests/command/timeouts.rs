//! Timeouts of the command, with peers that never respond.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::support::{Output, command, run, steadfast};

/// Above the timeouts of these tests, and below the defaults.
const LONG: Duration = Duration::from_secs(5);

/// A peer that accepts connections and never responds: the system accepts them, and
/// nothing reads.
fn silent() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn timed(arguments: &[&str]) -> (Output, Duration) {
    let mut command = command(arguments);
    command.env("STEADFAST_PASSWORD", "secret");
    let started = Instant::now();
    (run(command), started.elapsed())
}

#[test]
fn every_step_of_the_doctor_obeys_the_timeout() {
    let (_listener, address) = silent();
    let plain = format!("couchbase://{address}/travel");
    let secure = format!("couchbases://{address}/travel");
    for (address, step) in [(plain, "✘ authenticate"), (secure, "✘ TLS")] {
        let doctor = ["doctor", &address, "--user", "app", "--timeout", "300ms"];
        let (output, took) = timed(&doctor);
        assert_eq!(output.status, 1, "{output:?}");
        assert!(output.stdout.contains(step), "{output:?}");
        assert!(took < LONG, "{took:?}: {output:?}");
    }
    let help = steadfast(&["doctor", "--help"]).stdout;
    assert!(help.contains("each step"), "{help}");
}

#[test]
fn a_control_address_that_does_not_respond_is_named() {
    let (_listener, address) = silent();
    let address = address.to_string();
    for command in [
        &["fault", "list"][..],
        &["fault", "clear"],
        &["topology", "show"],
        &["topology", "crash", "0"],
    ] {
        let more = ["--control", &address, "--timeout", "300ms"];
        let (output, took) = timed(&[command, &more].concat());
        let changes = command.contains(&"clear") || command.contains(&"crash");
        assert_eq!(output.status, if changes { 4 } else { 1 }, "{output:?}");
        for part in [&*address, "300 ms", "steadfast cluster", "--timeout"] {
            assert!(output.stderr.contains(part), "{part}: {output:?}");
        }
        assert!(took < LONG, "{took:?}: {output:?}");
        let may_be_done = output.stderr.contains("may still do what was requested");
        assert_eq!(may_be_done, changes, "{output:?}");
    }
    let help = steadfast(&["fault", "--help"]).stdout;
    assert!(help.contains("[default: 10s]"), "{help}");
}
