//! The limits of this client's instructions, which CI holds it to.

use std::error::Error;

use crate::contenders::Contender;
use crate::load::Op;
use crate::report::instructions;
use crate::server::Server;

/// The instructions of a get and of an upsert that were measured last. Batches of
/// responses differ a little from run to run, by less than 0.3 %.
const MEASURED: [(Op, f64); 2] = [(Op::Get, 3700.0), (Op::Upsert, 5120.0)];

/// The slack for another compiler and other versions of dependencies.
const SLACK: f64 = 1.03;

/// Counts the instructions of this client's operations.
///
/// # Errors
/// If an operation takes more than it did, or valgrind cannot be run.
pub fn check() -> Result<(), Box<dyn Error>> {
    let server = Server::start(1, 0)?;
    let mut too_many = Vec::new();
    for (op, measured) in MEASURED {
        let (now, limit) = (
            instructions(Contender::Steadfast, op, &server)?,
            measured * SLACK,
        );
        let name = op.name();
        println!("{name}: {now:.0} instructions, at most {limit:.0}");
        if now > limit {
            too_many.push(name);
        }
    }
    if too_many.is_empty() {
        Ok(())
    } else {
        Err(format!("too many instructions: {}", too_many.join(", ")).into())
    }
}
