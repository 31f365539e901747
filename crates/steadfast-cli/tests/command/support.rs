//! Runs the binary, alone and against a cluster.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use steadfast_cluster::{BucketSettings, TestCluster, TestClusterBuilder};
use tokio::runtime::Runtime;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_steadfast");

/// Exit status and output of a run.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn ok(&self) -> bool {
        self.status == 0
    }
}

/// Runs the command.
pub(crate) fn steadfast(arguments: &[&str]) -> Output {
    run(command(arguments))
}

/// Prepares the command in a neutral environment.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).stdin(Stdio::null());
    quiet(&mut command);
    command
}

/// Removes variables that would change the command's behaviour.
pub(crate) fn quiet(command: &mut Command) {
    for variable in [
        "STEADFAST_CONTROL",
        "STEADFAST_USER",
        "STEADFAST_PASSWORD",
        "RUST_LOG",
        "CLICOLOR_FORCE",
    ] {
        command.env_remove(variable);
    }
}

pub(crate) fn run(mut command: Command) -> Output {
    let output = command.output().unwrap();
    Output {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A cluster in this process that the command can use.
pub(crate) struct Served {
    runtime: Runtime,
    cluster: TestCluster,
}

impl Served {
    pub(crate) fn start(build: impl FnOnce(TestClusterBuilder) -> TestClusterBuilder) -> Self {
        let runtime = Runtime::new().unwrap();
        let bucket = BucketSettings::new("travel").replicas(0).vbuckets(16);
        let builder = TestCluster::builder().bucket(bucket);
        let cluster = runtime.block_on(build(builder).start()).unwrap();
        Self { runtime, cluster }
    }

    pub(crate) fn cluster(&self) -> &TestCluster {
        &self.cluster
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns the address of a bucket or collection.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}/{path}", self.cluster.connection_string())
    }

    /// Runs a command as the user of the cluster.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_as(TestCluster::PASSWORD, arguments)
    }

    pub(crate) fn run_as(&self, password: &str, arguments: &[&str]) -> Output {
        let mut command = command(arguments);
        command.env("STEADFAST_USER", TestCluster::USER);
        command.env("STEADFAST_PASSWORD", password);
        run(command)
    }
}

/// `steadfast cluster`, running.
pub(crate) struct Running {
    process: Child,
    printed: Vec<String>,
    rest: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process = command(&["cluster"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut rest = BufReader::new(process.stdout.take().unwrap());
        let lines = rest.by_ref().lines().map(Result::unwrap);
        let printed = lines.take_while(|line| !line.starts_with("up;")).collect();
        Self {
            process,
            printed,
            rest,
        }
    }

    pub(crate) fn fact(&self, name: &str) -> &str {
        let line = self
            .printed
            .iter()
            .find(|line| line.starts_with(name))
            .unwrap();
        line[name.len()..].split_whitespace().next().unwrap()
    }

    /// All facts of a name.
    pub(crate) fn facts(&self, name: &str) -> Vec<&str> {
        let lines = self
            .printed
            .iter()
            .filter_map(|line| line.strip_prefix(name));
        lines
            .filter_map(|rest| rest.split_whitespace().next())
            .collect()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let control = self.fact("control").strip_prefix("http://").unwrap();
        let control = format!("{}@{control}", self.fact("token"));
        let mut command = command(arguments);
        command.env("STEADFAST_CONTROL", control);
        run(command)
    }

    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.ok(), "{arguments:?}: {output:?}");
        output.stdout
    }

    /// Sends a signal by name.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end, and returns the exit status and the remaining output.
    pub(crate) fn end(mut self) -> (i32, Vec<String>) {
        let lines = self.rest.by_ref().lines().map(Result::unwrap).collect();
        (self.process.wait().unwrap().code().unwrap(), lines)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Decides whether a terminal echoes what is typed.
#[cfg(unix)]
pub(crate) fn is_shown(terminal: &pty_process::blocking::Pty) -> bool {
    let modes = rustix::termios::tcgetattr(terminal).unwrap().local_modes;
    modes.contains(rustix::termios::LocalModes::ECHO)
}

#[cfg(unix)]
pub(crate) fn read_until(terminal: &mut impl Read, seen: &mut String, text: &str) {
    let mut byte = [0];
    while !seen.contains(text) {
        assert_eq!(terminal.read(&mut byte).unwrap(), 1, "{seen}");
        seen.push(char::from(byte[0]));
    }
}

/// Reads until the end, which on a terminal is an error.
#[cfg(unix)]
pub(crate) fn read_to_end(terminal: &mut impl Read, seen: &mut String) {
    let mut bytes = [0; 1024];
    loop {
        match terminal.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => seen.push_str(&String::from_utf8_lossy(&bytes[..count])),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
