//! What a request that succeeds at the first try costs under each integration,
//! as a ratio to the bare client, and beside the retries that others have.

mod groups;
mod server;
mod tower_policy;

use std::future::Future;

use groups::Contender;
use server::Server;
use steadfast_benches::measure::{Timing, Workload, allocations_per_call, side_by_side};
use steadfast_benches::table::Table;
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 301;

fn main() {
    let server = Server::start();
    // The clients' connections live on it, and are served while a call waits.
    let runtime = runtime();
    report(
        "A tower service that answers at once",
        &groups::memory::contenders(&runtime),
    );
    report(
        "hyper's client, over loopback",
        &groups::hyper::contenders(&runtime, &server),
    );
    report(
        "reqwest, over loopback",
        &groups::reqwest::contenders(&runtime, &server),
    );
    report(
        "tonic, over loopback",
        &groups::tonic::contenders(&runtime, &server),
    );
    report(
        "AWS SDK (SQS, ListQueues), over loopback",
        &groups::aws::contenders(&runtime, &server),
    );
}

/// The first contender is the bare client.
fn report(title: &str, contenders: &[Contender<'_>]) {
    let calls: Vec<Workload<'_>> = contenders
        .iter()
        .map(|contender| &*contender.calls as _)
        .collect();
    let timings = side_by_side(&calls, ROUNDS);
    let bare = timings.first().map_or(f64::NAN, |timing| timing.ns);
    let bare_allocations = calls
        .first()
        .map_or(f64::NAN, |calls| allocations_per_call(*calls));
    let mut table = Table::new(&["", "ns", "× bare", "ns added", "allocations added"]);
    for ((contender, timing), calls) in contenders.iter().zip(&timings).zip(&calls) {
        let added = allocations_per_call(*calls) - bare_allocations;
        table.row(vec![
            contender.name.to_owned(),
            format!("{:.0}", timing.ns),
            format!("{:.3}", timing.ns / bare),
            format!("{:+.0}", timing.ns - bare),
            format!("{added:+.1}"),
        ]);
    }
    let quiet: usize = timings.iter().map(|timing: &Timing| timing.quiet).sum();
    let batches: usize = timings.iter().map(|timing| timing.batches).sum();
    println!("\n**{title} ({quiet} of {batches} batches undisturbed)**\n\n{table}");
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
}

/// A contender that makes its calls one after the other.
fn contender<'a, F, Fut>(name: &'static str, runtime: &'a Runtime, call: F) -> Contender<'a>
where
    F: Fn() -> Fut + Sync + 'a,
    Fut: Future<Output = ()>,
{
    let calls = move |calls| {
        runtime.block_on(async {
            for _ in 0..calls {
                call().await;
            }
        });
    };
    let calls = Box::new(calls);
    Contender { name, calls }
}
