//! TLS, by rustls: the same on every machine, with no C library to keep up to
//! date.
//!
//! The authorities that are trusted by default are the machine's own and not a
//! list built into the program: a company's authority is installed there, one
//! that turns out bad is removed there, and neither needs a new build. What the
//! user names instead is read once, when the cluster is connected to, so that a
//! path with a typo is an error there and not a connection that never opens.

mod failure;
mod unverified;

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

pub(crate) use failure::is_tls_failure;

use crate::config_error::ConfigError;
use crate::credentials::{Certificate, Credentials, Kind};
use crate::options::{Authority, TlsOptions};
use unverified::Unverified;

/// Makes the configuration of all TLS connections. Reads the named files.
///
/// # Errors
/// If a file cannot be read, or does not hold what it should. The error names
/// the file and what is wrong with it.
pub(crate) fn client_config(
    options: &TlsOptions,
    credentials: &Credentials,
) -> Result<Arc<ClientConfig>, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError::new("TLS", format!("cannot be set up: {error}")))?;
    // What is named is read also where it is then not needed: a file that is not
    // there is a mistake either way.
    let roots = authorities(options)?;
    let builder = if options.dangerous_skip_verification {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
    } else {
        builder.with_root_certificates(roots)
    };
    let config = match credentials.kind() {
        Kind::Password(_) | Kind::Token(_) => builder.with_no_client_auth(),
        Kind::Certificate(certificate) => {
            let (chain, key) = identity(certificate)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                ConfigError::new("client certificate", format!("cannot be used: {error}"))
            })?
        }
    };
    Ok(Arc::new(config))
}

/// The name that the server's certificate must be for.
///
/// # Errors
/// If a certificate cannot be for such a name.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, ConfigError> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| ConfigError::new(format!("host {host}"), "cannot be a name in a certificate"))
}

fn authorities(options: &TlsOptions) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    for authority in &options.authorities {
        match authority {
            Authority::File(path) => {
                let part = format!("trusted certificate file {}", path.display());
                let pem = read(&part, path)?;
                add(&mut roots, part, &pem)?;
            }
            Authority::Pem(pem) => add(&mut roots, "trusted certificate".into(), pem.as_bytes())?,
        }
    }
    let uses_system = options.authorities.is_empty() || options.system_authorities;
    if uses_system && !options.dangerous_skip_verification {
        add_system(&mut roots)?;
    }
    Ok(roots)
}

/// Adds every certificate of a PEM text, of which there must be one.
fn add(roots: &mut RootCertStore, part: String, pem: &[u8]) -> Result<(), ConfigError> {
    for certificate in certificates(&part, pem)? {
        if let Err(error) = roots.add(certificate) {
            let problem = format!("has a certificate that cannot be used: {error}");
            return Err(ConfigError::new(part, problem));
        }
    }
    Ok(())
}

/// Adds the certificates that the machine trusts. Invalid ones are skipped; at least
/// one must be left.
fn add_system(roots: &mut RootCertStore) -> Result<(), ConfigError> {
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(());
    }
    let problem = match found.errors.first() {
        Some(error) => format!("cannot be read from this machine: {error}"),
        None => "are not there on this machine; name one with trust_certificate".to_owned(),
    };
    Err(ConfigError::new("trusted certificates", problem))
}

fn identity(
    certificate: &Certificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError> {
    let chain = certificates("client certificate", &certificate.chain)?;
    let key = PrivateKeyDer::from_pem_slice(&certificate.key).map_err(|_| {
        // The reason might quote the key.
        let problem = "is not a private key in PEM, or is encrypted";
        ConfigError::new("key of the client certificate", problem)
    })?;
    Ok((chain, key))
}

fn certificates(part: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let wrong = |problem: String| ConfigError::new(part.to_owned(), problem);
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(format!("is not PEM: {error}")))?;
    if found.is_empty() {
        return Err(wrong("holds no certificate in PEM".into()));
    }
    Ok(found)
}

fn read(part: &str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path)
        .map_err(|error| ConfigError::new(part.to_owned(), format!("cannot be read: {error}")))
}

#[cfg(test)]
mod tests;
