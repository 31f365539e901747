//! The cost of a request that succeeds at the first try under each integration,
//! as a ratio to the bare client, and beside the retries that others have.

mod groups;
mod measure;
mod server;
mod tower_policy;

use std::future::Future;

use groups::Contender;
use server::Server;
use steadfast_benches::measure::allocations_per_call;
use steadfast_benches::table::Table;
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 401;

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
    let costs = measure::side_by_side(contenders, ROUNDS);
    let Some((bare, least)) = contenders.first().zip(costs.first()) else {
        return;
    };
    let bare_allocations = allocations_per_call(&bare.calls);
    let mut table = Table::new(&[
        "",
        "processor, µs",
        "× bare",
        "µs added",
        "wall, µs",
        "allocations added",
    ]);
    for (contender, cost) in contenders.iter().zip(&costs) {
        let allocations = allocations_per_call(&contender.calls) - bare_allocations;
        table.row(vec![
            contender.name.to_owned(),
            format!("{:.2}", cost.processor / 1000.0),
            format!("{:.2}", cost.processor / least.processor),
            format!("{:+.2}", (cost.processor - least.processor) / 1000.0),
            format!("{:.1}", cost.wall / 1000.0),
            format!("{allocations:+.0}"),
        ]);
    }
    println!("\n**{title}**\n\n{table}");
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
