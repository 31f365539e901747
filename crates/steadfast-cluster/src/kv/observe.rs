//! What copies of a document exist, and how far a vbucket's history has come.

use bytes::{BufMut, BytesMut};
use steadfast_wire::{Frame, Status};

use super::reply::Reply;
use super::session::{Handled, Session};

/// States of a document as OBSERVE tells them.
const NOT_PERSISTED: u8 = 0x00;
const PERSISTED: u8 = 0x01;
const NOT_FOUND: u8 = 0x80;
const LOGICALLY_DELETED: u8 = 0x81;

impl Session {
    pub(super) fn observe(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket()?;
        let mut rest = frame.value();
        let mut states = BytesMut::new();
        while !rest.is_empty() {
            let (vbucket_id, wire_key, tail) = split_entry(rest).ok_or(Status::InvalidArguments)?;
            rest = tail;
            let key = self.check_key(wire_key, bucket)?;
            let vbucket = bucket.vbucket(vbucket_id)?;
            let copy = vbucket.copy_of(self.node.id).ok_or(Status::NotMyVbucket)?;
            let (state, cas) = match copy.get(&key) {
                None => (NOT_FOUND, 0),
                Some(document) if document.deleted => (LOGICALLY_DELETED, document.cas),
                Some(document) if !document.is_live(self.now) => (NOT_FOUND, 0),
                Some(document) if document.seqno <= copy.persisted_seqno => {
                    (PERSISTED, document.cas)
                }
                Some(document) => (NOT_PERSISTED, document.cas),
            };
            states.put_u16(vbucket_id);
            // The key came with a length of two bytes, so its length fits them.
            states.put_u16(wire_key.len() as u16);
            states.put_slice(wire_key);
            states.put_u8(state);
            states.put_u64(cas);
        }
        self.done(
            frame,
            Reply {
                value: &states,
                ..Reply::default()
            },
            out,
        )
    }

    pub(super) fn observe_seqno(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let uuid = frame
            .value()
            .try_into()
            .map_err(|_| Status::InvalidArguments)?;
        let uuid = u64::from_be_bytes(uuid);
        let vbucket = self.bucket()?.vbucket(frame.vbucket())?;
        let copy = vbucket.copy_of(self.node.id).ok_or(Status::NotMyVbucket)?;
        let at = copy
            .failover_log
            .iter()
            .position(|(known, _)| *known == uuid);
        let at = at.ok_or(Status::KeyNotFound)?;
        let mut body = BytesMut::new();
        body.put_u8(u8::from(at > 0));
        body.put_u16(frame.vbucket());
        body.put_u64(copy.uuid());
        body.put_u64(copy.persisted_seqno);
        body.put_u64(copy.high_seqno);
        if at > 0 {
            // The history that the client knows ended where the next newer one began.
            body.put_u64(uuid);
            body.put_u64(copy.failover_log[at - 1].1);
        }
        drop(vbucket);
        self.done(
            frame,
            Reply {
                value: &body,
                ..Reply::default()
            },
            out,
        )
    }
}

fn split_entry(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (vbucket, rest) = bytes.split_first_chunk::<2>()?;
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let (key, rest) = rest.split_at_checked(u16::from_be_bytes(*len).into())?;
    Some((u16::from_be_bytes(*vbucket), key, rest))
}
