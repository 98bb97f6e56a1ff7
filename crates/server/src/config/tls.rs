//! `net.tls`: encrypted connections, as MongoDB's configuration has them.

use std::path::PathBuf;

/// `net.tls.mode`: which connections are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Plain ones only.
    #[default]
    Disabled,
    /// Both. `allowTLS` and `preferTLS` differ in what a server does towards other servers.
    Allowed,
    /// Encrypted ones only.
    Required,
}

/// The settings of TLS. With a mode but `disabled` a certificate is needed.
#[derive(Debug, Clone, Default)]
pub struct TlsConfig {
    /// `net.tls.mode` (default disabled).
    pub mode: TlsMode,
    /// `net.tls.certificateKeyFile`: PEM with the server's certificate, those between it and the
    /// root, and its key without a password.
    pub certificate_key_file: Option<PathBuf>,
    /// `net.tls.CAFile`: PEM with the roots that certificates of clients come from. Without it no
    /// client is asked for one.
    pub ca_file: Option<PathBuf>,
    /// `net.tls.CRLFile`: PEM with certificates of clients that are revoked.
    pub crl_file: Option<PathBuf>,
    /// `net.tls.allowConnectionsWithoutCertificates` (default false): with a `CAFile`, take clients
    /// that show none. Those that show one must show a good one.
    pub allow_without_certificates: bool,
    /// `net.tls.allowInvalidCertificates` (default false): take clients whose certificate is not
    /// good. It does not authenticate them.
    pub allow_invalid_certificates: bool,
    /// `net.tls.disabledProtocols`: no TLS 1.2. What is older than 1.2 is never spoken.
    pub without_tls12: bool,
    /// `net.tls.disabledProtocols`: no TLS 1.3.
    pub without_tls13: bool,
}

impl TlsConfig {
    /// Take `net.tls.mode`.
    pub(super) fn set_mode(&mut self, value: &str) -> Result<(), String> {
        self.mode = match value {
            "disabled" => TlsMode::Disabled,
            "allowTLS" | "preferTLS" => TlsMode::Allowed,
            "requireTLS" => TlsMode::Required,
            _ => return Err("must be disabled, allowTLS, preferTLS or requireTLS".to_owned()),
        };
        Ok(())
    }

    /// Take `net.tls.disabledProtocols`.
    pub(super) fn set_disabled(&mut self, value: &str) -> Result<(), String> {
        (self.without_tls12, self.without_tls13) = (false, false);
        for name in value.split(',').map(str::trim) {
            match name {
                "TLS1_2" => self.without_tls12 = true,
                "TLS1_3" => self.without_tls13 = true,
                "TLS1_0" | "TLS1_1" | "none" => {}
                _ => return Err(format!("unknown protocol {name:?}; use TLS1_2 or TLS1_3")),
            }
        }
        match self.without_tls12 && self.without_tls13 {
            true => Err("leaves no protocol: TLS 1.2 and 1.3 are all there are".to_owned()),
            false => Ok(()),
        }
    }

    /// Check that the settings fit together.
    ///
    /// # Errors
    /// The setting that is missing.
    pub fn check(&self) -> Result<(), String> {
        if self.mode != TlsMode::Disabled && self.certificate_key_file.is_none() {
            let message = "net.tls.mode needs net.tls.certificateKeyFile, a PEM file with the \
                 server's certificate and key";
            return Err(message.to_owned());
        }
        if self.mode == TlsMode::Disabled && self.certificate_key_file.is_some() {
            let message = "net.tls.certificateKeyFile is given, but net.tls.mode is disabled; set \
                 it to requireTLS, preferTLS or allowTLS";
            return Err(message.to_owned());
        }
        if self.crl_file.is_some() && self.ca_file.is_none() {
            let message = "net.tls.CRLFile needs net.tls.CAFile: without it no client's \
                 certificate is looked at";
            return Err(message.to_owned());
        }
        Ok(())
    }
}
