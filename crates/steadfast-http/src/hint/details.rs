//! `google.rpc.RetryInfo` in the error details of gRPC servers.

use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::Message as _;

use super::{Hint, wait};

pub(super) const HEADER: &str = "grpc-status-details-bin";

/// Longer details are not parsed. Servers and proxies allow 8 KiB or 16 KiB of
/// metadata in all.
const MAX_LEN: usize = 16 * 1024;

const RETRY_INFO: &str = "google.rpc.RetryInfo";

/// gRPC writes base64 without padding and accepts padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Parses the header. Details without a `RetryInfo` give no hint.
pub(super) fn parse(value: &[u8]) -> Hint {
    let bytes = (value.len() <= MAX_LEN).then(|| BASE64.decode(value));
    match bytes {
        Some(Ok(bytes)) => parse_bytes(&bytes),
        Some(Err(_)) | None => Hint::Unreadable(HEADER),
    }
}

/// Parses the decoded details.
pub(crate) fn parse_bytes(details: &[u8]) -> Hint {
    delay(details).unwrap_or(Hint::Unreadable(HEADER))
}

fn delay(details: &[u8]) -> Option<Hint> {
    if details.len() > MAX_LEN {
        return None;
    }
    let status = RpcStatus::decode(details).ok()?;
    let named = |any: &&Any| any.type_url.rsplit('/').next() == Some(RETRY_INFO);
    let Some(any) = status.details.iter().find(named) else {
        return Some(Hint::None);
    };
    let info = RpcRetryInfo::decode(any.value.as_slice()).ok()?;
    let Some(Delay { seconds, nanos }) = info.retry_delay else {
        return Some(Hint::None);
    };
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)?;
    Some(wait(Duration::new(u64::try_from(seconds).ok()?, nanos)))
}

// The messages, without the fields that are not needed here.

#[derive(prost::Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(prost::Message)]
struct RpcRetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(prost::Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(type_url: &str, seconds: i64, nanos: i32) -> Vec<u8> {
        let retry_delay = Some(Delay { seconds, nanos });
        let any = Any {
            type_url: type_url.to_owned(),
            value: RpcRetryInfo { retry_delay }.encode_to_vec(),
        };
        let status = RpcStatus { details: vec![any] };
        BASE64.encode(status.encode_to_vec()).into_bytes()
    }

    /// Code 14, message "x", one `RetryInfo` of 1.5 s, written byte by byte from the
    /// definitions to check the messages above.
    #[test]
    fn a_retry_info_is_parsed() {
        let duration = [0x08, 0x01, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01];
        let info = [&[0x0a, duration.len() as u8][..], &duration].concat();
        let url = b"type.googleapis.com/google.rpc.RetryInfo";
        let any = [
            &[0x0a, url.len() as u8][..],
            url,
            &[0x12, info.len() as u8],
            &info,
        ]
        .concat();
        let status = [&[0x08, 14, 0x12, 1, b'x', 0x1a, any.len() as u8][..], &any].concat();
        let expected = Hint::Wait(Duration::from_millis(1500));
        let unpadded = BASE64.encode(&status);
        assert_eq!(parse(unpadded.trim_end_matches('=').as_bytes()), expected);
        assert_eq!(parse(unpadded.as_bytes()), expected);
    }

    #[test]
    fn other_details_are_no_hint_and_invalid_durations_are_unreadable() {
        let url = "type.googleapis.com/google.rpc.RetryInfo";
        assert_eq!(parse(&details("x/google.rpc.Help", 1, 0)), Hint::None);
        assert_eq!(parse(&details(url, 0, 0)), Hint::None);
        assert_eq!(
            parse(&details(url, i64::MAX, 0)),
            Hint::Wait(super::super::MAX_DELAY)
        );
        for (seconds, nanos) in [(-1, 0), (1, -1), (1, 1_000_000_000), (i64::MIN, 0)] {
            let hint = parse(&details(url, seconds, nanos));
            assert_eq!(hint, Hint::Unreadable(HEADER), "{seconds} s {nanos} ns");
        }
        assert_eq!(parse(b"not base64!"), Hint::Unreadable(HEADER));
        assert_eq!(parse(&[b'A'; MAX_LEN + 1]), Hint::Unreadable(HEADER));
    }
}
