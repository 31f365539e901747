//! Measures how soon programs read documents again after an outage of their cluster, and how
//! soon after they started before it.
//!
//!     cargo run --release -p steadfast-couchbase --example outages
//!     cargo run --release -p steadfast-couchbase --example outages -- 1 3
//!
//! The arguments are the outages in seconds. Each program is a process with a client that has
//! the default options. The time counts from the moment at which both nodes accept connections.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, Credentials};

const BUCKET: &str = "travel";

/// Documents on both nodes.
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// The programs that live through an outage.
const PROGRAMS: usize = 20;

/// How long before its cluster a program starts, in seconds, and how many do.
const EARLY: [(u64, usize); 2] = [(2, 50), (8, 50)];

/// How long all programs may take.
const LONG: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [program, string] = &arguments[..]
        && program == "program"
    {
        return read_forever(string).await;
    }
    let outages = arguments.iter().map(|seconds| seconds.parse());
    let mut outages: Vec<u64> = outages.collect::<Result<_, _>>()?;
    if outages.is_empty() {
        outages = vec![1, 3, 5, 10, 30, 60];
    }
    let server = TestCluster::builder()
        .nodes(2)
        .bucket(BucketSettings::new(BUCKET))
        .user("app", "secret")
        .start()
        .await?;
    let mut aims_met = true;
    for (seconds, count) in EARLY {
        crash(&server).await?;
        let mut programs = Programs::start(&server, count)?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let times = programs.after(restart(&server).await?);
        aims_met &= report(
            &format!("started {seconds} s before"),
            count,
            times,
            1.0,
            1.0,
        );
    }
    let mut programs = Programs::start(&server, PROGRAMS)?;
    programs.after(Instant::now());
    for seconds in outages {
        crash(&server).await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let times = programs.after(restart(&server).await?);
        aims_met &= report(&format!("outage of {seconds} s"), PROGRAMS, times, 0.5, 1.0);
    }
    Ok(match aims_met {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn crash(server: &TestCluster) -> Result<(), Box<dyn Error>> {
    for node in server.nodes() {
        server.crash(node).await?;
    }
    Ok(())
}

/// Returns when the last node accepted connections.
async fn restart(server: &TestCluster) -> Result<Instant, Box<dyn Error>> {
    for node in server.nodes() {
        server.restart(node).await?;
    }
    Ok(Instant::now())
}

/// Prints the times of programs. Returns whether all succeeded, half of them within `median`
/// seconds and all within `worst`.
fn report(what: &str, count: usize, mut times: Vec<f64>, median: f64, worst: f64) -> bool {
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    let last = times.last().copied().unwrap_or(f64::NAN);
    let succeeded = times.len();
    println!("{what}: {succeeded} of {count}, median {middle:.2} s, worst {last:.2} s");
    succeeded == count && middle <= median && last <= worst
}

/// Programs that read. Dropping them ends their processes.
struct Programs {
    children: Vec<Child>,
    reads: Receiver<(usize, Instant)>,
}

impl Programs {
    fn start(server: &TestCluster, count: usize) -> Result<Self, Box<dyn Error>> {
        let (sender, reads) = channel();
        let mut programs = Self {
            children: Vec::new(),
            reads,
        };
        for number in 0..count {
            let mut program = Command::new(std::env::current_exe()?);
            program.args(["program", &server.connection_string()]);
            let mut child = program.stdout(Stdio::piped()).spawn()?;
            let output = child.stdout.take().ok_or("a program has no output")?;
            let sender = sender.clone();
            std::thread::spawn(move || note_reads(number, BufReader::new(output), &sender));
            programs.children.push(child);
        }
        Ok(programs)
    }

    /// Waits until each program has read all documents after this moment. Returns the times in
    /// seconds, without those of programs that failed.
    fn after(&mut self, ready: Instant) -> Vec<f64> {
        let mut first = vec![None; self.children.len()];
        while first.contains(&None) && ready.elapsed() < LONG {
            let Ok((number, at)) = self.reads.recv_timeout(Duration::from_secs(10)) else {
                break;
            };
            if at > ready && first[number].is_none() {
                first[number] = Some((at - ready).as_secs_f64());
            }
        }
        first.into_iter().flatten().collect()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Notes the time of each line of a program until its end.
fn note_reads(number: usize, output: impl BufRead, sender: &Sender<(usize, Instant)>) {
    for line in output.lines() {
        if line.is_err() || sender.send((number, Instant::now())).is_err() {
            return;
        }
    }
}

/// The program: waits for its cluster, reads documents of all nodes again and again, and prints a
/// line each time.
async fn read_forever(string: &str) -> Result<ExitCode, Box<dyn Error>> {
    let cluster = Cluster::connect(string, Credentials::password("app", "secret")).await?;
    let bucket = cluster.bucket(BUCKET);
    bucket.wait_until_ready(Duration::from_secs(10)).await?;
    let documents = bucket.default_collection();
    loop {
        let mut all = true;
        for key in KEYS {
            all &= documents.exists(key).await.is_ok();
        }
        if all {
            println!("read");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
