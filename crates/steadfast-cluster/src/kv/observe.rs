//! The observe commands.

use bytes::BytesMut;
use steadfast_wire::observe::{
    Failover, KeyState, ObserveKey, ObserveResult, ObserveSeqnoRequest, ObserveSeqnoResponse,
};
use steadfast_wire::{Encode, Entries, Frame, Status};

use super::response::KvResponse;
use super::session::{Handled, Session};

impl Session {
    pub(super) fn observe(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket()?;
        let mut body = BytesMut::new();
        for document in Entries::<ObserveKey<'_>>::new(frame.value()) {
            let document = document.map_err(|_| Status::InvalidArguments)?;
            let key = self.check_key(document.key, bucket)?;
            let vbucket = bucket.vbucket(document.vbucket)?;
            let copy = vbucket.copy_of(self.node.id).ok_or(Status::NotMyVbucket)?;
            let (state, cas) = match copy.get(&key) {
                None => (KeyState::NotFound, 0),
                Some(found) if found.deleted => (KeyState::LogicallyDeleted, found.cas),
                Some(found) if !found.is_live(self.now) => (KeyState::NotFound, 0),
                Some(found) if found.seqno <= copy.persisted_seqno => {
                    (KeyState::Persisted, found.cas)
                }
                Some(found) => (KeyState::NotPersisted, found.cas),
            };
            ObserveResult {
                document,
                state,
                cas,
            }
            .append_to(&mut body)
            .map_err(|_| Status::InternalError)?;
        }
        self.done(frame, KvResponse::with_value(&body), out)
    }

    pub(super) fn observe_seqno(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let asked =
            ObserveSeqnoRequest::decode(frame.value()).map_err(|_| Status::InvalidArguments)?;
        let vbucket = self.bucket()?.vbucket(frame.vbucket())?;
        let copy = vbucket.copy_of(self.node.id).ok_or(Status::NotMyVbucket)?;
        let mut log = copy.failover_log.iter();
        let at = log.position(|(uuid, _)| *uuid == asked.vbucket_uuid);
        let at = at.ok_or(Status::KeyNotFound)?;
        let result = ObserveSeqnoResponse {
            vbucket: frame.vbucket(),
            vbucket_uuid: copy.uuid(),
            persisted_seqno: copy.persisted_seqno,
            current_seqno: copy.high_seqno,
            // The history that the client knows ended where the next newer one began.
            failover: at.checked_sub(1).map(|newer| Failover {
                old_vbucket_uuid: asked.vbucket_uuid,
                last_seqno_received: copy.failover_log[newer].1,
            }),
        };
        drop(vbucket);
        let mut body = BytesMut::new();
        result
            .append_to(&mut body)
            .map_err(|_| Status::InternalError)?;
        self.done(frame, KvResponse::with_value(&body), out)
    }
}
