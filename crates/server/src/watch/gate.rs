//! Who may read the metrics: every client, or those that present the token of the settings.
//!
//! - Z1. Tokens are compared by their digests in constant time, so that neither the length nor a
//!   common beginning shows in the time of an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::Config;
use crate::tls::Tls;

/// The token and the encryption of the endpoint.
pub(crate) struct Gate {
    /// The digest of the token, if there is one.
    token: Option<[u8; 32]>,
    /// The encryption, unless the endpoint is plain HTTP.
    pub(crate) tls: Option<Tls>,
}

impl Gate {
    /// Read the files of the settings.
    ///
    /// # Errors
    /// Settings that do not fit together, or a file that cannot be used.
    pub(crate) fn open(config: &Config) -> Result<Gate, String> {
        let endpoint = &config.endpoint;
        let on = config.prometheus_port.is_some();
        endpoint.check(&config.prometheus_ip, on, config.authorization)?;
        let tls = endpoint.tls().map(|tls| Tls::open(&tls)).transpose()?;
        let token = endpoint.token()?.map(|token| digest(token.as_bytes()));
        Ok(Gate { token, tls })
    }

    /// Whether there is a token.
    pub(crate) fn is_closed(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a request with this header `Authorization` is answered: without a token every
    /// request; else `Bearer TOKEN`, or `Basic` with the token as the password, which browsers can
    /// send.
    pub(crate) fn admits(&self, header: Option<&str>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let Some((scheme, value)) = header.and_then(|header| header.split_once(' ')) else {
            return false;
        };
        let shown = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => value.trim().as_bytes().to_vec(),
            "basic" => {
                let pair = STANDARD.decode(value.trim()).unwrap_or_default();
                match pair.iter().position(|byte| *byte == b':') {
                    Some(at) => pair.into_iter().skip(at + 1).collect(),
                    None => return false,
                }
            }
            _ => return false,
        };
        // Z1: digests have one length.
        digest(&shown).ct_eq(token).into()
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z1: a token is compared whole.
    #[test]
    fn only_the_token_is_admitted() {
        let gate = Gate {
            token: Some(digest(b"0123456789abcdef")),
            tls: None,
        };
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        assert!(gate.admits(Some("Bearer 0123456789abcdef")));
        assert!(gate.admits(Some("bearer 0123456789abcdef")));
        assert!(gate.admits(Some(&basic("anyone:0123456789abcdef"))));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Digest 0123456789abcdef",
            "Basic !!!",
            &basic("0123456789abcdef"),
            &basic("0123456789abcdef:"),
        ] {
            assert!(!gate.admits(Some(wrong)), "{wrong}");
        }
        assert!(!gate.admits(None));
        let open = Gate {
            token: None,
            tls: None,
        };
        assert!(open.admits(None));
    }
}
