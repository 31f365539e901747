//! Decisions for every operation, every end of an attempt, and every strategy.
//!
//! The [`tables`] contain what the documents prescribe, and were written without
//! looking at the code. The decisions come from the real [`meaning`] of a response
//! and the real orchestrator.

mod tables;

use std::time::Duration;

use steadfast::FailFast;
use steadfast::report::Certainty;
use steadfast::{BestEffort, Call, Failure, Orchestrator, RetryStrategy, Step, VirtualWorld};
use steadfast_wire::error_map::{ErrorMap, MapVersion};
use steadfast_wire::{Decoded, FrameBuilder, FrameDecoder, Opcode, Status};
use tables::{Fate, Fates};

use super::meaning::{Disposition, failed_path, meaning};
use super::operation::KvOperation;
use crate::error::ErrorKind;
use crate::fast_fail::{Raised, fast_fail_on_terminal_errors};
use crate::reason;

fn strategies() -> [Box<dyn RetryStrategy>; 3] {
    [
        Box::new(BestEffort::default()),
        Box::new(fast_fail_on_terminal_errors()),
        Box::new(FailFast::new()),
    ]
}

/// What becomes of a request whose attempts all fail so, as far as the third.
fn fate(operation: KvOperation, failure: &Failure, kind: ErrorKind, which: usize) -> Fate {
    let [best_effort, default, strict] = strategies();
    let strategy = [best_effort, default, strict]
        .into_iter()
        .nth(which)
        .unwrap();
    let call = Call::new(operation.name()).idempotent(operation.is_idempotent());
    let world = VirtualWorld::new();
    let mut request = Orchestrator::new(strategy, call);
    assert!(matches!(request.begin(&world), Step::Attempt));
    let mut waits = Vec::new();
    for _ in 0..3 {
        match request.handle_failure(failure.clone(), &world) {
            Step::Wait { delay, .. } => {
                waits.push(delay);
                world.advance(delay);
                assert!(matches!(request.handle_waited(&world), Step::Attempt));
            }
            Step::GiveUp(_) => {
                assert!(waits.is_empty(), "given up after {waits:?}");
                let report = request.take_report();
                let raised = report.refusal().and_then(Raised::kind_of);
                return Fate::Fails(raised.unwrap_or(kind).name());
            }
            step => panic!("{step:?}"),
        }
    }
    let reasons: Vec<_> = request.request().reasons().iter().collect();
    assert_eq!(reasons, [failure.reason], "the set holds it once");
    let in_ms = |waits: [u64; 3]| waits.map(Duration::from_millis).to_vec();
    if waits == in_ms([1, 2, 4]) {
        Fate::Backoff
    } else if waits == in_ms([1, 10, 50]) {
        Fate::Controlled
    } else {
        panic!("{operation:?} waited {waits:?}")
    }
}

fn fates(operation: KvOperation, failure: &Failure, kind: ErrorKind) -> Fates {
    [0, 1, 2].map(|which| fate(operation, failure, kind, which))
}

fn is_idempotent(operation: KvOperation) -> bool {
    let mut table = tables::OPERATIONS.iter();
    let row = table.find(|(name, _)| *name == operation.name());
    row.expect("every operation is in the table").1
}

/// Checks what an answer comes to: the reason and the fates that are prescribed,
/// or what it is called if it never comes up for a retry.
fn check(
    operation: KvOperation,
    status: Status,
    map: Option<&ErrorMap>,
    prescribed: Result<(&str, Fates), &str>,
) {
    let disposition = meaning(operation, false, status, map).disposition;
    let decided = match (disposition, disposition.failure()) {
        (Disposition::Done, _) => Err("Done"),
        (Disposition::FailedAtPath, _) => Err("AtPath"),
        (Disposition::Final(kind), _) => Err(kind.name()),
        (_, None) => panic!("{disposition:?} is neither final nor a retry"),
        (_, Some((failure, kind))) => {
            let fates = fates(operation, &failure, kind);
            Ok((failure.reason.name(), fates))
        }
    };
    assert_eq!(decided, prescribed, "{operation:?} answered {status:?}");
}

/// What is prescribed for an answer, if the map is one that servers ship or none.
fn prescription(
    operation: KvOperation,
    code: u16,
    has_map: bool,
) -> Result<(&'static str, Fates), &'static str> {
    let name = operation.name();
    if code == 0 {
        return Err("Done");
    }
    let mut excluded = tables::EXCLUDED.iter();
    if let Some((.., kind)) = excluded.find(|(of, status, _)| (*of, *status) == (name, code)) {
        return Err(kind);
    }
    if let Some((_, reason, fates)) = tables::RETRY_LIST.iter().find(|(it, ..)| *it == code) {
        return Ok((reason, *fates));
    }
    let mut to_some = tables::KNOWN_TO_SOME.iter();
    if let Some((.., what)) = to_some.find(|(it, some, _)| *it == code && some.contains(&name)) {
        return Err(what);
    }
    if let Some((_, kind)) = tables::KNOWN.iter().find(|(it, _)| *it == code) {
        return Err(kind);
    }
    if has_map && tables::RETRIED_BY_SHIPPED_MAP.contains(&code) {
        return Ok(("KV_ERROR_MAP_RETRY_INDICATED", tables::MAP_SAYS_RETRY));
    }
    if has_map && tables::SUCCESS_BY_SHIPPED_MAP.contains(&code) {
        return Err("Done");
    }
    Err("Couchbase")
}

#[test]
fn the_table_has_every_operation_and_no_other() {
    let ours: Vec<_> = KvOperation::ALL.iter().map(|it| it.name()).collect();
    let mut table: Vec<_> = tables::OPERATIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(table.len(), ours.len());
    table.retain(|name| !ours.contains(name));
    assert_eq!(table, [""; 0]);
    for operation in KvOperation::ALL {
        let prescribed = is_idempotent(*operation);
        assert_eq!(operation.is_idempotent(), prescribed, "{operation:?}");
    }
}

#[test]
fn every_answer_to_every_operation_is_decided_as_prescribed() {
    let shipped = ErrorMap::shipped(MapVersion::V2);
    for operation in KvOperation::ALL {
        // All that have a name, and many that have none.
        for code in (0..0x200).chain(0xff00..=0xffff) {
            let status = Status::from_code(code);
            check(
                *operation,
                status,
                None,
                prescription(*operation, code, false),
            );
            let prescribed = prescription(*operation, code, true);
            check(*operation, status, Some(&shipped), prescribed);
        }
    }
}

#[test]
fn an_unknown_answer_is_decided_by_the_attributes_that_the_map_gives_it() {
    for (attributes, retried) in tables::BY_ATTRIBUTES {
        let json = serde_json::json!({"version": 2, "revision": 1, "errors": {
            "fff0": {"name": "N", "desc": "D", "attrs": attributes}
        }});
        let map = ErrorMap::parse(json.to_string().as_bytes()).unwrap();
        let prescribed = if *retried {
            Ok(("KV_ERROR_MAP_RETRY_INDICATED", tables::MAP_SAYS_RETRY))
        } else {
            Err("Couchbase")
        };
        for operation in KvOperation::ALL {
            check(
                *operation,
                Status::from_code(0xfff0),
                Some(&map),
                prescribed,
            );
            // The map has no say about what the client knows: a map that wants
            // everything retried, or nothing, changes nothing.
            let everything: ErrorMap = {
                let mut map = map.clone();
                let definition = map.errors[&0xfff0].clone();
                for code in 0..0x200 {
                    map.errors.insert(code, definition.clone());
                }
                map
            };
            let known = tables::KNOWN.iter().map(|(code, _)| *code);
            let listed = tables::RETRY_LIST.iter().map(|(code, ..)| *code);
            for code in known.chain(listed) {
                let prescribed = prescription(*operation, code, false);
                check(
                    *operation,
                    Status::from_code(code),
                    Some(&everything),
                    prescribed,
                );
            }
        }
    }
}

#[test]
fn an_attempt_of_which_nothing_was_sent_is_decided_as_prescribed() {
    for (name, prescribed) in tables::NOT_SENT {
        let reason = reason::ALL.into_iter().find(|it| it.name() == *name);
        let failure = Failure::not_sent(reason.unwrap());
        for operation in KvOperation::ALL {
            let decided = fates(*operation, &failure, ErrorKind::ServiceNotAvailable);
            assert_eq!(&decided, prescribed, "{operation:?} {name}");
        }
    }
}

#[test]
fn an_attempt_in_flight_is_decided_by_whether_the_operation_is_idempotent() {
    let failure = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
    for operation in KvOperation::ALL {
        let prescribed = if is_idempotent(*operation) {
            tables::IN_FLIGHT_IDEMPOTENT
        } else {
            tables::IN_FLIGHT_ONCE
        };
        let decided = fates(*operation, &failure, ErrorKind::RequestCanceled);
        assert_eq!(decided, prescribed, "{operation:?}");
    }
}

#[test]
fn only_an_attempt_in_flight_makes_a_refusal_ambiguous() {
    let answered = Failure::responded(&reason::KV_TEMPORARY_FAILURE);
    let unsent = Failure::not_sent(&reason::SOCKET_NOT_AVAILABLE);
    let in_flight = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
    for operation in KvOperation::ALL {
        for (failure, may_be_applied) in [(&answered, false), (&unsent, false), (&in_flight, true)]
        {
            let call = Call::new(operation.name()).idempotent(operation.is_idempotent());
            let world = VirtualWorld::new();
            let mut request = Orchestrator::new(FailFast::new(), call);
            let _ = request.begin(&world);
            let Step::GiveUp(verdict) = request.handle_failure(failure.clone(), &world) else {
                panic!("{operation:?} {failure:?}")
            };
            let prescribed = may_be_applied && !is_idempotent(*operation);
            let certainty = if prescribed {
                Certainty::Ambiguous
            } else {
                Certainty::Unambiguous
            };
            assert_eq!(
                verdict,
                steadfast::Verdict::Failed(certainty),
                "{operation:?}"
            );
        }
    }
}

#[test]
fn a_key_that_exists_is_a_mismatch_where_a_version_was_asked_for() {
    for operation in KvOperation::ALL {
        for (with_cas, kind) in [
            (true, ErrorKind::CasMismatch),
            (false, ErrorKind::DocumentExists),
        ] {
            let meaning = meaning(*operation, with_cas, Status::KeyExists, None);
            assert_eq!(meaning.disposition, Disposition::Final(kind));
        }
    }
}

#[test]
fn some_answers_end_their_connection_and_some_ask_for_a_config() {
    let closes = [0x08, 0x1f, 0x25, 0x84];
    for operation in KvOperation::ALL {
        for code in 0..0x200 {
            let meaning = meaning(*operation, false, Status::from_code(code), None);
            let prescribed = closes.contains(&code);
            assert_eq!(meaning.closes_connection, prescribed, "{code:#x}");
            assert_eq!(meaning.fetches_config, code == 0x07, "{code:#x}");
        }
    }
    for (attribute, closes, asks) in [
        ("conn-state-invalidated", true, false),
        ("special-handling", true, false),
        ("fetch-config", false, true),
        ("auth", false, false),
    ] {
        let json = serde_json::json!({"version": 2, "revision": 1, "errors": {
            "fff0": {"name": "N", "desc": "D", "attrs": [attribute, "retry-now"]}
        }});
        let map = ErrorMap::parse(json.to_string().as_bytes()).unwrap();
        let status = Status::from_code(0xfff0);
        let meaning = meaning(KvOperation::Upsert, false, status, Some(&map));
        assert_eq!(meaning.closes_connection, closes, "{attribute}");
        assert_eq!(meaning.fetches_config, asks, "{attribute}");
    }
}

#[test]
fn only_a_temporary_failure_says_that_the_node_is_overloaded() {
    for code in 0..0x200 {
        let status = Status::from_code(code);
        let disposition = meaning(KvOperation::Upsert, false, status, None).disposition;
        if let Some((failure, _)) = disposition.failure() {
            assert_eq!(
                failure.throttling,
                status == Status::TemporaryFailure,
                "{status}"
            );
        }
    }
}

#[test]
fn the_response_to_a_mutation_names_the_path_that_failed() {
    let path = |status, value: &'static [u8]| {
        let mut bytes = bytes::BytesMut::new();
        let response = FrameBuilder::response(Opcode::SubdocMultiMutation, status);
        response.value(value).encode(&mut bytes).unwrap();
        let Ok(Decoded::Frame(frame)) = FrameDecoder::from_server().decode(&mut bytes) else {
            panic!("not a frame");
        };
        failed_path(&frame)
    };
    // The index of the path, and its status.
    let failed = path(Status::SubdocMultiPathFailure, &[2, 0x00, 0xc0]);
    assert_eq!(failed, Some((2, Status::SubdocPathNotFound)));
    assert_eq!(path(Status::SubdocMultiPathFailure, &[2]), None);
    assert_eq!(path(Status::Success, &[]), None);
}
