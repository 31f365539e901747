//! Commands on one document, and the flags that writes share.

pub(crate) mod get;
pub(crate) mod remove;
pub(crate) mod store;

use clap::{Args, ValueEnum};
use serde_json::json;
use steadfast_couchbase::DurabilityLevel;
use steadfast_couchbase::collection::MutationResult;

use crate::output::{line, stderr_line};

/// A durability level by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DurabilityName {
    /// In the memory of most copies
    Majority,
    /// In the memory of most copies, and on the disk of the active one
    MajorityAndPersistToActive,
    /// On the disks of most copies
    PersistToMajority,
}

/// The durability flag of writes.
#[derive(Args)]
struct DurabilityArgs {
    /// Wait until the write is this durable
    #[arg(long, value_enum, value_name = "LEVEL")]
    durability: Option<DurabilityName>,
}

/// The CAS flag of writes to existing documents.
#[derive(Args)]
struct CasArgs {
    /// Fail if the document's CAS, as printed by `get`, has changed
    #[arg(long, value_parser = crate::number::at_least_one)]
    cas: Option<u64>,
}

impl DurabilityArgs {
    fn level(&self) -> Option<DurabilityLevel> {
        Some(match self.durability? {
            DurabilityName::Majority => DurabilityLevel::Majority,
            DurabilityName::MajorityAndPersistToActive => {
                DurabilityLevel::MajorityAndPersistToActive
            }
            DurabilityName::PersistToMajority => DurabilityLevel::PersistToMajority,
        })
    }
}

/// Parses a key, which must not be empty.
fn key(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the key must not be empty".to_owned()),
        key => Ok(key.to_owned()),
    }
}

/// Prints the result of a write: a note for people, or JSON.
fn print_mutation(done: &str, result: &MutationResult, json: bool) {
    let cas = result.cas();
    if !json {
        return stderr_line(format_args!("{done}, cas {cas}"));
    }
    // A string: many JSON readers lose digits of a 64-bit number.
    let mut fields = json!({"cas": cas.to_string()});
    if let Some(token) = result.token() {
        fields["vbucket"] = json!(token.vbucket);
        fields["vbucket_uuid"] = json!(token.vbucket_uuid.to_string());
        fields["seqno"] = json!(token.seqno);
    }
    line(fields);
}
