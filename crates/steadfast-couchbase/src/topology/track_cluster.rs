//! Tracks the config of the cluster over a connection without a bucket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_wire::Frame;
use steadfast_wire::config::ConfigNotification;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::redial::{Redialer, end_of_connection};
use super::seed_dials::SeedDials;
use super::track::{fetch, receives_configs};
use super::{Address, Opened, host_part, parse_config};
use crate::client::Core;
use crate::kv::connection::{Connection, Events, Task};
use crate::kv::handshake::Rejected;
use crate::options::MIN_POLL_INTERVAL;
use crate::server_text::bounded;

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
