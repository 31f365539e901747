//! The cluster, in its own process.
//!
//! What it costs must not be taken for a client's, and its allocations and
//! threads must not be counted with theirs. So this program starts itself once
//! more, and the child serves until its standard input is closed.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use steadfast_cluster::{BucketSettings, TestCluster};

use crate::load::Op;

pub const BUCKET: &str = "default";
pub const USER: &str = "Administrator";
pub const PASSWORD: &str = "password";

/// A cluster in another process. Ends with this value.
pub struct Server {
    child: Child,
    connection_string: String,
}

impl Server {
    /// Starts it, and waits until it listens.
    pub fn start() -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--serve")
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

/// What the child does.
pub fn serve() -> Result<(), Box<dyn Error>> {
    serve_during(|server| {
        println!("{server}");
        io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
    })
}

/// Serves one load of this client, which runs in a child: so the instructions of this process
/// are those of the cluster.
pub fn serve_load(op: Op, count: u64) -> Result<(), Box<dyn Error>> {
    serve_during(move |server| {
        let status = Command::new(std::env::current_exe()?)
            .args([
                "--only",
                "steadfast",
                op.name(),
                &count.to_string(),
                &server,
            ])
            .stderr(Stdio::null())
            .status()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other("the load failed")),
        }
    })
}

/// Serves while `work` runs, on one thread.
fn serve_during(
    work: impl FnOnce(String) -> io::Result<()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let runtime = crate::report::runtime()?;
    runtime.block_on(async {
        let bucket = BucketSettings::new(BUCKET).replicas(0);
        let cluster = TestCluster::builder()
            .nodes(1)
            .bucket(bucket)
            .user(USER, PASSWORD)
            .journal_limit(1)
            .start()
            .await?;
        let server = cluster.connection_string();
        tokio::task::spawn_blocking(move || work(server)).await??;
        Ok(())
    })
}
