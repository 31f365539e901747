//! A scripted HTTP/1.1 server on loopback: one fault, one port, one case.
//!
//! It works on plain sockets, because a library for HTTP hides the stages at which it breaks
//! connections.

mod connection;
mod request;
mod response;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::cases::{Action, Times};
use crate::journal::ArrivalLog;
use connection::Connection;

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
}

/// A running server. Dropping it closes all connections.
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    path: String,
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
        let path = script.path.clone();
        let delay = match script.fault {
            Some((Action::Refuse, _)) => script.refuses_for,
            _ => Duration::ZERO,
        };
        // Listens before the command starts, unless it refuses.
        let socket = match delay {
            Duration::ZERO => Ok(socket.listen(BACKLOG)?),
            _ => Err(socket),
        };
        let connection = Connection::new(script, log.clone(), nowhere);
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
            address,
            path,
            log,
            task,
            _refusing: refusing,
        })
    }

    /// Returns the address for a command.
    pub(crate) fn url(&self, command: usize) -> String {
        format!("http://{}{}/{command}", self.address, self.path)
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

/// Makes the next close of the connection a reset.
fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
}
