//! Five seconds of load with faults, and the report.
//!
//!     cargo run --release -p steadfast-load --example five_seconds
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use steadfast_load::client::{Access, Steadfast};
use steadfast_load::progress::Quiet;
use steadfast_load::{Embedded, Settings, Target, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings {
        seed: 4711,
        duration: Duration::from_secs(5),
        ..Settings::default()
    };
    let cluster = Embedded::start(settings.nodes, settings.seed, settings.tls).await?;
    let client = Steadfast::connect(Access::embedded(&cluster), None, settings.timeout).await?;
    let target = Target::Embedded(cluster);
    let never = std::future::pending();
    let report = run(&settings, client, &target, &mut Quiet, never).await?;
    println!("{report}");
    anyhow::ensure!(report.holds(), "not every write is accounted for");
    Ok(())
}
