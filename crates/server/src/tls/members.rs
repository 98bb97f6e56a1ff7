//! Checks the certificates of other members of the replica set, as a client of them.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::files::{revoked, wrong};
use crate::config::TlsConfig;

/// The verifier that the settings ask for.
///
/// # Errors
/// The file that cannot be used, and why.
pub(super) fn verifier(
    settings: &TlsConfig,
    roots: Option<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let strict = match (settings.ca_file.as_deref(), roots) {
        (Some(path), Some(roots)) => {
            let provider = Arc::clone(provider);
            let mut builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            if let Some(path) = settings.crl_file.as_deref() {
                builder = builder
                    .with_crls(revoked(path)?)
                    .allow_unknown_revocation_status();
            }
            Some(builder.build().map_err(|error| wrong(path, &error))?)
        }
        _ => None,
    };
    Ok(Arc::new(Verifier {
        strict,
        any_certificate: settings.allow_invalid_certificates,
        any_name: settings.allow_invalid_hostnames,
        provider: Arc::clone(provider),
    }))
}

#[derive(Debug)]
struct Verifier {
    /// `None` without authorities: then no certificate is valid.
    strict: Option<Arc<WebPkiServerVerifier>>,
    any_certificate: bool,
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.any_certificate {
            return Ok(ServerCertVerified::assertion());
        }
        let Some(strict) = &self.strict else {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        match strict.verify_server_cert(own, between, name, ocsp, now) {
            // The name is looked at last: everything else is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
