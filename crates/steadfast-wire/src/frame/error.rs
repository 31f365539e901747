//! Errors of invalid frames.

use crate::Magic;

/// Why bytes are not a frame. It is the peer's fault, and the stream cannot be read further: there
/// is no way to tell where the next frame starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first byte is not a magic; most often the peer speaks something else.
    #[error("a frame cannot start with {0:#04x}")]
    UnknownMagic(u8),
    /// The magic is one that only the other side sends.
    #[error("{:?} frames ({:#04x}) are never sent in this direction", .0, .0.code())]
    WrongDirection(Magic),
    /// The body is longer than the limit.
    #[error("opcode {opcode:#04x}: a body of {body_len} bytes exceeds the limit of {max}")]
    BodyTooLong {
        /// The command.
        opcode: u8,
        /// The length that the header says.
        body_len: u32,
        /// The limit.
        max: u32,
    },
    /// The sections are longer than the body that they are part of.
    #[error(
        "opcode {opcode:#04x}: framing extras ({framing_len}), extras ({extras_len}) and key \
         ({key_len}) exceed the body ({body_len})"
    )]
    SectionsExceedBody {
        /// The command.
        opcode: u8,
        /// The length of the framing extras.
        framing_len: u8,
        /// The length of the extras.
        extras_len: u8,
        /// The length of the key.
        key_len: u16,
        /// The length of the body.
        body_len: u32,
    },
}
