//! Connecting to a cluster: the flags that all commands on a cluster share.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use steadfast::report::Outcome;
use steadfast::{RetryStrategy, Stage};
use steadfast_couchbase::diagnostics::Readiness;
use steadfast_couchbase::explain::about;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials, Error};

use crate::address::ClusterAddress;
use crate::exit::{AlreadyReported, usage};
use crate::login::LoginArgs;
use crate::mask::mask;
use crate::output::{BAD, stderr_line, styled};
use crate::strategy::StrategyName;

/// How long a command tries to connect before it says why that fails. On a busy machine,
/// connecting takes a second without any trouble.
const SILENCE: Duration = Duration::from_secs(3);

/// How long to wait for the remaining nodes once a bucket is usable.
const ALL_NODES_WAIT: Duration = Duration::from_millis(500);

/// The address of a cluster, the login, and options of the connection.
#[derive(Args)]
pub(crate) struct ConnectArgs {
    /// The cluster: `couchbase://host[:port]/bucket[/scope/collection]`, with TLS
    /// `couchbases://…`. Separate several hosts by commas. Client options may follow, as in
    /// `?kv_timeout=1s`
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: ClusterAddress,
    #[command(flatten)]
    login: LoginArgs,
    /// Time limit, as in 2.5s: for connecting, and then for the operation with all its
    /// attempts. In `doctor`: for each step with each host [default: the client's]
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse_positive)]
    timeout: Option<Duration>,
    /// Retry strategy: best-effort-until-terminal, best-effort, guidance, adaptive, aws-2.0,
    /// aws-2.1, no-retry or error-map; `steadfast explain --help` describes them
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    strategy: StrategyName,
    /// Print details: with an error, every attempt
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON: results with their metadata, and errors
    #[arg(long)]
    pub(crate) json: bool,
}

impl ConnectArgs {
    /// Creates a client of the cluster.
    pub(crate) async fn open(&self) -> anyhow::Result<Cluster> {
        let (credentials, options) = (self.credentials().await?, self.options()?);
        let string = self.address.string.to_string();
        Cluster::connect_with(&string, credentials, options)
            .await
            .map_err(usage)
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

    pub(crate) async fn credentials(&self) -> anyhow::Result<Credentials> {
        self.login.credentials(&self.address.string).await
    }

    /// Returns the collection once its bucket is open. If the bucket does not open in time,
    /// that is the error; the operation reports everything else.
    pub(crate) async fn collection(&self, cluster: &Cluster) -> anyhow::Result<Collection> {
        let collection = self.address.collection(cluster)?;
        let bucket = self.address.bucket(cluster)?;
        let timeout = self.connect_timeout()?;
        let wait = |timeout| bucket.wait_until(Readiness::Degraded, timeout);
        self.check_timeout(self.wait(timeout, wait).await)?;
        // The document's node is probably about to connect; if not, the operation fails
        // with the reason.
        let _ = bucket.wait_until(Readiness::Online, ALL_NODES_WAIT).await;
        Ok(collection)
    }

    /// Waits until the cluster's services are known.
    pub(crate) async fn services(&self, cluster: &Cluster) -> anyhow::Result<()> {
        let timeout = self.connect_timeout()?;
        let wait = |timeout| cluster.wait_until_ready(timeout);
        self.check_timeout(self.wait(timeout, wait).await)
    }

    /// Waits for the cluster. If that takes long, prints why, so that nobody watches a
    /// command that is silent until its timeout.
    async fn wait<W>(&self, timeout: Duration, wait: impl Fn(Duration) -> W) -> Result<(), Error>
    where
        W: Future<Output = Result<(), Error>>,
    {
        if self.json || timeout <= SILENCE {
            return wait(timeout).await;
        }
        let mut whole = pin!(wait(timeout));
        // The second wait ends with the cause, while the first one goes on.
        let looked = tokio::select! {
            biased;
            ready = &mut whole => return ready,
            looked = wait(SILENCE) => looked,
        };
        if let Err(error) = looked
            && error.is_timeout()
            && let Some(note) = not_sent_note(&error)
        {
            let limit = crate::duration::show(timeout);
            stderr_line(format_args!(
                "{}; still trying, for up to {limit}",
                mask(note)
            ));
        }
        whole.await
    }

    /// Returns the strategy of the operation. The client itself keeps its default, so that
    /// wrong credentials are always reported at once.
    pub(crate) fn strategy(&self) -> Arc<dyn RetryStrategy> {
        self.strategy.build()
    }

    fn connect_timeout(&self) -> anyhow::Result<Duration> {
        let mut options = self.options()?;
        self.address.string.apply_to(&mut options);
        Ok(self.timeout.unwrap_or(options.connect_timeout))
    }

    fn check_timeout(&self, ready: Result<(), Error>) -> anyhow::Result<()> {
        match ready {
            Err(error) if error.is_timeout() => Err(self.report(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Prints why an operation failed, and what may help.
    pub(crate) fn report(&self, error: &Error) -> anyhow::Error {
        report_error(error, self.verbose, self.json)
    }
}

/// Prints why an operation failed, and what may help; as JSON if that is asked for.
pub(crate) fn report_error(error: &Error, verbose: bool, json: bool) -> anyhow::Error {
    let reported = AlreadyReported::from_error(error).into();
    if json {
        stderr_line(error.to_json());
        return reported;
    }
    let label = styled(BAD, "error:");
    let text = match verbose {
        true => format!("{error:#}"),
        false => error.to_string(),
    };
    let text = mask(&text);
    if let Some(note) = not_sent_note(error) {
        // The cause first: that the time passed meanwhile is its effect.
        stderr_line(format_args!("{label} {}", mask(note)));
        stderr_line(format_args!("  {text}"));
        stderr_line("  → run `steadfast doctor` with the same address to see which step fails");
        return reported;
    }
    stderr_line(format_args!("{label} {text}"));
    if let Some(advice) = advice(error) {
        stderr_line(format_args!("  → {advice}"));
    }
    reported
}

/// Returns what prevented an operation from being sent before its timeout: an unknown host
/// name, a refused connection.
fn not_sent_note(error: &Error) -> Option<&str> {
    let last = error.context().report()?.history().last()?;
    let waited = error.is_timeout() && last.failure.stage == Stage::NotSent;
    waited.then(|| last.failure.note()).flatten()
}

/// Returns what helps against the reason of the last attempt. The message of a final answer
/// needs no advice.
fn advice(error: &Error) -> Option<&'static str> {
    let last = error.context().report()?.history().last()?;
    let refused = matches!(last.outcome, Outcome::Refused(_));
    if !refused && !error.is_timeout() {
        return None;
    }
    Some(about(last.failure.reason)?.advice)
}
