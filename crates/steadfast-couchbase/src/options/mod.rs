//! Options of the client: their defaults and their valid values.
//!
//! Each option is a field and a method of the same name. Setting one never fails;
//! [`ClusterOptions::validate`] runs before anything is dialled and names the
//! invalid option.

mod profile;
mod reporting;
mod settings;
mod tls;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use steadfast::breaker::CircuitBreaker;
use steadfast::{Backoff, RetryStrategy};

pub use profile::Profile;
pub use reporting::ReportOptions;
pub use steadfast::breaker::BreakerSettings;
pub use tls::{Authority, TlsOptions};
pub use transport::{Compression, Network, VbucketRetry};

use crate::config_error::ConfigError;
use crate::kv::connection::MAX_IN_FLIGHT;
use settings::settings;

/// The shortest interval between two polls (SDK RFC 0024).
pub(crate) const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Longer intervals are probably meant in another unit.
const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The largest number of connections to each node.
const MAX_KV_CONNECTIONS: u16 = 64;

/// The agent is part of a JSON text that servers cut at 250 bytes.
const LONGEST_AGENT: usize = 128;

settings! {
    /// The options of a cluster.
    ///
    /// ```
    /// use std::time::Duration;
    /// use steadfast::BestEffort;
    /// use steadfast_couchbase::options::{BreakerSettings, ClusterOptions};
    ///
    /// let options = ClusterOptions::new()
    ///     .kv_timeout(Duration::from_secs(1))
    ///     .circuit_breaker(BreakerSettings::default())
    ///     .retry_strategy(BestEffort::default());
    /// options.validate()?;
    ///
    /// let error = options.kv_connections(0).validate().unwrap_err();
    /// assert_eq!(error.part(), "kv_connections");
    /// # Ok::<(), steadfast_couchbase::ConfigError>(())
    /// ```
    pub struct ClusterOptions {
        /// The timeout of a key-value operation with all its attempts: 2.5 s.
        plain kv_timeout: Duration = Duration::from_millis(2500);
        /// The timeout of a key-value operation with a durability level: 10 s.
        /// Less than 1.5 s is raised to that, as servers need it.
        plain kv_durable_timeout: Duration = Duration::from_secs(10);
        /// The timeout of connecting, authenticating and opening the bucket on one
        /// connection: 10 s.
        plain connect_timeout: Duration = Duration::from_secs(10);
        /// The timeout of a query: 75 s.
        plain query_timeout: Duration = HTTP_TIMEOUT;
        /// The timeout of an analytics query: 75 s.
        plain analytics_timeout: Duration = HTTP_TIMEOUT;
        /// The timeout of a search: 75 s.
        plain search_timeout: Duration = HTTP_TIMEOUT;
        /// The timeout of a view query: 75 s.
        plain view_timeout: Duration = HTTP_TIMEOUT;
        /// The timeout of a management call: 75 s.
        plain management_timeout: Duration = HTTP_TIMEOUT;

        /// Decides about retries, unless a request brings another strategy. `None`
        /// is the client's default: failing fast on terminal errors (D1).
        own retry_strategy: Option<Arc<dyn RetryStrategy>> = None;
        /// Asks the strategy also about final responses for which this returns true,
        /// unless a request brings its own. `None`: it is not asked.
        own retry_if: Option<RetryIf> = None;
        /// The delay of a request whose vbucket the server does not have (D21).
        plain vbucket_retry: VbucketRetry = VbucketRetry::Controlled;
        /// Makes the client safe for a fleet of any size: each node and endpoint has a
        /// [`LoadAware`](steadfast::LoadAware) strategy around that of the client or of the
        /// operation. Off. Successes on a node pay for retries there, and while a node is
        /// overloaded, a share of the operations on it is shed
        /// ([D41](steadfast::decisions#d41), [D53](steadfast::decisions#d53)).
        plain fleet: bool = false;
        /// Stops sending to an endpoint that keeps failing. Off: `None`.
        into circuit_breaker: Option<BreakerSettings> = None;

        /// TLS options, used where the connection string asks for TLS.
        plain tls: TlsOptions = TlsOptions::default();
        /// Allows sending a password or a token over a key-value connection without
        /// TLS, if the server offers nothing better. Off: others could read it. Over
        /// HTTP without TLS, a password is always sent and a token never.
        plain allow_secrets_without_tls: bool = false;
        /// Sends HELLO after authenticating instead of before. Off; some old servers
        /// close the connection on an early HELLO (D30).
        plain hello_after_authentication: bool = false;

        /// The delays before a node is dialled again after a dial that was slow or broken
        /// off: [`Backoff::reconnect`], which spreads the dials of a fleet over several
        /// seconds. After a refused dial the next one follows within a second
        /// ([D64](steadfast::decisions#d64)).
        plain reconnect_backoff: Backoff = Backoff::reconnect();
        /// The number of key-value connections to each node for operations, for each bucket,
        /// and as many for durable writes: 1.
        plain kv_connections: u16 = 1;
        /// The largest number of requests in flight on one connection: 65536, and 31 durable
        /// writes, because servers work on 32 commands of a connection at a time. Further
        /// requests wait in order until there is room
        /// ([D45](steadfast::decisions#d45)).
        plain max_in_flight: u32 = 65_536;
        /// The time in which a key-value connection must receive a byte after a probe:
        /// 400 ms. A probe is sent when a response is overdue. Without a byte in this
        /// time, and in the time that the bytes before the probe take on a slow uplink, the
        /// connection is replaced ([D46](steadfast::decisions#d46)).
        plain probe_timeout: Duration = Duration::from_millis(400);
        /// The time that an idle HTTP connection is kept: 1 s. Servers close theirs
        /// after 5 s, and a request should not race with that.
        plain idle_http_timeout: Duration = Duration::from_secs(1);
        /// The largest number of idle HTTP connections that are kept to each node. `None`
        /// sets no limit.
        into max_idle_http_connections: Option<usize> = None;
        /// The documents to compress.
        plain compression: Compression = Compression::default();

        /// The interval of polling for a newer config if nodes do not push them: 2.5 s,
        /// at least 50 ms.
        plain config_poll_interval: Duration = Duration::from_millis(2500);
        /// Asks servers to push new configs if they can. On.
        plain config_push: bool = true;
        /// The network whose addresses are used to reach the nodes.
        plain network: Network = Network::Auto;
        /// Looks up a connection string with one host and no port as DNS SRV first. On.
        plain dns_srv: bool = true;

        /// Asks servers for the time that they spent on each key-value request. On. The
        /// time is in errors, in spans, and in the reports of slow requests and late
        /// responses.
        plain server_durations: bool = true;
        /// Asks servers for the token of each write, which `consistent_with` takes. On;
        /// a token adds 16 bytes to the response.
        plain mutation_tokens: bool = true;
        /// Reports of slow requests and late responses.
        plain reports: ReportOptions = ReportOptions::default();
        /// Shows keys in errors and logs. Off: they are often personal data.
        plain unredacted_keys: bool = false;
        /// Appended to the agent that the client introduces itself with.
        into user_agent_extra: String = String::new();
    }
}

/// The application's rule for final responses: returns whether a retry can help.
pub type RetryIf = Arc<dyn Fn(&crate::Error) -> bool + Send + Sync>;

const HTTP_TIMEOUT: Duration = Duration::from_secs(75);

impl ClusterOptions {
    /// Decides about retries, unless a request brings another strategy.
    #[must_use]
    pub fn retry_strategy(mut self, strategy: impl RetryStrategy + 'static) -> Self {
        self.retry_strategy = Some(Arc::new(strategy));
        self
    }

    /// Asks the strategy also about final responses for which this returns true,
    /// unless a request brings its own. A retry that is unsafe is still not made.
    #[must_use]
    pub fn retry_if(
        mut self,
        retry_if: impl Fn(&crate::Error) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.retry_if = Some(Arc::new(retry_if));
        self
    }

    /// Rejects invalid options.
    ///
    /// # Errors
    /// If an option is invalid. The error names it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (name, timeout) in self.timeouts() {
            positive(name, timeout)?;
        }
        interval("idle_http_timeout", self.idle_http_timeout)?;
        interval("probe_timeout", self.probe_timeout)?;
        interval("config_poll_interval", self.config_poll_interval)?;
        if self.config_poll_interval < MIN_POLL_INTERVAL {
            let problem = format!("is less than {MIN_POLL_INTERVAL:?}");
            return Err(ConfigError::new("config_poll_interval", problem));
        }
        if !(1..=MAX_KV_CONNECTIONS).contains(&self.kv_connections) {
            let problem = format!("is not between 1 and {MAX_KV_CONNECTIONS}");
            return Err(ConfigError::new("kv_connections", problem));
        }
        if !(1..=MAX_IN_FLIGHT).contains(&self.max_in_flight) {
            let problem = format!("is not between 1 and {MAX_IN_FLIGHT}");
            return Err(ConfigError::new("max_in_flight", problem));
        }
        if self.user_agent_extra.len() > LONGEST_AGENT {
            let problem = format!("is longer than {LONGEST_AGENT} bytes");
            return Err(ConfigError::new("user_agent_extra", problem));
        }
        if self.user_agent_extra.contains(char::is_control) {
            let problem = "has a control character in it";
            return Err(ConfigError::new("user_agent_extra", problem));
        }
        self.vbucket_retry.validate()?;
        self.compression.validate()?;
        self.network.validate()?;
        self.reports.validate()?;
        self.tls.validate()?;
        match self.circuit_breaker.map(CircuitBreaker::new) {
            Some(Err(error)) => Err(ConfigError::new("circuit_breaker", error.to_string())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn timeouts(&self) -> [(&'static str, Duration); 8] {
        [
            ("kv_timeout", self.kv_timeout),
            ("kv_durable_timeout", self.kv_durable_timeout),
            ("connect_timeout", self.connect_timeout),
            ("query_timeout", self.query_timeout),
            ("analytics_timeout", self.analytics_timeout),
            ("search_timeout", self.search_timeout),
            ("view_timeout", self.view_timeout),
            ("management_timeout", self.management_timeout),
        ]
    }
}

/// Rejects an interval of zero or of more than a day.
fn interval(part: &'static str, duration: Duration) -> Result<(), ConfigError> {
    positive(part, duration)?;
    if duration > LONGEST_INTERVAL {
        return Err(ConfigError::new(part, "is longer than a day"));
    }
    Ok(())
}

/// Rejects a duration of zero.
fn positive(part: &'static str, duration: Duration) -> Result<(), ConfigError> {
    if duration.is_zero() {
        return Err(ConfigError::new(part, "is zero"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
