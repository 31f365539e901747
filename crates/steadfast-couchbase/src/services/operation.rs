//! An operation whose answer is rows, attempt by attempt.

use std::time::{Duration, Instant};

use hyper::header::{HeaderMap, RETRY_AFTER};
use steadfast::{Call, Failure};

use super::answer::{Judged, Refused, is_success};
use super::common::Common;
use super::http::{Answer, Exchange, Outgoing};
use super::rows::{Limits, Members, Next, Rows, Source, Splitter, Trouble};
use crate::drive::{Attempts, Tried, drive};
use crate::error::{Error, Place};
use crate::observe::Finished;
use crate::world::now;

/// The most that is read of an answer whose status is no success.
const MAX_REFUSAL: usize = 1024 * 1024;

/// The longest time that a peer can ask to be left alone.
const MAX_HINT: Duration = Duration::from_secs(3600);

/// What is particular to a service.
pub(crate) trait RowService: Send + Sync {
    /// What it says about its rows at their end.
    type Meta: Send;

    /// The name of the member that has the rows.
    const ROWS: &'static str;

    /// The request of the next attempt, which has so much time.
    fn outgoing(&mut self, remaining: Option<Duration>) -> Outgoing;

    /// Whether the answer is an error, and which.
    fn judge(answer: &Judged<'_>) -> Option<Refused>;

    /// What is said about the rows.
    fn meta(members: &Members) -> Self::Meta;

    /// The attempt was answered, and not by an error.
    fn begun(&mut self, _: &Members) {}

    /// The attempt was answered by an error.
    fn refused(&mut self, _: &Refused) {}
}

/// An operation of a service.
pub(crate) struct Operation<S> {
    service: S,
    exchange: Exchange,
    name: &'static str,
    idempotent: bool,
    limits: Limits,
    place: Place,
}

/// Runs an operation to its first row, or to its end if there is none. Dropping
/// the future abandons the attempt under way.
pub(crate) async fn run<S: RowService>(
    service: S,
    exchange: Exchange,
    common: Common,
    idempotent: bool,
    place: Place,
) -> Result<Rows<S::Meta>, Error> {
    let (call, strategy) = common.start(&**exchange.host());
    let call: Call = call.idempotent(idempotent);
    let mut operation = Operation {
        service,
        exchange,
        name: call.request().operation(),
        idempotent,
        limits: common.limits,
        place,
    };
    drive(call, &*strategy, &mut operation).await
}

impl<S: RowService> Operation<S> {
    async fn try_once(&mut self, deadline: Option<Instant>) -> Result<Rows<S::Meta>, Tried> {
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(now()));
        let outgoing = self.service.outgoing(remaining);
        let answer = self.exchange.send(outgoing, deadline).await?;
        if !is_success(answer.status) {
            return Err(self.no_success(answer).await);
        }
        let mut source = Source {
            body: answer.body,
            splitter: Splitter::new(S::ROWS, self.limits),
            status: answer.status,
            judge: S::judge,
            meta: S::meta,
            operation: self.name,
            idempotent: self.idempotent,
            place: self.place.clone(),
            context: self.exchange.context.clone(),
        };
        match source.next().await {
            Ok(Next::Row(row)) => {
                // Errors may also stand before the rows.
                if let Some(refused) = source.judged() {
                    return Err(self.refuse(refused, &answer.headers));
                }
                self.service.begun(source.splitter.members());
                Ok(Rows::begun(row, source))
            }
            Ok(Next::End(meta)) => {
                self.service.begun(source.splitter.members());
                Ok(Rows::none(meta))
            }
            Err(Trouble::Refused(refused)) => Err(self.refuse(refused, &answer.headers)),
            Err(Trouble::Malformed(malformed)) => Err(self.exchange.senseless(malformed).into()),
            Err(Trouble::Unread(unread)) => Err(self.exchange.unread(&unread).into()),
        }
    }

    /// An answer without rows, which is read as a whole.
    async fn no_success(&mut self, mut answer: Answer) -> Tried {
        let body = match answer.body.whole(MAX_REFUSAL).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => {
                return self.exchange.senseless("an error without an end").into();
            }
            Err(unread) => return self.exchange.unread(&unread).into(),
        };
        let mut splitter = Splitter::new(S::ROWS, self.limits);
        splitter.push(body.clone());
        while let Ok(Some(_)) = splitter.next_row() {}
        let text = String::from_utf8_lossy(&body);
        let judged = Judged {
            status: answer.status,
            members: splitter.members(),
            text: Some(&text),
            idempotent: self.idempotent,
        };
        let refused = S::judge(&judged).unwrap_or_else(|| judged.by_status());
        self.refuse(refused, &answer.headers)
    }

    fn refuse(&mut self, refused: Refused, headers: &HeaderMap) -> Tried {
        refused.tell(&mut self.exchange.context);
        self.service.refused(&refused);
        let Some(reason) = refused.retry else {
            return Tried::Final(refused.kind);
        };
        let status = self.exchange.context.status.unwrap_or_default();
        let note = match refused.code {
            Some(code) => format!("answered {status}, code {code}"),
            None => format!("answered {status}"),
        };
        let mut failure = Failure::responded(reason).with_note(note);
        if status == 429 {
            failure = failure.throttling();
        }
        if let Some(hint) = hint(headers) {
            failure = failure.with_hint(hint);
        }
        Tried::Failed(self.exchange.at_peer(failure), refused.kind)
    }
}

impl<S: RowService> Attempts for Operation<S> {
    type Output = Rows<S::Meta>;

    async fn attempt(&mut self, deadline: Option<Instant>) -> Result<Self::Output, Tried> {
        self.try_once(deadline).await
    }

    async fn woken(&mut self, failure: &Failure) {
        self.exchange.woken(failure).await
    }

    async fn closed(&self) {
        self.exchange.closed().await
    }

    fn explain(&mut self, error: Error) -> Error {
        error
            .with_place(self.place.clone())
            .with_http(self.exchange.context.clone())
    }

    fn finished(&mut self, finished: &Finished) {
        self.exchange.finished(self.name, &self.place, finished);
    }
}

/// How long the peer asks to be left alone, in the seconds of `Retry-After`. A
/// date needs two clocks that agree, and is not looked at.
fn hint(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(MAX_HINT))
}
