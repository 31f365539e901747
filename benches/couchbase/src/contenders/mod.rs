//! The measured clients, behind the same two calls.

mod floor;
pub mod official;
pub mod steadfast;

use std::future::Future;
use std::pin::Pin;

use crate::load::{self, Document, Load};

/// A client that reads and writes documents of the one bucket.
pub trait Client: Clone + Send + Sync + 'static {
    /// Reads a document. Returns how long it is.
    fn get(&self, key: &'static str) -> impl Future<Output = usize> + Send;

    /// Writes a document.
    fn upsert(
        &self,
        key: &'static str,
        document: &'static Document,
    ) -> impl Future<Output = ()> + Send;
}

/// A client with all that users have, which the floor is not.
pub trait FullClient: Client {
    /// The collection of this name in the default scope, over the same connections.
    fn collection(&self, name: &str) -> Self;
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// The client of this project.
    Steadfast,
    /// The crate `couchbase`.
    Official,
    /// No more than the protocol needs.
    Floor,
}

impl Contender {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Steadfast, Self::Official, Self::Floor];

    /// The name in tables and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::Official => "official",
            Self::Floor => "floor",
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
            Self::Floor => worker(floor::connect(server).await),
        }
    }
}

/// A connected client that runs a given number of operations.
pub type Worker = Box<dyn Fn(Load) -> Pin<Box<dyn Future<Output = ()>>>>;

fn worker(client: impl Client) -> Worker {
    // One indirection for a whole load, so that it costs an operation nothing.
    Box::new(move |load| Box::pin(load::run(client.clone(), load)))
}
