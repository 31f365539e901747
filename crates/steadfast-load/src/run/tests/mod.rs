mod lying_cluster;

use std::future::pending;
use std::time::Duration;

use super::{Settings, Target, run};
use crate::client::{Access, Steadfast};
use crate::embedded::Embedded;
use crate::faults::FaultKind;
use crate::progress::Quiet;

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_cannot_be_played_ends_the_run_at_once_and_is_a_violation() {
    let settings = |seed| Settings {
        seed,
        duration: Duration::from_secs(40),
        concurrency: 4,
        rate: Some(400),
        timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    // A single node cannot be failed over, and the settings say that there are three.
    let first = |seed| settings(seed).schedule(0).iter().next().unwrap().1.kind;
    let seed = (0..).find(|seed| first(*seed) == FaultKind::FailOver);
    let settings = settings(seed.unwrap());
    let embedded = Embedded::start(1, settings.seed).await.unwrap();
    let access = Access::embedded(&embedded);
    let client = Steadfast::connect(access, None, settings.timeout).await;
    let target = Target::Embedded(embedded);
    let report = run(&settings, client.unwrap(), &target, &mut Quiet, pending()).await;
    let report = report.unwrap();
    let text = report.to_string();
    assert!(report.duration_s < 20.0, "{text}");
    assert!(!report.holds());
    assert!(
        text.contains("the schedule cannot be played to its end")
            && text.contains("    the last node"),
        "{text}"
    );
    assert!(report.operations.ok > 10, "{text}");
}
