//! The tables, and the limits of the instructions of this client and of the cluster.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use steadfast_benches::{SLACK, allocations_during, instructions_per_call};
use tokio::runtime::{Builder, Runtime};

use crate::contenders::{Contender, Worker};
use crate::load::{Load, Op, filling};
use crate::server::Server;

/// How often everybody has a turn.
const ROUNDS: usize = 9;
/// How many at once, and how many in all.
const DEPTHS: [(usize, u64); 3] = [(1, 1_000), (DEPTH, 20_000), (1024, 30_000)];
/// How many at once where instructions are counted.
pub const DEPTH: usize = 64;

/// The most instructions of a get and of an upsert in several runs. They depend on the
/// batches in which responses arrive, and vary by up to 4 %.
const LIMITS: [(Op, f64); 2] = [(Op::Get, 3107.0), (Op::Upsert, 4500.0)];

/// The same for the cluster, with this client.
const LIMITS_OF_CLUSTER: [(Op, f64); 2] = [(Op::Get, 1602.0), (Op::Upsert, 3556.0)];

/// What an operation took: nanoseconds by the wall clock, and of this process's processor time.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

/// Prints times, allocations and instructions.
pub fn tables() -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    let runtime = runtime()?;
    let workers = Contender::ALL.map(|contender| {
        let worker = runtime.block_on(contender.connect(server.connection_string()));
        // The documents are there, and so is every connection.
        runtime.block_on(worker(filling()));
        (contender, worker)
    });
    println!("| | in flight | operations/s | CPU ns |\n|---|--:|--:|--:|");
    for op in Op::ALL {
        for (depth, count) in DEPTHS {
            let took = in_turns(&runtime, &workers, Load { op, depth, count });
            for ((contender, _), Took { wall, cpu }) in workers.iter().zip(took) {
                let (name, op) = (contender.name(), op.name());
                println!("| {name} {op} | {depth} | {:.0} | {cpu:.0} |", 1e9 / wall);
            }
        }
    }
    println!("\n| {DEPTH} in flight | allocations | instructions |\n|---|--:|--:|");
    for op in Op::ALL {
        for (contender, worker) in &workers {
            let allocations = allocations(&runtime, worker, op);
            let instructions = instructions(*contender, op, &server)?;
            let (name, op) = (contender.name(), op.name());
            println!("| {name} {op} | {allocations:.2} | {instructions:.0} |");
        }
    }
    Ok(())
}

/// Counts the instructions of operations, in this client and in the cluster.
///
/// # Errors
/// If an operation takes more than it did, or valgrind cannot be run.
pub fn check() -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    let mut too_many = Vec::new();
    let mut compare = |name: String, now: f64, measured: f64| {
        let limit = measured * SLACK;
        println!("{name}: {now:.0} instructions, at most {limit:.0}");
        if now > limit {
            too_many.push(name);
        }
    };
    for (op, measured) in LIMITS {
        let now = instructions(Contender::Steadfast, op, &server)?;
        compare(op.name().to_owned(), now, measured);
    }
    for (op, measured) in LIMITS_OF_CLUSTER {
        let now = counted(&["--serve-load", op.name()], None)?;
        compare(format!("{} in the cluster", op.name()), now, measured);
    }
    if too_many.is_empty() {
        Ok(())
    } else {
        Err(format!("too many instructions: {}", too_many.join(", ")).into())
    }
}

/// A client has one thread, so that it shares no processor with the cluster.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Everybody in turns, the median of the rounds.
fn in_turns(runtime: &Runtime, workers: &[(Contender, Worker)], load: Load) -> Vec<Took> {
    let mut took: Vec<Vec<Took>> = vec![Vec::new(); workers.len()];
    for round in 0..=ROUNDS {
        for ((_, worker), took) in workers.iter().zip(&mut took) {
            let this = timed(runtime, worker, load);
            // The first round warms up.
            if round > 0 {
                took.push(this);
            }
        }
    }
    let median = |took: &[Took], part: fn(&Took) -> f64| {
        let mut samples: Vec<f64> = took.iter().map(part).collect();
        samples.sort_by(f64::total_cmp);
        samples[ROUNDS / 2]
    };
    let medians = took.iter().map(|took| Took {
        wall: median(took, |took| took.wall),
        cpu: median(took, |took| took.cpu),
    });
    medians.collect()
}

fn timed(runtime: &Runtime, worker: &Worker, load: Load) -> Took {
    let (cpu, wall) = (processor_time(), Instant::now());
    runtime.block_on(worker(load));
    let (wall, cpu) = (wall.elapsed(), processor_time() - cpu);
    let each = |total: Duration| total.as_nanos() as f64 / load.count as f64;
    Took {
        wall: each(wall),
        cpu: each(cpu),
    }
}

/// The processor time of this process up to now.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn allocations(runtime: &Runtime, worker: &Worker, op: Op) -> f64 {
    const COUNT: u64 = 10_000;
    let during = |count| {
        let depth = DEPTH;
        allocations_during(|| runtime.block_on(worker(Load { op, depth, count })))
    };
    // The tasks of a load are the same, whatever its length.
    (during(2 * COUNT) as f64 - during(COUNT) as f64) / COUNT as f64
}

/// The instructions of one operation of a client.
fn instructions(contender: Contender, op: Op, server: &Server) -> Result<f64, Box<dyn Error>> {
    let arguments = ["--only", contender.name(), op.name()];
    counted(&arguments, Some(server.connection_string()))
}

/// The instructions of this program for one operation, of which a run makes many.
fn counted(arguments: &[&str], last: Option<&str>) -> Result<f64, Box<dyn Error>> {
    let instructions = instructions_per_call(|calls| {
        let count = (10 * calls).to_string();
        let arguments = arguments.iter().copied().chain([&*count]).chain(last);
        arguments.map(str::to_owned).collect()
    });
    let instructions = instructions.map_err(|error| error.to_string())?;
    Ok(instructions / 10.0)
}
