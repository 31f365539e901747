//! Encodes responses with the features that a connection has.

use tokio::time::Instant;

use bytes::BytesMut;
use steadfast_wire::extras::MutationTokenExtras;
use steadfast_wire::frame_info::{ResponseFrameInfo, ServerDuration};
use steadfast_wire::{Datatype, ErrorBody, Feature, Frame, FrameBuilder, Status};

use crate::store::document::StoredDocument;
use crate::store::write::Receipt;
use steadfast_wire::hello::FeatureSet;

/// Encodes responses: knows the client's features, and when its request arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseWriter {
    pub features: FeatureSet,
    /// When the bytes of the request were read.
    pub received: Instant,
}

/// A response, without the fields that repeat its request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KvResponse<'a> {
    pub cas: u64,
    pub datatype: Datatype,
    pub extras: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> KvResponse<'a> {
    pub(super) fn with_value(value: &'a [u8]) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    pub(super) fn with_json(value: &'a [u8]) -> Self {
        Self {
            datatype: Datatype::JSON,
            ..Self::with_value(value)
        }
    }

    pub(super) fn with_extras(extras: &'a [u8]) -> Self {
        Self {
            extras,
            ..Self::default()
        }
    }

    pub(super) fn cas(self, cas: u64) -> Self {
        Self { cas, ..self }
    }
}

impl ResponseWriter {
    /// Writes an answer.
    pub(super) fn write(
        &self,
        frame: &Frame,
        status: Status,
        response: KvResponse<'_>,
        out: &mut BytesMut,
    ) {
        let duration = self
            .features
            .contains(Feature::Tracing)
            .then(|| self.duration());
        let encoded = FrameBuilder::reply(frame, status)
            .framing(duration)
            .cas(response.cas)
            .datatype(self.understood(response.datatype))
            .extras(response.extras)
            .value(response.value)
            .encode(out);
        if let Err(error) = encoded {
            // No answer of this server comes near the limits of a frame.
            tracing::error!(%error, opcode = %frame.opcode(), "cannot encode an answer");
        }
    }

    /// Writes the answer to a mutation that was applied.
    pub(super) fn write_receipt(
        &self,
        frame: &Frame,
        status: Status,
        receipt: Receipt,
        value: &[u8],
        out: &mut BytesMut,
    ) {
        let token = MutationTokenExtras {
            vbucket_uuid: receipt.uuid,
            seqno: receipt.seqno,
        }
        .to_bytes();
        let extras: &[u8] = if self.features.contains(Feature::MutationSeqno) {
            &token
        } else {
            &[]
        };
        let response = KvResponse {
            extras,
            ..KvResponse::with_value(value)
        };
        self.write(frame, status, response.cas(receipt.cas), out);
    }

    /// Writes a document as the answer to a read.
    pub(super) fn write_document(
        &self,
        frame: &Frame,
        document: &StoredDocument,
        cas: u64,
        out: &mut BytesMut,
    ) -> Result<(), Status> {
        let mut datatype = document.datatype;
        let inflated;
        let value =
            if datatype.contains(Datatype::SNAPPY) && !self.features.contains(Feature::Snappy) {
                datatype -= Datatype::SNAPPY;
                inflated = document.inflated()?;
                &inflated
            } else {
                &document.value
            };
        let response = KvResponse {
            cas,
            datatype,
            extras: &document.flags.to_be_bytes(),
            value,
        };
        self.write(frame, Status::Success, response, out);
        Ok(())
    }

    /// Writes a refusal, with an extended error body where there is something to say.
    pub(super) fn write_error(
        &self,
        frame: &Frame,
        status: Status,
        body: Option<ErrorBody>,
        out: &mut BytesMut,
    ) {
        let status = self.downgraded(status);
        let body = body
            .filter(|_| self.features.contains(Feature::Xerror))
            .map(|body| body.to_json());
        let response = match &body {
            Some(body) => KvResponse::with_json(body),
            None => KvResponse::default(),
        };
        self.write(frame, status, response, out);
    }

    /// The status for a client that did not ask for the newer ones.
    fn downgraded(&self, status: Status) -> Status {
        if self.features.contains(Feature::Xerror) {
            return status;
        }
        match status {
            Status::Locked | Status::NotLocked => Status::TemporaryFailure,
            other => other,
        }
    }

    fn understood(&self, datatype: Datatype) -> Datatype {
        // An extended error body is marked as JSON whatever was agreed on.
        if self.features.contains(Feature::Json) || self.features.contains(Feature::Xerror) {
            datatype
        } else {
            datatype - Datatype::JSON
        }
    }

    fn duration(&self) -> ResponseFrameInfo<'static> {
        ResponseFrameInfo::ServerDuration(ServerDuration::nearest(self.received.elapsed()))
    }
}
