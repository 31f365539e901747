//! `steadfast storm`.

use serde_json::Value;

use crate::support::steadfast;

const SMALL: [&str; 6] = ["--clients", "2", "--rate", "20", "--workers", "1"];

fn storm(arguments: &[&str]) -> crate::support::Output {
    steadfast(&[&["storm"], &SMALL[..], arguments].concat())
}

#[test]
fn a_storm_is_told_in_a_table_and_drawn() {
    let output = storm(&["blip", "--policy", "guidance", "--policy", "fail-fast"]);
    assert!(output.ok(), "{output:?}");
    for text in [
        "2 clients, 20 requests/s",
        "connections are refused, from 20 s to 21 s",
        "seed       4711",
        "\nguidance ",
        "\nfail-fast ",
        "█",
    ] {
        assert!(
            output.stdout.contains(text),
            "{text} is not in {}",
            output.stdout
        );
    }
    assert!(!output.stdout.contains("best-effort"), "{}", output.stdout);
}

#[test]
fn machines_get_every_second() {
    let output = storm(&[
        "outage",
        "--policy",
        "at-once",
        "--duration",
        "50s",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    assert_eq!(report["format"], 1);
    assert_eq!(report["storm"]["rate_per_s"], 20.0);
    assert_eq!(
        report["storm"]["weather"]["spells"][0]["trouble"],
        "refusing"
    );
    let outcome = &report["outcomes"][0];
    assert_eq!(outcome["policy"], "at-once");
    assert_eq!(outcome["back_after_seconds"], 0.0);
    let load = outcome["load_in_trouble"].as_f64().expect("a number");
    assert!((load - 3.0).abs() < 0.1, "{load}");
    let seconds = outcome["seconds"].as_array().expect("a list");
    assert!(seconds.len() >= 50);
    assert!(seconds.iter().all(|second| second["begun"].is_u64()));
}

#[test]
fn a_run_that_ends_before_the_trouble_does_not_say_that_the_fleet_was_lost() {
    let output = storm(&["outage", "--policy", "fail-fast", "--duration", "30s"]);
    assert!(
        output.ok() && !output.stdout.contains('✘'),
        "{}",
        output.stdout
    );
}

#[test]
fn numbers_that_make_no_storm_are_a_usage_error() {
    for (arguments, text) in [
        (["--rate", "0"], "the rate must be"),
        (["--rate", "1e-25"], "fewer than 10 requests"),
        (["--clients", "1000000000"], "1 to 100000 clients"),
        (["--idempotent", "2"], "from 0 to 1"),
        (["--rate", "1e9"], "20 million"),
        (["--policy", "hopeful"], "possible values"),
    ] {
        let output = steadfast(&["storm", arguments[0], arguments[1]]);
        assert_eq!(output.status, 2, "{output:?}");
        assert!(output.stderr.contains(text), "{output:?}");
    }
}
