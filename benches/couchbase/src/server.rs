//! The cluster, in its own process.
//!
//! What it costs must not be taken for a client's, and its allocations and
//! threads must not be counted with theirs. So this program starts itself once
//! more, and the child serves until its standard input is closed.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use steadfast_cluster::{BucketSettings, TestCluster};

use crate::load::Load;
use crate::processors;

pub const BUCKET: &str = "default";
pub const USER: &str = "Administrator";
pub const PASSWORD: &str = "password";
/// As many as real clusters have.
pub const VBUCKETS: u16 = 1024;

/// A cluster in another process. Ends with this value.
pub struct Server {
    child: Child,
    connection_string: String,
}

impl Server {
    /// Starts it, and waits until it listens.
    pub fn start(nodes: usize, collections: usize) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--serve", &nodes.to_string(), &collections.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        if line.is_empty() {
            return Err(io::Error::other("the cluster did not start"));
        }
        Ok(Self {
            child,
            connection_string: line.trim().to_owned(),
        })
    }

    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It sees the end of its input.
        drop(self.child.stdin.take());
        if let Err(error) = self.child.wait() {
            eprintln!("the cluster's process cannot be waited for: {error}");
        }
    }
}

/// The name of a collection besides the default one.
pub fn collection_name(number: usize) -> String {
    format!("collection-{number}")
}

/// What the child does.
pub fn serve(nodes: usize, collections: usize) -> Result<(), Box<dyn Error>> {
    serve_during(nodes, collections, |server| {
        println!("{server}");
        io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
    })
}

/// Serves one load of the floor, which runs in a child: so the instructions of this process are
/// those of the cluster.
pub fn serve_load(load: Load) -> Result<(), Box<dyn Error>> {
    let (op, depth, count) = (load.op.name(), load.depth, load.count);
    serve_during(1, 0, move |server| {
        let status = Command::new(std::env::current_exe()?)
            .args([
                "--only",
                "floor",
                op,
                &depth.to_string(),
                &count.to_string(),
            ])
            .args(["one", &server])
            .stderr(Stdio::null())
            .status()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other("the load failed")),
        }
    })
}

/// Serves while `work` runs. One thread for all nodes: it has one processor.
fn serve_during(
    nodes: usize,
    collections: usize,
    work: impl FnOnce(String) -> io::Result<()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    processors::keep_to_last();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let bucket = BucketSettings::new(BUCKET).replicas(0).vbuckets(VBUCKETS);
        let cluster = TestCluster::builder()
            .nodes(nodes)
            .bucket(bucket)
            .user(USER, PASSWORD)
            .journal_limit(1)
            .start()
            .await?;
        for number in 0..collections {
            cluster.create_collection(BUCKET, "_default", &collection_name(number), 0)?;
        }
        let server = cluster.connection_string();
        tokio::task::spawn_blocking(move || work(server)).await??;
        Ok(())
    })
}
