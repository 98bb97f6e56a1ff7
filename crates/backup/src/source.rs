//! Reading a backup, a directory or an archive: its entries, its manifest, the bytes of a file.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kv::{Error, ErrorKind, Result};

use crate::archive;
use crate::entry::{Entry, Kind};
use crate::manifest::{self, BYTES_MAX, FILES_MAX, Manifest};

/// Depth of the directories of a backup that are looked into.
const DEPTH_MAX: usize = 10;

/// A backup that is being read.
pub struct Source {
    path: PathBuf,
    /// The open file of an archive.
    archive: Option<fs::File>,
    entries: BTreeMap<String, Entry>,
}

impl Source {
    /// Open a backup.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for an archive that is damaged; `Io`.
    pub fn open(path: &Path) -> Result<Source> {
        let fail = |e| unreadable("open the backup", path, e);
        let is_dir = fs::metadata(path).map_err(fail)?.is_dir();
        let mut source = Source {
            path: path.to_owned(),
            archive: None,
            entries: BTreeMap::new(),
        };
        if is_dir {
            source.list(path, "", 0)?;
        } else {
            let mut file = fs::File::open(path).map_err(fail)?;
            if file.metadata().map_err(fail)?.is_file() {
                source.entries = archive::index(&mut file, path)?;
                source.archive = Some(file);
            } else {
                let message = "it is neither a directory nor an archive";
                return Err(Error::invalid(message).with_path(path));
            }
        }
        Ok(source)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in it but the manifest.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Entry)> {
        let entries = self
            .entries
            .iter()
            .map(|(name, entry)| (name.as_str(), *entry));
        entries.filter(|(name, _)| *name != manifest::FILE)
    }

    /// The entry with this name.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        self.entries.get(name).map(|entry| entry.kind)
    }

    fn list(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<()> {
        let fail = |e| unreadable("list the backup", directory, e);
        for entry in fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let metadata = entry.metadata().map_err(fail)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = if metadata.is_dir() {
                Kind::Directory
            } else if metadata.is_file() {
                let (size, offset) = (metadata.len(), 0);
                Kind::File { size, offset }
            } else {
                Kind::Other
            };
            if 2 * FILES_MAX < self.entries.len() {
                return Err(Error::corrupt("the directory has too many files").with_path(directory));
            }
            if kind == Kind::Directory && depth < DEPTH_MAX {
                self.list(&entry.path(), &format!("{name}/"), depth + 1)?;
            }
            self.entries.insert(name, Entry { kind });
        }
        Ok(())
    }

    /// Read the manifest.
    ///
    /// # Errors
    /// `Corrupt` for a backup that is not complete, or whose manifest is damaged; `Unsupported` for
    /// one of a newer version.
    pub fn manifest(&self) -> Result<Manifest> {
        self.read_manifest().map(|(manifest, _)| manifest)
    }

    /// Read the manifest, and its digest.
    ///
    /// # Errors
    /// Those of [`Source::manifest`].
    pub(crate) fn read_manifest(&self) -> Result<(Manifest, String)> {
        let size = match self.kind(manifest::FILE) {
            Some(Kind::File { size, .. }) => size,
            _ => {
                let message = format!(
                    "this is no complete backup: {} is missing. A backup that was ended early, or \
                     is still being taken, has none",
                    manifest::FILE
                );
                return Err(Error::new(ErrorKind::Corrupt, message).with_path(&self.path));
            }
        };
        if BYTES_MAX < size {
            let message = format!("{} is too large to be a manifest", manifest::FILE);
            return Err(Error::corrupt(message).with_path(&self.path));
        }
        let mut bytes = Vec::new();
        let read = self.read(manifest::FILE)?.read_to_end(&mut bytes);
        read.map_err(|e| Error::io("read the manifest", &self.path, e))?;
        Manifest::decode(&bytes).map_err(|e| e.with_path(&self.path))
    }

    /// The bytes of a regular file among the entries, no more than it had when the backup was
    /// opened.
    pub(crate) fn read(&self, name: &str) -> Result<Box<dyn Read + '_>> {
        let missing = || Error::new(ErrorKind::NotFound, format!("{name} is not in the backup"));
        let Some(Kind::File { size, offset }) = self.kind(name) else {
            return Err(missing().with_path(&self.path));
        };
        let fail = |e| Error::io("read the backup", &self.path.join(name), e);
        let Some(mut archive) = self.archive.as_ref() else {
            let flag = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits());
            let flag = flag.expect("a flag of open(2) is an int");
            let mut options = OpenOptions::new();
            let path = self.path.join(name);
            let file = options.read(true).custom_flags(flag).open(path);
            return Ok(Box::new(file.map_err(fail)?.take(size)));
        };
        archive.seek(SeekFrom::Start(offset)).map_err(fail)?;
        Ok(Box::new(archive.take(size)))
    }
}

/// The error of a backup that is missing, or that this user may not read, or another one.
fn unreadable(operation: &'static str, path: &Path, error: io::Error) -> Error {
    let (kind, message) = match error.kind() {
        io::ErrorKind::NotFound => (
            ErrorKind::NotFound,
            "no backup has this path; check the name, and that its disk is mounted",
        ),
        io::ErrorKind::PermissionDenied => (
            ErrorKind::Io,
            "this user may not read the backup; run the command as the user that owns it",
        ),
        _ => return Error::io(operation, path, error),
    };
    Error::new(kind, message).with_path(path).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_name_the_next_step() {
        let refused = |kind: io::ErrorKind| {
            let error = unreadable("open", Path::new("/backup/monday"), kind.into());
            (error.kind(), error.to_string())
        };
        let (kind, text) = refused(io::ErrorKind::PermissionDenied);
        assert_eq!(kind, ErrorKind::Io);
        assert!(
            text.contains("as the user that owns it [/backup/monday]"),
            "{text}"
        );
        let (kind, text) = refused(io::ErrorKind::NotFound);
        assert_eq!(kind, ErrorKind::NotFound);
        assert!(text.contains("check the name"), "{text}");
        let (kind, text) = refused(io::ErrorKind::TimedOut);
        assert!(
            kind == ErrorKind::Io && text.contains("(in open)"),
            "{text}"
        );
    }
}
