//! Messages of the SASL authentication.
//!
//! The response to SaslListMechs has the names of mechanisms with spaces between them. SaslAuth has
//! the chosen one as its key and the first message as its value. The messages of PLAIN and
//! OAUTHBEARER are here. Those of SCRAM depend on the state of an exchange, so client and server
//! have them.

use std::fmt;

use bytes::{BufMut, BytesMut};

use crate::decode::text;
use crate::{DecodeError, Encode, EncodeError};

/// A way to authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// SCRAM with SHA-512: proves the password without showing it.
    ScramSha512,
    /// SCRAM with SHA-256.
    ScramSha256,
    /// SCRAM with SHA-1.
    ScramSha1,
    /// The password itself; only to be used within TLS.
    Plain,
    /// A token; only to be used within TLS.
    OauthBearer,
}

impl Mechanism {
    /// All of them; of those that take a password, the stronger come first.
    pub const ALL: [Self; 5] = [
        Self::ScramSha512,
        Self::ScramSha256,
        Self::ScramSha1,
        Self::Plain,
        Self::OauthBearer,
    ];

    /// The name on the wire. The server spells SCRAM's without the hyphen that the standard has
    /// before the number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha512 => "SCRAM-SHA512",
            Self::ScramSha256 => "SCRAM-SHA256",
            Self::ScramSha1 => "SCRAM-SHA1",
            Self::Plain => "PLAIN",
            Self::OauthBearer => "OAUTHBEARER",
        }
    }

    /// The mechanism with this name.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mechanism| mechanism.name().as_bytes() == name)
    }

    /// The value of the answer to SaslListMechs.
    pub fn write_list(mechanisms: &[Self]) -> String {
        mechanisms
            .iter()
            .map(|mechanism| mechanism.name())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Reads the value of the answer to SaslListMechs; mechanisms without a type are skipped.
    pub fn read_list(value: &[u8]) -> impl Iterator<Item = Self> {
        value
            .split(|byte| *byte == b' ')
            .filter_map(Self::from_name)
    }
}

/// The message of PLAIN. Its `Debug` form leaves the password out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Plain<'a> {
    /// Whom to act as, if not as oneself.
    pub authorize_as: &'a str,
    /// The user.
    pub username: &'a str,
    /// The password.
    pub password: &'a str,
}

impl<'a> Plain<'a> {
    /// A user and a password.
    pub fn new(username: &'a str, password: &'a str) -> Self {
        Self {
            authorize_as: "",
            username,
            password,
        }
    }

    /// Reads the message.
    ///
    /// # Errors
    /// If it is not three texts with a zero byte between each two.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the PLAIN message";
        let mut parts = text(WHAT, message)?.split('\0');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(authorize_as), Some(username), Some(password), None) => Ok(Self {
                authorize_as,
                username,
                password,
            }),
            _ => Err(DecodeError::Text {
                what: WHAT,
                problem: "does not consist of three parts with a zero byte between",
            }),
        }
    }
}

impl Encode for Plain<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        let forbid = |what, part: &str| EncodeError::forbid(what, part.as_bytes(), 0);
        forbid("the authorization id", self.authorize_as)?;
        forbid("the username", self.username)?;
        forbid("the password", self.password)?;
        Ok(self.authorize_as.len() + self.username.len() + self.password.len() + 2)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_slice(self.authorize_as.as_bytes());
        out.put_u8(0);
        out.put_slice(self.username.as_bytes());
        out.put_u8(0);
        out.put_slice(self.password.as_bytes());
    }
}

impl fmt::Debug for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// The message of OAUTHBEARER. Its `Debug` form leaves the token out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OauthBearer<'a> {
    /// The token.
    pub token: &'a str,
}

const BEARER_START: &[u8] = b"n,,\x01auth=Bearer ";
const BEARER_END: &[u8] = b"\x01\x01";

impl<'a> OauthBearer<'a> {
    /// Reads the message, in the one form that the Couchbase clients send.
    ///
    /// # Errors
    /// If it has another form.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the OAUTHBEARER message";
        let token = message
            .strip_prefix(BEARER_START)
            .and_then(|rest| rest.strip_suffix(BEARER_END))
            .filter(|token| !token.contains(&1))
            .ok_or(DecodeError::Text {
                what: WHAT,
                problem: "is not a bearer token",
            })?;
        Ok(Self {
            token: text(WHAT, token)?,
        })
    }
}

impl Encode for OauthBearer<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        EncodeError::forbid("the token", self.token.as_bytes(), 1)?;
        Ok(BEARER_START.len() + self.token.len() + BEARER_END.len())
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_slice(BEARER_START);
        out.put_slice(self.token.as_bytes());
        out.put_slice(BEARER_END);
    }
}

impl fmt::Debug for OauthBearer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthBearer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn encode(message: impl Encode) -> Result<BytesMut, EncodeError> {
        let mut out = BytesMut::new();
        message.append_to(&mut out)?;
        Ok(out)
    }

    #[test]
    fn plain_is_three_parts_with_zeros_between() {
        let plain = Plain::new("user", "pass");
        let message = encode(plain).unwrap();
        assert_eq!(&message[..], b"\0user\0pass");
        assert_eq!(Plain::decode(&message), Ok(plain));
        for message in [&b"user\0pass"[..], b"\0user\0pa\0ss", b"", b"\0\xff\0"] {
            assert!(Plain::decode(message).is_err(), "{message:?}");
        }
        let error = encode(Plain::new("us\0er", "pass")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the username cannot contain the byte 0x00"
        );
    }

    #[test]
    fn a_bearer_token_is_wrapped_as_the_standard_says() {
        let bearer = OauthBearer { token: "TOK" };
        let message = encode(bearer).unwrap();
        assert_eq!(&message[..], b"n,,\x01auth=Bearer TOK\x01\x01");
        assert_eq!(OauthBearer::decode(&message), Ok(bearer));
        for message in [
            &b"TOK"[..],
            b"n,,\x01auth=Bearer ",
            b"n,,\x01auth=Bearer a\x01b\x01\x01",
        ] {
            assert!(OauthBearer::decode(message).is_err(), "{message:?}");
        }
        assert!(encode(OauthBearer { token: "a\x01b" }).is_err());
    }

    #[test]
    fn secrets_are_not_printed() {
        let plain = format!("{:?}", Plain::new("user", "hunter2"));
        assert!(plain.contains("user") && !plain.contains("hunter2"));
        assert!(!format!("{:?}", OauthBearer { token: "hunter2" }).contains("hunter2"));
    }

    #[test]
    fn mechanisms_are_listed_with_spaces_and_unknown_ones_skipped() {
        let list = Mechanism::write_list(&[Mechanism::ScramSha512, Mechanism::Plain]);
        assert_eq!(list, "SCRAM-SHA512 PLAIN");
        let read: Vec<_> = Mechanism::read_list(b"SCRAM-SHA512 GSSAPI  PLAIN").collect();
        assert_eq!(read, [Mechanism::ScramSha512, Mechanism::Plain]);
        assert_eq!(Mechanism::read_list(b"").count(), 0);
    }
}
