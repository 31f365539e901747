//! Slow rebalances: shown, waited for and cancelled.

use crate::support::{Running, steadfast};

/// A minute between two vbuckets: longer than any test.
const SLOWLY: [&str; 4] = ["--step", "1", "--pause", "60000"];

fn cluster() -> Running {
    Running::start(&["--nodes", "2", "--vbuckets", "16", "--replicas", "0"])
}

fn slowly<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &SLOWLY, after].concat()
}

#[test]
fn an_invalid_pace_is_rejected() {
    for (pace, problem) in [
        (["--step", "0"], "1 or more"),
        (["--pause", "60001"], "60000"),
        (["--pause", "18446744073709551615"], "60000"),
    ] {
        let refused = steadfast(&["topology", "rebalance", pace[0], pace[1]]);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains(problem), "{refused:?}");
    }
}

#[test]
fn a_running_rebalance_is_shown_and_can_be_cancelled() {
    let cluster = cluster();
    let added = cluster.stdout(&slowly(&["topology", "rebalance-in"], &["--no-wait"]));
    assert_eq!(added, "node 2\n");
    let shown = cluster.stdout(&["topology", "show"]);
    assert!(
        shown.contains("rebalance-in of node 2, running: 1 of 5 vbuckets moved"),
        "{shown}"
    );
    let other = cluster.run(&["topology", "fail-over", "0"]);
    assert_eq!(other.status, 1, "{other:?}");
    assert!(
        other.stderr.contains("steadfast topology cancel"),
        "{other:?}"
    );

    let cancelled = cluster.stdout(&["topology", "cancel"]);
    assert!(
        cancelled.contains("cancelled: 1 of 5 vbuckets moved"),
        "{cancelled}"
    );
    let shown = cluster.stdout(&["topology", "show"]);
    assert!(
        shown.contains("rebalance-in of node 2, cancelled: 1 of 5"),
        "{shown}"
    );
    let none = cluster.run(&["topology", "cancel"]);
    assert_eq!(none.status, 1, "{none:?}");
    assert!(none.stderr.contains("no rebalance is running"), "{none:?}");

    // Another rebalance continues from there.
    cluster.stdout(&["topology", "rebalance", "--pause", "0"]);
    let shown = cluster.stdout(&["topology", "show"]);
    assert!(!shown.contains("rebalance"), "{shown}");
}

#[test]
fn waiting_for_a_rebalance_fails_when_it_is_cancelled() {
    let cluster = cluster();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let waiting = slowly(&["topology", "rebalance-out", "0"], &["--timeout", "1s"]);
            cluster.run(&waiting)
        });
        let running = || {
            let shown = cluster.stdout(&["topology", "show"]);
            shown.contains("rebalance-out of node 0, running")
        };
        while !running() {
            assert!(!waiting.is_finished(), "it does not wait");
        }
        // The timeout is for each response, not for the rebalance.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert!(!waiting.is_finished(), "it waits without a limit");
        cluster.stdout(&["topology", "cancel"]);
        let output = waiting.join().unwrap();
        assert_eq!(output.status, 1, "{output:?}");
        assert!(output.stderr.contains("was cancelled"), "{output:?}");
        assert!(
            output.stderr.contains("steadfast topology rebalance"),
            "{output:?}"
        );
    });
}
