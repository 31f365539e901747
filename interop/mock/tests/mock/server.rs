//! Starts CouchbaseMock and sends it commands.
//!
//! The mock connects to a socket of the test, reports its HTTP port there, and takes one
//! JSON command per line. It ends when that socket closes.

use std::env;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{PATIENCE, within};

const BUCKET: &str = "default";
const USER: &str = "Administrator";
pub(crate) const PASSWORD: &str = "secret";

pub(crate) struct Mock {
    process: Child,
    control: BufReader<TcpStream>,
    ports: Vec<u16>,
}

impl Mock {
    /// Starts three nodes with one replica.
    pub(crate) async fn start() -> Self {
        Self::start_with(3, &format!("{BUCKET}:{PASSWORD}")).await
    }

    pub(crate) async fn start_with(nodes: usize, buckets: &str) -> Self {
        let jars = env::var("COUCHBASE_MOCK").expect("run this suite by `interop/run mock`");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let monitor = listener.local_addr().unwrap().to_string();
        let process = Command::new("java")
            .args([
                "-cp",
                &format!("{jars}/*"),
                "com.couchbase.mock.CouchbaseMock",
            ])
            .args([
                "--port",
                "0",
                "--vbuckets",
                "32",
                "--replicas",
                "1",
                "--cccp",
            ])
            .args(["--nodes", &nodes.to_string(), "--buckets", buckets])
            .args(["--harakiri-monitor", &monitor])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("java must be installed");
        let (control, _) = within(listener.accept()).await.unwrap();
        let mut control = BufReader::new(control);
        let mut http = Vec::new();
        within(control.read_until(0, &mut http)).await.unwrap();
        let mut mock = Self {
            process,
            control,
            ports: Vec::new(),
        };
        let bucket = buckets.split(':').next().unwrap();
        let ports = mock.command("get_mcports", json!({"bucket": bucket})).await;
        mock.ports = serde_json::from_value(ports).unwrap();
        mock
    }

    /// Runs one command of the mock and returns its payload.
    pub(crate) async fn command(&mut self, name: &str, payload: Value) -> Value {
        let response = self.try_command(name, payload).await;
        response.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Like `command`, with the mock's complaint as an error.
    pub(crate) async fn try_command(
        &mut self,
        name: &str,
        payload: Value,
    ) -> Result<Value, String> {
        let line = format!("{}\n", json!({"command": name, "payload": payload}));
        let control = self.control.get_mut();
        within(control.write_all(line.as_bytes())).await.unwrap();
        let mut line = String::new();
        within(self.control.read_line(&mut line)).await.unwrap();
        let mut response: Value = serde_json::from_str(&line).unwrap();
        if response["status"] != "ok" {
            return Err(response.to_string());
        }
        Ok(response["payload"].take())
    }

    /// Makes the next operations on all nodes fail with a status.
    pub(crate) async fn fail(&mut self, status: u16, count: i32) {
        let nodes: Vec<usize> = (0..self.ports.len()).collect();
        let payload = json!({"code": status, "count": count, "servers": nodes});
        self.command("opfail", payload).await;
    }

    pub(crate) async fn on_node(&mut self, command: &str, node: usize) -> Value {
        self.command(command, json!({"idx": node, "bucket": BUCKET}))
            .await
    }

    /// The frames with this opcode that a node received since `start_cmdlog`.
    pub(crate) async fn received(&mut self, node: usize, opcode: u8) -> usize {
        let log = self.on_node("get_cmdlog", node).await;
        let frames = log.as_array().unwrap().iter();
        frames.filter(|frame| frame["opcode"] == opcode).count()
    }

    pub(crate) fn nodes(&self) -> usize {
        self.ports.len()
    }

    /// The address of the key-value port of the first node.
    pub(crate) fn address(&self) -> String {
        format!("couchbase://127.0.0.1:{}", self.ports[0])
    }

    pub(crate) async fn connect(&self, options: ClusterOptions) -> Cluster {
        let credentials = Credentials::password(USER, PASSWORD);
        let address = self.address();
        within(Cluster::connect_with(&address, credentials, options))
            .await
            .unwrap()
    }

    /// A client with a connection to each node, and its default collection.
    pub(crate) async fn client(&self, options: ClusterOptions) -> (Cluster, Collection) {
        let cluster = self.connect(options.kv_timeout(PATIENCE)).await;
        let bucket = cluster.bucket(BUCKET);
        bucket.wait_until_ready(PATIENCE).await.unwrap();
        let documents = bucket.default_collection();
        (cluster, documents)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended already, with the control socket.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
