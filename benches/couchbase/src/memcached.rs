//! The cluster beside memcached: the same client, the same load, the same processor.
//!
//! The client is the floor, so that the server is the slower part. Both servers have one
//! thread and keep documents in memory; the cluster also checks the vbucket and keeps
//! versions, as its protocol asks for.

use std::error::Error;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use steadfast_benches::measure::median;
use steadfast_benches::table::Table;

use crate::contenders::Contender;
use crate::load::{self, Load, Op};
use crate::processors;
use crate::runtime::{Kind, timed};
use crate::server::Server;

const ROUNDS: usize = 5;
const OPERATIONS: u64 = 500_000;
const TRIES: usize = 200;

/// memcached in another process. Ends with this value.
struct Memcached {
    child: Child,
    address: String,
}

/// Prints the operations that both servers handle in a second.
///
/// # Errors
/// If memcached is not installed, or a server does not start.
pub fn compare() -> Result<(), Box<dyn Error>> {
    let cluster = Server::start(1, 0)?;
    let memcached = Memcached::start()?;
    processors::keep_to_first();
    let runtime = Kind::OneThread.build()?;
    let servers = [cluster.connection_string(), &memcached.address];
    let workers = servers.map(|server| runtime.block_on(Contender::Floor.connect(server)));
    let mut table = Table::new(&["", "in flight", "cluster", "memcached", "ratio"]);
    for worker in &workers {
        runtime.block_on(worker(load::filling()));
    }
    for op in Op::ALL {
        for depth in [64, 1024] {
            let load = Load {
                op,
                depth,
                count: OPERATIONS,
            };
            let mut rates = [Vec::new(), Vec::new()];
            for round in 0..=ROUNDS {
                for (worker, rates) in workers.iter().zip(&mut rates) {
                    let took = timed(&runtime, worker, load);
                    // The first round warms up.
                    if round > 0 {
                        rates.push(1e9 / took.wall);
                    }
                }
            }
            let [cluster, memcached] = rates.map(median);
            table.row(vec![
                op.name().to_owned(),
                depth.to_string(),
                format!("{cluster:.0}"),
                format!("{memcached:.0}"),
                format!("{:.2}", cluster / memcached),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

impl Memcached {
    /// Starts it on the last processor, and waits until it listens.
    fn start() -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let everywhere = processors::allowed();
        processors::keep_to_last();
        let started = Command::new("memcached")
            .args(["-B", "binary", "-t", "1", "-l", "127.0.0.1", "-u", "root"])
            .args(["-p", &port.to_string()])
            .stdin(Stdio::null())
            .spawn();
        processors::roam(&everywhere);
        let child = started.map_err(|error| format!("memcached does not start: {error}"))?;
        let host = format!("127.0.0.1:{port}");
        let memcached = Self {
            child,
            address: format!("memcached://{host}"),
        };
        for _ in 0..TRIES {
            match TcpStream::connect(&host) {
                Ok(_) => return Ok(memcached),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err("memcached does not listen".into())
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            eprintln!("memcached does not end: {error}");
        }
    }
}
