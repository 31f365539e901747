//! The workload of `steadfast load`, with the same seed and faults, through the official Rust SDK
//! and through this project's client, one after the other, and the accounting of both.
//!
//!     cargo run --release -- [SEED] [SECONDS]

mod official;

use std::time::Duration;

use anyhow::Context;
use official::Official;
use steadfast_load::client::{Access, Client, Steadfast};
use steadfast_load::progress::Lines;
use steadfast_load::{BUCKET, Embedded, LoadReport, PASSWORD, Settings, Target, USER, run};

/// The SDK's futures are large: without optimisation they do not fit a usual stack.
const STACK: usize = 32 << 20;

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()?
        .block_on(compare())
}

async fn compare() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seed = match arguments.next() {
        Some(seed) => seed.parse().context("the seed is a number")?,
        None => 4711,
    };
    let seconds = match arguments.next() {
        Some(seconds) => seconds.parse().context("the seconds are a number")?,
        None => 10,
    };
    let settings = |client: &str| Settings {
        seed,
        duration: Duration::from_secs(seconds),
        concurrency: 32,
        rate: Some(8000),
        timeout: Duration::from_millis(2500),
        client: client.to_owned(),
        strategy: "its default".to_owned(),
        replay: format!("cargo run --release -- {seed} {seconds}"),
        ..Settings::default()
    };

    let timeout = Duration::from_millis(2500);
    let embedded = Embedded::start(3, seed, false).await?;
    let address = embedded.cluster().connection_string();
    let theirs = Official::connect(&address, USER, PASSWORD, BUCKET, timeout).await?;
    let theirs = measure(&settings("couchbase 1.1.0"), theirs, embedded).await?;

    let embedded = Embedded::start(3, seed, false).await?;
    let ours = Steadfast::connect(Access::embedded(&embedded), None, timeout).await?;
    let ours = measure(&settings("steadfast-couchbase"), ours, embedded).await?;

    for report in [&theirs, &ours] {
        println!("\n{}\n{report}", report.client);
    }
    anyhow::ensure!(ours.holds(), "our own accounting does not hold");
    Ok(())
}

async fn measure(
    settings: &Settings,
    client: impl Client,
    embedded: Embedded,
) -> anyhow::Result<LoadReport> {
    eprintln!("{}", settings.client);
    let mut progress = Lines::new(settings.duration);
    let target = Target::Embedded(embedded);
    run(
        settings,
        client,
        &target,
        &mut progress,
        std::future::pending(),
    )
    .await
}
