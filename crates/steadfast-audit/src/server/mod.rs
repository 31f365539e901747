//! A scripted server on loopback, for HTTP/1.1 or HTTP/2: one fault, one port, one case.

mod connection;
mod http1;
mod http2;
mod request;
mod response;
mod tls;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::cases::{Action, Times};
use crate::journal::ArrivalLog;
use connection::Connection;
pub(crate) use tls::LoopbackCertificate;

/// More connections at once are not accepted.
const BACKLOG: u32 = 1024;

/// What a server does.
#[derive(Clone, Debug)]
pub(crate) struct ServerScript {
    /// What it does to a request that fails; without it, all succeed.
    pub(crate) fault: Option<(Action, Times)>,
    /// How long it refuses connections, if that is the fault.
    pub(crate) refuses_for: Duration,
    /// The first part of the path of requests that belong to the case.
    pub(crate) path: String,
    /// Whether it speaks HTTP/2, and nothing else.
    pub(crate) http2: bool,
    /// What it needs for TLS.
    pub(crate) certificate: Option<LoopbackCertificate>,
}

impl ServerScript {
    fn scheme(&self) -> &'static str {
        match self.certificate {
            Some(_) => "https",
            None => "http",
        }
    }
}

/// A running server. Dropping it closes all connections.
pub(crate) struct ScriptedServer {
    /// The address, and the path of the case.
    url: String,
    log: ArrivalLog,
    task: JoinHandle<()>,
    /// The port that redirects lead to, and that nobody listens on.
    _refusing: TcpSocket,
}

impl ScriptedServer {
    /// Starts a server on a free port.
    ///
    /// # Errors
    /// If no port can be bound.
    pub(crate) fn start(script: ServerScript) -> io::Result<Self> {
        let (socket, address) = bound()?;
        let (refusing, nowhere) = bound()?;
        let log = ArrivalLog::new();
        let url = format!("{}://{address}{}", script.scheme(), script.path);
        let delay = match script.fault {
            Some((Action::Refuse, _)) => script.refuses_for,
            _ => Duration::ZERO,
        };
        // Listens before the command starts, unless it refuses.
        let socket = match delay {
            Duration::ZERO => Ok(socket.listen(BACKLOG)?),
            _ => Err(socket),
        };
        let connection = Connection::new(script, log.clone(), address, nowhere);
        let task = tokio::spawn(async move {
            let listener = match socket {
                Ok(listener) => listener,
                Err(socket) => {
                    sleep(delay).await;
                    // A port that was bound can be listened on.
                    let Ok(listener) = socket.listen(BACKLOG) else {
                        return;
                    };
                    listener
                }
            };
            serve(listener, connection).await;
        });
        Ok(Self {
            url,
            log,
            task,
            _refusing: refusing,
        })
    }

    /// Returns the address for a command.
    pub(crate) fn url(&self, command: usize) -> String {
        format!("{}/{command}", self.url)
    }

    pub(crate) fn log(&self) -> &ArrivalLog {
        &self.log
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Binds a free port on loopback. Connections to it are refused until it listens.
fn bound() -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

/// Serves connections until the task is aborted.
async fn serve(listener: TcpListener, connection: Connection) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    connections.spawn(connection.clone().serve(stream));
                }
                // Such as too many open files: the client waits in the backlog.
                Err(_) => sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
