//! The way to a cluster that commands share: where it is, and how long to wait for it.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use steadfast::report::Outcome;
use steadfast::{RetryStrategy, Stage};
use steadfast_couchbase::diagnostics::Readiness;
use steadfast_couchbase::explain::about;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, ConfigError, Credentials, Error};

use crate::address::Address;
use crate::exit::{Ended, usage};
use crate::login::Login;
use crate::mask::mask;
use crate::output::{BAD, aside, styled};
use crate::strategy::StrategyName;

/// How long the nodes that come last are waited for.
const A_MOMENT: Duration = Duration::from_millis(500);

/// Where the cluster is, and who one is there.
#[derive(Args)]
pub(crate) struct Connection {
    /// The cluster, as `couchbase://host[:port]/bucket[/scope/collection]`; `couchbases://` for TLS.
    /// Several hosts are divided by commas; options of the client may follow, as `?kv_timeout=1s`
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: Address,
    #[command(flatten)]
    login: Login,
    /// How long connecting, and then the operation with all its attempts, may take, as in 2.5s; of
    /// `doctor`, each step with each host [default: the client's]
    #[arg(long, value_parser = crate::duration::parse_some)]
    timeout: Option<Duration>,
    /// Retry strategy: best-effort-until-terminal, best-effort, guidance, adaptive, aws-2.0,
    /// aws-2.1, no-retry or error-map; `steadfast explain --help` describes them
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    strategy: StrategyName,
    /// More about what happened: with an error, each of its attempts
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// For machines: metadata with the result, and errors as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Connection {
    /// A client of the cluster.
    pub(crate) async fn open(&self) -> anyhow::Result<Cluster> {
        let (credentials, options) = (self.credentials()?, self.options()?);
        let string = self.address.string.to_string();
        Cluster::connect_with(&string, credentials, options)
            .await
            .map_err(senseless)
    }

    pub(crate) fn options(&self) -> anyhow::Result<ClusterOptions> {
        let mut options = ClusterOptions::new();
        if let Some(timeout) = self.timeout {
            options = options
                .connect_timeout(timeout)
                .kv_timeout(timeout)
                .kv_durable_timeout(timeout)
                .query_timeout(timeout);
        }
        if let Some(tls) = self.login.tls(&self.address.string)? {
            options.tls = tls;
        }
        Ok(options)
    }

    pub(crate) fn credentials(&self) -> anyhow::Result<Credentials> {
        self.login.credentials(&self.address.string)
    }

    /// The collection, once its bucket is open: what is in the way of that is not the
    /// operation's to tell. What waiting will not mend, the operation tells all the same.
    pub(crate) async fn collection(&self, cluster: &Cluster) -> anyhow::Result<Collection> {
        let collection = self.address.collection(cluster)?;
        let patience = self.patience()?;
        let bucket = self.address.bucket(cluster)?;
        let ready = bucket.wait_until(Readiness::Degraded, patience).await;
        self.unless_late(ready)?;
        // The document's node is probably one that is about to be connected; if not,
        // the operation says so.
        let _ = bucket.wait_until(Readiness::Online, A_MOMENT).await;
        Ok(collection)
    }

    /// Waits until the cluster's services are known.
    pub(crate) async fn services(&self, cluster: &Cluster) -> anyhow::Result<()> {
        let patience = self.patience()?;
        self.unless_late(cluster.wait_until_ready(patience).await)
    }

    /// Who decides about the operation's retries. The client itself always fails fast:
    /// whatever is tried out, wrong credentials should be told.
    pub(crate) fn strategy(&self) -> Arc<dyn RetryStrategy> {
        self.strategy.build()
    }

    /// How long to wait for the cluster.
    fn patience(&self) -> anyhow::Result<Duration> {
        let mut options = self.options()?;
        self.address.string.apply_to(&mut options);
        Ok(self.timeout.unwrap_or(options.connect_timeout))
    }

    fn unless_late(&self, ready: Result<(), Error>) -> anyhow::Result<()> {
        match ready {
            Err(error) if error.is_timeout() => Err(self.failed(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Says that an operation failed, and what may help.
    pub(crate) fn failed(&self, error: &Error) -> anyhow::Error {
        if self.json {
            aside(error.to_json());
        } else {
            let label = styled(BAD, "error:");
            let text = match self.verbose {
                true => format!("{error:#}"),
                false => error.to_string(),
            };
            aside(format_args!("{label} {}", mask(&text)));
            if let Some(note) = unsent(error) {
                aside(format_args!("  {note}"));
                aside("  → `steadfast doctor` with the same address says which step fails");
            } else if let Some(advice) = advice(error) {
                aside(format_args!("  → {advice}"));
            }
        }
        Ended::of(error).into()
    }
}

/// What kept an operation from being sent until its time was up: a name that is
/// none, a port where nobody listens.
pub(crate) fn unsent(error: &Error) -> Option<&str> {
    let last = error.context().report()?.history().last()?;
    let waited = error.is_timeout() && last.failure.stage == Stage::NotSent;
    waited.then(|| last.failure.note()).flatten()
}

/// What may help against what the last attempt failed for. An answer that is final
/// says itself what is wrong.
pub(crate) fn advice(error: &Error) -> Option<&'static str> {
    let last = error.context().report()?.history().last()?;
    let refused = matches!(last.outcome, Outcome::Refused(_));
    if !refused && !error.is_timeout() {
        return None;
    }
    Some(about(last.failure.reason)?.advice)
}

/// A connection string, a credential or an option that makes no sense.
pub(crate) fn senseless(error: ConfigError) -> anyhow::Error {
    usage(error)
}
