//! The measured clients, behind the same two calls.

mod official;
mod steadfast;

use std::future::Future;
use std::pin::Pin;

use crate::load::{self, Load};

/// A client that reads and writes documents of the one bucket.
pub trait Client: Clone + Send + Sync + 'static {
    /// Reads a document. Returns how long it is.
    fn get(&self, key: &'static str) -> impl Future<Output = usize> + Send;

    /// Writes a string.
    fn upsert(&self, key: &'static str, text: &'static str) -> impl Future<Output = ()> + Send;
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// The client of this project.
    Steadfast,
    /// The crate `couchbase`.
    Official,
}

impl Contender {
    /// Both, in the order of the tables.
    pub const ALL: [Self; 2] = [Self::Steadfast, Self::Official];

    /// The name in tables and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::Official => "official",
        }
    }

    /// The contender of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Connects, and waits until documents can be read.
    pub async fn connect(self, server: &str) -> Worker {
        match self {
            Self::Steadfast => worker(steadfast::connect(server).await),
            Self::Official => worker(official::connect(server).await),
        }
    }
}

/// A connected client that runs a given number of operations.
pub type Worker = Box<dyn Fn(Load) -> Pin<Box<dyn Future<Output = ()>>>>;

fn worker(client: impl Client) -> Worker {
    // One indirection for a whole load, so that it costs an operation nothing.
    Box::new(move |load| Box::pin(load::run(client.clone(), load)))
}
