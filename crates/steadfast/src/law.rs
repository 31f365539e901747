//! The law: decides whether a retry is safe, before a strategy decides whether it is wise.
//!
//! This is the one place that weighs stage, idempotency, reason and the error's
//! own word against each other. The orchestrator applies it before it asks the
//! strategy, so that no strategy, however it is written, can send a write twice
//! by accident. The strategies that ship apply it too when they are used
//! without an orchestrator.

use std::fmt;

use crate::failure::{Failure, FaultSide, Safety, Stage};
use crate::request::Request;
use crate::strategy::Cause;

/// The grounds on which a retry is lawful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grounds {
    /// The reason is always retried, without asking the strategy.
    AlwaysRetry,
    /// Nothing was sent.
    NothingSent,
    /// The request is idempotent.
    Idempotent,
    /// The peer's response means that nothing was applied.
    ReasonAllows,
}

/// Returns the grounds on which a retry is lawful, or the cause why it is not.
///
/// Law 1: `NotSent` is safe for all requests, `InFlight` and `Inconclusive` for idempotent
/// requests only, `Responded` if the reason says so. A reason that is never retried, and
/// an error whose safety is "no", take precedence ([D5](crate::decisions#d5), [D34](crate::decisions#d34)).
pub fn lawful(request: &Request<'_>, failure: &Failure) -> Result<Grounds, Cause> {
    let reason = failure.reason;
    if reason.never_retry() || failure.safety == Safety::No {
        return Err(Cause::NotRetryable);
    }
    let idempotent = request.is_idempotent();
    match failure.stage {
        Stage::InFlight | Stage::Inconclusive if !idempotent => Err(Cause::Unsafe),
        Stage::Responded if !idempotent && !failure.proves_not_applied() => Err(Cause::Unsafe),
        Stage::NotSent | Stage::InFlight | Stage::Inconclusive | Stage::Responded
            if reason.always_retry() =>
        {
            Ok(Grounds::AlwaysRetry)
        }
        Stage::NotSent => Ok(Grounds::NothingSent),
        Stage::InFlight | Stage::Inconclusive => Ok(Grounds::Idempotent),
        Stage::Responded if idempotent => Ok(Grounds::Idempotent),
        Stage::Responded => Ok(Grounds::ReasonAllows),
    }
}

/// Applies the law for a strategy, unless an orchestrator has already done so.
pub(crate) fn lawful_unless_orchestrated(
    request: &Request<'_>,
    failure: &Failure,
) -> Result<(), Cause> {
    if request.progress.orchestrated {
        return Ok(());
    }
    lawful(request, failure).map(|_| ())
}

/// The rule of a strategy for errors whose safety is "maybe" ([D35](crate::decisions#d35)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum MaybeRule {
    /// Not retried.
    Never,
    /// Retried unless the fault is the client's.
    #[default]
    UnlessClientFault,
    /// Retried, whichever side is at fault.
    Always,
}

impl MaybeRule {
    /// Checks a lawful retry against this rule. [`lawful`] has checked the idempotency.
    pub fn allows(self, failure: &Failure) -> Result<(), Cause> {
        let maybe = match failure.safety {
            Safety::Yes => return Ok(()),
            Safety::No => return Err(Cause::NotRetryable),
            Safety::Maybe => self,
        };
        match (maybe, failure.fault) {
            (MaybeRule::Always, FaultSide::Client | FaultSide::Server | FaultSide::Other)
            | (MaybeRule::UnlessClientFault, FaultSide::Server | FaultSide::Other) => Ok(()),
            (MaybeRule::UnlessClientFault, FaultSide::Client)
            | (MaybeRule::Never, FaultSide::Client | FaultSide::Server | FaultSide::Other) => {
                Err(Cause::NotRetryable)
            }
        }
    }
}

impl fmt::Display for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grounds::AlwaysRetry => "this reason is always retried, whatever the strategy",
            Grounds::NothingSent => "nothing was sent, so nothing can have been applied",
            Grounds::Idempotent => "the request is idempotent",
            Grounds::ReasonAllows => {
                "the response means that nothing was applied, so also a request \
                 that is not idempotent may be sent again"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::reason::{OPERATION_FAILED, Reason, THROTTLED, UNKNOWN};

    static ALWAYS: Reason = Reason::new("ALWAYS").always_retried();

    fn asked(idempotent: bool, failure: Failure) -> Result<Grounds, Cause> {
        lawful(&Call::new("op").idempotent(idempotent).request(), &failure)
    }

    #[test]
    fn an_error_that_says_maybe_outweighs_a_reason_that_is_always_retried() {
        let failure = Failure::responded(&ALWAYS).with_safety(Safety::Maybe);
        assert_eq!(asked(false, failure.clone()), Err(Cause::Unsafe));
        assert_eq!(asked(true, failure), Ok(Grounds::AlwaysRetry));
        assert!(ALWAYS.allows_non_idempotent_retry());
    }

    #[test]
    fn a_request_that_was_not_sent_is_safe_to_retry() {
        for idempotent in [true, false] {
            let failure = Failure::not_sent(&OPERATION_FAILED);
            assert_eq!(asked(idempotent, failure), Ok(Grounds::NothingSent));
        }
    }

    #[test]
    fn in_flight_and_inconclusive_are_safe_for_idempotent_requests_only_whatever_the_reason() {
        for reason in [&OPERATION_FAILED, &THROTTLED, &ALWAYS] {
            for unproven in [Failure::in_flight(reason), Failure::inconclusive(reason)] {
                assert!(asked(true, unproven.clone()).is_ok());
                assert_eq!(asked(false, unproven.clone()), Err(Cause::Unsafe));
                let sure = unproven.with_safety(Safety::Yes);
                assert_eq!(asked(false, sure), Err(Cause::Unsafe));
            }
        }
    }

    #[test]
    fn an_answer_is_as_safe_as_its_reason_says() {
        assert_eq!(
            asked(false, Failure::responded(&THROTTLED)),
            Ok(Grounds::ReasonAllows)
        );
        assert_eq!(
            asked(false, Failure::responded(&OPERATION_FAILED)),
            Err(Cause::Unsafe)
        );
        assert_eq!(
            asked(true, Failure::responded(&OPERATION_FAILED)),
            Ok(Grounds::Idempotent)
        );
        assert_eq!(
            asked(false, Failure::responded(&ALWAYS)),
            Ok(Grounds::AlwaysRetry)
        );
    }

    #[test]
    fn an_answer_that_says_maybe_is_safe_for_idempotent_requests_only_whatever_its_reason() {
        let unsure = || {
            Failure::responded(&THROTTLED)
                .throttling()
                .with_safety(Safety::Maybe)
        };
        assert_eq!(asked(false, unsure()), Err(Cause::Unsafe));
        assert_eq!(asked(true, unsure()), Ok(Grounds::Idempotent));
    }

    #[test]
    fn unknown_is_never_retried_not_even_unsent_and_idempotent() {
        for failure in [
            Failure::not_sent(&UNKNOWN),
            Failure::in_flight(&UNKNOWN),
            Failure::inconclusive(&UNKNOWN),
            Failure::responded(&UNKNOWN),
        ] {
            assert_eq!(asked(true, failure), Err(Cause::NotRetryable));
        }
    }

    #[test]
    fn an_error_that_says_no_beats_everything() {
        let failure = Failure::not_sent(&ALWAYS).with_safety(Safety::No);
        assert_eq!(asked(true, failure), Err(Cause::NotRetryable));
    }

    #[test]
    fn maybe_is_retried_by_the_rule_and_by_default_unless_the_client_is_at_fault() {
        let maybe = |fault| Failure::responded(&OPERATION_FAILED).with_fault(fault);
        let normal = MaybeRule::default();
        assert!(normal.allows(&maybe(FaultSide::Server)).is_ok());
        assert!(normal.allows(&maybe(FaultSide::Other)).is_ok());
        assert!(normal.allows(&maybe(FaultSide::Client)).is_err());
        assert!(MaybeRule::Always.allows(&maybe(FaultSide::Client)).is_ok());
        assert!(MaybeRule::Never.allows(&maybe(FaultSide::Server)).is_err());
        let sure = maybe(FaultSide::Client).with_safety(Safety::Yes);
        assert!(MaybeRule::Never.allows(&sure).is_ok());
    }
}
