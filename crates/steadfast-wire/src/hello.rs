//! HELLO: the name of the client, and the features of the connection.
//!
//! The key of the request names the client, the value lists the [`Feature`]s that it asks for. The
//! value of the response lists those that the server grants, a [`FeatureSet`].

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use crate::decode::ByteReader;
use crate::{DecodeError, Encode, EncodeError, Entries, Feature, ReadEntry};

impl Encode for Feature {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(2)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u16(self.code());
    }
}

impl<'a> ReadEntry<'a> for Feature {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        reader.u16("a feature").map(Self::from_code)
    }
}

/// A set of features that have names.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// The features that the value of a HELLO lists. Those without a name are left out: nothing here
    /// would know what to do with them.
    ///
    /// # Errors
    /// If the value is not a row of features.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        Entries::<Feature>::new(value).collect()
    }

    /// Returns whether a feature is in the set.
    #[inline]
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & Self::bit(feature) != 0
    }

    /// Returns the features in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The features, in the order of their codes.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::KNOWN
            .iter()
            .copied()
            .filter(move |feature| self.contains(*feature))
    }

    /// Every feature with a name has a code below 64; a test makes sure of that.
    #[inline]
    const fn bit(feature: Feature) -> u64 {
        match feature {
            Feature::Unknown(_) => 0,
            known => 1_u64.wrapping_shl(known.code() as u32),
        }
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        Self(
            features
                .into_iter()
                .fold(0, |bits, feature| bits | Self::bit(feature)),
        )
    }
}

impl std::fmt::Debug for FeatureSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The key of HELLO: JSON that names the client for the server's logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The user agent.
    #[serde(rename = "a")]
    pub agent: String,
    /// The client's and the connection's ids, each sixteen hexadecimal digits, with a slash
    /// between.
    #[serde(rename = "i")]
    pub connection: String,
}

impl ClientIdentity {
    /// The longest agent; a longer one is cut, because servers refuse long keys.
    pub const MAX_AGENT_LEN: usize = 200;

    /// A client's identity on one of its connections.
    pub fn new(agent: &str, client_id: u64, connection_id: u64) -> Self {
        let agent = &agent[..agent.floor_char_boundary(Self::MAX_AGENT_LEN)];
        Self {
            agent: agent.to_owned(),
            connection: format!("{client_id:016x}/{connection_id:016x}"),
        }
    }

    /// The key of the frame.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("two texts always make JSON")
    }

    /// Reads the key of a frame.
    ///
    /// # Errors
    /// If it is not such JSON. Servers take any key, so this should not stop a connection.
    pub fn parse(key: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(key).map_err(|error| DecodeError::Json {
            what: "the client's identity",
            problem: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn every_named_feature_has_its_own_bit() {
        let all: FeatureSet = Feature::KNOWN.iter().copied().collect();
        assert_eq!(all.iter().count(), Feature::KNOWN.len());
        assert!(Feature::KNOWN.iter().all(|feature| feature.code() < 64));
    }

    #[test]
    fn a_list_of_features_round_trips_without_those_that_have_no_name() {
        let asked = [
            Feature::Collections,
            Feature::from_code(0xcafe),
            Feature::Xerror,
        ];
        let mut out = BytesMut::new();
        asked.append_to(&mut out).unwrap();
        assert_eq!(&out[..], b"\0\x12\xca\xfe\0\x07");
        let set = FeatureSet::decode(&out).unwrap();
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Feature::Xerror, Feature::Collections]
        );
        assert!(!set.contains(Feature::from_code(0xcafe)) && !set.contains(Feature::Json));
        assert!(FeatureSet::decode(b"\0\x12\0").is_err());
    }

    #[test]
    fn an_identity_is_short_json_with_the_agent_first() {
        let identity = ClientIdentity::new("steadfast", 1, 0xabc);
        assert_eq!(
            identity.to_json(),
            br#"{"a":"steadfast","i":"0000000000000001/0000000000000abc"}"#
        );
        assert_eq!(ClientIdentity::parse(&identity.to_json()), Ok(identity));
        assert!(ClientIdentity::parse(b"libcouchbase").is_err());
    }

    #[test]
    fn a_long_agent_is_cut_between_characters() {
        let identity = ClientIdentity::new(&format!("a{}", "é".repeat(150)), 0, 0);
        assert_eq!(identity.agent.len(), 199);
    }
}
