//! The STAT command.

use bytes::BytesMut;
use steadfast_wire::{Frame, FrameBuilder, Status};

use super::response::KvResponse;
use super::session::{Handled, Session};

impl Session {
    pub(super) fn stat(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        // Groups of statistics that this server does not keep are not found.
        if !frame.key().is_empty() {
            return Err(Status::KeyNotFound);
        }
        let mut stats = vec![
            (
                "version",
                concat!(env!("CARGO_PKG_VERSION"), "-steadfast").to_owned(),
            ),
            (
                "total_connections",
                self.shared.connections_so_far().to_string(),
            ),
            (
                "applied_mutations",
                self.shared.journal.applied().to_string(),
            ),
        ];
        if let Some(bucket) = &self.bucket {
            stats.push(("bucket", bucket.name.to_string()));
            stats.push(("mem_used", bucket.used_bytes().to_string()));
        }
        for (name, value) in stats {
            FrameBuilder::reply(frame, Status::Success)
                .key(name)
                .value(value)
                .encode(out)
                .map_err(|_| Status::InternalError)?;
        }
        // An answer without a key ends the list.
        self.done(frame, KvResponse::default(), out)
    }
}
