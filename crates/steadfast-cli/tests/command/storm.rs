//! `steadfast storm`: tables, JSON and invalid settings.

use serde_json::Value;

use crate::support::steadfast;

const SMALL: [&str; 6] = ["--clients", "2", "--rate", "20", "--workers", "1"];

fn storm(arguments: &[&str]) -> crate::support::Output {
    steadfast(&[&["storm"], &SMALL[..], arguments].concat())
}

#[test]
fn a_comparison_is_printed_as_a_table_and_charts() {
    let output = storm(&["blip", "--strategy", "guidance", "--strategy", "no-retry"]);
    assert!(output.ok(), "{output:?}");
    for text in [
        "clients    2, together 20 requests/s",
        "connections are refused, from 20 s to 21 s",
        "seed       4711",
        "\nguidance ",
        "\nno-retry ",
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
fn json_has_every_second() {
    let output = storm(&[
        "outage",
        "--strategy",
        "immediate",
        "--duration",
        "50s",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    assert_eq!(report["format"], 1);
    assert_eq!(report["simulation"]["arrival_rate_per_s"], 20.0);
    assert_eq!(
        report["simulation"]["fault_schedule"]["faults"][0]["effect"],
        "refuse_connections"
    );
    let summary = &report["summaries"][0];
    assert_eq!(summary["strategy"], "immediate");
    assert_eq!(summary["recovered_after_seconds"], 0.0);
    let load = summary["load_during_faults"].as_f64().expect("a number");
    assert!((load - 3.0).abs() < 0.1, "{load}");
    let seconds = summary["seconds"].as_array().expect("a list");
    assert!(seconds.len() >= 50);
    assert!(seconds.iter().all(|second| second["started"].is_u64()));
}

#[test]
fn a_run_that_ends_before_the_fault_ends_reports_no_failed_recovery() {
    let output = storm(&["outage", "--strategy", "no-retry", "--duration", "30s"]);
    assert!(
        output.ok() && !output.stdout.contains('✘'),
        "{}",
        output.stdout
    );
}

#[test]
fn invalid_settings_are_usage_errors() {
    for (arguments, text) in [
        (["--rate", "0"], "the arrival rate must be"),
        (["--rate", "1e-25"], "fewer than 10 requests"),
        (["--clients", "1000000000"], "from 1 to 100000"),
        (["--idempotent", "2"], "from 0 to 1"),
        (["--rate", "1e9"], "20 million"),
        (["--strategy", "unknown"], "possible values"),
        (["--strategy", "fail-fast"], "is now called no-retry"),
    ] {
        let output = steadfast(&["storm", arguments[0], arguments[1]]);
        assert_eq!(output.status, 2, "{output:?}");
        assert!(output.stderr.contains(text), "{output:?}");
    }
}
