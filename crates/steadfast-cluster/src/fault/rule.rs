//! A rule: its condition and its effect.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use steadfast_wire::{Opcode, Status};

use super::active::IncomingRequest;
use super::spec::FaultJson;
use crate::Service;
use crate::topology::NodeId;

/// A rule: requests that meet the condition suffer the effect. Built from [`FaultCondition`], or read from
/// JSON.
///
/// ```
/// use steadfast_cluster::fault::Fault;
///
/// let fault: Fault = serde_json::from_str(
///     r#"{"opcode": "SET", "key_prefix": "u:", "times": 2, "effect": "answer", "status": "0x86"}"#,
/// )?;
/// assert_eq!(fault.to_string(), "SET of keys from \"u:\", 2 times: answer ETMPFAIL (0x86)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "FaultJson")]
pub struct Fault {
    pub(super) condition: FaultCondition,
    pub(super) effect: Effect,
}

impl Fault {
    /// Selects requests with this opcode.
    pub fn on(opcode: Opcode) -> FaultCondition {
        FaultCondition {
            service: Some(Service::KeyValue),
            opcode: Some(opcode),
            ..FaultCondition::default()
        }
    }

    /// Selects requests to this service.
    pub fn on_service(service: Service) -> FaultCondition {
        FaultCondition {
            service: Some(service),
            ..FaultCondition::default()
        }
    }

    /// Selects every request.
    pub fn on_anything() -> FaultCondition {
        FaultCondition::default()
    }
}

/// The condition of a rule. Every part that is set must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultCondition {
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

/// The keys that a rule matches. For an HTTP service, the key is the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyMatch {
    Exact(Bytes),
    Prefix(Bytes),
}

/// The effect of a rule on a request that it matches.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The request is served as usual, and no later rule is tried.
    Pass,
    /// The request waits before it is applied.
    Delay(Duration),
    /// The request is applied at once, and its answer waits.
    DelayAnswer(Duration),
    /// The request is not applied, and gets this answer.
    Answer(FaultAnswer),
    /// The request waits, unapplied, until the rule is removed; then it is served as usual.
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
    /// From here on the connection applies requests and never answers, as if the network were
    /// partitioned in one direction.
    Mute,
}

/// An answer that a rule gives instead of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultAnswer {
    /// The status: of the protocol for key-value, of HTTP for the other services.
    pub status: u16,
    /// The body to send, if any.
    pub body: Option<Bytes>,
    /// Whether the body is marked as JSON, which makes it an extended error body for key-value.
    pub json: bool,
}

/// The part of an answer that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garble {
    /// The first byte, so that the answer is not a valid frame.
    Magic,
    /// The opaque, so that the answer matches no request.
    Opaque,
    /// The length, so that the next answer is read as part of this one.
    Length,
    /// The body, all bits flipped.
    Body,
}

impl FaultCondition {
    /// Restricts the rule to this node.
    #[must_use]
    pub fn node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// Restricts the rule to this bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: impl Into<String>) -> Self {
        self.bucket = Some(bucket.into());
        self
    }

    /// Restricts the rule to this key or path.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(KeyMatch::Exact(Bytes::copy_from_slice(key.as_ref())));
        self
    }

    /// Restricts the rule to keys or paths with this prefix.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key = Some(KeyMatch::Prefix(Bytes::copy_from_slice(prefix.as_ref())));
        self
    }

    /// Spares the first `first` requests that match.
    #[must_use]
    pub fn skip(mut self, first: u64) -> Self {
        self.skip = first;
        self
    }

    /// Limits the rule to this many requests.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Hits each request with this probability, decided by the rule's seed.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability.clamp(0.0, 1.0));
        self
    }

    /// Sets the seed that decides a probability. The default is derived from the cluster's seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Lets the request pass, whatever later rules say.
    pub fn pass(self) -> Fault {
        self.then(Effect::Pass)
    }

    /// Delays the request before it is applied.
    pub fn delay(self, by: Duration) -> Fault {
        self.then(Effect::Delay(by))
    }

    /// Applies the request and delays its answer.
    pub fn delay_answer(self, by: Duration) -> Fault {
        self.then(Effect::DelayAnswer(by))
    }

    /// Answers with this status and does not apply the request.
    pub fn answer(self, status: Status) -> Fault {
        self.then(Effect::Answer(FaultAnswer {
            status: status.code(),
            body: None,
            json: false,
        }))
    }

    /// Answers with this status and an extended error body.
    pub fn answer_with_context(self, status: Status, context: &str, reference: &str) -> Fault {
        let body = serde_json::json!({"error": {"context": context, "ref": reference}});
        self.answer_http(status.code(), body.to_string())
    }

    /// Answers an HTTP request with this status and body.
    pub fn answer_http(self, status: u16, body: impl Into<Bytes>) -> Fault {
        self.then(Effect::Answer(FaultAnswer {
            status,
            body: Some(body.into()),
            json: true,
        }))
    }

    /// Holds the request until the rule is removed.
    pub fn hold(self) -> Fault {
        self.then(Effect::Hold)
    }

    /// Resets the connection as if the request had never been read.
    pub fn cut_before_reading(self) -> Fault {
        self.then(Effect::CutBeforeReading)
    }

    /// Closes the connection after reading and before applying the request.
    pub fn cut_before_applying(self) -> Fault {
        self.then(Effect::CutBeforeApplying)
    }

    /// Applies the request and closes the connection without an answer.
    pub fn cut_after_applying(self) -> Fault {
        self.then(Effect::CutAfterApplying)
    }

    /// Applies the request, sends half of the answer and closes the connection.
    pub fn cut_mid_response(self) -> Fault {
        self.then(Effect::CutMidResponse)
    }

    /// Applies the request and damages the answer.
    pub fn garble(self, garble: Garble) -> Fault {
        self.then(Effect::Garble(garble))
    }

    /// Never answers anything on that connection again.
    pub fn silent(self) -> Fault {
        self.then(Effect::Silent)
    }

    /// Applies everything on that connection from here on, and never answers again.
    pub fn mute(self) -> Fault {
        self.then(Effect::Mute)
    }

    /// Completes the rule with an effect.
    pub fn then(self, effect: Effect) -> Fault {
        Fault {
            condition: self,
            effect,
        }
    }

    /// Returns whether everything but count and probability holds.
    pub(super) fn matches(&self, request: &IncomingRequest<'_>) -> bool {
        self.node.is_none_or(|node| node == request.node)
            && self
                .service
                .is_none_or(|service| service == request.service)
            && self
                .opcode
                .is_none_or(|opcode| Some(opcode) == request.opcode)
            && self
                .bucket
                .as_deref()
                .is_none_or(|bucket| Some(bucket) == request.bucket)
            && match &self.key {
                None => true,
                Some(KeyMatch::Exact(key)) => key == request.key,
                Some(KeyMatch::Prefix(prefix)) => request.key.starts_with(prefix),
            }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.condition)?;
        match (&self.effect, self.condition.service) {
            (Effect::Answer(answer), Some(service)) if service != Service::KeyValue => {
                write!(f, "answer HTTP {}", answer.status)
            }
            (effect, _) => effect.fmt(f),
        }
    }
}

impl fmt::Display for FaultCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.opcode, self.service) {
            (Some(opcode), _) => match opcode.name() {
                Some(name) => f.write_str(name)?,
                None => write!(f, "opcode {:#04x}", opcode.code())?,
            },
            (None, Some(service)) => write!(f, "any {service} request")?,
            (None, None) => f.write_str("any request")?,
        }
        match &self.key {
            Some(KeyMatch::Exact(key)) => {
                write!(f, " of key {:?}", String::from_utf8_lossy(key))?;
            }
            Some(KeyMatch::Prefix(prefix)) => {
                write!(f, " of keys from {:?}", String::from_utf8_lossy(prefix))?;
            }
            None => {}
        }
        if let Some(bucket) = &self.bucket {
            write!(f, " in bucket {bucket:?}")?;
        }
        if let Some(node) = self.node {
            write!(f, " on node {node}")?;
        }
        if self.skip > 0 {
            write!(f, ", after the first {}", self.skip)?;
        }
        if let Some(times) = self.times {
            write!(f, ", {times} times")?;
        }
        if let Some(probability) = self.probability {
            write!(f, ", with probability {probability}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Delay(by) => return write!(f, "delay by {by:?}"),
            Self::DelayAnswer(by) => return write!(f, "delay the answer by {by:?}"),
            Self::Answer(answer) => {
                return write!(f, "answer {}", Status::from_code(answer.status));
            }
            Self::Hold => "hold",
            Self::CutBeforeReading => "cut before reading",
            Self::CutBeforeApplying => "cut before applying",
            Self::CutAfterApplying => "cut after applying",
            Self::CutMidResponse => "cut mid-response",
            Self::Garble(Garble::Magic) => "garble the magic",
            Self::Garble(Garble::Opaque) => "garble the opaque",
            Self::Garble(Garble::Length) => "garble the length",
            Self::Garble(Garble::Body) => "garble the body",
            Self::Silent => "go silent",
            Self::Mute => "go mute",
        })
    }
}
