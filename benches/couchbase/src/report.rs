//! The tables.

use std::error::Error;
use std::fs;

use steadfast_benches::measure::{allocations_during, instructions_per_call, median};
use steadfast_benches::table::Table;
use tokio::runtime::Runtime;

use crate::contenders::{Contender, Worker};
use crate::load::{Load, Op, filling};
use crate::processors;
use crate::runtime::{Kind, Took, timed};
use crate::server::Server;

/// How often everybody has a turn.
pub const ROUNDS: usize = 9;
/// The same for a first look.
pub const FEW_ROUNDS: usize = 5;

/// How many at once, and how many in all.
const DEPTHS: [(usize, u64); 3] = [(1, 1_000), (64, 20_000), (1024, 30_000)];

type Workers = Vec<(Contender, Worker)>;

/// Prints everything.
pub fn all(rounds: usize) -> Result<(), Box<dyn Error>> {
    let everywhere = processors::allowed();
    let server = Server::start(1, 0)?;
    for kind in Kind::ALL {
        match kind {
            Kind::OneThread => processors::keep_to_first(),
            Kind::TwoThreads => processors::roam(&everywhere),
        }
        let runtime = kind.build()?;
        let workers = connect(&runtime, &server, &Contender::ALL);
        println!("**{}, one node**\n", kind.title());
        println!("{}", times(&runtime, &workers, rounds));
        if kind == Kind::OneThread {
            println!("**Exactly, {}, 64 in flight**\n", kind.title());
            println!("{}", exactly(&runtime, &workers, &server));
        }
    }
    drop(server);
    let server = Server::start(3, 0)?;
    for kind in Kind::ALL {
        match kind {
            Kind::OneThread => processors::keep_to_first(),
            Kind::TwoThreads => processors::roam(&everywhere),
        }
        let runtime = kind.build()?;
        let both = [Contender::Steadfast, Contender::Official];
        let workers = connect(&runtime, &server, &both);
        println!("**{}, three nodes**\n", kind.title());
        println!("{}", times(&runtime, &workers, rounds));
    }
    Ok(())
}

fn connect(runtime: &Runtime, server: &Server, who: &[Contender]) -> Workers {
    let connect = |contender: &Contender| {
        let worker = runtime.block_on(contender.connect(server.connection_string()));
        // The documents are there, and so is every connection.
        runtime.block_on(worker(filling()));
        (*contender, worker)
    };
    who.iter().map(connect).collect()
}

/// Everybody in turns, the median of the rounds.
fn times(runtime: &Runtime, workers: &Workers, rounds: usize) -> Table {
    let mut table = Table::new(&[
        "",
        "in flight",
        "operations/s",
        "× official",
        "× floor",
        "CPU ns",
        "× official",
        "× floor",
        "load",
    ]);
    for op in Op::ALL {
        for (depth, count) in DEPTHS {
            let load = Load { op, depth, count };
            let (took, busy) = in_turns(runtime, workers, load, rounds);
            let of = |who| workers.iter().position(|(contender, _)| *contender == who);
            let (official, floor) = (of(Contender::Official), of(Contender::Floor));
            for (index, (contender, _)) in workers.iter().enumerate() {
                let ratio = |other: Option<usize>, part: fn(&Took) -> f64| {
                    other.map_or_else(String::new, |other| {
                        format!("{:.2}", part(&took[other]) / part(&took[index]))
                    })
                };
                let Took { wall, cpu } = took[index];
                table.row(vec![
                    format!("{} {}", contender.name(), op.name()),
                    depth.to_string(),
                    format!("{:.0}", 1e9 / wall),
                    ratio(official, |took| took.wall),
                    ratio(floor, |took| took.wall),
                    format!("{cpu:.0}"),
                    ratio(official, |took| took.cpu),
                    ratio(floor, |took| took.cpu),
                    busy.clone(),
                ]);
            }
        }
    }
    table
}

fn in_turns(
    runtime: &Runtime,
    workers: &Workers,
    load: Load,
    rounds: usize,
) -> (Vec<Took>, String) {
    let mut took: Vec<Vec<Took>> = vec![Vec::new(); workers.len()];
    for round in 0..=rounds {
        for ((_, worker), took) in workers.iter().zip(&mut took) {
            let this = timed(runtime, worker, load);
            // The first round warms up.
            if round > 0 {
                took.push(this);
            }
        }
    }
    let middle = |took: &Vec<Took>, part: fn(&Took) -> f64| median(took.iter().map(part).collect());
    let middles = took.iter().map(|took| Took {
        wall: middle(took, |took| took.wall),
        cpu: middle(took, |took| took.cpu),
    });
    (middles.collect(), busy())
}

/// How many want a processor, these included.
fn busy() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or_default().to_owned()
}

/// The instructions of one operation with 64 in flight on one thread.
///
/// # Errors
/// If valgrind cannot be run.
pub fn instructions(contender: Contender, op: Op, server: &Server) -> Result<f64, Box<dyn Error>> {
    let instructions = instructions_per_call(|calls| {
        let (depth, calls) = ("64".to_owned(), (10 * calls).to_string());
        let (name, op) = (contender.name().to_owned(), op.name().to_owned());
        let server = server.connection_string().to_owned();
        let kind = Kind::OneThread.name().to_owned();
        vec!["--only".to_owned(), name, op, depth, calls, kind, server]
    })
    .map_err(|error| error.to_string())?;
    Ok(instructions / 10.0)
}

/// What does not depend on who else is busy.
fn exactly(runtime: &Runtime, workers: &Workers, server: &Server) -> Table {
    const COUNT: u64 = 10_000;
    let mut table = Table::new(&[
        "",
        "allocations",
        "× official",
        "instructions",
        "× official",
        "× floor",
    ]);
    for op in Op::ALL {
        let load = |count| Load {
            op,
            depth: 64,
            count,
        };
        let measured: Vec<(f64, f64)> = workers
            .iter()
            .map(|(contender, worker)| {
                let during =
                    |count| allocations_during(|| runtime.block_on(worker(load(count)))) as f64;
                // The tasks of a load are the same, whatever its length.
                let allocations = (during(2 * COUNT) - during(COUNT)) / COUNT as f64;
                let instructions = instructions(*contender, op, server);
                let instructions = instructions.unwrap_or_else(|error| {
                    eprintln!("{error}");
                    f64::NAN
                });
                (allocations, instructions)
            })
            .collect();
        for (index, (contender, _)) in workers.iter().enumerate() {
            let (allocations, instructions) = measured[index];
            table.row(vec![
                format!("{} {}", contender.name(), op.name()),
                format!("{allocations:.2}"),
                format!("{:.2}", allocations / measured[1].0),
                format!("{instructions:.0}"),
                format!("{:.2}", instructions / measured[1].1),
                format!("{:.2}", instructions / measured[2].1),
            ]);
        }
    }
    table
}
