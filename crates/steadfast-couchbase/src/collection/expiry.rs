//! Document expiry and its encoding.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::Result;
use crate::kv::request::KvRequest;

/// Up to this many seconds the protocol reads an expiry as a time from now, and
/// beyond as seconds since 1970.
const LONGEST_SPAN: u64 = 30 * 24 * 60 * 60;

/// The last moment that fits the protocol. The largest number has another meaning
/// for counters.
const LAST_MOMENT: u64 = u32::MAX as u64 - 1;

/// When a document expires: after a time, at a moment, or never.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use steadfast_couchbase::collection::Expiry;
///
/// let in_an_hour = Expiry::from(Duration::from_secs(3600));
/// let at_that_time = Expiry::from(SystemTime::now() + Duration::from_secs(3600));
/// assert_ne!(in_an_hour, at_that_time);
/// assert_eq!(Expiry::from(Duration::ZERO), Expiry::NEVER);
/// ```
///
/// The protocol counts in seconds. Times and moments are rounded up, so that a
/// document does not expire too early. A moment in the past expires it at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry(When);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum When {
    #[default]
    Never,
    After(Duration),
    At(SystemTime),
}

impl Expiry {
    /// Never.
    pub const NEVER: Self = Self(When::Never);

    pub(super) fn is_never(self) -> bool {
        self.0 == When::Never
    }

    /// Encodes the expiry for a request.
    #[inline]
    pub(super) fn encode(self, request: &KvRequest<'_>) -> Result<u32> {
        if self.is_never() {
            return Ok(0);
        }
        self.encode_at(steadfast_os::wall_clock())
            .map_err(|problem| request.invalid(problem))
    }

    fn encode_at(self, now: SystemTime) -> Result<u32, &'static str> {
        let moment = match self.0 {
            When::Never => return Ok(0),
            When::After(span) => {
                let seconds = whole_seconds(span);
                if seconds < LONGEST_SPAN {
                    // Smaller than thirty days, so it fits.
                    return Ok(seconds as u32);
                }
                since_1970(now).saturating_add(seconds)
            }
            When::At(moment) => since_1970(moment),
        };
        match u32::try_from(moment) {
            Ok(_) if moment <= LONGEST_SPAN => {
                Err("an expiry at a moment before February 1970 would be taken for a span of time")
            }
            Ok(encoded) if moment <= LAST_MOMENT => Ok(encoded),
            _ => Err("an expiry after the year 2105 does not fit the protocol"),
        }
    }
}

impl From<Duration> for Expiry {
    /// After this time; zero is never.
    fn from(span: Duration) -> Self {
        if span.is_zero() {
            Self::NEVER
        } else {
            Self(When::After(span))
        }
    }
}

impl From<SystemTime> for Expiry {
    fn from(moment: SystemTime) -> Self {
        Self(When::At(moment))
    }
}

/// A span in seconds, rounded up.
pub(super) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs()
        .saturating_add(u64::from(span.subsec_nanos() > 0))
}

/// A moment in seconds, rounded up.
fn since_1970(moment: SystemTime) -> u64 {
    whole_seconds(moment.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000)
    }

    fn after(span: Duration) -> Result<u32, &'static str> {
        Expiry::from(span).encode_at(now())
    }

    #[test]
    fn a_span_is_never_taken_for_never_nor_for_a_moment() {
        assert_eq!(after(Duration::ZERO), Ok(0));
        assert_eq!(after(Duration::from_millis(3)), Ok(1));
        assert_eq!(after(Duration::from_secs(60)), Ok(60));
        assert_eq!(after(Duration::from_millis(60_001)), Ok(61));
        assert_eq!(
            after(Duration::from_secs(LONGEST_SPAN - 1)),
            Ok(LONGEST_SPAN as u32 - 1)
        );
        assert_eq!(
            after(Duration::from_secs(LONGEST_SPAN)),
            Ok(1_700_000_000 + LONGEST_SPAN as u32)
        );
    }

    #[test]
    fn expiries_are_rounded_up() {
        let half = Duration::from_millis(500);
        let at = Expiry::from(now() + half).encode_at(now());
        assert_eq!(at, Ok(1_700_000_001));
        let span = Duration::from_secs(LONGEST_SPAN);
        let after = Expiry::from(span).encode_at(now() + half);
        assert_eq!(after, Ok(1_700_000_001 + LONGEST_SPAN as u32));
    }

    #[test]
    fn a_moment_is_never_taken_for_a_span() {
        let at = |seconds| Expiry::from(UNIX_EPOCH + Duration::from_secs(seconds)).encode_at(now());
        assert_eq!(at(1_800_000_000), Ok(1_800_000_000));
        assert_eq!(at(LONGEST_SPAN + 1), Ok(LONGEST_SPAN as u32 + 1));
        assert!(at(LONGEST_SPAN).is_err());
        assert!(at(0).is_err());
        assert!(
            Expiry::from(UNIX_EPOCH - Duration::from_secs(9))
                .encode_at(now())
                .is_err()
        );
    }

    #[test]
    fn an_expiry_that_does_not_fit_is_rejected() {
        assert!(after(Duration::MAX).is_err());
        let last = Duration::from_secs(LAST_MOMENT - 1_700_000_000);
        assert_eq!(after(last), Ok(u32::MAX - 1));
        assert!(after(last + Duration::from_secs(1)).is_err());
    }
}
