//! TCP sockets.

mod listener;
mod stream;
#[cfg(test)]
mod tests;

pub use listener::{ReservedPort, TcpListener};
pub use stream::{ResetOnClose, TcpStream};
