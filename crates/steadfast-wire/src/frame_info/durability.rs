//! Durability requirements of mutations.

use std::time::Duration;

use crate::DecodeError;
use crate::code::open_enum::open_enum;
use crate::decode::{ByteReader, Expected};

open_enum! {
    /// The copies that a mutation must have reached. A server answers a level that it does not know with
    /// `DurabilityInvalidLevel`.
    pub enum DurabilityLevel: u8, unknown UnknownDurabilityLevel {
        /// In the memory of the majority of the replicas.
        Majority = 0x01 "majority",
        /// The same, and on the disk of the active node.
        MajorityAndPersistToActive = 0x02 "majorityAndPersistToActive",
        /// On the disks of the majority of the replicas.
        PersistToMajority = 0x03 "persistToMajority",
    }
}

/// The requirement that a mutation carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    /// The copies that the mutation must have reached.
    pub level: DurabilityLevel,
    /// The time after which the server answers that the outcome is ambiguous; by default its own.
    pub timeout: Option<DurabilityTimeout>,
}

/// The time limit of the server in milliseconds: 1 to 65534. 0 and 65535 have other meanings and
/// cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurabilityTimeout(u16);

impl DurabilityTimeout {
    /// The longest one.
    pub const MAX: Self = Self(u16::MAX - 1);

    /// A number of milliseconds, if it is a timeout.
    pub const fn from_millis(millis: u16) -> Option<Self> {
        if millis == 0 || millis == u16::MAX {
            None
        } else {
            Some(Self(millis))
        }
    }

    /// The timeout nearest to a duration.
    pub fn nearest(duration: Duration) -> Self {
        let millis = duration.as_millis().clamp(1, Self::MAX.0.into());
        // The clamp has made it fit.
        Self(millis as u16)
    }

    /// In milliseconds.
    pub const fn as_millis(self) -> u16 {
        self.0
    }
}

impl Durability {
    /// A level, with the server's own timeout.
    pub const fn new(level: DurabilityLevel) -> Self {
        Self {
            level,
            timeout: None,
        }
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the durability requirement";
        let mut reader = ByteReader::new(payload);
        let level = DurabilityLevel::from_code(reader.u8(WHAT)?);
        let timeout = match payload.len() {
            1 => None,
            3 => {
                let millis = reader.u16(WHAT)?;
                Some(
                    DurabilityTimeout::from_millis(millis).ok_or(DecodeError::Value {
                        what: "the durability timeout",
                        value: millis.into(),
                    })?,
                )
            }
            len => {
                return Err(DecodeError::Length {
                    what: WHAT,
                    len,
                    expected: Expected(&[1, 3]),
                });
            }
        };
        Ok(Self { level, timeout })
    }

    /// The payload, in a buffer on the stack.
    #[inline]
    pub(super) fn encode(self) -> ([u8; 3], usize) {
        let [high, low] = self
            .timeout
            .map_or(0, DurabilityTimeout::as_millis)
            .to_be_bytes();
        (
            [self.level.code(), high, low],
            if self.timeout.is_some() { 3 } else { 1 },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_never_zero_or_the_greatest_number() {
        assert_eq!(DurabilityTimeout::from_millis(0), None);
        assert_eq!(DurabilityTimeout::from_millis(u16::MAX), None);
        assert_eq!(DurabilityTimeout::nearest(Duration::ZERO).as_millis(), 1);
        assert_eq!(
            DurabilityTimeout::nearest(Duration::from_millis(2500)).as_millis(),
            2500
        );
        assert_eq!(
            DurabilityTimeout::nearest(Duration::MAX),
            DurabilityTimeout::MAX
        );
        assert!(Durability::decode(&[1, 0, 0]).is_err());
        assert!(Durability::decode(&[1, 0xff, 0xff]).is_err());
    }

    #[test]
    fn an_unknown_level_is_kept_for_the_server_to_reject() {
        let durability = Durability::decode(&[9]).unwrap();
        assert_eq!(durability.level.code(), 9);
        assert_eq!(durability.level.name(), None);
    }

    #[test]
    fn another_length_is_an_error() {
        for payload in [&[][..], &[1, 0], &[1, 0, 1, 0]] {
            assert!(Durability::decode(payload).is_err());
        }
    }
}
