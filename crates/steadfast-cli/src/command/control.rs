//! `steadfast control`: what a running cluster can do besides faults and nodes.

use std::time::Duration;

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use steadfast_cluster::script::{Script, ScriptSpec};

use super::cluster::contents::User;
use crate::control::ControlArgs;
use crate::exit::{refuse, usage};
use crate::output::{bytes, line, stderr_line};

/// Read and change a running cluster: journal, clock, users, buckets, canned responses
///
/// Faults and nodes have commands of their own: `steadfast fault` and `steadfast topology`.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast control journal --key u:42
  steadfast control clock 1h                      documents expire, locks end
  steadfast control add-collection travel/inventory/airline
  steadfast control put-user app:secret:data_reader[travel]
  steadfast control add-script '{\"service\":\"query\",\"times\":1,\"status\":503}'
  steadfast control hold replication 1

", crate::exit::control_statuses!()))]
pub(crate) struct ControlCommandArgs {
    #[command(flatten)]
    control: ControlArgs,
    #[command(subcommand)]
    action: ControlAction,
}

#[derive(Subcommand)]
enum ControlAction {
    /// Print the applied writes, oldest first
    Journal {
        /// Begin with this number
        #[arg(long, default_value_t = 0, value_parser = crate::number::whole)]
        since: u64,
        /// Read at most this many, up to 100000
        #[arg(long, default_value_t = 1000, value_parser = crate::number::at_least_one)]
        limit: u64,
        /// Only those of this key
        #[arg(long)]
        key: Option<String>,
    },
    /// Advance the cluster's clock: documents expire, locks end
    Clock {
        /// How far, as in 90s or 2h
        #[arg(value_parser = crate::duration::parse)]
        advance: Duration,
    },
    /// Print the certificate of the cluster's authority
    Ca,
    /// Create a bucket
    AddBucket {
        /// Its name
        name: String,
        /// Number of replicas [default: 1]
        #[arg(long, value_parser = crate::number::whole)]
        replicas: Option<u64>,
        /// Number of vbuckets [default: 1024]
        #[arg(long, value_parser = crate::number::at_least_one)]
        vbuckets: Option<u64>,
        /// Memory quota in bytes
        #[arg(long, value_parser = crate::number::at_least_one)]
        quota_bytes: Option<u64>,
    },
    /// Drop a bucket
    DropBucket {
        /// Its name
        name: String,
    },
    /// Remove all documents of a bucket
    FlushBucket {
        /// Its name
        name: String,
    },
    /// Create a scope
    AddScope {
        /// Bucket and scope
        #[arg(value_name = "BUCKET/SCOPE")]
        scope: String,
    },
    /// Drop a scope with its collections
    DropScope {
        /// Bucket and scope
        #[arg(value_name = "BUCKET/SCOPE")]
        scope: String,
    },
    /// Create a collection
    AddCollection {
        /// Bucket, scope and collection
        #[arg(value_name = "BUCKET/SCOPE/COLLECTION")]
        collection: String,
        /// Longest life of its documents in seconds; 0 is no limit
        #[arg(long, default_value_t = 0, value_parser = crate::number::whole)]
        max_ttl: u64,
    },
    /// Drop a collection
    DropCollection {
        /// Bucket, scope and collection
        #[arg(value_name = "BUCKET/SCOPE/COLLECTION")]
        collection: String,
    },
    /// Create a user, or replace one
    PutUser {
        /// Name, password and roles; without roles an administrator
        #[arg(value_name = "NAME:PASSWORD[:ROLES]")]
        user: String,
    },
    /// Remove a user
    RemoveUser {
        /// The name
        name: String,
    },
    /// Keep writes from the replicas of a node, a node from its disk, or a node warming up
    Hold {
        /// What to hold
        #[arg(value_parser = ["replication", "persistence", "warmup"])]
        what: String,
        /// Number of the node
        #[arg(value_parser = crate::number::whole)]
        node: u64,
    },
    /// End a hold
    Release {
        /// The number that `hold` printed
        #[arg(value_parser = crate::number::whole)]
        id: u64,
    },
    /// List the canned responses and how often each was given
    Scripts,
    /// Add a canned response of an HTTP service
    AddScript {
        /// The script: {"service":"query","matching":"SELECT","times":1,"status":503,"body":{}}
        #[arg(value_name = "JSON")]
        script: String,
    },
    /// Remove a canned response
    RemoveScript {
        /// The number that `add-script` and `scripts` show
        #[arg(value_parser = crate::number::whole)]
        id: u64,
    },
    /// Remove all canned responses
    ClearScripts,
    /// Print how many statements are prepared
    Plans,
    /// Lose all prepared statements
    LosePlans {
        /// How: forgotten (error 4040), unrecognizable (4050), undecodable (4070)
        #[arg(long = "as", default_value = "forgotten", value_parser = ["forgotten", "unrecognizable", "undecodable"])]
        how: String,
    },
    /// Define a status in the error map that clients get
    PutError {
        /// The status in hexadecimal, as in 0x7ff0
        code: String,
        /// The definition: {"name":"X","desc":"…","attrs":["retry-later"]}
        #[arg(value_name = "JSON")]
        definition: String,
    },
    /// Remove a definition from the error map
    RemoveError {
        /// The status in hexadecimal
        code: String,
    },
}

/// A request to the control endpoint.
struct ControlRequest {
    method: Method,
    path: String,
    body: Option<Value>,
}

impl ControlCommandArgs {
    /// Directs the command to the cluster with this control endpoint.
    pub(crate) fn at(self, address: &str, json: bool) -> Self {
        let control = self.control.at(address, json);
        Self { control, ..self }
    }

    /// Rejects invalid arguments, without asking the cluster.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.action.request().map(|_| ())
    }
}

impl ControlAction {
    fn request(&self) -> anyhow::Result<ControlRequest> {
        Ok(match self {
            Self::Journal { since, limit, .. } => {
                get(format!("/journal?since={since}&limit={limit}"))
            }
            Self::Clock { advance } => {
                let advance = u64::try_from(advance.as_millis())?;
                post("/clock", json!({"advance_ms": advance}))
            }
            Self::Ca => get("/ca"),
            Self::AddBucket {
                name,
                replicas,
                vbuckets,
                quota_bytes,
            } => {
                let settings = json!({"name": name, "replicas": replicas, "vbuckets": vbuckets,
                    "quota_bytes": quota_bytes});
                post("/buckets", settings)
            }
            Self::DropBucket { name } => delete(path(["buckets", name])),
            Self::FlushBucket { name } => post(path(["buckets", name, "flush"]), json!({})),
            Self::AddScope { scope } => {
                let [bucket, scope] = parts(scope, "BUCKET/SCOPE")?;
                post(path(["buckets", bucket, "scopes"]), json!({"name": scope}))
            }
            Self::DropScope { scope } => {
                let [bucket, scope] = parts(scope, "BUCKET/SCOPE")?;
                delete(path(["buckets", bucket, "scopes", scope]))
            }
            Self::AddCollection {
                collection,
                max_ttl,
            } => {
                let [bucket, scope, name] = parts(collection, "BUCKET/SCOPE/COLLECTION")?;
                let path = path(["buckets", bucket, "scopes", scope, "collections"]);
                post(path, json!({"name": name, "max_ttl": max_ttl}))
            }
            Self::DropCollection { collection } => {
                let [bucket, scope, name] = parts(collection, "BUCKET/SCOPE/COLLECTION")?;
                delete(path([
                    "buckets",
                    bucket,
                    "scopes",
                    scope,
                    "collections",
                    name,
                ]))
            }
            Self::PutUser { user } => {
                let user = User::parse(user)?;
                let mut body = json!({"name": user.name, "password": user.password});
                if let Some(roles) = user.roles {
                    body["roles"] = roles.into();
                }
                post("/users", body)
            }
            Self::RemoveUser { name } => delete(path(["users", name])),
            Self::Hold { what, node } => post("/holds", json!({"what": what, "node": node})),
            Self::Release { id } => delete(format!("/holds/{id}")),
            Self::Scripts => get("/scripts"),
            Self::AddScript { script } => {
                let body = parse(script)?;
                let spec: ScriptSpec = serde_json::from_value(body.clone()).map_err(usage)?;
                let _checked = Script::try_from(spec).map_err(usage)?;
                post("/scripts", body)
            }
            Self::RemoveScript { id } => delete(format!("/scripts/{id}")),
            Self::ClearScripts => delete("/scripts"),
            Self::Plans => get("/plans"),
            Self::LosePlans { how } => post("/plans/lose", json!({"as": how})),
            Self::PutError { code, definition } => ControlRequest {
                method: Method::PUT,
                path: path(["error-map", code]),
                body: Some(parse(definition)?),
            },
            Self::RemoveError { code } => delete(path(["error-map", code])),
        })
    }

    /// Prints a response for people. Most changes have nothing to say.
    fn show(&self, response: &Value) {
        match self {
            Self::Journal { since, .. } => show_journal(response, *since),
            Self::Ca => bytes(response.as_str().unwrap_or_default().as_bytes()),
            Self::Scripts => response
                .as_array()
                .into_iter()
                .flatten()
                .for_each(show_script),
            Self::AddScript { .. } => show_script(response),
            Self::Hold { .. } => line(format_args!("hold {}", response["id"])),
            Self::Plans => line(format_args!("{} prepared statements", response["count"])),
            Self::LosePlans { .. } => line(format_args!("lost {} plans", response["lost"])),
            _ => {}
        }
    }
}

pub(crate) async fn run(args: ControlCommandArgs) -> anyhow::Result<()> {
    let request = args.action.request()?;
    let control = args.control;
    let called = control.call(request.method, &request.path, request.body.as_ref());
    let mut response = called.await?;
    if let ControlAction::Journal { key: Some(key), .. } = &args.action
        && let Some(entries) = response["entries"].as_array_mut()
    {
        entries.retain(|entry| entry["key"] == **key);
    }
    match control.json {
        true => line(response),
        false => args.action.show(&response),
    }
    Ok(())
}

fn get(path: impl Into<String>) -> ControlRequest {
    let (method, path, body) = (Method::GET, path.into(), None);
    ControlRequest { method, path, body }
}

fn post(path: impl Into<String>, body: Value) -> ControlRequest {
    let (method, path, body) = (Method::POST, path.into(), Some(body));
    ControlRequest { method, path, body }
}

fn delete(path: impl Into<String>) -> ControlRequest {
    let (method, path, body) = (Method::DELETE, path.into(), None);
    ControlRequest { method, path, body }
}

/// Joins the segments of a path, and encodes what is not plain in them.
fn path<const N: usize>(segments: [&str; N]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        for byte in segment.bytes() {
            match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                true => path.push(char::from(byte)),
                false => path.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    path
}

/// Splits names at the slashes.
fn parts<'a, const N: usize>(text: &'a str, syntax: &str) -> anyhow::Result<[&'a str; N]> {
    let parts: Vec<&str> = text.split('/').collect();
    match <[&str; N]>::try_from(parts) {
        Ok(parts) if parts.iter().all(|part| !part.is_empty()) => Ok(parts),
        _ => refuse!("invalid name {text:?}: write {syntax}"),
    }
}

fn parse(text: &str) -> anyhow::Result<Value> {
    let parsed = serde_json::from_str(text);
    parsed.map_err(|error| usage(format_args!("the argument is not JSON: {error}")))
}

fn entries(journal: &Value) -> &[Value] {
    journal["entries"].as_array().map_or(&[], Vec::as_slice)
}

/// Prints the entries, and says on standard error which ones were not read.
fn show_journal(journal: &Value, since: u64) {
    let number = |field: &str| journal[field].as_u64().unwrap_or_default();
    let (applied, forgotten, next) = (number("applied"), number("forgotten"), number("next"));
    entries(journal).iter().for_each(show_entry);
    if forgotten > since {
        stderr_line(format_args!(
            "the cluster no longer has the writes before {forgotten}: `cluster --journal` keeps more"
        ));
    }
    if next < applied {
        stderr_line(format_args!(
            "read up to {next} of {applied} writes: continue with --since {next}"
        ));
    }
}

fn show_entry(entry: &Value) {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    line(format_args!(
        "{:<6} {:<14} {}  of bucket {}, on node {}, cas {}",
        entry["sequence"].to_string(),
        text("operation"),
        entry["key"],
        text("bucket"),
        entry["node"],
        text("cas")
    ));
}

fn show_script(script: &Value) {
    let text = script["script"].as_str().unwrap_or_default();
    line(format_args!(
        "{:<4} {text}    given {} times",
        script["id"].to_string(),
        script["answered"]
    ));
}
