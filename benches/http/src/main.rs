//! The cost of a request that succeeds at the first try under each integration, next to
//! the bare client and the retries of others.
//!
//! ```text
//! steadfast-benches-http                        fails if a limit is exceeded
//! steadfast-benches-http GROUP CONTENDER CALLS  makes calls, so that callgrind can count
//! ```

mod groups;
mod limits;
mod server;
mod tower_policy;

use std::future::Future;
use std::process::ExitCode;

use groups::Contender;
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] => Ok(limits::report()),
        [group, contender, calls] => match calls.parse() {
            Ok(calls) => limits::make_calls(group, contender, calls).map(|()| true),
            Err(_) => Err(format!("{calls:?} is not a number of calls")),
        },
        [..] => Err("usage: steadfast-benches-http [GROUP CONTENDER CALLS]".to_owned()),
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
    Contender {
        name,
        calls: Box::new(calls),
        limit: None,
    }
}
