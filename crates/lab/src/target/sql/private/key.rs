//! The key of a private server's data: made for the run, in the server's directory, gone with it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The file, in the directory of the server.
const FILE: &str = "data_keys.txt";

/// Who may read it.
const MODE: u32 = 0o600;

/// Bytes of a key of AES-256.
const KEY_BYTES: usize = 32;

/// Where the key of the server in this directory is, as `file_key_management` reads it.
pub(super) fn file(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Make it, readable by the server alone.
///
/// # Errors
/// A sentence.
pub(super) fn make(directory: &Path) -> Result<(), String> {
    let path = file(directory);
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|e| format!("the system gives no random bytes: {e}"))?;
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&path);
    let written = file.and_then(|mut file| file.write_all(format!("1;{key}\n").as_bytes()));
    written.map_err(|e| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_differ_and_are_for_the_server_alone() {
        let mut all = Vec::new();
        for _ in 0..2 {
            let dir = tempfile::tempdir().unwrap();
            make(dir.path()).unwrap();
            let path = file(dir.path());
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, MODE);
            let text = fs::read_to_string(path).unwrap();
            assert_eq!(text.len(), "1;\n".len() + 2 * KEY_BYTES);
            assert!(make(dir.path()).is_err(), "a key that is there stays");
            all.push(text);
        }
        assert_ne!(all[0], all[1]);
    }
}
