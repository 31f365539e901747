//! The workload of every contender.
//!
//! For *n* operations in flight, *n* tasks do one operation after the other, as a service with
//! *n* requests does.

use std::sync::OnceLock;

use tokio::task::JoinSet;

use crate::contenders::Client;

/// How many documents there are.
const DOCUMENTS: usize = 1000;
/// How long each is, as JSON.
const LEN: usize = 100;

/// What is done to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// It is read.
    Get,
    /// It is written.
    Upsert,
}

impl Op {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Get, Self::Upsert];

    /// The name in tables and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Upsert => "upsert",
        }
    }

    /// The operation of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What a contender is to do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// What.
    pub op: Op,
    /// How many at once.
    pub depth: usize,
    /// How many in all.
    pub count: u64,
}

/// Writes every document once.
pub fn filling() -> Load {
    Load {
        op: Op::Upsert,
        depth: 1,
        count: DOCUMENTS as u64,
    }
}

/// Does the work. Panics if an operation fails.
pub(crate) async fn run(client: impl Client, load: Load) {
    let mut tasks = JoinSet::new();
    let depth = load.depth as u64;
    for lane in 0..depth {
        let share = load.count / depth + u64::from(lane < load.count % depth);
        let client = client.clone();
        tasks.spawn(async move {
            for turn in 0..share {
                let key = key(lane * 7919 + turn);
                match load.op {
                    Op::Get => assert_eq!(client.get(key).await, LEN),
                    Op::Upsert => client.upsert(key, text()).await,
                }
            }
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.expect("an operation does not fail");
    }
}

/// The key of a document.
fn key(number: u64) -> &'static str {
    static KEYS: OnceLock<Vec<String>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let numbers = 0..DOCUMENTS;
        numbers.map(|number| format!("user:{number:06}")).collect()
    });
    &keys[number as usize % DOCUMENTS]
}

/// What is written. JSON adds two quotation marks.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| "x".repeat(LEN - 2))
}
