//! The measured clients.

mod aws;
mod hyper;
mod memory;
mod reqwest;
mod tonic;

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::server::Server;

/// A time limit that no call reaches.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A client that makes calls, with or without retries.
pub(crate) struct Contender<'a> {
    pub(crate) name: &'static str,
    pub(crate) calls: Box<dyn Fn(u64) + Sync + 'a>,
    /// The most allocations and instructions that it may add to the bare client, on x86-64
    /// with the compiler of the workspace.
    pub(crate) limit: Option<(f64, f64)>,
}

impl Contender<'_> {
    fn adds_at_most(mut self, allocations: f64, instructions: f64) -> Self {
        self.limit = Some((allocations, instructions));
        self
    }

    /// For clients whose instructions vary by more from run to run than 3 % of what is added.
    fn allocates_at_most(self, allocations: f64) -> Self {
        self.adds_at_most(allocations, f64::INFINITY)
    }
}

/// Contenders on one client library. The first is the library by itself.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    make: for<'a> fn(&'a Runtime, &Server) -> Vec<Contender<'a>>,
}

impl Group {
    /// Makes the contenders, whose connections are served on this runtime.
    pub(crate) fn contenders<'a>(
        &self,
        runtime: &'a Runtime,
        server: &Server,
    ) -> Vec<Contender<'a>> {
        (self.make)(runtime, server)
    }
}

pub(crate) const GROUPS: [Group; 5] = [
    Group {
        name: "memory",
        title: "A tower service that answers at once",
        make: memory::contenders,
    },
    Group {
        name: "hyper",
        title: "hyper's client, over loopback",
        make: hyper::contenders,
    },
    Group {
        name: "reqwest",
        title: "reqwest, over loopback",
        make: reqwest::contenders,
    },
    Group {
        name: "tonic",
        title: "tonic, over loopback",
        make: tonic::contenders,
    },
    Group {
        name: "aws",
        title: "AWS SDK (SQS, ListQueues), over loopback",
        make: aws::contenders,
    },
];
