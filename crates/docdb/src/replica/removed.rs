//! Files of documents that a rollback removes or changes, as they were before it: for the operator,
//! who may want some of them back.
//!
//! `DIRECTORY/DB.COLL.UUID/removed.SECONDS-INCREMENT.bson`, documents one after another as
//! `mongorestore` reads them. The time is that of the position that is rolled back to. Characters
//! of names beyond letters, digits, `-`, `_` and `.` are written as `%` and two hexadecimal digits.
//! A rollback that is continued after a crash may append a document twice.
//!
//! - Y1. Files and directories are readable by their owner only. A store that is encrypted leaves
//!   no files: they would not be encrypted, because the key of a store belongs to its engine.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use bson::{RawDocument, Timestamp, Uuid};
use query::{Code, Error, Namespace, Result};

use crate::store::Store;

/// The longest name of a directory before the UUID: file systems allow 255 bytes.
const NAME_MAX: usize = 160;

/// What a rollback has removed or changed.
#[derive(Debug, Default)]
pub struct Removed {
    directory: Option<PathBuf>,
    stamp: String,
    open: Option<(PathBuf, File)>,
    /// The files that have documents.
    pub files: Vec<PathBuf>,
    /// Documents in the files.
    pub saved: u64,
    /// Documents in no file: the store is encrypted, or has no directory for them.
    pub unsaved: u64,
}

impl Removed {
    /// Nothing yet, for a rollback to a time.
    pub(super) fn new(store: &Store, time: Timestamp) -> Removed {
        let plain = store.engine().encryption().is_none();
        let directory = store.options().rollback_dir.clone();
        Removed {
            directory: directory.filter(|_| plain),
            stamp: format!("{}-{}", time.time, time.increment),
            ..Removed::default()
        }
    }

    /// Add a document.
    ///
    /// # Errors
    /// I/O errors, which name the file.
    pub(super) fn add(
        &mut self,
        (ns, uuid): (&Namespace, Uuid),
        document: &RawDocument,
    ) -> Result<()> {
        let Some(directory) = &self.directory else {
            self.unsaved += 1;
            return Ok(());
        };
        let mut name = escaped(&ns.to_string());
        name.truncate(NAME_MAX);
        let directory = directory.join(format!("{name}.{uuid}"));
        let path = directory.join(format!("removed.{}.bson", self.stamp));
        if self.open.as_ref().is_none_or(|(open, _)| *open != path) {
            self.sync()?;
            let file = create(&directory, &path).map_err(|error| failed(&path, &error))?;
            if !self.files.contains(&path) {
                self.files.push(path.clone());
            }
            self.open = Some((path, file));
        }
        if let Some((path, file)) = &mut self.open {
            let written = file.write_all(document.as_bytes());
            written.map_err(|error| failed(path, &error))?;
        }
        self.saved += 1;
        Ok(())
    }

    /// Make what was added durable.
    ///
    /// # Errors
    /// I/O errors, which name the file.
    pub(super) fn sync(&mut self) -> Result<()> {
        match self.open.take() {
            Some((path, file)) => file.sync_all().map_err(|error| failed(&path, &error)),
            None => Ok(()),
        }
    }
}

fn create(directory: &PathBuf, path: &PathBuf) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.open(path)
}

/// A name of a directory.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'-' | b'_' | b'.' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => write!(out, "%{byte:02X}").expect("a string takes all"),
        }
        out
    })
}

fn failed(path: &std::path::Path, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => Code::OUT_OF_DISK_SPACE,
        _ => Code::INTERNAL_ERROR,
    };
    let message = format!(
        "cannot save documents that are rolled back in {}: {error}",
        path.display()
    );
    Error::new(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_directory() {
        assert_eq!(escaped("test.a/../b c"), "test.a%2F..%2Fb%20c");
        assert_eq!(escaped("t.\u{e9}"), "t.%C3%A9");
    }
}
