//! Range scan commands.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, BytesMut};
use serde::Deserialize;
use steadfast_wire::{Datatype, Feature, Frame, Status, leb128};

use super::response::KvResponse;
use super::session::{Flow, Handled, Session};
use crate::store::scan::{ScanBound, ScanItem, ScanSelection, ScanSnapshot};

/// The size of a response after which another one begins.
const RESPONSE_BYTES: usize = 1024 * 1024;

/// The JSON body of a request that creates a scan.
#[derive(Deserialize)]
struct CreateRequest {
    #[serde(default)]
    collection: Option<String>,
    #[serde(default)]
    key_only: bool,
    range: Option<Range>,
    sampling: Option<Sampling>,
    snapshot_requirements: Option<Snapshot>,
}

/// Bounds in base64.
#[derive(Deserialize)]
struct Range {
    start: Option<String>,
    excl_start: Option<String>,
    end: Option<String>,
    excl_end: Option<String>,
}

#[derive(Deserialize)]
struct Sampling {
    samples: usize,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
struct Snapshot {
    vb_uuid: String,
    seqno: u64,
    #[serde(default)]
    seqno_exists: bool,
}

impl Session {
    pub(super) fn create_scan(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket()?;
        let request: CreateRequest =
            serde_json::from_slice(frame.value()).map_err(|_| Status::InvalidArguments)?;
        let collection = match &request.collection {
            None => 0,
            Some(hex) => u32::from_str_radix(hex, 16).map_err(|_| Status::InvalidArguments)?,
        };
        if !bucket.has_collection(collection) {
            return Err(Status::UnknownCollection);
        }
        let snapshot = match request.snapshot_requirements {
            None => None,
            Some(snapshot) => Some(ScanSnapshot {
                uuid: snapshot
                    .vb_uuid
                    .parse()
                    .map_err(|_| Status::InvalidArguments)?,
                seqno: snapshot.seqno,
                exists: snapshot.seqno_exists,
            }),
        };
        let selection = match (request.range, request.sampling) {
            (Some(range), None) => range.read()?,
            (None, Some(Sampling { samples, seed })) if samples > 0 => ScanSelection::Sample {
                count: samples,
                seed,
            },
            _ => return Err(Status::InvalidArguments),
        };
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let context = self.context(frame, bucket);
        let id =
            vbucket.create_scan(collection, &selection, request.key_only, snapshot, context)?;
        drop(vbucket);
        self.done(frame, KvResponse::with_value(&id.to_be_bytes()), out)
    }

    /// Sends the next documents of a scan. A response with the status "success" has a
    /// successor; "more" and "complete" are the last ones.
    pub(super) fn continue_scan(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let Some((id, limits)) = frame.extras().split_first_chunk::<16>() else {
            return Err(Status::InvalidArguments);
        };
        let ([items, _milliseconds, bytes], []) = (match limits.as_chunks::<4>() {
            ([a, b, c], rest) => ([*a, *b, *c].map(u32::from_be_bytes), rest),
            _ => return Err(Status::InvalidArguments),
        }) else {
            return Err(Status::InvalidArguments);
        };
        // Zero means no limit.
        let limit = |limit: u32| if limit == 0 { u32::MAX } else { limit };
        let (items, bytes) = (limit(items), u64::from(limit(bytes)));
        let id = u128::from_be_bytes(*id);
        let bucket = self.bucket()?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        vbucket.active_copy(self.node.id)?;
        let mut scan = vbucket.scans.take(id)?;
        let mut body = BytesMut::new();
        let (mut count, mut sent) = (0, 0);
        while count < items && sent + (body.len() as u64) < bytes {
            let Some(item) = scan.next() else { break };
            count += 1;
            self.append_item(&item, scan.key_only, &mut body)?;
            if body.len() >= RESPONSE_BYTES && !scan.is_finished() {
                sent += body.len() as u64;
                self.write_items(frame, Status::Success, scan.key_only, &body, out);
                body.clear();
            }
        }
        let status = match scan.is_finished() {
            true => Status::RangeScanComplete,
            false => Status::RangeScanMore,
        };
        self.write_items(frame, status, scan.key_only, &body, out);
        if !scan.is_finished() {
            vbucket.scans.put_back(id, scan, self.now);
        }
        Ok(Flow::Done)
    }

    pub(super) fn cancel_scan(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let id = frame.extras().try_into();
        let id = u128::from_be_bytes(id.map_err(|_| Status::InvalidArguments)?);
        let mut vbucket = self.bucket()?.vbucket(frame.vbucket())?;
        vbucket.active_copy(self.node.id)?;
        vbucket.scans.take(id)?;
        drop(vbucket);
        self.done(frame, KvResponse::default(), out)
    }

    fn append_item(
        &self,
        (key, document): &ScanItem,
        key_only: bool,
        body: &mut BytesMut,
    ) -> Result<(), Status> {
        if key_only {
            append(key, body);
            return Ok(());
        }
        let (value, datatype) = if self.features.contains(Feature::Snappy) {
            (document.value.clone(), document.datatype)
        } else {
            (document.inflated()?, document.datatype - Datatype::SNAPPY)
        };
        body.put_u32(document.flags);
        body.put_u32(document.expiry);
        body.put_u64(document.seqno);
        body.put_u64(document.cas);
        body.put_u8(datatype.bits());
        append(key, body);
        append(&value, body);
        Ok(())
    }

    fn write_items(
        &self,
        frame: &Frame,
        status: Status,
        key_only: bool,
        body: &[u8],
        out: &mut BytesMut,
    ) {
        let extras = u32::from(!key_only).to_be_bytes();
        let response = KvResponse {
            extras: &extras,
            ..KvResponse::with_value(body)
        };
        self.writer().write(frame, status, response, out);
    }
}

impl Range {
    fn read(self) -> Result<ScanSelection, Status> {
        Ok(ScanSelection::Range {
            start: bound(self.start, self.excl_start)?,
            end: bound(self.end, self.excl_end)?,
        })
    }
}

fn bound(inclusive: Option<String>, exclusive: Option<String>) -> Result<ScanBound, Status> {
    let (text, exclusive) = match (inclusive, exclusive) {
        (Some(text), None) => (text, false),
        (None, Some(text)) => (text, true),
        _ => return Err(Status::InvalidArguments),
    };
    let key = STANDARD.decode(text);
    let key = key.map_err(|_| Status::InvalidArguments)?;
    Ok(ScanBound { key, exclusive })
}

/// Appends bytes behind their length.
fn append(bytes: &[u8], body: &mut BytesMut) {
    // A value has at most 20 MiB, so its length fits.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    body.put_slice(leb128::encode(length).as_ref());
    body.put_slice(bytes);
}
