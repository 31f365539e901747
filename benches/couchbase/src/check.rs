//! The limits of the instructions of this client and of the cluster, which CI holds them to.

use std::error::Error;

use steadfast_benches::measure::instructions_per_call;

use crate::contenders::Contender;
use crate::load::Op;
use crate::report::instructions;
use crate::server::Server;

/// The most instructions of a get and of an upsert in several runs. They depend on the
/// batches in which responses arrive, and vary by up to 4 %.
const MEASURED: [(Op, f64); 2] = [(Op::Get, 3107.0), (Op::Upsert, 4500.0)];

/// The same for the cluster, with the floor as its client.
const MEASURED_OF_CLUSTER: [(Op, f64); 2] = [(Op::Get, 1335.0), (Op::Upsert, 3312.0)];

/// The slack for another compiler and other versions of dependencies.
const SLACK: f64 = 1.03;

/// Counts the instructions of operations, in this client and in the cluster.
///
/// # Errors
/// If an operation takes more than it did, or valgrind cannot be run.
pub fn check() -> Result<(), Box<dyn Error>> {
    let server = Server::start(1, 0)?;
    let mut too_many = Vec::new();
    let mut compare = |name: String, now: f64, measured: f64| {
        let limit = measured * SLACK;
        println!("{name}: {now:.0} instructions, at most {limit:.0}");
        if now > limit {
            too_many.push(name);
        }
    };
    for (op, measured) in MEASURED {
        let now = instructions(Contender::Steadfast, op, &server)?;
        compare(op.name().to_owned(), now, measured);
    }
    for (op, measured) in MEASURED_OF_CLUSTER {
        let now = instructions_of_cluster(op)?;
        compare(format!("{} in the cluster", op.name()), now, measured);
    }
    if too_many.is_empty() {
        Ok(())
    } else {
        Err(format!("too many instructions: {}", too_many.join(", ")).into())
    }
}

/// The instructions of the cluster for one operation, with 64 in flight.
fn instructions_of_cluster(op: Op) -> Result<f64, Box<dyn Error>> {
    let instructions = instructions_per_call(|calls| {
        let count = (10 * calls).to_string();
        ["--serve-load", op.name(), "64", &count]
            .map(str::to_owned)
            .to_vec()
    })
    .map_err(|error| error.to_string())?;
    Ok(instructions / 10.0)
}
