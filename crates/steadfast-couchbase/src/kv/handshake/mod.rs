//! The handshake that turns a socket into a usable connection.
//!
//! HELLO, the error map, authentication, the bucket and the config are requested in
//! one batch as far as they do not depend on each other (SDK RFC 0048); SCRAM needs
//! two. This module decides what each rejection means for waiting operations
//! ([`Rejected`]).

mod refusal;
mod wire;

use std::sync::Arc;

use bytes::BytesMut;
pub(crate) use refusal::{DialCost, Reached, Rejected, kind_of};
use refusal::{bad_answer, bucket_refused, sasl_refused};
use steadfast_wire::error_map::{ErrorMap, ErrorMapRequest};
use steadfast_wire::hello::{ClientIdentity, FeatureSet};
use steadfast_wire::sasl::Mechanism;
use steadfast_wire::{Feature, Frame, FrameBuilder, Opcode, Status};
use wire::Wire;

use super::connection::Io;
use super::meaning::{Meaning, meaning};
use super::operation::KvOperation;
use crate::credentials::Credentials;
use crate::options::{ClusterOptions, Compression};
use crate::sasl::{Channel, Exchange, choose, preferred};
use crate::server_text::bounded;

/// The parameters of a handshake.
pub(crate) struct HandshakeParams<'a> {
    pub(crate) credentials: &'a Credentials,
    pub(crate) channel: Channel,
    /// The bucket to open; none for a connection that only tracks the topology.
    pub(crate) bucket: Option<&'a str>,
    /// The identity that the client sends.
    pub(crate) identity: ClientIdentity,
    pub(crate) features: FeatureSet,
    /// For servers that hang up on a HELLO before authentication (D30).
    pub(crate) hello_after_authentication: bool,
    /// The host that was dialled, which configs may call `$HOST`.
    pub(crate) host: &'a str,
}

/// The result of a handshake.
pub(crate) struct Welcome {
    pub(crate) features: FeatureSet,
    pub(crate) error_map: Option<Arc<ErrorMap>>,
    /// The response with the config; `None` if the server gives none on such a
    /// connection.
    pub(crate) config: Option<Frame>,
    /// Bytes that were read beyond the last response.
    pub(crate) received: BytesMut,
}

/// The largest body that the client accepts or decompresses in a handshake: that
/// of a large config.
pub(crate) const MAX_BODY: usize = 20 << 20;

/// The features that the client asks for.
pub(crate) fn features(options: &ClusterOptions) -> FeatureSet {
    let mut features = vec![
        Feature::TcpNodelay,
        Feature::Xattr,
        Feature::Xerror,
        Feature::SelectBucket,
        Feature::Json,
        Feature::UnorderedExecution,
        Feature::AltRequest,
        Feature::SyncReplication,
        Feature::Collections,
        Feature::PreserveTtl,
        Feature::Vattr,
        Feature::SubdocCreateAsDeleted,
        Feature::SubdocReplaceBodyWithXattr,
        Feature::SubdocReplicaRead,
        Feature::GetClusterConfigWithKnownVersion,
        Feature::DedupeNotMyVbucketClustermap,
    ];
    if options.mutation_tokens {
        features.push(Feature::MutationSeqno);
    }
    if options.server_durations {
        features.push(Feature::Tracing);
    }
    if options.compression != Compression::Off {
        features.extend([Feature::Snappy, Feature::SnappyEverywhere]);
    }
    if options.config_push {
        features.extend([Feature::Duplex, Feature::ClustermapChangeNotificationBrief]);
    }
    features.into_iter().collect()
}

/// Does the handshake on a socket.
///
/// Not cancel-safe for the socket: after dropping the future, drop the socket too.
pub(crate) async fn bootstrap(
    io: &mut Io,
    params: &HandshakeParams<'_>,
) -> Result<Welcome, Rejected> {
    let mut wire = Wire::new(io);
    let (features, error_map, config) = negotiate(&mut wire, params)
        .await
        .map_err(|rejected| rejected.after(wire.reached))?;
    Ok(Welcome {
        features,
        error_map,
        config,
        received: wire.into_received(),
    })
}

type Agreed = (FeatureSet, Option<Arc<ErrorMap>>, Option<Frame>);

/// Not cancel-safe for the socket; see [`bootstrap`].
async fn negotiate(wire: &mut Wire<'_>, params: &HandshakeParams<'_>) -> Result<Agreed, Rejected> {
    let (greeting, opening);
    if params.hello_after_authentication {
        authenticate(wire, params, None).await?;
        greeting = Greeting::queue(wire, params, params.features)?;
        opening = Opening::queue(wire, params)?;
    } else {
        greeting = Greeting::queue(wire, params, params.features)?;
        let mut early = None;
        authenticate(wire, params, Some(&mut early)).await?;
        opening = match early {
            Some(opening) => opening,
            None => Opening::queue(wire, params)?,
        };
    }
    let (features, error_map) = greeting.receive(wire, params).await?;
    let config = opening.receive(wire, params, error_map.as_deref()).await?;
    Ok((features, error_map, config))
}

/// HELLO and the error map.
struct Greeting {
    hello: u32,
    error_map: Option<u32>,
}

impl Greeting {
    fn queue(
        wire: &mut Wire<'_>,
        params: &HandshakeParams<'_>,
        features: FeatureSet,
    ) -> Result<Self, Rejected> {
        let identity = params.identity.to_json();
        let list: Vec<Feature> = features.iter().collect();
        let hello = FrameBuilder::request(Opcode::Hello)
            .key(&identity[..])
            .value(&list[..]);
        let hello = wire.queue(hello)?;
        let error_map = if features.contains(Feature::Xerror) {
            // The newest version that the client knows; the server may answer
            // with an older one (D26).
            let newest = ErrorMapRequest { version: 2 };
            Some(wire.queue(FrameBuilder::request(Opcode::GetErrorMap).value(newest))?)
        } else {
            None
        };
        Ok(Self { hello, error_map })
    }

    /// Not cancel-safe for the socket; see [`bootstrap`].
    async fn receive(
        self,
        wire: &mut Wire<'_>,
        params: &HandshakeParams<'_>,
    ) -> Result<(FeatureSet, Option<Arc<ErrorMap>>), Rejected> {
        let features = read_features(&wire.answer(self.hello).await?)?;
        let Some(error_map) = self.error_map else {
            return Ok((features, None));
        };
        let answer = wire.answer(error_map).await?;
        // A server that does not grant XERROR has no codes to explain. It was
        // asked all the same, in the same flight (D26).
        check(&answer, None)?;
        if answer.status() != Status::Success || !features.contains(Feature::Xerror) {
            return Ok((features, None));
        }
        let json = answer
            .plain_value(MAX_BODY)
            .map_err(|error| error.to_string());
        match json.and_then(|json| ErrorMap::parse(&json).map_err(|error| error.to_string())) {
            Ok(map) => Ok((features, Some(Arc::new(map)))),
            Err(problem) => {
                // D29: an unreadable map is ignored, and HELLO without XERROR asks
                // the server not to use codes that only the map explains.
                let problem = bounded(&problem);
                tracing::warn!(host = params.host, problem, "the error map cannot be read");
                let without = without(params.features, Feature::Xerror);
                let again = Self::queue(wire, params, without)?;
                let features = read_features(&wire.answer(again.hello).await?)?;
                Ok((features, None))
            }
        }
    }
}

fn without(features: FeatureSet, unwanted: Feature) -> FeatureSet {
    features
        .iter()
        .filter(|feature| *feature != unwanted)
        .collect()
}

fn read_features(hello: &Frame) -> Result<FeatureSet, Rejected> {
    check(hello, None)?;
    if hello.status() != Status::Success {
        // An old server, which has none of them.
        return Ok(FeatureSet::default());
    }
    FeatureSet::decode(hello.value()).map_err(|error| bad_answer("HELLO", &error))
}

/// SELECT_BUCKET and the config.
struct Opening {
    select: Option<u32>,
    config: u32,
}

impl Opening {
    fn queue(wire: &mut Wire<'_>, params: &HandshakeParams<'_>) -> Result<Self, Rejected> {
        let select = match params.bucket {
            Some(bucket) => {
                let select = FrameBuilder::request(Opcode::SelectBucket).key(bucket.as_bytes());
                Some(wire.queue(select)?)
            }
            None => None,
        };
        let config = wire.queue(FrameBuilder::request(Opcode::GetClusterConfig))?;
        Ok(Self { select, config })
    }

    /// Not cancel-safe for the socket; see [`bootstrap`].
    async fn receive(
        self,
        wire: &mut Wire<'_>,
        params: &HandshakeParams<'_>,
        error_map: Option<&ErrorMap>,
    ) -> Result<Option<Frame>, Rejected> {
        if let Some(select) = self.select {
            let selected = wire.answer(select).await?;
            if selected.status() != Status::Success {
                return Err(bucket_refused(params.bucket.unwrap_or_default(), &selected));
            }
        }
        wire.reached = Reached::Bucket;
        let config = wire.answer(self.config).await?;
        match config.status() {
            Status::Success => return Ok(Some(config)),
            // There is no config for the whole cluster.
            Status::NoBucket if params.bucket.is_none() => {}
            status @ (Status::NotSupported | Status::UnknownCommand) => {
                if let Some(bucket) = params.bucket {
                    wire.reached = Reached::Authentication;
                    return Err(Rejected::without_config(bucket, status));
                }
            }
            _ => check(&config, error_map)?,
        }
        Ok(None)
    }
}

/// Authenticates. Queues the next requests into `opening` with the message that is
/// probably the last, which saves a round trip.
///
/// Not cancel-safe for the socket; see [`bootstrap`].
async fn authenticate(
    wire: &mut Wire<'_>,
    params: &HandshakeParams<'_>,
    mut opening: Option<&mut Option<Opening>>,
) -> Result<(), Rejected> {
    let refused = |error| sasl_refused(&error);
    let Some(mut mechanism) = preferred(params.credentials, params.channel).map_err(refused)?
    else {
        return Ok(());
    };
    let list = wire.queue(FrameBuilder::request(Opcode::SaslListMechs))?;
    let (mut exchange, mut auth) = begin(wire, params, mechanism)?;
    if let (Mechanism::Plain | Mechanism::OauthBearer, Some(early)) = (mechanism, &mut opening) {
        **early = Some(Opening::queue(wire, params)?);
    }
    let offered = wire.answer(list).await?;
    check(&offered, None)?;
    let mut answer = wire.answer(auth).await?;
    if is_refusal(&answer) && offered.status() == Status::Success {
        let chosen =
            choose(params.credentials, params.channel, offered.value()).map_err(refused)?;
        if chosen != mechanism {
            // The server does not support the preferred mechanism. This is not a retry,
            // because the first try had no chance; nor had what was queued with it.
            mechanism = chosen;
            (exchange, auth) = begin(wire, params, mechanism)?;
            if let Some(early) = &mut opening {
                **early = None;
            }
            answer = wire.answer(auth).await?;
        }
    }
    while answer.status() == Status::AuthContinue {
        let value = answer.value_bytes();
        // Deriving keys takes milliseconds, which other tasks should not wait for.
        let derived = steadfast_os::blocking(move || {
            let next = exchange.answer(&value);
            (exchange, next)
        });
        let next;
        (exchange, next) = derived
            .await
            .map_err(|error| Rejected::lost(format!("authentication was cut short: {error}")))?;
        let next = next.map_err(refused)?;
        let step = FrameBuilder::request(Opcode::SaslStep)
            .key(mechanism.name().as_bytes())
            .value(&next[..]);
        let step = wire.queue(step)?;
        if let Some(early @ None) = opening.as_deref_mut() {
            *early = Some(Opening::queue(wire, params)?);
        }
        answer = wire.answer(step).await?;
    }
    match answer.status() {
        Status::Success => {
            let proved = exchange.finish(answer.value());
            proved.map_err(|error| Rejected::unproven(&error))?;
            wire.reached = Reached::Authentication;
            Ok(())
        }
        Status::AuthError => Err(Rejected::authentication(params.credentials, &answer)),
        status => Err(Rejected::lost(format!(
            "the server answered the authentication with {status}"
        ))),
    }
}

fn begin(
    wire: &mut Wire<'_>,
    params: &HandshakeParams<'_>,
    mechanism: Mechanism,
) -> Result<(Exchange, u32), Rejected> {
    let (exchange, first) =
        Exchange::begin(mechanism, params.credentials).map_err(|error| sasl_refused(&error))?;
    let auth = FrameBuilder::request(Opcode::SaslAuth)
        .key(mechanism.name().as_bytes())
        .value(&first[..]);
    Ok((exchange, wire.queue(auth)?))
}

/// Rejects the connection if a response makes it unusable (D51). Another error of a
/// step only means that the server cannot do it.
fn check(answer: &Frame, error_map: Option<&ErrorMap>) -> Result<(), Rejected> {
    let (opcode, status) = (answer.opcode(), answer.status());
    match meaning(KvOperation::Noop, false, status, error_map) {
        Meaning {
            closes_connection: true,
            ..
        } => Err(Rejected::lost(format!("{opcode} returned {status}"))),
        _ => Ok(()),
    }
}

fn is_refusal(answer: &Frame) -> bool {
    !matches!(answer.status(), Status::Success | Status::AuthContinue)
}
