//! How runs end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::future::pending;
use std::time::Duration;

use steadfast_load::calamity::Act;
use steadfast_load::client::{Access, Steadfast};
use steadfast_load::progress::Quiet;
use steadfast_load::{Embedded, Settings, Target, run};

fn settings(seed: u64, duration: Duration) -> Settings {
    Settings {
        seed,
        duration,
        concurrency: 4,
        rate: Some(400),
        timeout: Duration::from_secs(1),
        nodes: 3,
        client: String::new(),
        strategy: String::new(),
        replay: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_cannot_be_played_ends_the_run_at_once_and_is_a_violation() {
    let long = Duration::from_secs(40);
    // A single node cannot be failed over, and the script is told that there are three.
    let first = |seed| settings(seed, long).script(0).acts[0].act;
    let seed = (0..).find(|seed| first(*seed) == Act::FailOver).unwrap();
    let settings = settings(seed, long);
    let embedded = Embedded::start(1, seed).await.unwrap();
    let access = Access::embedded(&embedded);
    let client = Steadfast::connect(access, None, settings.timeout).await;
    let target = Target::Embedded(embedded);
    let report = run(&settings, client.unwrap(), &target, &mut Quiet, pending()).await;
    let report = report.unwrap();
    assert!(
        report.duration_s < 20.0,
        "it went on for {}",
        report.duration_s
    );
    assert!(!report.holds());
    let text = report.to_string();
    assert!(
        text.contains("the script cannot be played to its end")
            && text.contains("    the last node"),
        "{text}"
    );
    assert!(report.operations.ok > 10, "{text}");
}
