//! The way to a cluster that commands share: where it is, who one is, whom to trust.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use steadfast_couchbase::explain::about;
use steadfast_couchbase::options::TlsOptions;
use steadfast_couchbase::{Cluster, ClusterOptions, ConfigError, Credentials, Error};

use crate::address::Address;
use crate::exit::{Ended, usage};
use crate::output::{BAD, aside, styled};
use crate::strategy::StrategyName;

/// Where the cluster is, and who one is there.
#[derive(Args)]
pub(crate) struct Connection {
    /// The cluster, as couchbase://host[:port][,host…]/bucket[/scope/collection]; couchbases:// for
    /// TLS. Options of the client may follow, as in ?kv_timeout=1s
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: Address,
    /// The user
    #[arg(long, short, env = "STEADFAST_USER", value_name = "NAME")]
    user: Option<String>,
    /// A file with the password. Without it the variable STEADFAST_PASSWORD is used, and
    /// without that the password is asked for
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A certificate (PEM) to authenticate with instead of a password
    #[arg(long, value_name = "FILE", requires = "client_key", conflicts_with_all = ["user", "password_file"])]
    client_certificate: Option<PathBuf>,
    /// The key (PEM) of that certificate
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
    /// The authority (PEM) that signed the cluster's certificate, if the machine does not trust it
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How long an operation may take, all its attempts included, as in 2.5s [default: the client's]
    #[arg(long, value_parser = crate::duration::parse)]
    timeout: Option<Duration>,
    /// Who decides about retries
    #[arg(long, value_enum, default_value_t = StrategyName::FastFail, hide_possible_values = true)]
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
        options.retry_strategy = Some(self.strategy.build());
        if let Some(timeout) = self.timeout {
            options.kv_timeout = timeout;
            options.kv_durable_timeout = timeout;
            options.query_timeout = timeout;
        }
        if let Some(ca) = &self.ca {
            if !self.address.string.is_tls() {
                return Err(usage("--ca is for TLS: write couchbases:// in the address"));
            }
            options.tls = TlsOptions::new().trust_file(ca);
        }
        Ok(options)
    }

    pub(crate) fn credentials(&self) -> anyhow::Result<Credentials> {
        if let (Some(certificate), Some(key)) = (&self.client_certificate, &self.client_key) {
            return Ok(Credentials::certificate(read(certificate)?, read(key)?));
        }
        let Some(user) = &self.user else {
            return Err(usage("which user? give --user NAME or set STEADFAST_USER"));
        };
        Ok(Credentials::password(user, self.password(user)?))
    }

    fn password(&self, user: &str) -> anyhow::Result<String> {
        if let Some(path) = &self.password_file {
            let text = String::from_utf8(read(path)?)
                .map_err(|_| usage(format_args!("{} is not UTF-8", path.display())))?;
            // Editors end a file with a line break, passwords do not.
            let end = text.trim_end_matches(['\r', '\n']).len();
            return Ok(text[..end].to_owned());
        }
        if let Ok(password) = std::env::var("STEADFAST_PASSWORD") {
            return Ok(password);
        }
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            let prompt = format!("Password of {user}: ");
            let password = rpassword::prompt_password(prompt);
            return password
                .map_err(|error| usage(format_args!("cannot read a password: {error}")));
        }
        Err(usage(
            "no password: give --password-file FILE or set STEADFAST_PASSWORD; \
             on a terminal it would be asked for",
        ))
    }

    /// Says that an operation failed, and what may help.
    pub(crate) fn failed(&self, error: &Error) -> anyhow::Error {
        if self.json {
            aside(error.to_json());
        } else {
            let label = styled(BAD, "error:");
            if self.verbose {
                aside(format_args!("{label} {error:#}"));
            } else {
                aside(format_args!("{label} {error}"));
            }
            for about in error.reasons().iter().filter_map(|reason| about(reason)) {
                aside(format_args!("  → {}", about.advice));
            }
        }
        Ended::of(error).into()
    }
}

/// A connection string, a credential or an option that makes no sense.
pub(crate) fn senseless(error: ConfigError) -> anyhow::Error {
    usage(error)
}

fn read(path: &PathBuf) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| usage(format_args!("cannot read {}: {error}", path.display())))
}
