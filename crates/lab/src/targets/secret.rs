//! Secrets of servers that the laboratory starts: created for the run in the server's directory,
//! readable only by the server, and deleted with that directory.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use lab_report::error::{Error, Result};

/// File mode: readable by the owner only.
const MODE: u32 = 0o600;

/// Bytes of an AES-256 key.
const KEY_BYTES: usize = 32;

/// The host names and addresses for which certificates are valid.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A kind of secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    /// The data encryption key, as MariaDB's `file_key_management` reads it.
    DataKey,
    /// A certificate and its key, in one PEM file; clients trust this certificate only.
    Certificate,
}

impl Secret {
    /// Name of the file with the secret.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Secret::DataKey => "data_keys.txt",
            Secret::Certificate => "certificate.pem",
        }
    }

    /// Path of that file in a server's directory.
    pub(super) fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.file())
    }

    /// Create the file with the secret; returns its path.
    ///
    /// # Errors
    /// A message for the user, also if the file exists; it is then not changed.
    pub(super) fn make(self, directory: &Path) -> Result<PathBuf> {
        let text = match self {
            Secret::DataKey => data_key()?,
            Secret::Certificate => certificate()?,
        };
        let path = self.path(directory);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| Error::environment(format!("cannot write {}: {e}", path.display())))?;
        Ok(path)
    }
}

fn data_key() -> Result<String> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key)
        .map_err(|e| Error::environment(format!("the system gives no random bytes: {e}")))?;
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("1;{key}\n"))
}

fn certificate() -> Result<String> {
    let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned));
    let made = made.map_err(|e| Error::environment(format!("cannot make a certificate: {e}")))?;
    Ok(made.cert.pem() + &made.signing_key.serialize_pem())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secrets_differ_and_are_for_the_server_alone() {
        for secret in [Secret::DataKey, Secret::Certificate] {
            let mut all = Vec::new();
            for _ in 0..2 {
                let dir = tempfile::tempdir().unwrap();
                let path = secret.make(dir.path()).unwrap();
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, MODE);
                assert!(secret.make(dir.path()).is_err(), "what is there stays");
                all.push(fs::read_to_string(path).unwrap());
            }
            assert_ne!(all[0], all[1]);
        }
        assert_eq!(data_key().unwrap().len(), "1;\n".len() + 2 * KEY_BYTES);
        let both = certificate().unwrap();
        assert!(both.contains("BEGIN CERTIFICATE") && both.contains("PRIVATE KEY"));
    }
}
