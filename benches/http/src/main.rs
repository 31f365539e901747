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
    // The server is on the calling thread, too. On two threads, a request mostly waits for a
    // processor to wake, and that varies by more than any layer costs.
    let runtime = runtime();
    let server = Server::start_on(&runtime);
    for group in &GROUPS {
        let mut contenders = group.contenders(&runtime, &server);
        // The bare client twice: times that differ less than these two are equal.
        let again = group.contenders(&runtime, &server).swap_remove(0);
        contenders.push(again);
        report(group, &contenders);
    }
}

fn report(group: &Group, contenders: &[Contender<'_>]) {
    let costs = measure::side_by_side(contenders, ROUNDS);
    let [least, .., again] = &costs[..] else {
        return;
    };
    let contenders = &contenders[..contenders.len() - 1];
    let exact = exact::measure(group, contenders);
    let mut table = Table::new(&[
        "",
        "processor, µs",
        "× bare",
        "µs added",
        "allocations added",
        "instructions added",
    ]);
    let times = |name: &str, cost: f64| {
        vec![
            name.to_owned(),
            format!("{:.2}", cost / 1000.0),
            format!("{:.3}", cost / least),
            format!("{:+.2}", (cost - least) / 1000.0),
        ]
    };
    for ((contender, cost), added) in contenders.iter().zip(&costs).zip(&exact) {
        let mut row = times(contender.name, *cost);
        row.push(format!("{:+.2}", added.allocations));
        row.push(match &added.instructions {
            Ok(instructions) => format!("{instructions:+.0}"),
            Err(why) => why.to_string(),
        });
        table.row(row);
    }
    let mut row = times("bare, once more", *again);
    row.extend([String::new(), String::new()]);
    table.row(row);
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
