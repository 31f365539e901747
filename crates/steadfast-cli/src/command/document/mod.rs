//! The everyday look at documents, and the everyday change.

pub(crate) mod get;
pub(crate) mod remove;
pub(crate) mod store;

use clap::{Args, ValueEnum};
use serde_json::json;
use steadfast_couchbase::DurabilityLevel;
use steadfast_couchbase::collection::MutationResult;

use crate::output::{aside, line};

/// How safe a write must be before it counts as done.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Durability {
    /// In the memory of most copies
    Majority,
    /// That, and on the disk of the active one
    MajorityAndPersistToActive,
    /// On the disks of most copies
    PersistToMajority,
}

/// What every write can be told.
#[derive(Args)]
pub(crate) struct Terms {
    /// Wait until the write is as safe as this
    #[arg(long, value_enum)]
    durability: Option<Durability>,
}

/// What a write of a document that is there can be told.
#[derive(Args)]
pub(crate) struct Version {
    /// Only if the document has still this version, as it was printed
    #[arg(long, value_parser = crate::number::at_least_one)]
    cas: Option<u64>,
}

impl Terms {
    fn level(&self) -> Option<DurabilityLevel> {
        self.durability.map(|durability| match durability {
            Durability::Majority => DurabilityLevel::Majority,
            Durability::MajorityAndPersistToActive => DurabilityLevel::MajorityAndPersistToActive,
            Durability::PersistToMajority => DurabilityLevel::PersistToMajority,
        })
    }
}

/// A key, which documents must have.
fn key(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a key is not empty".to_owned()),
        key => Ok(key.to_owned()),
    }
}

/// Says that a write is done: to people aside, to machines as the result.
fn done(what: &str, result: &MutationResult, json: bool) {
    let cas = result.cas();
    if !json {
        return aside(format_args!("{what}, cas {cas}"));
    }
    // Versions have 64 bits, of which many a reader of JSON would lose some.
    let mut fields = json!({"cas": cas.to_string()});
    if let Some(token) = result.token() {
        fields["vbucket"] = json!(token.vbucket);
        fields["vbucket_uuid"] = json!(token.vbucket_uuid.to_string());
        fields["seqno"] = json!(token.seqno);
    }
    line(fields);
}
