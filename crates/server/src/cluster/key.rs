//! The key file: the password of `__system`, the user that members are to each other.

use std::path::Path;

use zeroize::Zeroizing;

/// Bytes of the file; MongoDB's limit of the key is 1024.
const FILE_MAX: u64 = 16 << 10;

/// Lengths of the key.
const LENGTHS: std::ops::RangeInclusive<usize> = 6..=1_024;

/// The key.
#[derive(Clone)]
pub(crate) struct Key(Zeroizing<String>);

impl Key {
    /// Read the file. Spaces and line ends in it are not part of the key.
    ///
    /// # Errors
    /// A file that cannot be read, that others may read, or whose content is no key.
    pub(crate) fn read(path: &Path) -> Result<Key, String> {
        let place = path.display();
        let refuse = |why: &str| Err(format!("security.keyFile: {place} {why}"));
        let found = std::fs::metadata(path).map_err(|error| format!("{place}: {error}"))?;
        if FILE_MAX < found.len() {
            return refuse("is too long for a key");
        }
        let open = vfs::permissions_of_others(path).map_err(|error| format!("{place}: {error}"))?;
        if open != 0 {
            return refuse("can be read by others; run chmod 600 on it");
        }
        let bytes = Zeroizing::new(std::fs::read(path).map_err(|e| format!("{place}: {e}"))?);
        let mut key = Zeroizing::new(String::with_capacity(bytes.len()));
        for byte in bytes.iter().filter(|byte| !byte.is_ascii_whitespace()) {
            if !byte.is_ascii_alphanumeric() && !b"+/=".contains(byte) {
                return refuse("contains a character that is not of base64");
            }
            key.push(char::from(*byte));
        }
        if !LENGTHS.contains(&key.len()) {
            return refuse("must contain from 6 to 1024 characters of base64");
        }
        Ok(Key(key))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_base64_that_others_cannot_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let read = |content: &str, mode: u32| {
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Key::read(&path).map(|key| key.text().to_owned())
        };
        assert_eq!(read("abc+\n /= 12\n", 0o600).unwrap(), "abc+/=12");
        assert!(read("abcdef", 0o640).unwrap_err().contains("chmod"));
        assert!(read("abcde", 0o600).unwrap_err().contains("6 to 1024"));
        assert!(read("abcdef-", 0o600).unwrap_err().contains("base64"));
        assert!(read(&"a".repeat(1_025), 0o600).is_err());
        assert!(read(&"a ".repeat(10_000), 0o600).is_err());
        assert!(Key::read(&folder.path().join("none")).is_err());
    }
}
