//! A cold start: a new runtime, a new client, and the first answer.

use std::error::Error;
use std::time::Instant;

use steadfast_benches::measure::median;
use steadfast_benches::table::Table;

use crate::contenders::Contender;
use crate::load::{self, Load, Op};
use crate::runtime::{Kind, Took, processor_time};
use crate::server::Server;

const ROUNDS: usize = 21;
const FULL: [Contender; 2] = [Contender::Steadfast, Contender::Official];

/// Prints the time from nothing to the first document, on one and on three nodes.
///
/// # Errors
/// If the cluster or a runtime does not start.
pub fn report() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&["", "nodes", "ms", "ms of processor time"]);
    for nodes in [1, 3] {
        let server = Server::start(nodes, 0)?;
        let runtime = Kind::OneThread.build()?;
        let filler = runtime.block_on(Contender::Steadfast.connect(server.connection_string()));
        runtime.block_on(filler(load::filling()));
        let mut took = FULL.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (contender, took) in FULL.into_iter().zip(&mut took) {
                took.push(start(contender, server.connection_string())?);
            }
        }
        for (contender, took) in FULL.into_iter().zip(took) {
            let wall = median(took.iter().map(|took| took.wall).collect());
            let cpu = median(took.iter().map(|took| took.cpu).collect());
            table.row(vec![
                contender.name().to_owned(),
                nodes.to_string(),
                format!("{:.2}", wall / 1e6),
                format!("{:.2}", cpu / 1e6),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// Starts one client, and reads one document.
///
/// # Errors
/// If the runtime does not start.
pub fn start(contender: Contender, server: &str) -> Result<Took, Box<dyn Error>> {
    let (cpu, wall) = (processor_time(), Instant::now());
    let runtime = Kind::OneThread.build()?;
    let worker = runtime.block_on(contender.connect(server));
    let first = Load {
        op: Op::Get,
        depth: 1,
        count: 1,
    };
    runtime.block_on(worker(first));
    Ok(Took {
        wall: wall.elapsed().as_nanos() as f64,
        cpu: (processor_time() - cpu).as_nanos() as f64,
    })
}
