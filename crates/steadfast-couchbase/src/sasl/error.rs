//! Errors of an authentication exchange.

use steadfast_wire::EncodeError;
use steadfast_wire::sasl::Mechanism;

/// An exchange that cannot go on. Only the first three are about the caller; the
/// others are a server that does not keep to the protocol.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaslError {
    /// None of what the server offers may be used with these credentials here.
    #[error("{0}")]
    NoMechanism(String),
    /// The mechanism takes other credentials.
    #[error("{} cannot be used with credentials of this kind", .0.name())]
    Unsuited(Mechanism),
    /// The credentials hold what the mechanism cannot carry.
    #[error("the credentials cannot be sent: {0}")]
    Unsendable(EncodeError),
    /// The machine has no randomness.
    #[error("no random bytes for the authentication: {0}")]
    Randomness(steadfast_os::random::Error),
    /// A message of the server is not what the mechanism has in its place.
    #[error("the server's {0}")]
    Malformed(&'static str),
    /// The server asks for less safety, or more work, than is reasonable.
    #[error("the server asks for {asked} iterations, which is not between {least} and {most}")]
    Iterations {
        /// What it asks for.
        asked: u32,
        /// The least that is accepted.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The server's nonce is not an extension of the client's: its message is for
    /// somebody else, or from another time.
    #[error("the server did not extend the nonce that it was sent")]
    Nonce,
    /// The server said no, in SCRAM's own words.
    #[error("the server broke off the exchange")]
    BrokenOff,
    /// The server does not know the password.
    #[error("the server could not prove that it knows the password: it is not who it claims to be")]
    Signature,
    /// A message in the wrong place.
    #[error("the server sent a message where {} has none", .0.name())]
    OutOfTurn(Mechanism),
}
