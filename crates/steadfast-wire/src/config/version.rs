//! Versions of configs, and notifications of new ones.

use bytes::{BufMut, BytesMut};

use crate::decode::{Expected, text};
use crate::extras::layout::layout;
use crate::{DecodeError, Encode, EncodeError, Frame};

layout! {
    /// A config's version. Of two configs the one with the greater epoch is newer, and within an
    /// epoch the one with the greater revision.
    ///
    /// As the extras of GetClusterConfig it is the version that the client has: the server answers
    /// with a body only if it has a newer one.
    #[derive(PartialOrd, Ord)]
    pub struct ConfigVersion called "the config's version" {
        /// Grows when revisions start again, after a failover without a quorum. Servers that do
        /// not know epochs are in epoch zero; a negative one has not been initialised.
        pub epoch: i64,
        /// Grows with every change.
        pub rev: i64,
    }
}

impl ConfigVersion {
    /// Returns whether a config of this version should replace one of `current`.
    ///
    /// A negative epoch never does: the node that sent it is not initialised.
    pub fn supersedes(self, current: Self) -> bool {
        self.epoch >= 0 && self > current
    }
}

/// Epoch and revision, as `epoch.rev`.
impl std::fmt::Display for ConfigVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.epoch, self.rev)
    }
}

/// The version in a notification's extras, which old servers give without an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifiedVersion {
    /// Just the revision.
    Revision(u32),
    /// Both.
    Full(ConfigVersion),
}

impl NotifiedVersion {
    /// Reads the extras of a notification.
    ///
    /// # Errors
    /// If there are neither 4 bytes nor 16.
    pub fn decode(extras: &[u8]) -> Result<Self, DecodeError> {
        if let Ok(revision) = extras.try_into() {
            return Ok(Self::Revision(u32::from_be_bytes(revision)));
        }
        ConfigVersion::decode(extras)
            .map(Self::Full)
            .map_err(|_| DecodeError::Length {
                what: "the version in a notification",
                len: extras.len(),
                expected: Expected(&[4, ConfigVersion::LEN]),
            })
    }

    /// The version, in epoch zero if none was given.
    pub fn version(self) -> ConfigVersion {
        match self {
            Self::Revision(rev) => ConfigVersion {
                epoch: 0,
                rev: rev.into(),
            },
            Self::Full(version) => version,
        }
    }
}

impl Encode for NotifiedVersion {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(match self {
            Self::Revision(_) => 4,
            Self::Full(_) => ConfigVersion::LEN,
        })
    }

    fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Revision(revision) => out.put_u32(*revision),
            Self::Full(version) => version.write(out),
        }
    }
}

/// The notification of a changed config. To send one, make its fields the sections of a
/// [`FrameBuilder::server_request`](crate::FrameBuilder::server_request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigNotification<'a> {
    /// The bucket whose config it is, or `None` for the global one. The key of the frame.
    pub bucket: Option<&'a str>,
    /// The version that there is now. The extras.
    pub version: NotifiedVersion,
    /// The config, or nothing in the brief form, where the client asks for it if it wants it. The
    /// value; compressed if the datatype says so.
    pub config: Option<&'a [u8]>,
}

impl<'a> ConfigNotification<'a> {
    /// Understands a frame that the server initiated.
    ///
    /// # Errors
    /// If the version has another length, or the bucket's name is not text.
    pub fn decode(frame: &'a Frame) -> Result<Self, DecodeError> {
        let bucket = text("the bucket of a notification", frame.key())?;
        Ok(Self {
            bucket: (!bucket.is_empty()).then_some(bucket),
            version: NotifiedVersion::decode(frame.extras())?,
            config: (!frame.value().is_empty()).then_some(frame.value()),
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::{Decoded, FrameBuilder, FrameDecoder, ServerOpcode};

    fn v(epoch: i64, rev: i64) -> ConfigVersion {
        ConfigVersion { epoch, rev }
    }

    #[test]
    fn the_epoch_decides_before_the_revision() {
        assert!(v(2, 1).supersedes(v(1, 100)));
        assert!(v(1, 101).supersedes(v(1, 100)));
        assert!(!v(1, 100).supersedes(v(1, 100)));
        assert!(!v(0, 200).supersedes(v(1, 100)));
    }

    #[test]
    fn an_epoch_that_was_never_initialised_supersedes_nothing() {
        assert!(!v(-1, 100).supersedes(v(-1, 1)));
        assert!(v(0, 1).supersedes(v(-1, 100)));
    }

    #[test]
    fn a_version_is_two_signed_numbers_on_the_wire() {
        let version = v(-1, 0x0102);
        assert_eq!(
            version.to_bytes(),
            *b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\x01\x02"
        );
        assert_eq!(ConfigVersion::decode(&version.to_bytes()), Ok(version));
    }

    #[test]
    fn a_notification_round_trips_in_all_its_forms() {
        for (bucket, version, config) in [
            (
                Some("travel"),
                NotifiedVersion::Full(v(1, 2)),
                Some(&b"{}"[..]),
            ),
            (Some("travel"), NotifiedVersion::Full(v(1, 2)), None),
            (None, NotifiedVersion::Revision(7), None),
        ] {
            let mut buffer = BytesMut::new();
            FrameBuilder::server_request(ServerOpcode::ClustermapChangeNotification)
                .extras(version)
                .key(bucket)
                .value(config)
                .encode(&mut buffer)
                .unwrap();
            let Decoded::Frame(frame) = FrameDecoder::from_server().decode(&mut buffer).unwrap()
            else {
                panic!("a whole frame was written");
            };
            assert_eq!(
                frame.server_opcode(),
                ServerOpcode::ClustermapChangeNotification
            );
            assert_eq!(
                ConfigNotification::decode(&frame),
                Ok(ConfigNotification {
                    bucket,
                    version,
                    config
                })
            );
        }
        assert_eq!(NotifiedVersion::Revision(7).version(), v(0, 7));
        assert!(NotifiedVersion::decode(&[0; 8]).is_err());
    }
}
