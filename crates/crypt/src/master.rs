//! The master key, and the file in which the operator keeps it: 32 bytes in base64.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use zeroize::Zeroizing;

use crate::error::KeyError;

/// The most bytes read from the file of a master key: 44 of base64, and white space.
const FILE_MAX: usize = 1024;

/// The key that wraps the data keys of a store.
#[derive(Clone)]
pub struct MasterKey {
    secret: Arc<Zeroizing<[u8; 32]>>,
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.fingerprint())
    }
}

/// Whether both are the same key, in a time that does not depend on the keys.
impl PartialEq for MasterKey {
    fn eq(&self, other: &MasterKey) -> bool {
        let differs = |all: u8, (a, b): (&u8, &u8)| all | (a ^ b);
        self.secret.iter().zip(other.secret.iter()).fold(0, differs) == 0
    }
}

impl Eq for MasterKey {}

impl MasterKey {
    /// The master key with these bytes.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> MasterKey {
        MasterKey {
            secret: Arc::new(Zeroizing::new(secret)),
        }
    }

    /// Read a master key: 32 bytes in base64, in a file of this user that no other user can read.
    ///
    /// # Errors
    /// `Unreadable`, `Unfit`.
    pub fn read(path: &Path) -> Result<MasterKey, KeyError> {
        let unreadable = |source| KeyError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let unfit = |why: String| KeyError::Unfit {
            path: path.to_owned(),
            why,
        };
        // Opened without waiting: a pipe would never be ready.
        let flags =
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty())
            .map_err(|error| unreadable(error.into()))?;
        let file = File::from(file);
        // Of the open file: the path may name another one by now.
        let metadata = file.metadata().map_err(unreadable)?;
        if let Some(why) = not_private(&metadata) {
            return Err(unfit(why));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(FILE_MAX));
        file.take(FILE_MAX as u64)
            .read_to_end(&mut text)
            .map_err(unreadable)?;
        MasterKey::parse(&text).map_err(unfit)
    }

    /// The key in `text`, the content of a file.
    fn parse(text: &[u8]) -> Result<MasterKey, String> {
        let text = text.trim_ascii();
        let mut bytes = Zeroizing::new([0; 48]);
        let found = STANDARD.decode_slice(text, &mut *bytes).ok();
        let key = bytes.first_chunk::<32>().filter(|_| found == Some(32));
        let key = key.ok_or(
            "does not hold a key: write 32 random bytes in base64 to it, \
             with `openssl rand -base64 32`",
        )?;
        Ok(MasterKey::new(*key))
    }

    /// Eight bytes in hexadecimal by which operators can tell keys apart; they say nothing of the
    /// key.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let tag = self.tag(b"romanesco 1 fingerprint");
        tag.iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// A value that only this key has for `label`.
    pub(crate) fn tag(&self, label: &[u8]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &**self.secret);
        let tag = hmac::sign(&key, label);
        tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

/// Why a file is not private, if it is not.
fn not_private(metadata: &Metadata) -> Option<String> {
    if !metadata.is_file() {
        return Some("is not a file: name a file".to_owned());
    }
    let mode = metadata.mode() & 0o7777;
    if mode != 0o600 && mode != 0o400 {
        return Some(format!(
            "has mode {mode:04o}, so that other users may read it: set mode 0600 or 0400"
        ));
    }
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != user {
        return Some(format!(
            "belongs to user {owner}, and the program runs as user {user}: change the owner"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn file(directory: &Path, text: &str, mode: u32) -> Result<MasterKey, KeyError> {
        let path = directory.join("key");
        let _ = fs::remove_file(&path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        MasterKey::read(&path)
    }

    #[test]
    fn a_key_file_must_be_private_and_hold_32_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let check = |text: &str, mode| file(directory.path(), text, mode);
        let good = STANDARD.encode([7; 32]);
        for (text, mode) in [(good.clone(), 0o600), (format!("  {good}\n"), 0o400)] {
            assert_eq!(check(&text, mode).unwrap(), MasterKey::new([7; 32]));
        }
        for mode in [0o644, 0o640, 0o660, 0o604, 0o700, 0o4600] {
            let error = check(&good, mode).unwrap_err().to_string();
            assert!(error.contains("0600 or 0400"), "{mode:o}: {error}");
        }
        let long = STANDARD.encode([7; 33]);
        let short = STANDARD.encode([7; 31]);
        for text in [
            "",
            "key",
            &long,
            &short,
            &good.repeat(40),
            &format!("{good}x"),
        ] {
            let error = check(text, 0o600).unwrap_err().to_string();
            assert!(error.contains("openssl rand -base64 32"), "{error}");
            assert!(!error.contains(&good), "the key is not printed");
        }
        let error = MasterKey::read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("not a file"), "{error}");
        let missing = MasterKey::read(&directory.path().join("none")).unwrap_err();
        assert!(matches!(missing, KeyError::Unreadable { .. }), "{missing}");
    }

    #[test]
    fn keys_are_compared_and_never_printed() {
        // I4: nothing prints a key.
        let mut other = [7; 32];
        other[31] ^= 1;
        let (key, other) = (MasterKey::new([7; 32]), MasterKey::new(other));
        assert_eq!(key, key.clone());
        assert_ne!(key, other);
        assert_ne!(key.fingerprint(), other.fingerprint());
        let printed = format!("{key:?}");
        assert_eq!(printed, format!("MasterKey({})", key.fingerprint()));
        assert!(!printed.contains("0707"), "{printed}");
    }
}
