//! The identity file: which engine a directory belongs to.
//!
//! Every engine's directory holds `romanesco-engine.json` with the engine's name, the version of
//! our layout in that directory, when it was created, and the options that cannot change later.
//! It is written once, atomically, before the engine creates anything, and checked at every open.

use std::fs;
use std::io;
use std::path::Path;

use kv_types::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// The name of the identity file.
pub const FILE: &str = "romanesco-engine.json";

/// The content of the identity file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The engine's name.
    pub engine: String,
    /// The version of the adapter's layout in the directory.
    pub format: u32,
    /// When the store was created: seconds since 1970-01-01 UTC.
    pub created: u64,
    /// Options that are fixed for the life of the store, as the engine writes them.
    pub options: String,
}

/// Check that `directory` belongs to `engine` or is empty; if it is empty, write its identity file.
/// `options` are recorded only then. Returns the stored identity.
///
/// # Errors
/// `Invalid` when the directory belongs to another engine (the message names both), when it holds
/// files but no identity file, or when its format is newer than `format`. `Corrupt` when the
/// identity file cannot be decoded. `Io`, `Full`.
pub fn claim(
    directory: &Path,
    engine: &'static str,
    format: u32,
    options: &str,
) -> Result<Identity> {
    if let Some(found) = read(directory)? {
        return check(found, directory, engine, format);
    }
    let fail = |e| Error::io("open", directory, e).with_engine(engine);
    vfs::ensure_private_dir(directory).map_err(fail)?;
    remove_unfinished(directory).map_err(fail)?;
    if !vfs::is_empty(directory).map_err(fail)? {
        let message = format!(
            "the directory holds files but no {FILE}, so it is not a store of {engine}; \
             name an empty directory"
        );
        return Err(Error::invalid(message)
            .with_engine(engine)
            .with_path(directory));
    }
    let identity = Identity {
        engine: engine.to_owned(),
        format,
        created: stdx::time::wall().as_secs(),
        options: options.to_owned(),
    };
    let text = serde_json::to_string_pretty(&identity).expect("plain data serialises");
    let path = directory.join(FILE);
    vfs::write_atomic(&path, text.as_bytes())
        .map_err(|e| Error::io("open", &path, e).with_engine(engine))?;
    Ok(identity)
}

/// Remove the temporary file left by a process that ended while it wrote an identity file. Such a
/// process had not created anything else.
fn remove_unfinished(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(FILE));
        if rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".tmp")) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The identity of `directory`, or `None` when it has none.
///
/// # Errors
/// `Corrupt` when the identity file cannot be decoded; `Io`.
pub fn read(directory: &Path) -> Result<Option<Identity>> {
    let path = directory.join(FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound) => return Ok(None),
        Err(e) => return Err(Error::io("open", &path, e)),
    };
    match serde_json::from_slice(&bytes) {
        Ok(identity) => Ok(Some(identity)),
        Err(e) => {
            let message = format!("not an identity file: {e}");
            Err(Error::new(ErrorKind::Corrupt, message)
                .with_path(path)
                .with_source(e))
        }
    }
}

fn check(found: Identity, directory: &Path, engine: &'static str, format: u32) -> Result<Identity> {
    let refuse = |message| {
        Err(Error::invalid(message)
            .with_engine(engine)
            .with_path(directory))
    };
    if found.engine != engine {
        return refuse(format!(
            "the directory holds a store of {}, not of {engine}; open it with {} or name another \
             directory",
            found.engine, found.engine
        ));
    }
    if found.format > format {
        return refuse(format!(
            "the store has format {}, this program knows up to {format}; use a newer program",
            found.format
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_the_engine_that_claimed_it_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = claim(dir.path(), "lmdb", 1, "page=4096").unwrap();
        assert_eq!(claim(dir.path(), "lmdb", 1, "page=8192").unwrap(), first);
        let error = claim(dir.path(), "rocksdb", 1, "").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains("lmdb") && text.contains("rocksdb"), "{text}");
    }

    #[test]
    fn a_newer_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        claim(dir.path(), "lmdb", 2, "").unwrap();
        let text = claim(dir.path(), "lmdb", 1, "").unwrap_err().to_string();
        assert!(text.contains("format 2"), "{text}");
    }

    #[test]
    fn a_claim_that_was_cut_short_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(format!("{FILE}.123.tmp"));
        fs::write(&left, b"{").unwrap();
        claim(dir.path(), "lmdb", 1, "").unwrap();
        assert!(!left.exists());
        assert_eq!(read(dir.path()).unwrap().unwrap().engine, "lmdb");
    }

    #[test]
    fn foreign_files_and_garbage_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), b"").unwrap();
        assert_eq!(
            claim(dir.path(), "lmdb", 1, "").unwrap_err().kind(),
            ErrorKind::Invalid
        );
        fs::write(dir.path().join(FILE), b"{").unwrap();
        assert_eq!(
            claim(dir.path(), "lmdb", 1, "").unwrap_err().kind(),
            ErrorKind::Corrupt
        );
    }
}
