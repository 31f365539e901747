use super::*;
use crate::failure::Failure;
use crate::reason::{NOT_AVAILABLE, OPERATION_FAILED, SOCKET_CLOSED_WHILE_IN_FLIGHT};
use crate::strategy::BestEffort;
use crate::testing::*;
use crate::world::{VirtualWorld, World};

const TIMEOUT: Duration = Duration::from_secs(1);

#[test]
fn a_request_says_what_its_call_says() {
    let call = Call::new("watch").service("kv").idempotent(true);
    let call = call.long_polling(true).context(7_u8);
    let request = call.request();
    assert_eq!((request.operation(), request.service()), ("watch", "kv"));
    assert!(request.is_idempotent() && request.is_long_polling());
    assert_eq!(request.context::<u8>(), Some(&7));
    assert_eq!(request.context::<u16>(), None);
    let plain = Call::new("upsert");
    let plain = plain.request();
    assert!(!plain.is_idempotent() && !plain.is_long_polling());
    assert_eq!((plain.service(), plain.context::<u8>()), ("", None));
}

#[test]
fn the_remaining_time_ends_at_zero_and_is_none_without_a_deadline() {
    let world = VirtualWorld::new();
    let start = world.now();
    let timed = begun(BestEffort::default(), get().timeout(TIMEOUT), &world);
    let request = timed.request();
    assert_eq!(request.deadline(), Some(start + TIMEOUT));
    assert_eq!(request.remaining(start), Some(TIMEOUT));
    assert_eq!(
        request.remaining(start + TIMEOUT / 4),
        Some(TIMEOUT * 3 / 4)
    );
    assert_eq!(request.remaining(start + 2 * TIMEOUT), Some(Duration::ZERO));

    let endless = begun(BestEffort::default(), get(), &world);
    let request = endless.request();
    assert_eq!((request.deadline(), request.remaining(start)), (None, None));
}

#[test]
fn a_request_counts_its_attempts_and_retries() {
    let world = VirtualWorld::new();
    let mut driven = begun(BestEffort::default(), get(), &world);
    let request = driven.request();
    assert_eq!(
        (request.attempts(), request.retries(), request.id()),
        (1, 0, None)
    );
    assert_eq!((request.started(), request.reasons().len()), (None, 0));
    assert_eq!(request.history().records().count(), 0);

    let failed_at = world.now();
    assert!(fails(
        &mut driven,
        Failure::not_sent(&NOT_AVAILABLE),
        &world
    ));
    assert!(fails(
        &mut driven,
        Failure::not_sent(&NOT_AVAILABLE),
        &world
    ));
    let request = driven.request();
    assert_eq!((request.attempts(), request.retries()), (3, 2));
    assert_eq!(request.reasons().times(&NOT_AVAILABLE), 2);
    assert_eq!(request.history().records().count(), 2);
    assert_eq!(request.started(), Some(failed_at));
    let other = second_id(&world);
    assert!(request.id().is_some() && request.id() != other, "{other:?}");
    let text = format!("{request:?}");
    assert!(
        text.contains("attempts: 3") && text.contains("retries: 2"),
        "{text}"
    );
}

/// The number of another request that failed.
fn second_id(world: &VirtualWorld) -> Option<u64> {
    let mut other = begun(BestEffort::default(), get(), world);
    fails(&mut other, Failure::not_sent(&NOT_AVAILABLE), world);
    other.request().id()
}

#[test]
fn only_a_write_that_may_have_left_is_ambiguous() {
    let world = VirtualWorld::new();
    let after = |call: Call, failure: Option<&Failure>| {
        let mut driven = begun(BestEffort::default(), call, &world);
        if let Some(failure) = failure {
            fails(&mut driven, failure.clone(), &world);
        }
        let request = driven.request();
        (request.may_have_been_applied(), request.is_ambiguous())
    };
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let unsent = Failure::not_sent(&OPERATION_FAILED);
    let write = || Call::new("upsert");
    assert_eq!(after(write(), None), (false, false));
    assert_eq!(after(write(), Some(&unsent)), (false, false));
    assert_eq!(after(write(), Some(&cut)), (true, true));
    assert_eq!(after(get(), Some(&cut)), (true, false));
}
