//! The files of TLS, read and checked whole. Every error names its file.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer,
};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version,
};
use zeroize::Zeroizing;

use super::members;
use super::subject;
use super::verify::Lenient;
use crate::config::TlsConfig;

/// The configuration built from validated certificates.
pub(super) struct Loaded {
    /// The configuration of handshakes.
    pub(super) server: Arc<ServerConfig>,
    /// The configuration of handshakes with other members.
    pub(super) member: Arc<ClientConfig>,
    /// The attributes O, OU and DC of the certificate that other members are shown.
    pub(super) organization: BTreeSet<String>,
    /// Verifies client certificates; `None` if clients are not asked for one.
    pub(super) strict: Option<Arc<dyn ClientCertVerifier>>,
    /// The subject of the server's certificate.
    pub(super) subject: String,
    /// When it expires.
    pub(super) expires: bson::DateTime,
}

/// Read all files of the settings.
///
/// # Errors
/// The file that cannot be used, and why.
pub(super) fn load(settings: &TlsConfig) -> Result<Loaded, String> {
    let path = settings.certificate_key_file.as_deref();
    let path = path.ok_or("net.tls.certificateKeyFile is not set")?;
    let (chain, key, own) = identity(path)?;
    let provider = Arc::new(ring::default_provider());
    let roots = settings.ca_file.as_deref().map(roots).transpose()?;
    let strict = clients(settings, roots.as_ref(), &provider)?;
    let shown = match settings.cluster_file.as_deref() {
        None => (
            path,
            chain.clone(),
            key.clone_key(),
            own.organization.clone(),
        ),
        Some(path) => {
            let (chain, key, own) = identity(path)?;
            (path, chain, key, own.organization)
        }
    };
    let (shown_path, shown_chain, shown_key, organization) = shown;
    let member = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(settings))
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(members::verifier(settings, roots, &provider)?)
        .with_client_auth_cert(shown_chain, shown_key)
        .map_err(|error| wrong(shown_path, &error))?;
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(settings))
        .map_err(|error| error.to_string())?;
    let builder = match &strict {
        None => builder.with_no_client_auth(),
        Some(strict) if settings.allow_invalid_certificates => {
            builder.with_client_cert_verifier(Arc::new(Lenient(Arc::clone(strict))))
        }
        Some(strict) => builder.with_client_cert_verifier(Arc::clone(strict)),
    };
    let server = builder
        .with_single_cert(chain, key)
        .map_err(|error| wrong(path, &error))?;
    let until = i64::try_from(own.until).unwrap_or(i64::MAX / 1_000);
    Ok(Loaded {
        server: Arc::new(server),
        member: Arc::new(member),
        organization,
        strict,
        subject: own.subject,
        expires: bson::DateTime::from_millis(until.saturating_mul(1_000)),
    })
}

/// The certificates of a file, the first of which is the server's, and its key.
type Identity = (
    Vec<CertificateDer<'static>>,
    PrivateKeyDer<'static>,
    subject::Read,
);

fn identity(path: &Path) -> Result<Identity, String> {
    let text = read(path)?;
    let chain = certificates(path, &text)?;
    let first = chain
        .first()
        .ok_or_else(|| wrong(path, &"has no certificate"))?;
    let own = subject::of(first).map_err(|error| wrong(path, &error))?;
    in_time(path, &own)?;
    let key = key(path, &text)?;
    Ok((chain, key, own))
}

pub(super) fn wrong(path: &Path, what: &dyn Display) -> String {
    format!("{}: {what}", path.display())
}

/// The text of a file, which may hold a private key.
fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let text = fs::read(path).map_err(|error| wrong(path, &error))?;
    Ok(Zeroizing::new(text))
}

fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|error| wrong(path, &format!("is no good PEM: {error}")))?;
    match all.is_empty() {
        true => Err(wrong(path, &"has no certificate")),
        false => Ok(all),
    }
}

fn key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let shown = String::from_utf8_lossy(text);
    if shown.contains("BEGIN ENCRYPTED PRIVATE KEY") || shown.contains("Proc-Type: 4,ENCRYPTED") {
        let place = path.display();
        let what = format!(
            "its key has a password, which is not supported; take it off with `openssl pkey -in \
             {place}` and keep the file readable for the server alone"
        );
        return Err(wrong(path, &what));
    }
    PrivateKeyDer::from_pem_slice(text)
        .map_err(|error| wrong(path, &format!("has no private key: {error}")))
}

fn in_time(path: &Path, certificate: &subject::Read) -> Result<(), String> {
    let now = stdx::time::wall().as_secs();
    let subject = &certificate.subject;
    if now < certificate.from {
        return Err(wrong(
            path,
            &format!("the certificate of {subject} is not valid yet"),
        ));
    }
    if certificate.until < now {
        return Err(wrong(
            path,
            &format!("the certificate of {subject} has expired"),
        ));
    }
    Ok(())
}

/// The enabled versions of TLS.
fn versions(settings: &TlsConfig) -> Vec<&'static SupportedProtocolVersion> {
    let mut versions = Vec::new();
    if !settings.without_tls13 {
        versions.push(&version::TLS13);
    }
    if !settings.without_tls12 {
        versions.push(&version::TLS12);
    }
    versions
}

/// The certificates of authorities in a file.
fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let mut late = None;
    for root in certificates(path, &read(path)?)? {
        let known = subject::of(&root).map_err(|error| wrong(path, &error))?;
        // A bundle of roots may hold some that have expired.
        match in_time(path, &known) {
            Ok(()) => roots.add(root).map_err(|error| wrong(path, &error))?,
            Err(error) => late = Some(error),
        }
    }
    if let (true, Some(error)) = (roots.is_empty(), late) {
        return Err(error);
    }
    Ok(roots)
}

/// The verifier of client certificates, if clients are asked for any.
fn clients(
    settings: &TlsConfig,
    roots: Option<&RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let (Some(path), Some(roots)) = (settings.ca_file.as_deref(), roots) else {
        return Ok(None);
    };
    let mut builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots.clone()), Arc::clone(provider));
    if let Some(path) = settings.crl_file.as_deref() {
        builder = builder
            .with_crls(revoked(path)?)
            .allow_unknown_revocation_status();
    }
    if settings.allow_without_certificates {
        builder = builder.allow_unauthenticated();
    }
    builder
        .build()
        .map(Some)
        .map_err(|error| wrong(path, &error))
}

pub(super) fn revoked(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let text = read(path)?;
    let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| wrong(path, &format!("is no good PEM: {error}")))?;
    match all.is_empty() {
        true => Err(wrong(path, &"has no list of revoked certificates")),
        false => Ok(all),
    }
}
