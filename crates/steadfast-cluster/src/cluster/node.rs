//! One node: its listeners, and whether it is up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_os::net::{ReservedPort, TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::shared::Shared;
use crate::Service;
use crate::tls::Tls;
use crate::topology::NodeId;
use crate::topology::config::{ListenPorts, Member};
use crate::{http, kv};

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The membership of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Listens, and is in no map yet.
    Joining,
    /// Is part of the map.
    Member,
    /// Was failed over: it may still listen, and owns nothing.
    FailedOver,
    /// Was rebalanced out and is about to stop.
    Leaving,
}

/// A node of the cluster.
#[derive(Debug)]
pub(crate) struct ServerNode {
    /// The number of the node.
    pub id: NodeId,
    /// The name or address in the cluster map.
    pub host: String,
    /// Where its services listen.
    pub ports: BTreeMap<Service, ListenPorts>,
    address: IpAddr,
    inner: Mutex<NodeState>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct NodeState {
    membership: Membership,
    /// Present while the node is up; cancelled to bring it down.
    running: Option<CancellationToken>,
    /// Its ports while it is down and may come back. Sockets without a listener keep
    /// them: a busy machine reuses a free port within seconds.
    reserved: BTreeMap<u16, ReservedPort>,
}

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The address and ports of a node.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// The address to bind.
    pub address: IpAddr,
    /// The name or address to tell clients.
    pub host: String,
    /// The ports to bind; what is missing, or zero, gets a free one.
    pub ports: BTreeMap<Service, ListenPorts>,
    /// The services that it does not have.
    pub without: BTreeSet<Service>,
}

impl ServerNode {
    /// Binds all listeners of a new node and starts serving.
    ///
    /// Dropping the future before it is done leaves nothing behind.
    pub(crate) async fn start(
        id: NodeId,
        placement: Placement,
        shared: &Arc<Shared>,
    ) -> io::Result<Arc<Self>> {
        let mut listeners = Vec::new();
        let mut ports = BTreeMap::new();
        for service in Service::ALL {
            if placement.without.contains(&service) {
                continue;
            }
            let wanted = placement.ports.get(&service).copied().unwrap_or_default();
            let plain = bind(placement.address, wanted.plain).await?;
            let mut bound = ListenPorts {
                plain: plain.local_addr()?.port(),
                tls: None,
            };
            listeners.push((service, false, plain));
            if shared.tls.is_some() {
                let tls = bind(placement.address, wanted.tls.unwrap_or(0)).await?;
                bound.tls = Some(tls.local_addr()?.port());
                listeners.push((service, true, tls));
            }
            ports.insert(service, bound);
        }
        let node = Arc::new(Self {
            id,
            host: placement.host,
            ports,
            address: placement.address,
            inner: Mutex::new(NodeState {
                membership: Membership::Joining,
                running: None,
                reserved: BTreeMap::new(),
            }),
            tasks: TaskTracker::new(),
        });
        node.serve(listeners, shared);
        Ok(node)
    }

    /// Returns whether it is part of the map.
    pub(crate) fn is_member(&self) -> bool {
        self.membership() == Membership::Member
    }

    /// Returns how far the node belongs to the cluster.
    pub(crate) fn membership(&self) -> Membership {
        self.inner.lock().membership
    }

    pub(super) fn set_membership(&self, membership: Membership) {
        self.inner.lock().membership = membership;
    }

    /// Returns whether it listens.
    pub(crate) fn is_up(&self) -> bool {
        self.inner.lock().running.is_some()
    }

    /// A token that is cancelled when the node goes down.
    pub(crate) fn running(&self) -> CancellationToken {
        let running = self.inner.lock().running.clone();
        running.unwrap_or_else(|| {
            let stopped = CancellationToken::new();
            stopped.cancel();
            stopped
        })
    }

    /// The node as a map shows it.
    pub(crate) fn member(&self) -> Member {
        Member {
            id: self.id,
            host: self.host.clone(),
            ports: self.ports.clone(),
        }
    }

    /// Closes the listeners and cuts every connection; what the node stores stays. Returns when
    /// its ports are free. Dropping the future does not stop it from going down.
    pub(crate) async fn stop(&self) {
        self.cancel();
        self.inner.lock().reserved.clear();
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Stops a node that may come back: connections are refused, and its ports stay reserved.
    ///
    /// Dropping the future does not stop it from going down, but may cost it its ports.
    pub(crate) async fn go_down(&self) {
        self.stop().await;
        let ports = self.ports.values();
        let ports = ports.flat_map(|ports| std::iter::once(ports.plain).chain(ports.tls));
        for port in ports {
            match ReservedPort::new(SocketAddr::new(self.address, port)) {
                Ok(socket) => {
                    self.inner.lock().reserved.insert(port, socket);
                }
                // Somebody was quicker. The node cannot come back unless they leave.
                Err(error) => tracing::warn!(port, %error, "cannot keep the port of a node"),
            }
        }
    }

    /// Begins to stop, without waiting for it.
    pub(super) fn cancel(&self) {
        if let Some(running) = self.inner.lock().running.take() {
            running.cancel();
        }
    }

    /// Listens again on the ports that it had.
    ///
    /// Dropping the future before it is done leaves the node down.
    pub(crate) async fn restart(self: &Arc<Self>, shared: &Arc<Shared>) -> io::Result<()> {
        if self.is_up() {
            return Ok(());
        }
        let mut listeners = Vec::new();
        for (service, ports) in &self.ports {
            listeners.push((*service, false, self.listen_again(ports.plain).await?));
            if let Some(tls) = ports.tls {
                listeners.push((*service, true, self.listen_again(tls).await?));
            }
        }
        self.serve(listeners, shared);
        Ok(())
    }

    async fn listen_again(&self, port: u16) -> io::Result<TcpListener> {
        let reserved = self.inner.lock().reserved.remove(&port);
        match reserved {
            Some(socket) => socket
                .listen(BACKLOG)
                .map_err(|error| cannot_listen(self.address, port, &error)),
            None => bind(self.address, port).await,
        }
    }

    fn serve(self: &Arc<Self>, listeners: Vec<(Service, bool, TcpListener)>, shared: &Arc<Shared>) {
        let running = CancellationToken::new();
        self.inner.lock().running = Some(running.clone());
        for (service, tls, listener) in listeners {
            let (node, shared, running) = (self.clone(), shared.clone(), running.clone());
            self.tasks
                .spawn(accept(listener, service, tls, node, shared, running));
        }
    }
}

/// Accepts connections until the node goes down, and cuts them then.
async fn accept(
    listener: TcpListener,
    service: Service,
    tls: bool,
    node: Arc<ServerNode>,
    shared: Arc<Shared>,
    running: CancellationToken,
) {
    // Dropping it drops the connections, and with them their sockets. They need not look at the
    // token themselves, which costs as much as a small command.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = running.cancelled() => return,
            accepted = listener.accept() => accepted,
            // Forgets one that has ended.
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = AcceptedConnection {
                    service,
                    tls,
                    peer,
                    id: shared.next_connection(),
                    node: node.clone(),
                    shared: shared.clone(),
                };
                connections.spawn(node.tasks.track_future(connection.serve(stream)));
            }
            Err(error) => {
                // Out of file descriptors, most likely: wait for some to come back.
                tracing::warn!(%service, %error, "cannot accept a connection");
                let pause = tokio::time::sleep(Duration::from_millis(50));
                running.run_until_cancelled(pause).await;
            }
        }
    }
}

/// A connection that was just accepted.
pub(crate) struct AcceptedConnection {
    /// What it is for.
    pub service: Service,
    /// Whether it starts with a TLS handshake.
    pub tls: bool,
    /// The client's address.
    pub peer: SocketAddr,
    /// The number of the connection on its node.
    pub id: u64,
    /// The node it came to.
    pub node: Arc<ServerNode>,
    /// The cluster.
    pub shared: Arc<Shared>,
}

impl AcceptedConnection {
    async fn serve(self, stream: TcpStream) {
        // Answers are small and wanted at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let tls = self.shared.tls.as_ref().filter(|_| self.tls);
        let certificate = tls.map(Tls::current);
        let reset = stream.reset_on_close();
        match certificate {
            None => match self.service {
                Service::KeyValue => kv::serve(stream, reset, self).await,
                _ => http::serve(stream, reset, self).await,
            },
            Some(certificate) => {
                let served = certificate.rotated.run_until_cancelled(async {
                    match timeout(HANDSHAKE, certificate.acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => {
                            certificate.connected();
                            match self.service {
                                Service::KeyValue => kv::serve(stream, reset, self).await,
                                _ => http::serve(stream, reset, self).await,
                            }
                        }
                        Ok(Err(error)) => {
                            tracing::info!(peer = %self.peer, %error, "TLS handshake failed");
                        }
                        Err(_) => tracing::info!(peer = %self.peer, "TLS handshake never ended"),
                    }
                });
                served.await;
            }
        }
    }
}

async fn bind(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let bound = TcpListener::bind(SocketAddr::new(address, port)).await;
    bound.map_err(|error| cannot_listen(address, port, &error))
}

fn cannot_listen(address: IpAddr, port: u16, error: &io::Error) -> io::Error {
    let problem = format!(
        "cannot listen on {}: {error}",
        SocketAddr::new(address, port)
    );
    io::Error::new(error.kind(), problem)
}
