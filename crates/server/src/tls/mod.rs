//! TLS: the certificates of the server and of clients, and their replacement at run time.
//!
//! - T1. Certificates serve new connections only after they were read whole and checked; files that
//!   cannot be used leave the ones before in place.
//! - T2. A client is named after its certificate only when that is valid, also where connections
//!   with invalid ones are accepted.

mod allowance;
mod files;
mod first;
mod members;
mod subject;
mod verify;

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

pub(crate) use allowance::Allowance;
pub(crate) use first::{First, Prefixed, first};

use crate::config::TlsConfig;
use files::Loaded;

/// The encryption of connections.
pub(crate) struct Tls {
    settings: TlsConfig,
    current: ArcSwap<Loaded>,
}

/// Files that were read and checked.
pub(crate) struct Fresh(Loaded);

/// An encrypted connection.
pub(crate) struct Secured<S> {
    /// The connection.
    pub(crate) stream: TlsStream<S>,
    /// The subject of the client's certificate, if it presented a valid one.
    pub(crate) subject: Option<String>,
    /// Whether that certificate is one of a member of the same replica set: it has the O, OU and DC
    /// of the certificate that this server shows to members.
    pub(crate) is_member: bool,
}

impl Tls {
    /// Read the files.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub(crate) fn open(settings: &TlsConfig) -> Result<Tls, String> {
        Ok(Tls {
            settings: settings.clone(),
            current: ArcSwap::from_pointee(files::load(settings)?),
        })
    }

    /// Read the files again, without using them yet.
    ///
    /// # Errors
    /// As [`Tls::open`].
    pub(crate) fn read(&self) -> Result<Fresh, String> {
        files::load(&self.settings).map(Fresh)
    }

    /// Use for new connections what was read. Open connections stay as they are.
    pub(crate) fn replace(&self, fresh: Fresh) {
        self.current.store(Arc::new(fresh.0));
    }

    /// The subject of the server's own certificate.
    pub(crate) fn own_subject(&self) -> String {
        self.current.load().subject.clone()
    }

    /// When the server's own certificate expires.
    pub(crate) fn expires(&self) -> bson::DateTime {
        self.current.load().expires
    }

    /// Perform the handshake.
    ///
    /// # Errors
    /// The error of the handshake.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<Secured<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let loaded = self.current.load_full();
        let acceptor = TlsAcceptor::from(Arc::clone(&loaded.server));
        let stream = acceptor.accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = good(&loaded, shown);
        let is_member = shown.as_ref().is_some_and(|shown| {
            !shown.organization.is_empty() && shown.organization == loaded.organization
        });
        let subject = shown.map(|shown| shown.subject);
        Ok(Secured {
            stream,
            subject,
            is_member,
        })
    }

    /// Perform the handshake as a client of another member, whose host is `name`.
    ///
    /// # Errors
    /// The error of the handshake.
    pub(crate) async fn connect<S>(&self, name: &str, stream: S) -> io::Result<client::TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.current.load().member));
        connector.connect(name, stream).await
    }
}

/// The first of a chain of certificates, if it is valid.
fn good(loaded: &Loaded, shown: &[CertificateDer<'_>]) -> Option<subject::Read> {
    let (own, between) = shown.split_first()?;
    let strict = loaded.strict.as_ref()?;
    let now = tokio_rustls::rustls::pki_types::UnixTime::now();
    strict.verify_client_cert(own, between, now).ok()?;
    subject::of(own).ok()
}

/// Why a handshake failed, with the next step where the library's text names none.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    if text.contains("UnsupportedCertVersion") {
        return "the certificate of the client is of X.509 version 1; issue it with an extension, \
            which makes it version 3: openssl x509 -req with -copy_extensions or -extfile"
            .to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
    use tokio_rustls::rustls::server::WebPkiClientVerifier;
    use tokio_rustls::rustls::{RootCertStore, crypto::ring};

    use super::*;

    /// As `openssl x509 -req` makes it without extensions; valid for a hundred years.
    const VERSION_1: &[u8] = b"-----BEGIN CERTIFICATE-----\n\
MIIBFzCBvwIUaXlKtxeqBJHCnx2+NRnmOm4MVY0wCgYIKoZIzj0EAwIwDjEMMAoG\n\
A1UEAwwDb2xkMCAXDTI2MTEyNDA5MzE0MVoYDzIxMjYxMDMxMDkzMTQxWjAOMQww\n\
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATI7xD4pf0b0R0q\n\
7iWLxOILJ5dRnhCRHOFHYEJ3xrSTzRoZfh1ClACYyWlpsp8uujdhemLP4TiBEsNg\n\
fwGwF7EpMAoGCCqGSM49BAMCA0cAMEQCIEzKXG3FJcGYsjDR51k7wP7eVs6+VWcC\n\
dxu5IW68Te2/AiA7VWfMSNbK0IU3uTu1K1KGLsx+2awdUTmTEHNN4bGjsQ==\n\
-----END CERTIFICATE-----";

    #[test]
    fn a_certificate_without_extensions_is_explained() {
        let authority = rcgen::generate_simple_self_signed(vec!["ca".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(authority.cert.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap();
        let shown = CertificateDer::from_pem_slice(VERSION_1).unwrap();
        let refused = verifier
            .verify_client_cert(&shown, &[], UnixTime::now())
            .unwrap_err();
        let reason = reason(&io::Error::other(refused));
        assert!(reason.contains("version 1"), "{reason}");
    }
}
