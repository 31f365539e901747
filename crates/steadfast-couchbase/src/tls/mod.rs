//! TLS through rustls. It is the same on every machine, and needs no C library.
//!
//! By default the client trusts the machine's own authorities, and the root of
//! Couchbase Capella, which no machine has. The public authorities are not built
//! into the program. A company installs its own authority on the machine, and removes a
//! compromised one there; neither needs a new build. Other SDKs build in Mozilla's list,
//! which becomes outdated in a binary. Capella's root issues certificates only for
//! Couchbase's cloud, so trusting it adds no risk for other servers.
//!
//! Named files are read once, when the cluster is connected to. So a path with a
//! typo is an error there, and not a connection that never opens.

mod failure;
mod unverified;

use std::path::Path;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

pub(crate) use failure::is_tls_failure;

use crate::config_error::ConfigError;
use crate::credentials::{Certificate, CredentialKind, Credentials};
use crate::options::{Authority, TlsOptions};
use unverified::Unverified;

/// The root of Couchbase Capella, as the official SDKs carry it. Valid until
/// 2029-12-06. SHA-256 of its DER: `d0937e9c934b2dab94ed7a4b91c548e79eecca99…`
const CAPELLA_ROOT: &str = include_str!("capella.pem");

/// Makes the configuration of all TLS connections: the user's own, or one from the
/// options, for which the named files are read. A client certificate among the
/// credentials is shown with either.
///
/// # Errors
/// If a file cannot be read, or does not hold what it should. The error names
/// the file and what is wrong with it.
pub(crate) fn client_config(
    options: &TlsOptions,
    credentials: &Credentials,
) -> Result<Arc<ClientConfig>, ConfigError> {
    let mut config = match &options.rustls_config {
        Some(config) => ClientConfig::clone(config),
        None => from_options(options)?,
    };
    if let CredentialKind::Certificate(certificate) = credentials.kind() {
        config.client_auth_cert_resolver = resolver(certificate, config.crypto_provider())?;
    }
    Ok(Arc::new(config))
}

fn from_options(options: &TlsOptions) -> Result<ClientConfig, ConfigError> {
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
    Ok(builder.with_no_client_auth())
}

/// Shows the client certificate to servers that ask for one.
fn resolver(
    certificate: &Certificate,
    provider: &CryptoProvider,
) -> Result<Arc<dyn ResolvesClientCert>, ConfigError> {
    let (chain, key) = identity(certificate)?;
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        ConfigError::new("client certificate", format!("cannot be used: {error}"))
    })?;
    Ok(Arc::new(SingleCertAndKey::from(certified)))
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
    if options.dangerous_skip_verification {
        return Ok(roots);
    }
    if options.authorities.is_empty() {
        add(
            &mut roots,
            "root of Capella".into(),
            CAPELLA_ROOT.as_bytes(),
        )?;
    }
    if options.authorities.is_empty() || options.system_authorities {
        add_system(&mut roots);
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

/// Adds the certificates that the machine trusts. Invalid ones are skipped. A
/// machine without any, such as a minimal container, can still reach Capella and
/// servers of named authorities; others are reported as untrusted.
fn add_system(roots: &mut RootCertStore) {
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return;
    }
    match found.errors.first() {
        Some(error) => tracing::warn!(%error, "this machine's trusted certificates are unreadable"),
        None => tracing::info!("this machine has no trusted certificates"),
    }
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
