//! Credentials and trusted certificates: the login flags that commands share.

use std::env::VarError;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use steadfast_couchbase::options::TlsOptions;
use steadfast_couchbase::{ConnectionString, Credentials};

use crate::exit::usage;
use crate::files;
use crate::prompt;

/// Credentials and trusted certificates.
#[derive(Args)]
pub(crate) struct LoginArgs {
    /// User name [default: $STEADFAST_USER]
    // Not read by clap: a variable that is always set must not conflict with
    // --client-certificate.
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// File with the password [default: $STEADFAST_PASSWORD, or a prompt on a terminal]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Client certificate (PEM) to authenticate with instead of a password
    #[arg(long, value_name = "FILE", requires = "client_key", conflicts_with_all = ["user", "password_file"])]
    client_certificate: Option<PathBuf>,
    /// Private key (PEM) of the client certificate
    // The conflicts are repeated here: clap requires neither of two conflicting options.
    #[arg(long, value_name = "FILE", requires = "client_certificate", conflicts_with_all = ["user", "password_file"])]
    client_key: Option<PathBuf>,
    /// Certificate (PEM) of the cluster's authority, if this machine does not trust it
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl LoginArgs {
    /// Returns the trusted authority, unless it is the machine's default.
    pub(crate) fn tls(&self, to: &ConnectionString) -> anyhow::Result<Option<TlsOptions>> {
        let Some(ca) = &self.ca else {
            return Ok(None);
        };
        if !to.is_tls() {
            return Err(usage("--ca needs TLS: write couchbases:// in the address"));
        }
        Ok(Some(TlsOptions::new().trust_file(ca)))
    }

    /// Returns the credentials; prompts for the password if nothing else provides it.
    ///
    /// Dropping the future ends the prompt and restores the terminal.
    pub(crate) async fn credentials(&self, to: &ConnectionString) -> anyhow::Result<Credentials> {
        if let (Some(certificate), Some(key)) = (&self.client_certificate, &self.client_key) {
            if !to.is_tls() {
                return Err(usage(
                    "--client-certificate needs TLS: write couchbases:// in the address",
                ));
            }
            let read = |path| files::read(path, files::TEXT);
            return Ok(Credentials::certificate(read(certificate)?, read(key)?));
        }
        let user = match &self.user {
            Some(user) => Some(user.clone()),
            None => variable("STEADFAST_USER")?,
        };
        let Some(user) = user else {
            return Err(usage(
                "no user: give --user NAME or set STEADFAST_USER, or use \
                 --client-certificate and --client-key",
            ));
        };
        let password = self.password(&user).await?;
        Ok(Credentials::password(user, password))
    }

    async fn password(&self, user: &str) -> anyhow::Result<String> {
        if let Some(path) = &self.password_file {
            let text = String::from_utf8(files::read(path, files::TEXT)?)
                .map_err(|_| usage(format_args!("{} is not UTF-8", path.display())))?;
            // Editors add a line break.
            let end = text.trim_end_matches(['\r', '\n']).len();
            return Ok(text[..end].to_owned());
        }
        if let Some(password) = variable("STEADFAST_PASSWORD")? {
            return Ok(password);
        }
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            return prompt::password(user).await;
        }
        Err(usage(
            "no password: give --password-file FILE or set STEADFAST_PASSWORD \
             (on a terminal there is a prompt)",
        ))
    }

    /// Returns the first flag that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--user", self.user.is_some()),
            ("--password-file", self.password_file.is_some()),
            ("--client-certificate", self.client_certificate.is_some()),
            ("--ca", self.ca.is_some()),
        ];
        let given = flags.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(name, _)| name)
    }
}

/// Reads a variable of the environment, if it is set.
fn variable(name: &str) -> anyhow::Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        // The value may be a password, so it is not printed.
        Err(VarError::NotUnicode(_)) => Err(usage(format_args!("{name} is not UTF-8"))),
    }
}
