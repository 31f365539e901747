//! Finds the first config of a bucket, and tracks newer ones.

use std::sync::Arc;
use std::time::Duration;

use steadfast::FailFast;
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::{Feature, Frame, FrameBuilder, Opcode, Status};

use super::redial::Redialer;
use super::seed_dials::SeedDials;
use super::staggered::StaggeredQueries;
use super::{Address, BucketCore, Node, Opened, dial, host_part};
use crate::kv::connection::{Admission, Connection};
use crate::kv::handshake::{Reached, Rejected};
use crate::kv::operation::KvOperation;
use crate::options::{MIN_POLL_INTERVAL, VbucketRetry};
use crate::world::now;

/// The time from one look for other nodes to the next, while no node is connected.
const LOST_INTERVAL: Duration = Duration::from_secs(1);

/// The time from one poll to the next, while requests wait for a new map and no node
/// pushes configs.
const AWAITED_INTERVAL: Duration = Duration::from_millis(100);

/// The time for a node to return its config.
const FETCH_TIMEOUT: Duration = Duration::from_millis(2500);

/// Opens a bucket and tracks its config. Runs as a task until the client is closed.
///
/// Cancel-safe: dropping the future stops the tracking.
pub(super) async fn track_bucket(bucket: Arc<BucketCore>) {
    let closed = bucket.core.closed.clone();
    tokio::select! {
        () = closed.cancelled() => {}
        () = async {
            find_bucket(&bucket).await;
            let mut queries = StaggeredQueries::new();
            loop {
                let late_answers = async {
                    while queries.next_success().await {}
                    std::future::pending().await
                };
                tokio::select! {
                    () = config_due(&bucket) => {}
                    () = late_answers => {}
                }
                refresh(&bucket, &mut queries).await;
                tokio::time::sleep(MIN_POLL_INTERVAL).await;
            }
        } => {}
    }
}

/// Tries seeds until one opens the bucket. Cancel-safe.
async fn find_bucket(bucket: &Arc<BucketCore>) {
    let rejects = bucket.clone();
    let dials = SeedDials::new(
        bucket.core.clone(),
        Some(bucket.name.clone()),
        move |seed, rejected| not_opened(&rejects, seed, rejected),
    );
    let mut redialer = Redialer::new(&bucket.core);
    let found = redialer.round(
        "open bucket",
        || false,
        || async {
            let (seed, opened) = dials.first().await;
            open_at(bucket, &seed, opened)
        },
    );
    if let Err(error) = found.await {
        // Only a reason that is never retried ends this, and there is none here.
        tracing::error!(bucket = %bucket.name, %error, "stopped looking for the bucket");
    }
}

/// A seed rejected the dial.
fn not_opened(bucket: &BucketCore, seed: &Address, rejected: &Rejected) {
    let key = (Some(bucket.name.clone()), seed.clone());
    tracing::debug!(bucket = %bucket.name, %seed, %rejected, "the bucket was not opened");
    bucket.record_rejection(seed, rejected);
    bucket.core.handle_rejected(&key, rejected);
}

/// Opens the bucket with a connection to a seed.
fn open_at(bucket: &Arc<BucketCore>, seed: &Address, mut opened: Opened) -> Result<(), Rejected> {
    let key = (Some(bucket.name.clone()), seed.clone());
    bucket.core.terminals.opened(&key);
    let Some(config) = opened.config.take() else {
        let rejected = Rejected::lost(format!("{seed} gives no config"));
        return Err(rejected.after(Reached::Bucket));
    };
    bucket.apply_config(config, Some((seed, opened)));
    let routes = bucket.routes.load();
    let Some(routes) = routes.as_ref() else {
        let rejected = Rejected::lost(format!("the config of {seed} is unusable"));
        return Err(rejected.after(Reached::Bucket));
    };
    // Earlier rejections by other seeds do not count, unless they are nodes
    // of the bucket.
    bucket.core.terminals.forget_seeds(&key, |address| {
        routes.nodes().any(|node| node.address == *address)
    });
    Ok(())
}

/// Completes when a config is wanted, or when it is time to poll because no node
/// pushes configs, or because requests wait for one. Cancel-safe.
async fn config_due(bucket: &BucketCore) {
    let options = &bucket.core.options;
    loop {
        let connections = connections(bucket);
        let pushed = connections.iter().any(receives_configs);
        let awaited =
            options.vbucket_retry == VbucketRetry::AwaitMap && bucket.waiting.awaits_map();
        let interval = if connections.is_empty() {
            LOST_INTERVAL
        } else if awaited && !pushed {
            AWAITED_INTERVAL.min(options.config_poll_interval)
        } else {
            options.config_poll_interval
        };
        if !connections.is_empty() && !bucket.tracked_at.is_up() {
            return;
        }
        tokio::select! {
            () = bucket.config_wanted.notified() => return,
            () = tokio::time::sleep(interval) => {
                if awaited || !self::connections(bucket).iter().any(receives_configs) {
                    return;
                }
            }
        }
    }
}

/// Returns whether the server pushes configs over a connection.
pub(super) fn receives_configs(connection: &Arc<Connection>) -> bool {
    connection.has(Feature::ClustermapChangeNotificationBrief)
        || connection.has(Feature::ClustermapChangeNotification)
}

/// One connection to each node that has any.
fn connections(bucket: &BucketCore) -> Vec<Arc<Connection>> {
    let routes = bucket.routes.load();
    let nodes = routes.iter().flat_map(|routes| routes.nodes());
    nodes.filter_map(|node| node.connection(0)).collect()
}

/// Queries nodes until one returns a newer config. If nodes announce newer configs and none
/// is announced, the first response is enough. Without any connection it looks for other
/// nodes. Cancel-safe: outstanding queries continue.
async fn refresh(bucket: &Arc<BucketCore>, queries: &mut StaggeredQueries<Arc<str>>) {
    let routes = bucket.routes.load_full();
    let nodes = routes.iter().flat_map(|routes| routes.nodes());
    let mut nodes: Vec<Arc<Node>> = nodes.cloned().collect();
    nodes.retain(|node| node.connection(0).is_some());
    if nodes.is_empty() {
        return find_others(bucket, queries).await;
    }
    fastrand::shuffle(&mut nodes);
    // A node that is tracked anyway costs no dial.
    nodes.sort_by_key(|node| node.tracking.get().is_none());
    let asked = nodes.into_iter().map(|node| {
        let label = node.label.clone();
        (label, ask(bucket.clone(), node))
    });
    queries.query(asked).await;
}

/// Tries the seeds that are not nodes of the bucket; its nodes are dialled anyway.
///
/// Cancel-safe: outstanding dials continue.
async fn find_others(bucket: &Arc<BucketCore>, queries: &mut StaggeredQueries<Arc<str>>) {
    bucket.core.seeds.renew(&bucket.core.options).await;
    let mut others = bucket.core.candidates();
    if let Some(routes) = bucket.routes.load().as_ref() {
        others.retain(|seed| !routes.nodes().any(|node| node.address == *seed));
    }
    fastrand::shuffle(&mut others);
    let dialled = others.into_iter().map(|seed| {
        let bucket = bucket.clone();
        let label: Arc<str> = format!("seed {seed}").into();
        (label, async move {
            let found = steadfast::retry(&FailFast::new())
                .operation("open bucket")
                .idempotent(true)
                .classify(Rejected::failure)
                .run(|_| async {
                    let limit = bucket.core.options.max_in_flight as usize;
                    let opened = dial(&bucket.core, &seed, Some(&bucket.name), limit).await;
                    let opened = opened.inspect_err(|it| not_opened(&bucket, &seed, it))?;
                    open_at(&bucket, &seed, opened)
                })
                .await;
            if let Err(error) = &found {
                tracing::debug!(bucket = %bucket.name, %error, "the seed returned no config");
            }
            found.is_ok()
        })
    });
    queries.query(dialled).await;
}

/// Fetches a node's config and applies it. Returns whether no other node needs to be asked.
/// Cancel-safe.
async fn ask(bucket: Arc<BucketCore>, node: Arc<Node>) -> bool {
    let before = bucket.version();
    let fetched = async {
        if let Some(connection) = node.tracking.get() {
            let response = fetch(&connection, true, before).await?;
            if !response.value().is_empty() {
                bucket.apply_config_from(&response, host_part(&connection.peer));
            }
            Ok(connection)
        } else {
            // The handshake has brought its config.
            node.tracking_connection(&bucket).await
        }
    };
    let connection: Result<_, Rejected> = fetched.await;
    match connection {
        Ok(connection) => {
            let announces = receives_configs(&connection);
            bucket.tracked_at.set(connection);
            let is_enough = match announces {
                true => !bucket.awaits_announced(),
                false => bucket.version() != before,
            };
            if announces && is_enough {
                bucket.stop_tracking_at_others(&node);
            }
            is_enough
        }
        Err(rejected) => {
            tracing::debug!(peer = %node.label, %rejected, "no config");
            false
        }
    }
}

/// Requests a config from a node, if it is newer than the known one. Cancel-safe.
pub(super) async fn fetch(
    connection: &Arc<Connection>,
    of_bucket: bool,
    known: Option<ConfigVersion>,
) -> Result<Frame, Rejected> {
    let known = known
        .filter(|_| connection.has(Feature::GetClusterConfigWithKnownVersion))
        .filter(|known| known.epoch >= 0);
    steadfast::retry(&FailFast::new())
        .operation("get cluster config")
        .idempotent(true)
        .timeout(FETCH_TIMEOUT)
        .classify(Rejected::failure)
        .run(|_| async {
            // A connection notices its silence by the deadlines of its operations.
            let deadline = Some(now() + FETCH_TIMEOUT);
            let opcode = Opcode::GetClusterConfig;
            let ticket = connection.submit(opcode, deadline, Admission::Always, |opaque, out| {
                let request = FrameBuilder::request(opcode).opaque(opaque);
                match known {
                    Some(known) => request.extras(known).encode(out),
                    None => request.encode(out),
                }
            });
            let ticket = ticket.map_err(|error| Rejected::lost(error.to_string()))?;
            let answer = ticket.await;
            let answer = answer.map_err(|ended| Rejected::lost(ended.to_string()))?;
            match answer.status() {
                Status::Success => Ok(answer),
                status => Err(no_config(connection, of_bucket, status)),
            }
        })
        .await
        .map_err(|error| {
            let text = error.to_string();
            error.into_last_error().unwrap_or(Rejected::lost(text))
        })
}

/// Returns the meaning of an error status in the response to a config request.
fn no_config(connection: &Connection, of_bucket: bool, status: Status) -> Rejected {
    let note = format!("a config request returned {status}");
    // Without a bucket, this is how a server says that it has no config for the
    // whole cluster.
    if status == Status::NoBucket && !of_bucket {
        return Rejected::lost(note);
    }
    let meaning = connection.handle_status(KvOperation::GetClusterConfig, false, status);
    match meaning.disposition.failure() {
        Some((failure, _)) => Rejected::new(failure.reason, note),
        None => Rejected::lost(note),
    }
}
