//! Finds the first config, and tracks newer ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast::FailFast;
use steadfast_wire::config::{ConfigNotification, ConfigVersion};
use steadfast_wire::{Feature, Frame, FrameBuilder, Opcode, Status};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::redial::{Redialer, end_of_connection};
use super::seed_dials::SeedDials;
use super::staggered::StaggeredQueries;
use super::{Address, BucketCore, Node, Opened, dial, host_part, parse_config};
use crate::client::Core;
use crate::kv::connection::{Admission, Connection, Events, Task};
use crate::kv::handshake::{Reached, Rejected};
use crate::kv::operation::KvOperation;
use crate::options::{MIN_POLL_INTERVAL, VbucketRetry};
use crate::server_text::bounded;
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
fn receives_configs(connection: &Arc<Connection>) -> bool {
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
async fn fetch(
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

/// Keeps a connection without a bucket and tracks the cluster's config, for services
/// that need no bucket (SDK RFC 0048). Runs as a task until the client is closed.
///
/// Cancel-safe: dropping the future closes the connection.
pub(crate) async fn track_cluster(core: Arc<Core>) {
    let closed = core.closed.clone();
    let rejects = core.clone();
    let dials = SeedDials::new(core.clone(), None, move |seed, rejected| {
        not_reached(&rejects, seed, rejected);
    });
    let track = async {
        let mut redialer = Redialer::new(&core);
        let up = AtomicBool::new(false);
        loop {
            let is_up = || up.load(Ordering::Relaxed);
            let round = redialer.round("track cluster", is_up, || async {
                let (seed, opened) = dials.first().await;
                let ended = track_at(&core, &seed, opened, &up).await;
                up.store(false, Ordering::Relaxed);
                ended
            });
            if let Err(error) = round.await {
                tracing::error!(%error, "stopped tracking the cluster");
                return;
            }
        }
    };
    tokio::select! {
        () = closed.cancelled() => {}
        () = track => {}
    }
}

/// A node rejected the dial.
fn not_reached(core: &Core, seed: &Address, rejected: &Rejected) {
    tracing::debug!(%seed, %rejected, "no connection");
    *core.unreached.lock() = Some(format!("{seed}: {}", rejected.note));
    core.handle_rejected(&(None, seed.clone()), rejected);
}

/// Applies the configs of a connection without a bucket until it ends. `Ok` if it was
/// useful; see [`end_of_connection`].
///
/// Cancel-safe: dropping the future closes the connection.
async fn track_at(
    core: &Arc<Core>,
    seed: &Address,
    opened: Opened,
    up: &AtomicBool,
) -> Result<(), Rejected> {
    let key = (None, seed.clone());
    let Opened {
        connection,
        io,
        received,
        config,
    } = opened;
    up.store(true, Ordering::Relaxed);
    *core.unreached.lock() = None;
    core.terminals.opened(&key);
    core.terminals.forget_unless(&key);
    if let Some(config) = config {
        core.apply_first_config(Arc::new(config));
    }
    let config_wanted = Arc::new(Notify::new());
    let events = ClusterEvents {
        core: core.clone(),
        config_wanted: config_wanted.clone(),
    };
    let opened_at = Instant::now();
    let task = Task::new(io, connection.clone(), received, events);
    let interval = core.options.config_poll_interval;
    let look = async {
        loop {
            tokio::select! {
                () = config_wanted.notified() => {}
                () = tokio::time::sleep(interval) => {
                    if receives_configs(&connection) {
                        continue;
                    }
                }
            }
            if let Ok(answer) = fetch(&connection, false, core.global_version()).await
                && !answer.value().is_empty()
                && let Ok(config) = parse_config(&answer, host_part(&connection.peer))
            {
                core.apply_config(Arc::new(config));
            }
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
        }
    };
    let closing = tokio::select! {
        closing = task.run() => closing,
        () = look => unreachable!("it looks until the connection ends"),
    };
    end_of_connection(&connection, opened_at, closing)
}

struct ClusterEvents {
    core: Arc<Core>,
    config_wanted: Arc<Notify>,
}

impl Events for ClusterEvents {
    fn server_request(&self, connection: &Arc<Connection>, frame: Frame) {
        match ConfigNotification::decode(&frame) {
            Ok(news) if news.bucket.is_none() => match news.config {
                Some(_) => match parse_config(&frame, host_part(&connection.peer)) {
                    Ok(config) => self.core.apply_config(Arc::new(config)),
                    Err(rejected) => tracing::warn!(%rejected, "ignored an invalid config"),
                },
                None => self.config_wanted.notify_one(),
            },
            Ok(_) => {}
            Err(error) => {
                let error = bounded(&error.to_string());
                tracing::warn!(peer = %connection.peer, error, "ignored an invalid notification")
            }
        }
    }

    fn orphan(&self, connection: &Arc<Connection>, frame: Frame) {
        self.core.orphan(connection, &frame);
    }
}
