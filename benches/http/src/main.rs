//! The cost of a request that succeeds at the first try under each integration, beside
//! the bare client and the retries of others.
//!
//! ```text
//! steadfast-benches-http            the tables
//! steadfast-benches-http --check    only the exact limits; fails if one is exceeded
//! ```

mod exact;
mod groups;
mod limits;
mod measure;
mod server;
mod tower_policy;

use std::future::Future;
use std::process::ExitCode;

use groups::{Contender, GROUPS, Group};
use server::Server;
use steadfast_benches::table::Table;
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 401;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] => {
            report_all();
            Ok(true)
        }
        ["--check"] => Ok(limits::check()),
        [exact::CALLS, group, contender, calls] => {
            exact::make_calls(group, contender, calls).map(|()| true)
        }
        [..] => Err(format!("unknown arguments: {}", arguments.join(" "))),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::from(2)
        }
    }
}

fn report_all() {
    let server = Server::start();
    // The clients' connections live on it, and are served while a call waits.
    let runtime = runtime();
    for group in &GROUPS {
        report(group, &group.contenders(&runtime, &server));
    }
}

fn report(group: &Group, contenders: &[Contender<'_>]) {
    let costs = measure::side_by_side(contenders, ROUNDS);
    let Some(least) = costs.first() else {
        return;
    };
    let exact = exact::measure(group, contenders);
    let mut table = Table::new(&[
        "",
        "processor, µs",
        "× bare",
        "µs added",
        "wall, µs",
        "allocations added",
        "instructions added",
    ]);
    for ((contender, cost), added) in contenders.iter().zip(&costs).zip(&exact) {
        let instructions = match &added.instructions {
            Ok(instructions) => format!("{instructions:+.0}"),
            Err(why) => why.to_string(),
        };
        table.row(vec![
            contender.name.to_owned(),
            format!("{:.2}", cost.processor / 1000.0),
            format!("{:.3}", cost.processor / least.processor),
            format!("{:+.2}", (cost.processor - least.processor) / 1000.0),
            format!("{:.1}", cost.wall / 1000.0),
            format!("{:+.2}", added.allocations),
            instructions,
        ]);
    }
    println!("\n**{}**\n\n{table}", group.title);
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
