//! The context of an error: what the operation was about, and the server's response.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast::report::Report;
use steadfast_wire::Status;
use steadfast_wire::error_map::Attributes;

use crate::kv::connection::Connection;

/// Everything that is known about a failed operation.
#[derive(Debug, Default)]
pub struct ErrorContext {
    pub(crate) operation: &'static str,
    pub(crate) target: OperationTarget,
    pub(crate) note: Option<String>,
    pub(crate) ambiguous: bool,
    pub(crate) report: Option<Report>,
    pub(crate) kv: Option<KvContext>,
    pub(crate) http: Option<HttpContext>,
}

/// What an operation is about: a bucket, scope, collection and document.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OperationTarget {
    /// The bucket.
    pub bucket: Option<Arc<str>>,
    /// The scope.
    pub scope: Option<Arc<str>>,
    /// The collection.
    pub collection: Option<Arc<str>>,
    /// The document's key, if
    /// [`ClusterOptions::unredacted_keys`](crate::ClusterOptions::unredacted_keys) is
    /// set.
    pub key: Option<String>,
}

/// The server's last response to a key-value operation, and the node.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KvContext {
    /// The status of the last response.
    pub status: Option<Status>,
    /// The last attempt's opaque.
    pub opaque: Option<u32>,
    /// The status's name in the server's error map.
    pub error_map_name: Option<String>,
    /// Its description there.
    pub error_map_description: Option<String>,
    /// Its attributes there, such as `temp`, `item-only` or `auth` (RFC 0013).
    pub error_map_attributes: Option<Attributes>,
    /// The reference of the event in the server's log.
    pub reference: Option<String>,
    /// The server's message.
    pub server_text: Option<String>,
    /// The node that the last attempt went to.
    pub dispatched_to: Option<Arc<str>>,
    /// The local address of that connection.
    pub dispatched_from: Option<Arc<str>>,
    /// The path at which an operation on parts of a document failed, from zero.
    pub path_index: Option<usize>,
    /// The time that the server spent on the last attempt, if it responded and
    /// [`ClusterOptions::server_durations`](crate::ClusterOptions::server_durations) is
    /// on.
    pub server_duration: Option<Duration>,
    /// The connection of the last attempt, while it exists.
    pub(crate) connection: Weak<Connection>,
}

/// The server's last response to an HTTP operation, and the node.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HttpContext {
    /// The status of the last response.
    pub status: Option<u16>,
    /// The service's own code of the first error.
    pub code: Option<u64>,
    /// The service's message.
    pub message: Option<String>,
    /// The statement, without the values of its parameters.
    pub statement: Option<String>,
    /// The id under which the service knows the request.
    pub client_context_id: Option<String>,
    /// The method and the path.
    pub request: Option<String>,
    /// The node that the last attempt went to.
    pub dispatched_to: Option<Arc<str>>,
}

impl ErrorContext {
    pub(crate) fn new(operation: &'static str) -> Self {
        Self {
            operation,
            ..Self::default()
        }
    }

    /// Returns the operation's name.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns the service's name.
    pub fn service(&self) -> &'static str {
        match &self.report {
            Some(report) => report.request().service(),
            None => "",
        }
    }

    /// Returns what the operation was about.
    pub fn target(&self) -> &OperationTarget {
        &self.target
    }

    /// Returns a note on what happened, if the rest does not say it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns attempts, reasons, history and verdict; `None` if no attempt could be
    /// made, for example because an argument was invalid.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Returns the server's last response to a key-value operation.
    pub fn kv(&self) -> Option<&KvContext> {
        self.kv.as_ref()
    }

    /// Returns the server's last response to an HTTP operation.
    pub fn http(&self) -> Option<&HttpContext> {
        self.http.as_ref()
    }
}

impl OperationTarget {
    /// A bucket as a whole.
    pub(crate) fn bucket(bucket: &Arc<str>) -> Self {
        Self {
            bucket: Some(bucket.clone()),
            ..Self::default()
        }
    }

    /// A scope as a whole.
    pub(crate) fn scope(bucket: &Arc<str>, scope: &Arc<str>) -> Self {
        Self {
            scope: Some(scope.clone()),
            ..Self::bucket(bucket)
        }
    }

    /// Returns the names of bucket, scope and collection, empty where there is none.
    pub(crate) fn names(&self) -> [&str; 3] {
        [&self.bucket, &self.scope, &self.collection]
            .map(|name| name.as_deref().unwrap_or_default())
    }
}

/// Writes `bucket.scope.collection`, as far as known, without the key.
impl fmt::Display for OperationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.bucket, &self.scope, &self.collection];
        for (index, part) in parts.into_iter().flatten().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

impl fmt::Debug for OperationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        match &self.key {
            Some(key) => write!(f, "/{key}"),
            None => Ok(()),
        }
    }
}
