//! The smaller bodies: observe, HELLO, SASL messages, metadata, compressed
//! values, error bodies.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use steadfast_wire::config::NotifiedVersion;
use steadfast_wire::extras::{DocumentMeta, GetMetaVersion};
use steadfast_wire::hello::{ClientIdentity, FeatureSet};
use steadfast_wire::observe::{ObserveKey, ObserveResult, ObserveSeqnoResponse};
use steadfast_wire::sasl::{Mechanism, OauthBearer, Plain};
use steadfast_wire::{Encode, Entries, ErrorBody, Feature, snappy};

fuzz_target!(|data: &[u8]| {
    comes_back(
        data,
        Entries::<Feature>::new(data)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .as_deref(),
    );
    comes_back(
        data,
        Entries::<ObserveKey<'_>>::new(data)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .as_deref(),
    );
    comes_back(
        data,
        Entries::<ObserveResult<'_>>::new(data)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .as_deref(),
    );
    comes_back(data, ObserveSeqnoResponse::decode(data).ok());
    comes_back(data, Plain::decode(data).ok());
    comes_back(data, OauthBearer::decode(data).ok());
    comes_back(data, NotifiedVersion::decode(data).ok());

    let _ = FeatureSet::decode(data);
    let _ = ClientIdentity::parse(data);
    let _ = Mechanism::read_list(data).count();
    let _ = DocumentMeta::decode(data);
    let _ = GetMetaVersion::decode(data);
    if let Ok(plain) = snappy::decompress(data, 1 << 20) {
        assert!(plain.len() <= 1 << 20);
    }
    if let Ok(body) = ErrorBody::parse(data) {
        assert_eq!(ErrorBody::parse(&body.to_json()), Ok(body));
    }
});

fn comes_back<T: Encode>(data: &[u8], body: Option<T>) {
    if let Some(body) = body {
        let mut out = BytesMut::new();
        body.append_to(&mut out)
            .expect("what was read can be written");
        assert_eq!(data, &out[..]);
    }
}
