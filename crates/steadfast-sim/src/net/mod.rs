//! A network in memory, in virtual time.
//!
//! A connection is two queues of bytes, each with the time at which its bytes arrive. What a
//! [`Conditions`] says holds for one node and one direction, because real faults do: a node that
//! can send may not be able to receive.
//!
//! Every byte that is written enters the [`Trace`], with its connection and its time. Two runs with
//! the same trace did the same.

mod conditions;
mod connection;
mod listener;
mod socket;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use steadfast_os::{Connecting, Platform, SimulatedListener};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

pub(crate) use conditions::Conditions;
pub use conditions::Direction;
use connection::Connection;
use listener::{Backlog, Listener};
use socket::{End, Socket};
pub(crate) use trace::Trace;

/// The first port of a listener, and of a client.
const FIRST_LISTENER: u16 = 1024;
const FIRST_CLIENT: u16 = 20_000;
/// The wall-clock time at which every simulation starts.
const EPOCH: Duration = Duration::from_secs(1_750_000_000);

/// A simulated operating system: its network, its wall clock and its entropy.
pub(crate) struct Network {
    state: Mutex<State>,
    trace: Mutex<Trace>,
    /// Notified when conditions change.
    changed: Notify,
    started: Instant,
}

struct State {
    usual: Conditions,
    /// Conditions that differ from the usual ones, by port of the node.
    special: BTreeMap<(u16, Direction), Conditions>,
    listeners: BTreeMap<SocketAddr, Weak<Backlog>>,
    connections: BTreeMap<u64, Weak<Connection>>,
    opened: u64,
    next_port: u16,
    random: fastrand::Rng,
}

impl Network {
    /// Makes a network. Must be called in a runtime, because time starts here.
    pub(crate) fn new(seed: u64, usual: Conditions) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                usual,
                special: BTreeMap::new(),
                listeners: BTreeMap::new(),
                connections: BTreeMap::new(),
                opened: 0,
                next_port: FIRST_LISTENER,
                random: fastrand::Rng::with_seed(seed),
            }),
            trace: Mutex::new(Trace::default()),
            changed: Notify::new(),
            started: Instant::now(),
        })
    }

    /// Returns the hash of everything that was sent so far.
    pub(crate) fn trace(&self) -> Trace {
        self.trace.lock().clone()
    }

    fn conditions(&self, port: u16, direction: Direction) -> Conditions {
        let state = self.state.lock();
        let special = state.special.get(&(port, direction));
        special.unwrap_or(&state.usual).clone()
    }

    /// Returns how long a piece travels now.
    fn travel_time(&self, conditions: &Conditions) -> Duration {
        let jitter = conditions.jitter.as_micros() as u64;
        let jitter = match jitter {
            0 => 0,
            most => self.state.lock().random.u64(..=most),
        };
        conditions.latency + Duration::from_micros(jitter)
    }

    /// Changes the conditions of these ports in one direction.
    pub(crate) fn change(
        &self,
        ports: &[u16],
        direction: Direction,
        change: impl Fn(&mut Conditions),
    ) {
        let mut state = self.state.lock();
        let usual = state.usual.clone();
        for port in ports {
            let key = (*port, direction);
            change(state.special.entry(key).or_insert_with(|| usual.clone()));
        }
        drop(state);
        self.wake(ports);
    }

    /// Returns to the usual conditions.
    pub(crate) fn restore(&self, ports: &[u16], direction: Direction) {
        let mut state = self.state.lock();
        for port in ports {
            state.special.remove(&(*port, direction));
        }
        drop(state);
        self.wake(ports);
    }

    fn wake(&self, ports: &[u16]) {
        for connection in self.connections(ports) {
            connection.wake();
        }
        self.changed.notify_waiters();
    }

    /// Returns the open connections to these ports, oldest first.
    pub(crate) fn connections(&self, ports: &[u16]) -> Vec<Arc<Connection>> {
        let state = self.state.lock();
        let open = state.connections.values().filter_map(Weak::upgrade);
        open.filter(|connection| ports.contains(&connection.port))
            .collect()
    }

    fn record(&self, connection: u64, direction: Direction, bytes: &[u8]) {
        let now = self.started.elapsed();
        self.trace.lock().record(now, connection, direction, bytes);
    }

    /// Travels one way to or from a node that has no connection yet. Waits while it is held.
    async fn travel(&self, port: u16, direction: Direction) {
        loop {
            let changed = self.changed.notified();
            let conditions = self.conditions(port, direction);
            if !conditions.held {
                sleep(self.travel_time(&conditions)).await;
                return;
            }
            changed.await;
        }
    }

    async fn open(self: Arc<Self>, peer: SocketAddr) -> io::Result<Socket> {
        self.travel(peer.port(), Direction::ToNode).await;
        let backlog = self
            .state
            .lock()
            .listeners
            .get(&peer)
            .and_then(Weak::upgrade);
        let Some(backlog) = backlog else {
            self.travel(peer.port(), Direction::FromNode).await;
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let connection = {
            let mut state = self.state.lock();
            state.opened += 1;
            let id = state.opened;
            let port = FIRST_CLIENT + (id % u64::from(u16::MAX - FIRST_CLIENT)) as u16;
            let client = SocketAddr::new(peer.ip(), port);
            let connection = Arc::new(Connection::new(id, peer, client));
            state.connections.insert(id, Arc::downgrade(&connection));
            connection
        };
        backlog.push(Socket::new(self.clone(), connection.clone(), End::Node));
        let socket = Socket::new(self.clone(), connection, End::Client);
        self.travel(peer.port(), Direction::FromNode).await;
        Ok(socket)
    }

    fn closed(&self, connection: &Connection) {
        self.state.lock().connections.remove(&connection.id);
    }

    fn unlisten(&self, address: SocketAddr) {
        self.state.lock().listeners.remove(&address);
    }
}

/// The network as the platform of a thread.
pub(crate) struct SimulatedPlatform(pub(crate) Arc<Network>);

impl Platform for SimulatedPlatform {
    fn connect(&self, peer: SocketAddr) -> Connecting {
        let network = self.0.clone();
        Box::pin(async move { Ok(Box::new(network.open(peer).await?) as Box<_>) })
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn SimulatedListener>> {
        let mut state = self.0.state.lock();
        let mut address = address;
        if address.port() == 0 {
            address.set_port(state.next_port);
            state.next_port += 1;
        }
        let taken = state.listeners.get(&address).and_then(Weak::upgrade);
        if taken.is_some() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = Arc::new(Backlog::default());
        state.listeners.insert(address, Arc::downgrade(&backlog));
        Ok(Box::new(Listener {
            network: self.0.clone(),
            address,
            backlog,
        }))
    }

    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + EPOCH + self.0.started.elapsed()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.0.state.lock().random.fill(bytes);
    }
}
