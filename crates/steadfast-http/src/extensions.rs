//! Marks that the integrations leave in the extensions of requests and responses.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use steadfast::Attempt;
use steadfast::report::Report;

/// Marks a request that a layer sends again, in its extensions.
///
/// An inner layer that finds the mark makes one attempt only. Otherwise two
/// layers of three attempts would make nine. A first attempt has no mark: its response or
/// its error says whether an inner layer retried it. Other code can read from a mark how
/// much time is left:
///
/// ```
/// use steadfast_http::AttemptMark;
///
/// fn add_time_left(request: &mut http::Request<()>) {
///     let left = request.extensions().get::<AttemptMark>().and_then(AttemptMark::remaining);
///     if let Some(left) = left {
///         let millis = http::HeaderValue::from(left.as_millis() as u64);
///         request.headers_mut().insert("x-time-left-ms", millis);
///     }
/// }
/// # let mut request = http::Request::new(());
/// # add_time_left(&mut request);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttemptMark {
    number: u32,
    remaining: Option<Duration>,
}

impl AttemptMark {
    /// Returns the number of the attempt; the first is 1.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the time that the attempt had when it began, if there is a limit.
    pub const fn remaining(&self) -> Option<Duration> {
        self.remaining
    }
}

/// Marks the requests of an attempt of your own. If the first one is marked too, an inner
/// layer leaves all retries to your code:
///
/// ```
/// # use steadfast::{BestEffort, StrategyExt, retry};
/// # use steadfast_http::AttemptMark;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let strategy = BestEffort::default().max_attempts(2)?;
/// # let send = async |_: http::Request<()>| Ok::<_, std::io::Error>(());
/// retry(&strategy)
///     .run(|attempt| {
///         let mut request = http::Request::new(());
///         request.extensions_mut().insert(AttemptMark::from(attempt));
///         send(request)
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
impl From<Attempt> for AttemptMark {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number(),
            remaining: attempt.remaining(),
        }
    }
}

/// The number of attempts, in the extensions of a response that took more than
/// one. An outer layer does not send such a request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptCount(pub u32);

/// The report of a request, in the extensions of a response that is a failure.
#[derive(Clone)]
pub struct ResponseReport(pub(crate) Arc<Report>);

impl Deref for ResponseReport {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.0
    }
}

impl fmt::Debug for ResponseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
