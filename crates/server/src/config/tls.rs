//! `net.tls`: encrypted connections, as MongoDB's configuration has them.

use std::path::PathBuf;

/// `net.tls.mode`: which connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Only plain connections.
    #[default]
    Disabled,
    /// Both kinds; connections to other members are plain (`allowTLS`).
    Allowed,
    /// Both kinds; connections to other members are encrypted (`preferTLS`).
    Preferred,
    /// Only encrypted connections.
    Required,
}

/// The settings of TLS. Every mode except `disabled` requires a certificate.
#[derive(Debug, Clone, Default)]
pub struct TlsConfig {
    /// `net.tls.certificateKeyFile`: PEM with the server's certificate, any intermediate
    /// certificates, and the unencrypted private key.
    pub mode: TlsMode,
    /// `net.tls.certificateKeyFile`: PEM with the server's certificate, those between it and the
    /// root, and its key without a password.
    pub certificate_key_file: Option<PathBuf>,
    /// `net.tls.clusterFile`: PEM with the certificate and the key that this server shows to other
    /// members of its replica set (default: `certificate_key_file`).
    pub cluster_file: Option<PathBuf>,
    /// `net.tls.CAFile`: PEM with the root certificates for clients and other members. Without it
    /// clients are not asked for a certificate.
    pub ca_file: Option<PathBuf>,
    /// `net.tls.CRLFile`: PEM with a list of revoked client certificates.
    pub crl_file: Option<PathBuf>,
    /// `net.tls.allowConnectionsWithoutCertificates` (default false): with a `CAFile`, accept
    /// clients without a certificate. A certificate that is presented must be valid.
    pub allow_without_certificates: bool,
    /// `net.tls.allowInvalidCertificates` (default false): accept clients and members with an
    /// invalid certificate, which does not authenticate them.
    pub allow_invalid_certificates: bool,
    /// `net.tls.allowInvalidHostnames` (default false): accept certificates of other members for
    /// any host.
    pub allow_invalid_hostnames: bool,
    /// `net.tls.disabledProtocols`: whether TLS 1.2 is disabled. Earlier versions are not
    /// supported.
    pub without_tls12: bool,
    /// `net.tls.disabledProtocols`: whether TLS 1.3 is disabled.
    pub without_tls13: bool,
}

impl TlsConfig {
    /// Parse `net.tls.mode`.
    pub(super) fn set_mode(&mut self, value: &str) -> Result<(), String> {
        self.mode = match value {
            "disabled" => TlsMode::Disabled,
            "allowTLS" => TlsMode::Allowed,
            "preferTLS" => TlsMode::Preferred,
            "requireTLS" => TlsMode::Required,
            _ => return Err("must be disabled, allowTLS, preferTLS or requireTLS".to_owned()),
        };
        Ok(())
    }

    /// Parse `net.tls.disabledProtocols`.
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

    /// Whether connections to other members are encrypted.
    #[must_use]
    pub fn encrypts_members(&self) -> bool {
        matches!(self.mode, TlsMode::Preferred | TlsMode::Required)
    }

    /// Check that the settings are complete.
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
