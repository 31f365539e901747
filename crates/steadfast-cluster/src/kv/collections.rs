//! Commands that look up scopes and collections.

use bytes::BytesMut;
use steadfast_wire::collections::CollectionIdFound;
use steadfast_wire::{Frame, Status};

use super::response::KvResponse;
use super::session::{Handled, Session};

impl Session {
    pub(super) fn get_manifest(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let manifest = self.bucket()?.manifest().to_json().to_string();
        let value = manifest.as_bytes();
        self.done(frame, KvResponse::with_json(value), out)
    }

    pub(super) fn get_collection_id(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let manifest = self.bucket()?.manifest();
        let id = manifest.collection_id(path(frame)?)?;
        self.answer_id(frame, manifest.uid, id, out)
    }

    pub(super) fn get_scope_id(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let manifest = self.bucket()?.manifest();
        let id = manifest.scope_id(path(frame)?)?;
        self.answer_id(frame, manifest.uid, id, out)
    }

    fn answer_id(&self, frame: &Frame, manifest: u64, id: u32, out: &mut BytesMut) -> Handled {
        let extras = CollectionIdFound {
            manifest_uid: manifest,
            collection: id,
        }
        .to_bytes();
        self.done(frame, KvResponse::with_extras(&extras), out)
    }
}

/// The path is the value; older clients put it in the key.
fn path(frame: &Frame) -> Result<&str, Status> {
    let bytes = if frame.value().is_empty() {
        frame.key()
    } else {
        frame.value()
    };
    std::str::from_utf8(bytes).map_err(|_| Status::InvalidArguments)
}
