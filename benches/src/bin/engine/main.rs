//! The cost of a call under the engine, next to other retry libraries and to no library.
//!
//! ```text
//! engine                     allocations and instructions; fails if a limit is exceeded
//! engine NAME FAILURES CALLS makes calls, so that callgrind can count what they take
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod contenders;
mod operation;

use std::process::ExitCode;

use contenders::{CLOCK, Contender, all};
use steadfast_benches::{Unmeasured, allocations_per_call, instructions_per_call};

/// Calls whose first attempt succeeds, and calls whose second attempt does.
const SCENARIOS: [(&str, u32); 2] = [("first-try success", 0), ("one failure, then success", 1)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => ExitCode::from(u8::from(!report())),
        [name, failures, calls] => {
            let contender = all().into_iter().find(|each| each.name == name);
            match (contender, failures.parse(), calls.parse()) {
                (Some(contender), Ok(failures), Ok(calls)) => {
                    (contender.calls)(failures, calls);
                    ExitCode::SUCCESS
                }
                _ => usage(),
            }
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: engine [NAME FAILURES CALLS]");
    ExitCode::from(2)
}

/// Measures and prints everything. Returns whether all limits are kept. A limit that could not
/// be measured is not kept.
fn report() -> bool {
    let all = all();
    let clock = all.iter().find(|each| each.name == CLOCK);
    let clock = instructions(clock.expect("the clock is a contender"), 0);
    let mut kept = true;
    for (scenario, failures) in SCENARIOS {
        println!("\n{scenario}\n");
        for contender in all.iter().filter(|each| each.name != CLOCK) {
            let allocations = allocations_per_call(&|calls| (contender.calls)(failures, calls));
            let instructions = instructions(contender, failures);
            let limit = contender.limits.map(|limits| limits[failures as usize]);
            let judged = limit.map_or(Ok("no limit"), |limit| {
                limit.judge(allocations, &instructions, &clock)
            });
            kept &= judged.is_ok();
            let verdict = judged.unwrap_or_else(|problem| problem);
            let instructions = match instructions {
                Ok(count) => format!("{count:.0}"),
                Err(why) => why.to_string(),
            };
            println!(
                "{:42} {allocations} allocations, {instructions:>4} instructions: {verdict}",
                contender.name
            );
        }
    }
    kept
}

fn instructions(contender: &Contender, failures: u32) -> Result<f64, Unmeasured> {
    instructions_per_call(|calls| {
        let (failures, calls) = (failures.to_string(), calls.to_string());
        vec![contender.name.to_owned(), failures, calls]
    })
}
