//! Builds frames.

use bytes::BytesMut;

use super::Header;
use crate::{Datatype, Encode, EncodeError, Magic, Opcode, ServerOpcode, Status};

/// A frame to be sent.
///
/// Each section can be anything that implements [`Encode`]: bytes, an extras type, a list of
/// frame infos, a subdocument body. Setting one changes the type of the builder, so the compiler
/// sees the whole layout and a small frame becomes a handful of stores.
///
/// The format is not chosen but follows: with framing extras the flexible one, otherwise the
/// classic one.
///
/// ```
/// use bytes::BytesMut;
/// use steadfast_wire::extras::StoreExtras;
/// use steadfast_wire::frame_info::{Durability, DurabilityLevel, RequestFrameInfo};
/// use steadfast_wire::{CollectionId, DocumentKey, FrameBuilder, Opcode, vbucket};
///
/// let mut out = BytesMut::new();
/// FrameBuilder::request(Opcode::Set)
///     .vbucket(vbucket::of_key(b"u:42", 1024))
///     .opaque(7)
///     .framing(RequestFrameInfo::Durability(Durability::new(DurabilityLevel::Majority)))
///     .extras(StoreExtras { flags: 0x0200_0000, expiry: 0 })
///     .key(DocumentKey::new(CollectionId(8), b"u:42"))
///     .value(br#"{"name":"Ada"}"#)
///     .encode(&mut out)?;
/// # Ok::<(), steadfast_wire::EncodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FrameBuilder<F = (), E = (), K = (), V = ()> {
    magic: Magic,
    opcode: u8,
    datatype: Datatype,
    vbucket_or_status: u16,
    opaque: u32,
    cas: u64,
    framing: F,
    extras: E,
    key: K,
    value: V,
}

impl FrameBuilder {
    /// A client's request.
    #[inline]
    pub fn request(opcode: Opcode) -> Self {
        Self::new(Magic::Request, opcode.code(), 0)
    }

    /// The server's answer to a client's request.
    #[inline]
    pub fn response(opcode: Opcode, status: Status) -> Self {
        Self::new(Magic::Response, opcode.code(), status.code())
    }

    /// A request of the server.
    #[inline]
    pub fn server_request(opcode: ServerOpcode) -> Self {
        Self::new(Magic::ServerRequest, opcode.code(), 0)
    }

    /// Starts the response to `request` (a frame, or only its header), of a client or a server:
    /// its opcode and opaque, and the other direction.
    #[inline]
    pub fn reply(request: &impl AsRef<Header>, status: Status) -> Self {
        let header = request.as_ref();
        let magic = match header.magic {
            Magic::ServerRequest | Magic::ClientResponse => Magic::ClientResponse,
            Magic::Request | Magic::FlexibleRequest | Magic::Response | Magic::FlexibleResponse => {
                Magic::Response
            }
        };
        Self::new(magic, header.opcode, status.code()).opaque(header.opaque)
    }

    #[inline]
    fn new(magic: Magic, opcode: u8, vbucket_or_status: u16) -> Self {
        Self {
            magic,
            opcode,
            datatype: Datatype::RAW,
            vbucket_or_status,
            opaque: 0,
            cas: 0,
            framing: (),
            extras: (),
            key: (),
            value: (),
        }
    }
}

/// Sets one section, which changes the type, and moves the rest over.
macro_rules! with_section {
    ($self:ident, $section:ident, $($other:ident),*) => {
        FrameBuilder {
            magic: $self.magic,
            opcode: $self.opcode,
            datatype: $self.datatype,
            vbucket_or_status: $self.vbucket_or_status,
            opaque: $self.opaque,
            cas: $self.cas,
            $section,
            $($other: $self.$other,)*
        }
    };
}

impl<F, E, K, V> FrameBuilder<F, E, K, V> {
    /// Sets the vbucket. On an answer it is the status that stands there, and this has no effect.
    #[inline]
    #[must_use]
    pub fn vbucket(mut self, vbucket: u16) -> Self {
        if !self.magic.is_response() {
            self.vbucket_or_status = vbucket;
        }
        self
    }

    /// Sets what ties the answer to the request.
    #[inline]
    #[must_use]
    pub fn opaque(self, opaque: u32) -> Self {
        Self { opaque, ..self }
    }

    /// Sets the document's version.
    #[inline]
    #[must_use]
    pub fn cas(self, cas: u64) -> Self {
        Self { cas, ..self }
    }

    /// Sets what the value is made of.
    #[inline]
    #[must_use]
    pub fn datatype(self, datatype: Datatype) -> Self {
        Self { datatype, ..self }
    }

    /// Sets the framing extras; an empty section leaves the frame in the classic format.
    #[inline]
    #[must_use]
    pub fn framing<T: Encode>(self, framing: T) -> FrameBuilder<T, E, K, V> {
        with_section!(self, framing, extras, key, value)
    }

    /// Sets the extras.
    #[inline]
    #[must_use]
    pub fn extras<T: Encode>(self, extras: T) -> FrameBuilder<F, T, K, V> {
        with_section!(self, extras, framing, key, value)
    }

    /// Sets the key.
    #[inline]
    #[must_use]
    pub fn key<T: Encode>(self, key: T) -> FrameBuilder<F, E, T, V> {
        with_section!(self, key, framing, extras, value)
    }

    /// Sets the value.
    #[inline]
    #[must_use]
    pub fn value<T: Encode>(self, value: T) -> FrameBuilder<F, E, K, T> {
        with_section!(self, value, framing, extras, key)
    }
}

impl<F: Encode, E: Encode, K: Encode, V: Encode> FrameBuilder<F, E, K, V> {
    /// Appends the frame to `out`.
    ///
    /// # Errors
    /// If a section is too long for the format. Nothing is appended then.
    #[inline]
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let header = self.header()?;
        out.reserve(super::HEADER_LEN + header.body_len as usize);
        let start = out.len();
        out.extend_from_slice(&header.encode());
        self.framing.write(out);
        self.extras.write(out);
        self.key.write(out);
        if header.body_len as usize > header.sections_len() {
            self.value.write(out);
        }
        debug_assert_eq!(
            out.len() - start,
            super::HEADER_LEN + header.body_len as usize
        );
        Ok(())
    }

    /// Measures all sections, and so finds out the format.
    #[inline]
    fn header(&self) -> Result<Header, EncodeError> {
        const BYTE: usize = u8::MAX as usize;
        let framing_len = EncodeError::check("framing extras", self.framing.measure()?, BYTE)?;
        let extras_len = EncodeError::check("extras", self.extras.measure()?, BYTE)?;
        let (magic, max_key) = match (framing_len, self.magic) {
            (0, magic) => (magic, u16::MAX as usize),
            (_, Magic::Request | Magic::FlexibleRequest) => (Magic::FlexibleRequest, BYTE),
            (_, Magic::Response | Magic::FlexibleResponse) => (Magic::FlexibleResponse, BYTE),
            (_, Magic::ServerRequest | Magic::ClientResponse) => {
                return Err(EncodeError::NoFraming);
            }
        };
        let key_len = EncodeError::check("key", self.key.measure()?, max_key)?;
        let value_len = self.value.measure()?;
        let body_len = EncodeError::check(
            "body",
            value_len.saturating_add(framing_len + extras_len + key_len),
            u32::MAX as usize,
        )?;
        // Each length was just checked against the field that it goes into.
        Ok(Header {
            magic,
            opcode: self.opcode,
            framing_len: framing_len as u8,
            extras_len: extras_len as u8,
            key_len: key_len as u16,
            datatype: self.datatype,
            vbucket_or_status: self.vbucket_or_status,
            body_len: body_len as u32,
            opaque: self.opaque,
            cas: self.cas,
        })
    }
}
