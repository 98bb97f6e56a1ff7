//! `net.prometheus`: who may read the metrics, how they are encrypted, and the page about the
//! server.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use super::tls::{TlsConfig, TlsMode};
use crate::limits;

/// Minimum length of a token: 16 random characters cannot be guessed.
const TOKEN: usize = 16;

/// The settings of the endpoint beside its address.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// `net.prometheus.tokenFile`: the file of the token that requests must present. Without it
    /// every request is answered.
    pub token_file: Option<PathBuf>,
    /// `net.prometheus.tls.certificateKeyFile`: as in `net.tls`. Without it the endpoint is plain
    /// HTTP.
    pub certificate_key_file: Option<PathBuf>,
    /// `net.prometheus.tls.CAFile`: clients must present a certificate of one of these roots.
    pub ca_file: Option<PathBuf>,
    /// `net.prometheus.statusPage` (default false): serve the page about the server.
    pub status_page: bool,
    /// Time between two samples for the page (default 5 s). Not a setting of the file; tests use
    /// shorter times.
    pub period: Duration,
}

impl Default for EndpointConfig {
    fn default() -> EndpointConfig {
        EndpointConfig {
            token_file: None,
            certificate_key_file: None,
            ca_file: None,
            status_page: false,
            period: limits::SAMPLES,
        }
    }
}

impl EndpointConfig {
    /// The settings of the encryption, unless the endpoint is plain HTTP.
    pub(crate) fn tls(&self) -> Option<TlsConfig> {
        let certificate = self.certificate_key_file.clone()?;
        Some(TlsConfig {
            mode: TlsMode::Required,
            certificate_key_file: Some(certificate),
            ca_file: self.ca_file.clone(),
            ..TlsConfig::default()
        })
    }

    /// The token.
    ///
    /// # Errors
    /// A file that cannot be read, or whose token is too short.
    pub(crate) fn token(&self) -> Result<Option<Zeroizing<String>>, String> {
        self.token_file.as_deref().map(read).transpose()
    }

    /// Check that the settings fit together. `ip` is its addresses, `on` whether it
    /// has a port, `authorization` whether clients of the server must authenticate.
    ///
    /// # Errors
    /// The setting that is missing.
    pub(crate) fn check(&self, ip: &str, on: bool, authorization: bool) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        if self.ca_file.is_some() && self.certificate_key_file.is_none() {
            return refuse("net.prometheus.tls.CAFile needs net.prometheus.tls.certificateKeyFile");
        }
        if !self.status_page {
            return Ok(());
        }
        if !on {
            return refuse("net.prometheus.statusPage needs net.prometheus.port");
        }
        if self.token_file.is_some() {
            return Ok(());
        }
        if authorization {
            return refuse(
                "net.prometheus.statusPage shows commands and names of collections, so with \
                 security.authorization it needs net.prometheus.tokenFile",
            );
        }
        if !is_loopback(ip) {
            return refuse(
                "net.prometheus.statusPage on an address other than 127.0.0.1 needs \
                 net.prometheus.tokenFile",
            );
        }
        Ok(())
    }
}

/// Whether only this machine reaches the addresses, which are separated by commas.
pub(crate) fn is_loopback(addresses: &str) -> bool {
    let one = |name| name == "localhost" || address(name).is_some_and(|ip| ip.is_loopback());
    addresses.split(',').map(str::trim).all(one)
}

/// The address that a name is, if it is one; that of IPv6 may be in brackets.
pub(crate) fn address(name: &str) -> Option<IpAddr> {
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    literal.parse().ok()
}

fn read(path: &Path) -> Result<Zeroizing<String>, String> {
    let place = path.display();
    let text = fs::read_to_string(path);
    let text = Zeroizing::new(
        text.map_err(|error| format!("net.prometheus.tokenFile: {place}: {error}"))?,
    );
    let token = text.trim();
    let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
    match TOKEN <= token.len() && is_token {
        true => Ok(Zeroizing::new(token.to_owned())),
        false => Err(format!(
            "net.prometheus.tokenFile: {place}: it must hold one word of at least {TOKEN} \
             characters, for example from `openssl rand -hex 32`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_long_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (text, good) in [
            ("0123456789abcdef\n", true),
            ("0123456789abcde", false),
            ("0123456789 abcdef", false),
            ("", false),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).is_ok(), good, "{text:?}");
        }
        assert!(read(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn the_page_is_not_open_to_everyone() {
        let page = EndpointConfig {
            status_page: true,
            ..EndpointConfig::default()
        };
        assert!(page.check("127.0.0.1", true, false).is_ok());
        assert!(page.check("[::1]", true, false).is_ok());
        assert!(page.check("127.0.0.1", false, false).is_err());
        assert!(page.check("127.0.0.1", true, true).is_err());
        assert!(page.check("0.0.0.0", true, false).is_err());
        assert!(page.check("127.0.0.1, 127.0.0.2", true, false).is_ok());
        assert!(page.check("127.0.0.1,0.0.0.0", true, false).is_err());
        let with_token = EndpointConfig {
            token_file: Some(PathBuf::from("token")),
            ..page
        };
        assert!(with_token.check("0.0.0.0", true, true).is_ok());
    }
}
