//! The error map as a server sends it: every attribute, and a raw map with the intervals of
//! the RFC's examples (RFC 0013, "Attributes", "Retry", "Questions").

use std::time::Duration;

use serde_json::json;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::LookupInSpec;
use steadfast_couchbase::{ClusterOptions, ErrorKind, ErrorMapDirected};
use steadfast_wire::error_map::{Attributes, ErrorDefinition};
use steadfast_wire::{Opcode, Status};

use crate::fixture::{LONG, Setup, delays, fails_with, ms, reasons, server};

/// Attributes with an effect on the operation. The others are information for the user.
const EFFECTIVE: Attributes = Attributes::RETRY_NOW
    .union(Attributes::RETRY_LATER)
    .union(Attributes::AUTO_RETRY)
    .union(Attributes::SUCCESS);

#[tokio::test]
async fn every_attribute_is_on_the_error_and_only_three_of_them_retry() {
    let server = server(1, 0).await;
    for (code, attribute) in (0xff00..).zip(Attributes::all()) {
        let definition = ErrorDefinition {
            name: "NEW".to_owned(),
            description: "newer than the client".to_owned(),
            // Two attributes each, so that a map may combine them.
            attributes: attribute | Attributes::ITEM_ONLY,
            retry: None,
        };
        server.error_map().set(code, definition);
    }
    let setup = Setup::new(server, ClusterOptions::new()).await;
    for (code, attribute) in (0xff00..).zip(Attributes::all()) {
        if EFFECTIVE.contains(attribute) {
            continue;
        }
        let status = Status::from_code(code);
        let refused = setup.server.fault(Fault::on(Opcode::Set).answer(status));
        let error = setup.users.upsert("k", &1).await.unwrap_err();
        let kv = error.context().kv().unwrap();
        let expected = Some(attribute | Attributes::ITEM_ONLY);
        assert_eq!(kv.error_map_attributes, expected, "{attribute:?}");
        let shown = error.to_json()["errorMapAttributes"].to_string();
        assert!(shown.contains("\"item-only\""), "{shown}");
        assert_eq!(refused.fired(), 1, "{attribute:?}");
    }
}

/// The members that RFC 0013 lists, one that it mentions (`floor`) and one from the future.
fn map() -> Vec<u8> {
    let code = |strategy: &str, more: serde_json::Value| {
        let mut retry = json!({"strategy": strategy, "interval": 3, "after": 20, "floor": 1});
        let more = more.as_object().unwrap().clone();
        retry.as_object_mut().unwrap().extend(more);
        json!({
            "name": "NEW", "desc": "", "attrs": ["auto-retry", "from-the-future"],
            "retry": retry,
        })
    };
    let map = json!({
        "version": 2, "revision": 7,
        "errors": {
            "fff0": code("constant", json!({})),
            "fff1": code("linear", json!({"ceil": 7})),
            "fff2": code("exponential", json!({"ceil": 20})),
            "fff3": code("constant", json!({"max-duration": 0})),
            "fff4": code("from-the-future", json!({})),
        },
    });
    map.to_string().into_bytes()
}

async fn setup() -> Setup {
    let server = server(1, 0).await;
    server.error_map().set_raw(Some(map()));
    let options = ClusterOptions::new().retry_strategy(ErrorMapDirected::default());
    Setup::new(server, options).await
}

/// The delay after `failures` responses with this code. The next response is final.
async fn last_delay(setup: &Setup, code: u16, failures: u64) -> Duration {
    let key = format!("{code:x}-{failures}");
    let set = || Fault::on(Opcode::Set).key(&key);
    let odd = setup
        .server
        .fault(set().times(failures).answer(Status::from_code(code)));
    let _last = setup.server.fault(set().answer(Status::Busy));
    let write = setup.users.upsert(&key, &1).timeout(LONG).await;
    let error = fails_with(write, ErrorKind::TemporaryFailure);
    assert_eq!(odd.fired(), failures);
    assert_eq!(reasons(&error), ["KV_ERROR_MAP_RETRY_INDICATED"]);
    *delays(&error).last().unwrap()
}

#[tokio::test]
async fn the_intervals_of_a_raw_map_are_obeyed() {
    let setup = setup().await;
    for (code, expected) in [
        (0xfff0, [20, 3, 3, 3]),
        (0xfff1, [20, 3, 6, 7]),
        (0xfff2, [20, 3, 9, 20]),
        (0xfff3, [20, 3, 3, 3]),
    ] {
        for (failures, delay) in (1..).zip(expected) {
            let found = last_delay(&setup, code, failures).await;
            assert_eq!(found, ms(delay), "{code:x} after {failures}");
        }
    }
}

#[tokio::test]
async fn another_code_starts_its_own_schedule() {
    let setup = setup().await;
    let linear = Fault::on(Opcode::Set).times(3);
    let _linear = setup.server.fault(linear.answer(Status::from_code(0xfff1)));
    assert_eq!(last_delay(&setup, 0xfff0, 1).await, ms(20));
    let linear = Fault::on(Opcode::Set).times(3);
    let _linear = setup.server.fault(linear.answer(Status::from_code(0xfff1)));
    assert_eq!(last_delay(&setup, 0xfff0, 2).await, ms(3));
}

#[tokio::test]
async fn an_unknown_retry_strategy_is_not_followed() {
    let setup = setup().await;
    let odd = Fault::on(Opcode::Set).answer(Status::from_code(0xfff4));
    let odd = setup.server.fault(odd);
    let write = setup.users.upsert("k", &1);
    let write = write.retry(ErrorMapDirected::default()).await;
    // The attribute `auto-retry` refers to that strategy, and nothing else asks for a retry.
    let error = fails_with(write, ErrorKind::Couchbase);
    assert_eq!(reasons(&error), [] as [&str; 0]);
    assert_eq!(odd.fired(), 1);
}

#[tokio::test]
async fn codes_of_subdocument_operations_are_in_the_same_map() {
    let setup = setup().await;
    setup.users.upsert("k", &json!({"a": 1})).await.unwrap();
    let odd = Fault::on(Opcode::SubdocMultiLookup).times(2);
    let odd = setup.server.fault(odd.answer(Status::from_code(0xfff0)));
    let paths = [LookupInSpec::get("a")];
    setup.users.lookup_in("k", &paths).await.unwrap();
    assert_eq!(odd.fired(), 2);
}

#[tokio::test]
async fn the_timeout_of_the_operation_ends_retries_of_the_map() {
    let setup = setup().await;
    let odd = Fault::on(Opcode::Set).answer(Status::from_code(0xfff3));
    let _odd = setup.server.fault(odd);
    let write = setup.users.upsert("k", &1).timeout(ms(150)).await;
    let error = write.unwrap_err();
    assert!(error.is_timeout(), "{error:#}");
    assert_eq!(reasons(&error)[0], "KV_ERROR_MAP_RETRY_INDICATED");
}
