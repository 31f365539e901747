//! Resolves a write whose outcome is unknown, as far as that can be proven.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use steadfast_wire::frame_info::RequestFrameInfo;
use steadfast_wire::{Feature, FrameBuilder, Opcode, Status};

use super::{Collection, GetResult};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::connection::{Admission, Connection};
use crate::kv::operation::KvOperation;
use crate::world::deadline_after;

/// The result of resolving an ambiguous write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// The write was applied. The document has this CAS now.
    Applied {
        /// The version of the document.
        cas: u64,
    },
    /// The write was not applied, and cannot be any more.
    NotApplied,
    /// Neither can be proven.
    Unknown {
        /// The reason why it cannot be proven.
        why: &'static str,
    },
}

/// Resolves an ambiguous write; see [`Collection::resolve`].
#[must_use = "nothing happens until it is awaited"]
pub struct Resolve<'a> {
    on: &'a Collection,
    id: &'a str,
    error: &'a Error,
    applied_if: Option<Evidence<'a>>,
    previous_cas: Option<u64>,
    timeout: Option<Duration>,
}

type Evidence<'a> = Box<dyn Fn(&GetResult) -> bool + Send + Sync + 'a>;

impl Collection {
    /// Finds out whether a write whose error [is ambiguous](Error::is_ambiguous) was
    /// applied, by reading the document back.
    ///
    /// Reading alone proves little about a write that may still be on its way. The caller
    /// has to add what it knows:
    ///
    /// - [`applied_if`](Resolve::applied_if) proves that the write was applied.
    /// - [`previous_cas`](Resolve::previous_cas) proves that it was not, if the
    ///   connection that carried it is still open: the server then confirms that it
    ///   has finished everything that was sent there before. If the connection is
    ///   closed, the request may still be waiting inside the server.
    ///
    /// That confirmation waits for all operations on the connection, and later ones wait for
    /// it.
    ///
    /// Everything else is [`Unknown`](Resolution::Unknown): a document that another
    /// writer has written or removed since, and a write that the server itself called
    /// ambiguous. A result holds until the document is written again.
    ///
    /// ```no_run
    /// use steadfast_couchbase::collection::Resolution;
    /// # async fn example(orders: steadfast_couchbase::Collection) -> steadfast_couchbase::Result<()> {
    /// let before = orders.get("o:1").await?;
    /// let mut order: serde_json::Value = before.content()?;
    /// order["change"] = "a unique id of this change".into();
    /// let replace = orders.replace("o:1", &order).cas(before.cas()).await;
    /// if let Err(error) = &replace
    ///     && error.is_ambiguous()
    /// {
    ///     let is_ours = |found: &serde_json::Value| found["change"] == order["change"];
    ///     let resolution = orders
    ///         .resolve("o:1", error)
    ///         .applied_if(|found| found.content().is_ok_and(|found| is_ours(&found)))
    ///         .previous_cas(before.cas())
    ///         .await?;
    ///     match resolution {
    ///         Resolution::Applied { .. } => println!("done"),
    ///         Resolution::NotApplied => println!("safe to write again"),
    ///         unknown => println!("ask a human: {unknown:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolve<'a>(&'a self, id: &'a str, error: &'a Error) -> Resolve<'a> {
        Resolve {
            on: self,
            id,
            error,
            applied_if: None,
            previous_cas: None,
            timeout: None,
        }
    }
}

impl<'a> Resolve<'a> {
    /// Recognises the document that only this write can have left behind, such as by a
    /// unique id in it. A value that another writer could write too proves nothing.
    pub fn applied_if(mut self, is_ours: impl Fn(&GetResult) -> bool + Send + Sync + 'a) -> Self {
        self.applied_if = Some(Box::new(is_ours));
        self
    }

    /// Names the version that the document had when it was read, before the write. If
    /// it still has it, nothing was written in between: every write changes the CAS.
    pub fn previous_cas(mut self, cas: u64) -> Self {
        self.previous_cas = Some(cas);
        self
    }

    /// Limits the time of each step: asking the server to confirm, and reading.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Cancel-safe: dropping the future abandons the reads.
    async fn run(self) -> Result<Resolution> {
        self.check()?;
        let unknown = |why| Ok(Resolution::Unknown { why });
        // Applied once is applied, whatever else is still on its way.
        if self.applied_if.is_some()
            && let Some(found) = self.read().await?
            && self.is_ours(&found)
        {
            return Ok(Resolution::Applied { cas: found.cas() });
        }
        let Some(previous) = self.previous_cas else {
            return unknown("the document shows no evidence, and its earlier version is not known");
        };
        let kv = self.error.context().kv();
        if kv.is_some_and(|kv| kv.status == Some(Status::Success)) {
            return unknown("the server says that it was applied, but its response is invalid");
        }
        if kv.is_none_or(|kv| kv.status.is_some()) {
            return unknown("the server itself does not know whether the write will be applied");
        }
        let Some(connection) = kv.and_then(|kv| kv.connection.upgrade()) else {
            return unknown("the connection is closed, and the write may still be in the server");
        };
        if !self.all_finished(&connection).await {
            return unknown("the server does not confirm that it has finished the write");
        }
        // Read after the confirmation, so that a write which was finished is seen.
        match self.read().await? {
            Some(found) if self.is_ours(&found) => Ok(Resolution::Applied { cas: found.cas() }),
            Some(found) if found.cas() == previous => Ok(Resolution::NotApplied),
            Some(_) => unknown("the document was written since, by this write or another"),
            None => unknown("the document is gone, by this write or another"),
        }
    }

    /// Rejects errors that say themselves what happened, or that are of something else.
    fn check(&self) -> Result<()> {
        let context = self.error.context();
        let target = context.target();
        let names = [self.on.bucket(), self.on.scope(), self.on.name()];
        let mut writes = KvOperation::ALL.iter().filter(|it| it.is_mutation());
        let problem = if !self.error.is_ambiguous() {
            "the error is not ambiguous"
        } else if !writes.any(|write| write.name() == context.operation()) {
            "the error is not that of a write to a document"
        } else if target.names() != names {
            "the error is that of another collection"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidArgument, "resolve").because(problem))
    }

    fn is_ours(&self, found: &GetResult) -> bool {
        self.applied_if
            .as_ref()
            .is_some_and(|is_ours| is_ours(found))
    }

    /// Cancel-safe.
    async fn read(&self) -> Result<Option<GetResult>> {
        match self.on.get(self.id).timeout(self.step()).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::DocumentNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the server confirms that it has finished everything that was
    /// sent on this connection before.
    ///
    /// Servers may execute requests out of order, except around a barrier. Cancel-safe.
    async fn all_finished(&self, connection: &Arc<Connection>) -> bool {
        let unordered = connection.has(Feature::UnorderedExecution);
        if unordered && !connection.has(Feature::AltRequest) {
            return false;
        }
        let submitted = connection.submit(
            Opcode::Noop,
            deadline_after(self.step()),
            Admission::Always,
            |opaque, out| {
                let noop = FrameBuilder::request(Opcode::Noop).opaque(opaque);
                match unordered {
                    true => noop.framing(RequestFrameInfo::Barrier).encode(out),
                    false => noop.encode(out),
                }
            },
        );
        match submitted {
            Ok(ticket) => matches!(ticket.await, Ok(answer) if answer.status() == Status::Success),
            Err(_) => false,
        }
    }

    fn step(&self) -> Duration {
        let default = self.on.bucket.core.options.kv_timeout;
        self.timeout.unwrap_or(default)
    }
}

impl<'a> IntoFuture for Resolve<'a> {
    type Output = Result<Resolution>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
