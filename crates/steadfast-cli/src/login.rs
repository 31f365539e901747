//! Who one is for a cluster, and whom to trust: the flags that commands share.

use std::env::VarError;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use steadfast_couchbase::options::TlsOptions;
use steadfast_couchbase::{ConnectionString, Credentials};

use crate::exit::usage;
use crate::files;

/// Who one is, and whom to trust.
#[derive(Args)]
pub(crate) struct Login {
    /// The user [default: the variable STEADFAST_USER]
    // Not by clap: a variable that is set for every command must not be in the way of a
    // certificate for this one.
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// A file with the password. Without it the variable STEADFAST_PASSWORD is used, and
    /// without that the password is asked for
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A certificate (PEM) to authenticate with instead of a password
    #[arg(long, value_name = "FILE", requires = "client_key", conflicts_with_all = ["user", "password_file"])]
    client_certificate: Option<PathBuf>,
    /// The key (PEM) of that certificate
    // The conflicts stand here too: of two options that conflict clap requires neither.
    #[arg(long, value_name = "FILE", requires = "client_certificate", conflicts_with_all = ["user", "password_file"])]
    client_key: Option<PathBuf>,
    /// The authority (PEM) that signed the cluster's certificate, if the machine does not trust it
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Login {
    /// Whom to trust instead of whom the machine trusts, if so asked.
    pub(crate) fn tls(&self, to: &ConnectionString) -> anyhow::Result<Option<TlsOptions>> {
        let Some(ca) = &self.ca else {
            return Ok(None);
        };
        if !to.is_tls() {
            return Err(usage("--ca is for TLS: write couchbases:// in the address"));
        }
        Ok(Some(TlsOptions::new().trust_file(ca)))
    }

    /// The credentials for this cluster; a password is asked for if it must be.
    pub(crate) fn credentials(&self, to: &ConnectionString) -> anyhow::Result<Credentials> {
        if let (Some(certificate), Some(key)) = (&self.client_certificate, &self.client_key) {
            if !to.is_tls() {
                return Err(usage(
                    "a certificate is shown within TLS only: write couchbases:// in the address",
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
                "which user? give --user NAME or set STEADFAST_USER, or log in with \
                 --client-certificate and --client-key",
            ));
        };
        let password = self.password(&user)?;
        Ok(Credentials::password(user, password))
    }

    fn password(&self, user: &str) -> anyhow::Result<String> {
        if let Some(path) = &self.password_file {
            let text = String::from_utf8(files::read(path, files::TEXT)?)
                .map_err(|_| usage(format_args!("{} is not UTF-8", path.display())))?;
            // Editors end a file with a line break, passwords do not.
            let end = text.trim_end_matches(['\r', '\n']).len();
            return Ok(text[..end].to_owned());
        }
        if let Some(password) = variable("STEADFAST_PASSWORD")? {
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

    /// The flags that were given, for a command line that does the same.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--user", self.user.clone()),
            ("--password-file", path(&self.password_file)),
            ("--client-certificate", path(&self.client_certificate)),
            ("--client-key", path(&self.client_key)),
            ("--ca", path(&self.ca)),
        ];
        let given = |(name, value): (_, Option<String>)| value.map(|value| (name, value));
        flags.into_iter().filter_map(given).collect()
    }
}

/// A variable of the environment, if it is set.
fn variable(name: &str) -> anyhow::Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        // Which may be a password, so it is not shown.
        Err(VarError::NotUnicode(_)) => Err(usage(format_args!("{name} is not UTF-8"))),
    }
}
