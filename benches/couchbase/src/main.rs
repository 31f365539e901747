//! Reading and writing small documents: this client, the official one, and the
//! least that is possible, on the same cluster in the same run.
//!
//! See the README beside this crate for what is measured and what came of it.

mod check;
mod cold;
mod contenders;
mod curves;
mod floors;
mod load;
mod memcached;
mod processors;
mod report;
mod runtime;
mod server;

use std::error::Error;
use std::process::ExitCode;

use contenders::Contender;
use curves::Curve;
use load::{Load, Op};
use runtime::Kind;
use server::Server;

const USAGE: &str = "\
usage: steadfast-benches-couchbase [--quick]
           all tables
       steadfast-benches-couchbase --check
           the instructions of this client and of the cluster, which must not grow
       steadfast-benches-couchbase --only CONTENDER OP DEPTH COUNT RUNTIME [SERVER]
           one load, to be profiled: steadfast|official|floor get|upsert … one|two
       steadfast-benches-couchbase --curves [CURVE]
           how cost grows: flight|nodes|collections|clients|documents
       steadfast-benches-couchbase --point CURVE CONTENDER N SERVER
           one point of a curve, to be profiled
       steadfast-benches-couchbase --cold [CONTENDER SERVER]
           a new client and its first answer
       steadfast-benches-couchbase --memcached
           the cluster beside memcached, with the floor as the client
       steadfast-benches-couchbase --floors
           other ways to the kernel: epoll, blocking, spinning, io_uring, vectored writes
       steadfast-benches-couchbase --serve NODES [COLLECTIONS]
           a cluster, until standard input ends
       steadfast-benches-couchbase --serve-load OP DEPTH COUNT
           a cluster, until the floor in another process has done a load";

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
        [] => report::all(report::ROUNDS),
        ["--quick"] => report::all(report::FEW_ROUNDS),
        ["--check"] => check::check(),
        ["--curves"] => curves::report(None),
        ["--curves", name] => curves::report(Some(Curve::named(name).ok_or(USAGE)?)),
        ["--point", curve, contender, n, server] => {
            let curve = Curve::named(curve).ok_or(USAGE)?;
            let contender = Contender::named(contender).ok_or(USAGE)?;
            curves::point::print(curve, contender, n.parse()?, server)
        }
        ["--cold"] => cold::report(),
        ["--cold", contender, server] => {
            let contender = Contender::named(contender).ok_or(USAGE)?;
            cold::start(contender, server).map(|_| ())
        }
        ["--memcached"] => memcached::compare(),
        ["--floors"] => floors::report(),
        ["--serve", nodes] => server::serve(nodes.parse()?, 0),
        ["--serve", nodes, collections] => server::serve(nodes.parse()?, collections.parse()?),
        ["--serve-load", op, depth, count] => server::serve_load(Load {
            op: Op::named(op).ok_or(USAGE)?,
            depth: depth.parse()?,
            count: count.parse()?,
        }),
        ["--only", contender, op, depth, count, kind, server @ ..] if server.len() < 2 => {
            let contender = Contender::named(contender).ok_or(USAGE)?;
            let load = Load {
                op: Op::named(op).ok_or(USAGE)?,
                depth: depth.parse()?,
                count: count.parse()?,
            };
            let kind = Kind::named(kind).ok_or(USAGE)?;
            only(contender, load, kind, server.first().copied())
        }
        _ => Err(USAGE.into()),
    }
}

/// One load and nothing else.
fn only(
    contender: Contender,
    load: Load,
    kind: Kind,
    server: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let own = match server {
        Some(_) => None,
        None => Some(Server::start(1, 0)?),
    };
    let server = server
        .or(own.as_ref().map(Server::connection_string))
        .unwrap_or_default();
    let runtime = kind.build()?;
    let worker = runtime.block_on(contender.connect(server));
    runtime.block_on(worker(load::filling()));
    let took = runtime::timed(&runtime, &worker, load);
    eprintln!(
        "{} ns each, {} ns of them on a processor",
        took.wall, took.cpu
    );
    Ok(())
}
