//! Reading and writing small documents: this client and the official one, on the same cluster
//! in the same run.

mod contenders;
mod load;
mod report;
mod server;

use std::error::Error;
use std::process::ExitCode;

use contenders::Contender;
use load::{Load, Op};

const USAGE: &str = "\
usage: steadfast-benches-couchbase
           all tables; one minute
       steadfast-benches-couchbase --check
           the instructions of this client and of the cluster; fails if a limit is exceeded
       steadfast-benches-couchbase --only CONTENDER OP COUNT SERVER
           one load, to be profiled: steadfast|official get|upsert
       steadfast-benches-couchbase --serve
           a cluster, until standard input ends
       steadfast-benches-couchbase --serve-load OP COUNT
           a cluster, until this client in another process has done a load";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    match arguments {
        [] => report::tables(),
        ["--check"] => report::check(),
        ["--serve"] => server::serve(),
        ["--serve-load", op, count] => {
            server::serve_load(Op::named(op).ok_or(USAGE)?, count.parse()?)
        }
        ["--only", contender, op, count, server] => {
            let contender = Contender::named(contender).ok_or(USAGE)?;
            let load = Load {
                op: Op::named(op).ok_or(USAGE)?,
                depth: report::DEPTH,
                count: count.parse()?,
            };
            let runtime = report::runtime()?;
            let worker = runtime.block_on(contender.connect(server));
            runtime.block_on(worker(load::filling()));
            runtime.block_on(worker(load));
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
