//! The cost of a call under the engine, beside other retry libraries and beside no
//! library at all.
//!
//! ```text
//! engine            the tables
//! engine --check    only the exact limits; fails if one is exceeded
//! ```

mod check;
mod company;
mod contenders;
mod exact;
mod finding;
mod limits;
mod operation;
mod report;
mod scenario;
mod targets;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = io::stdout().lock();
    match arguments[..] {
        [] => {
            report::report(&mut out)?;
            Ok(ExitCode::SUCCESS)
        }
        ["--check"] => {
            let kept = check::check(&mut out)?;
            Ok(ExitCode::from(u8::from(!kept)))
        }
        [exact::CALLS, contender, scenario, calls] => {
            match exact::make_calls(contender, scenario, calls) {
                Ok(()) => Ok(ExitCode::SUCCESS),
                Err(wrong) => usage(&wrong),
            }
        }
        [..] => usage(&format!("unknown arguments: {}", arguments.join(" "))),
    }
}

fn usage(wrong: &str) -> io::Result<ExitCode> {
    writeln!(io::stderr(), "{wrong}\nusage: engine [--check]")?;
    Ok(ExitCode::from(2))
}
