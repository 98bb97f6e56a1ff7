//! TLS: the server's certificate, those of clients, and their exchange while connections live.
//!
//! - T1. What serves new connections was read whole and checked first; files that cannot be used
//!   leave what there was in place.
//! - T2. A client's name is told only when its certificate is good, also where connections with
//!   bad ones are taken.

mod allowance;
mod files;
mod first;
mod subject;
mod verify;

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;

pub(super) use allowance::Allowance;
pub(super) use first::{First, Prefixed, first};

use crate::config::TlsConfig;
use files::Loaded;

/// The encryption of connections.
pub(crate) struct Tls {
    settings: TlsConfig,
    current: ArcSwap<Loaded>,
}

/// A connection that is encrypted now.
pub(super) struct Secured<S> {
    /// The connection.
    pub(super) stream: TlsStream<S>,
    /// The subject of the client's certificate, if it showed a good one.
    pub(super) subject: Option<String>,
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

    /// Read the files anew. Connections that are there stay as they are.
    ///
    /// # Errors
    /// As [`Tls::open`]; then new connections get what they got before.
    pub(crate) fn reload(&self) -> Result<(), String> {
        self.current.store(Arc::new(files::load(&self.settings)?));
        Ok(())
    }

    /// The subject of the server's own certificate.
    pub(crate) fn own_subject(&self) -> String {
        self.current.load().subject.clone()
    }

    /// Until when the server's own certificate is good.
    pub(crate) fn expires(&self) -> bson::DateTime {
        self.current.load().expires
    }

    /// Shake hands.
    ///
    /// # Errors
    /// What the handshake failed of.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<Secured<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let loaded = self.current.load_full();
        let acceptor = TlsAcceptor::from(Arc::clone(&loaded.server));
        let stream = acceptor.accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let subject = good_subject(&loaded, shown);
        Ok(Secured { stream, subject })
    }
}

/// The name in a chain of certificates, if it is good.
fn good_subject(loaded: &Loaded, shown: &[CertificateDer<'_>]) -> Option<String> {
    let (own, between) = shown.split_first()?;
    let strict = loaded.strict.as_ref()?;
    let now = tokio_rustls::rustls::pki_types::UnixTime::now();
    strict.verify_client_cert(own, between, now).ok()?;
    subject::of(own).ok().map(|certificate| certificate.subject)
}
