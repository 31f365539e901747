//! One point of a curve, measured in a process of its own.
//!
//! A fresh process has no memory that an earlier point left, and one that takes too
//! long can give up without the rest of the run.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{Curve, memory};
use crate::contenders::{Contender, FullClient, official, steadfast};
use crate::load::{self, DOCUMENTS, Document, Op, filling};
use crate::processors;
use crate::runtime::{Kind, processor_time};
use crate::server::collection_name;

/// When a point gives up.
const LIMIT: Duration = Duration::from_secs(20);
/// Operations in flight where their number is not what grows.
const DEPTH: usize = 64;
/// Operations in flight to each node.
const DEPTH_OF_A_NODE: usize = 16;
/// Operations that are measured at least.
const AT_LEAST: usize = 20_000;
/// Bytes of documents that are moved at least, as far as `AT_LEAST` allows.
const BYTES_AT_LEAST: usize = 60_000_000;

/// What a point costs in all: processor time in nanoseconds for both of the
/// curve's operations, and memory in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub costs: [f64; 2],
    pub memory: f64,
}

/// Measures a point and prints it.
pub fn print(
    curve: Curve,
    contender: Contender,
    n: usize,
    server: &str,
) -> Result<(), Box<dyn Error>> {
    processors::keep_to_first();
    let runtime = Kind::OneThread.build()?;
    let point = runtime.block_on(async {
        let limited = tokio::time::timeout(LIMIT, async {
            match contender {
                Contender::Steadfast => measure(curve, n, || steadfast::connect(server)).await,
                Contender::Official => measure(curve, n, || official::connect(server)).await,
                Contender::Floor => Err(io::Error::other("the floor has no curves")),
            }
        });
        let too_long = |_| io::Error::other(format!("takes more than {} s", LIMIT.as_secs()));
        limited.await.map_err(too_long)?
    })?;
    let [first, second] = point.costs;
    println!("{first} {second} {}", point.memory);
    // Ends without taking thousands of clients apart.
    std::process::exit(0);
}

/// Reads what [`print`] printed.
pub fn parse(line: &str) -> Option<Point> {
    let numbers: Vec<f64> = line
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let [first, second, memory] = numbers[..] else {
        return None;
    };
    Some(Point {
        costs: [first, second],
        memory,
    })
}

async fn measure<C: FullClient>(
    curve: Curve,
    n: usize,
    connect: impl AsyncFn() -> C,
) -> io::Result<Point> {
    // Makes the documents, and all that a process needs once.
    let warm = connect().await;
    load::run(warm.clone(), filling()).await;
    match curve {
        Curve::Flight => {
            let clients = Arc::new(vec![warm]);
            let count = AT_LEAST.max(3 * n);
            let before = memory::resident()?;
            memory::forget_peak()?;
            spread(&clients, Op::Get, n, n).await;
            let memory = memory::peak()? - before;
            let get = steady(&clients, Op::Get, n, count).await * n as f64;
            let upsert = steady(&clients, Op::Upsert, n, count).await * n as f64;
            let costs = [get, upsert];
            Ok(Point { costs, memory })
        }
        Curve::Nodes => {
            let before = memory::resident()?;
            let start = processor_time();
            let clients = Arc::new(vec![connect().await]);
            // So many that every node has some.
            spread(&clients, Op::Get, DEPTH_OF_A_NODE * n, 10 * n).await;
            let connected = nanoseconds_since(start);
            let memory = memory::resident()? - before;
            let depth = DEPTH_OF_A_NODE * n;
            let get = steady(&clients, Op::Get, depth, AT_LEAST).await * n as f64;
            let costs = [connected, get];
            Ok(Point { costs, memory })
        }
        Curve::Collections => {
            let before = memory::resident()?;
            let start = processor_time();
            let open = |number| warm.collection(&collection_name(number));
            let clients = Arc::new((0..n).map(open).collect::<Vec<_>>());
            spread(&clients, Op::Upsert, DEPTH, n).await;
            let opened = nanoseconds_since(start);
            let memory = memory::resident()? - before;
            spread(&clients, Op::Upsert, DEPTH, DOCUMENTS.max(n)).await;
            let get = steady(&clients, Op::Get, DEPTH, AT_LEAST).await * n as f64;
            let costs = [opened, get];
            Ok(Point { costs, memory })
        }
        Curve::Clients => {
            let before = memory::resident()?;
            let start = processor_time();
            let mut clients = Vec::with_capacity(n);
            for _ in 0..n {
                let client = connect().await;
                client.get(load::key(0)).await;
                clients.push(client);
            }
            let connected = nanoseconds_since(start);
            let memory = memory::resident()? - before;
            let get = steady(&Arc::new(clients), Op::Get, n, AT_LEAST).await * n as f64;
            let costs = [connected, get];
            Ok(Point { costs, memory })
        }
        Curve::Documents => documents(&warm, n).await,
    }
}

/// Documents of `len` bytes, one after the other.
async fn documents<C: FullClient>(client: &C, len: usize) -> io::Result<Point> {
    const KEY: &str = "document";
    let document: &'static Document = Box::leak(Box::new(Document::new(len)));
    let count = (BYTES_AT_LEAST / len).clamp(3, AT_LEAST / 10);
    let before = memory::resident()?;
    memory::forget_peak()?;
    client.upsert(KEY, document).await;
    assert_eq!(client.get(KEY).await, len);
    let memory = memory::peak()? - before;
    let start = processor_time();
    for _ in 0..count {
        assert_eq!(client.get(KEY).await, len);
    }
    let get = nanoseconds_since(start) / count as f64;
    let start = processor_time();
    for _ in 0..count {
        client.upsert(KEY, document).await;
    }
    let upsert = nanoseconds_since(start) / count as f64;
    let costs = [get, upsert];
    Ok(Point { costs, memory })
}

/// Returns the processor time of one operation in nanoseconds, after each task has
/// done its first.
async fn steady<C: FullClient>(clients: &Arc<Vec<C>>, op: Op, depth: usize, count: usize) -> f64 {
    // Few in flight take long, and their cost needs no large sample.
    let count = if depth < DEPTH { count / 10 } else { count };
    // A task of the last turn that is short by one would let the others wait.
    let count = count.next_multiple_of(depth);
    let start = Arc::new(Barrier::new(depth + 1));
    let mut tasks = tasks(clients, op, depth, count + depth, Some(&start));
    start.wait().await;
    let before = processor_time();
    join(&mut tasks).await;
    nanoseconds_since(before) / count as f64
}

/// Does `count` operations on all clients in turn, with `depth` in flight.
async fn spread<C: FullClient>(clients: &Arc<Vec<C>>, op: Op, depth: usize, count: usize) {
    join(&mut tasks(clients, op, depth, count, None)).await;
}

/// Starts tasks that do `count` operations. With a barrier, they wait there after
/// the first.
fn tasks<C: FullClient>(
    clients: &Arc<Vec<C>>,
    op: Op,
    depth: usize,
    count: usize,
    barrier: Option<&Arc<Barrier>>,
) -> JoinSet<()> {
    let period = clients.len().max(DOCUMENTS);
    let mut tasks = JoinSet::new();
    for lane in 0..depth.min(count) {
        let (clients, barrier) = (clients.clone(), barrier.cloned());
        tasks.spawn(async move {
            let numbers = (lane..count).step_by(depth);
            for number in numbers {
                let place = number % period;
                let client = &clients[place % clients.len()];
                let key = load::key(place as u64);
                match op {
                    Op::Get => assert_eq!(client.get(key).await, load::LEN),
                    Op::Upsert => client.upsert(key, load::document()).await,
                }
                if let Some(barrier) = barrier.as_ref().filter(|_| number == lane) {
                    barrier.wait().await;
                }
            }
        });
    }
    tasks
}

async fn join(tasks: &mut JoinSet<()>) {
    while let Some(joined) = tasks.join_next().await {
        joined.expect("an operation does not fail");
    }
}

fn nanoseconds_since(start: Duration) -> f64 {
    (processor_time() - start).as_nanos() as f64
}
