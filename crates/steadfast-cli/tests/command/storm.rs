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
        "scenario   blip: 20 requests/s together",
        "\n2 clients",
        "connections are refused, from 20 s to 21 s",
        "seeds      4711 to 4713",
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
    assert_eq!(report["format"], 3);
    assert_eq!(report["scenario"]["rate_per_s"], 20.0);
    assert_eq!(
        report["scenario"]["faults"][0]["effect"],
        "refuse_connections"
    );
    let trials = &report["fleets"][0][0];
    assert_eq!(trials["policy"], "immediate");
    assert_eq!(trials["clients"], 2);
    assert_eq!(trials["recovered"], 1.0);
    let load = trials["load_in_trouble"].as_f64().expect("a number");
    assert!((load - 3.0).abs() < 0.1, "{load}");
    let runs = trials["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 3);
    let bins = runs[0]["bins"].as_array().expect("a list");
    assert!(bins.len() >= 50);
    assert!(bins.iter().all(|bin| bin["started"].is_u64()));
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
fn every_report_fits_80_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.toml");
    let text = "scenarios = ['brownout']\nclients = [50]\nseeds = 1\npolicies = ['no-retry']\n\
                [[expect]]\npolicy = 'no-retry'\nrecovers = 1.0\nwithin_s = 0.001\n";
    std::fs::write(&plan, text).expect("a file");
    let plan = plan.to_str().expect("text");
    for (arguments, status) in [
        (vec!["--all-policies", "--seeds", "1"], 0),
        (vec!["check", plan], 1),
    ] {
        let mut all = vec!["storm"];
        if arguments[0] == "--all-policies" {
            all.extend(SMALL);
        }
        all.extend(arguments);
        let output = steadfast(&all);
        assert_eq!(output.status, status, "{output:?}");
        for line in output.stdout.lines() {
            assert!(line.chars().count() <= 80, "{all:?}: {line}");
        }
    }
}

#[test]
fn invalid_settings_are_usage_errors() {
    for (arguments, text) in [
        (["--rate", "0"], "the arrival rate must be"),
        (["--rate", "1e-25"], "fewer than 10 requests"),
        (["--clients", "1000000000"], "from 1 to 2000000"),
        (["--idempotent", "2"], "from 0 to 1"),
        (["--rate", "1e9"], "20 million"),
        (["--seed", "18446744073709551615"], "--seed must be at most"),
        (["--seeds", "0"], "1..=100000"),
        (["--seeds", "18446744073709551615"], "1..=100000"),
        (["--strategy", "unknown"], "possible values"),
        (["--strategy", "fail-fast"], "is now called no-retry"),
    ] {
        let output = steadfast(&["storm", arguments[0], arguments[1]]);
        assert_eq!(output.status, 2, "{output:?}");
        assert!(output.stderr.contains(text), "{output:?}");
    }
}
