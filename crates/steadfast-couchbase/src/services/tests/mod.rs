//! The services against a real cluster, over real sockets.

mod certainty;
mod client;
mod hostile;
mod management;
mod query;
mod services;
mod silence;
mod stage;
mod support;
mod text;
mod tls;
