//! What a rule says: when, and what then.

use std::time::Duration;

use bytes::Bytes;
use steadfast_wire::{Opcode, Status};

use super::rules::Event;
use crate::service::Service;
use crate::topology::NodeId;

/// A rule with its verdict. Built from [`When`].
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub(super) when: When,
    pub(super) verdict: Verdict,
}

impl Fault {
    /// Requests with this opcode.
    pub fn on(opcode: Opcode) -> When {
        When {
            service: Some(Service::Kv),
            opcode: Some(opcode),
            ..When::default()
        }
    }

    /// Requests to this service.
    pub fn on_service(service: Service) -> When {
        When {
            service: Some(service),
            ..When::default()
        }
    }

    /// Every request.
    pub fn on_anything() -> When {
        When::default()
    }

    /// What happens to the request.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

/// The condition of a rule. Every part that is set must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct When {
    pub(super) node: Option<NodeId>,
    pub(super) service: Option<Service>,
    pub(super) opcode: Option<Opcode>,
    pub(super) key: Option<KeyMatch>,
    pub(super) bucket: Option<String>,
    pub(super) skip: u64,
    pub(super) times: Option<u64>,
    pub(super) probability: Option<f64>,
    pub(super) seed: Option<u64>,
}

/// Which keys a rule is about. For a service that speaks HTTP, the key is the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyMatch {
    /// This one.
    Exact(Bytes),
    /// Those that start so.
    Prefix(Bytes),
}

/// What happens to a request that a rule matches.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing, and no later rule is asked.
    Pass,
    /// It waits before it is applied.
    Delay(Duration),
    /// It is applied at once, and its answer waits.
    DelayAnswer(Duration),
    /// It is not applied, and answered so.
    Answer(Answer),
    /// It waits, unapplied, until the rule goes away; then it is served as usual.
    Hold,
    /// The connection is reset as if the request had never been read; answers that were not sent
    /// yet are lost with it.
    CutBeforeReading,
    /// The connection is closed after reading the request and before applying it.
    CutBeforeApplying,
    /// The request is applied, and the connection is closed without an answer.
    CutAfterApplying,
    /// The request is applied, half of its answer is sent, and the connection is closed.
    CutMidResponse,
    /// The request is applied, and its answer damaged.
    Garble(Garble),
    /// From here on the connection is a black hole: it reads, applies nothing and never answers.
    Silent,
}

/// An answer that a rule gives in the server's stead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status: of the protocol for key-value, of HTTP for the other services.
    pub status: u16,
    /// The body to send, if any.
    pub body: Option<Bytes>,
    /// Whether the body is marked as JSON, which makes it an extended error body for key-value.
    pub json: bool,
}

/// Which part of an answer is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Garble {
    /// The first byte, so that it is no frame at all.
    #[default]
    Magic,
    /// The opaque, so that it answers a request that nobody made.
    Opaque,
    /// The length, so that the next answer is read as part of this one.
    Length,
    /// The body, all bits flipped.
    Body,
}

impl When {
    /// On this node only.
    #[must_use]
    pub fn node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// In this bucket only.
    #[must_use]
    pub fn bucket(mut self, bucket: impl Into<String>) -> Self {
        self.bucket = Some(bucket.into());
        self
    }

    /// For this key only, or this path.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(KeyMatch::Exact(Bytes::copy_from_slice(key.as_ref())));
        self
    }

    /// For keys that start so, or paths.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key = Some(KeyMatch::Prefix(Bytes::copy_from_slice(prefix.as_ref())));
        self
    }

    /// Not for the first so many requests that match otherwise.
    #[must_use]
    pub fn skip(mut self, first: u64) -> Self {
        self.skip = first;
        self
    }

    /// So many times, and then no more.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// With this probability, decided by the rule's seed.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability.clamp(0.0, 1.0));
        self
    }

    /// The seed that decides a probability. Without one the cluster's own is used.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Let it pass, whatever later rules say.
    pub fn pass(self) -> Fault {
        self.then(Verdict::Pass)
    }

    /// Make it wait before it is applied.
    pub fn delay(self, by: Duration) -> Fault {
        self.then(Verdict::Delay(by))
    }

    /// Apply it, and make its answer wait.
    pub fn delay_answer(self, by: Duration) -> Fault {
        self.then(Verdict::DelayAnswer(by))
    }

    /// Answer with this status and do not apply it.
    pub fn answer(self, status: Status) -> Fault {
        self.then(Verdict::Answer(Answer {
            status: status.code(),
            body: None,
            json: false,
        }))
    }

    /// Answer with this status and an extended error body.
    pub fn answer_with_context(self, status: Status, context: &str, reference: &str) -> Fault {
        let body = serde_json::json!({"error": {"context": context, "ref": reference}});
        let body = Some(Bytes::from(body.to_string()));
        self.then(Verdict::Answer(Answer {
            status: status.code(),
            body,
            json: true,
        }))
    }

    /// Answer an HTTP request with this status and body.
    pub fn answer_http(self, status: u16, body: impl Into<Bytes>) -> Fault {
        self.then(Verdict::Answer(Answer {
            status,
            body: Some(body.into()),
            json: true,
        }))
    }

    /// Keep it waiting until the rule goes away.
    pub fn hold(self) -> Fault {
        self.then(Verdict::Hold)
    }

    /// Reset the connection as if the request had never been read.
    pub fn cut_before_reading(self) -> Fault {
        self.then(Verdict::CutBeforeReading)
    }

    /// Close the connection after reading and before applying.
    pub fn cut_before_applying(self) -> Fault {
        self.then(Verdict::CutBeforeApplying)
    }

    /// Apply it and close the connection without an answer.
    pub fn cut_after_applying(self) -> Fault {
        self.then(Verdict::CutAfterApplying)
    }

    /// Apply it, send half of the answer and close the connection.
    pub fn cut_mid_response(self) -> Fault {
        self.then(Verdict::CutMidResponse)
    }

    /// Apply it and damage the answer.
    pub fn garble(self, garble: Garble) -> Fault {
        self.then(Verdict::Garble(garble))
    }

    /// Never answer anything on that connection again.
    pub fn silent(self) -> Fault {
        self.then(Verdict::Silent)
    }

    /// With this verdict.
    pub fn then(self, verdict: Verdict) -> Fault {
        Fault {
            when: self,
            verdict,
        }
    }

    /// Whether everything but count and chance holds.
    pub(super) fn matches(&self, event: &Event<'_>) -> bool {
        self.node.is_none_or(|node| node == event.node)
            && self.service.is_none_or(|service| service == event.service)
            && self
                .opcode
                .is_none_or(|opcode| Some(opcode) == event.opcode)
            && self
                .bucket
                .as_deref()
                .is_none_or(|bucket| Some(bucket) == event.bucket)
            && match &self.key {
                None => true,
                Some(KeyMatch::Exact(key)) => key == event.key,
                Some(KeyMatch::Prefix(prefix)) => event.key.starts_with(prefix),
            }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: ", self.when)?;
        match (&self.verdict, self.when.service) {
            (Verdict::Answer(answer), Some(service)) if service != Service::Kv => {
                write!(formatter, "answer HTTP {}", answer.status)
            }
            (verdict, _) => verdict.fmt(formatter),
        }
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.opcode, self.service) {
            (Some(opcode), _) => match opcode.name() {
                Some(name) => formatter.write_str(name)?,
                None => write!(formatter, "opcode {:#04x}", opcode.code())?,
            },
            (None, Some(service)) => write!(formatter, "any {service} request")?,
            (None, None) => formatter.write_str("any request")?,
        }
        match &self.key {
            Some(KeyMatch::Exact(key)) => {
                write!(formatter, " of key {:?}", String::from_utf8_lossy(key))?;
            }
            Some(KeyMatch::Prefix(prefix)) => {
                write!(
                    formatter,
                    " of keys from {:?}",
                    String::from_utf8_lossy(prefix)
                )?;
            }
            None => {}
        }
        if let Some(bucket) = &self.bucket {
            write!(formatter, " in bucket {bucket:?}")?;
        }
        if let Some(node) = self.node {
            write!(formatter, " on node {node}")?;
        }
        if self.skip > 0 {
            write!(formatter, ", after the first {}", self.skip)?;
        }
        if let Some(times) = self.times {
            write!(formatter, ", {times} times")?;
        }
        if let Some(probability) = self.probability {
            write!(formatter, ", with probability {probability}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pass => formatter.write_str("pass"),
            Self::Delay(by) => write!(formatter, "delay by {by:?}"),
            Self::DelayAnswer(by) => write!(formatter, "delay the answer by {by:?}"),
            Self::Answer(answer) => {
                write!(formatter, "answer {}", Status::from_code(answer.status))
            }
            Self::Hold => formatter.write_str("hold"),
            Self::CutBeforeReading => formatter.write_str("cut before reading"),
            Self::CutBeforeApplying => formatter.write_str("cut before applying"),
            Self::CutAfterApplying => formatter.write_str("cut after applying"),
            Self::CutMidResponse => formatter.write_str("cut mid-response"),
            Self::Garble(Garble::Magic) => formatter.write_str("garble the magic"),
            Self::Garble(Garble::Opaque) => formatter.write_str("garble the opaque"),
            Self::Garble(Garble::Length) => formatter.write_str("garble the length"),
            Self::Garble(Garble::Body) => formatter.write_str("garble the body"),
            Self::Silent => formatter.write_str("go silent"),
        }
    }
}
