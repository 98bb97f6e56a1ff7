//! What stores the files of a backup.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kv::{Error, ErrorKind, Result};
use vfs::{File, Open, PRIVATE_FILE, RealVfs, Site, Vfs};

use crate::pinned;

/// Something that stores the files of a backup, one after another.
pub(crate) trait Target {
    /// A directory beside the files that does not exist, on the same file system.
    fn staging(&self) -> PathBuf;

    /// Begin a file; its stored size, if it is known already.
    fn begin(&mut self, name: &str, size: Option<u64>) -> Result<()>;

    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// End the file, and make it durable.
    fn end(&mut self) -> Result<()>;

    /// B1: make everything durable, then add the manifest, atomically.
    fn seal(&mut self, manifest: &[u8]) -> Result<()>;

    /// Remove everything that was written.
    fn discard(&mut self);
}

/// A file that is written from its beginning on.
pub(crate) struct Output {
    file: Box<dyn File>,
    path: PathBuf,
    /// The number of bytes written.
    pub(crate) length: u64,
}

impl Output {
    /// Create a file for its owner only. One that exists, also a symbolic link, is an error.
    pub(crate) fn create(path: &Path) -> Result<Output> {
        Output::create_at(path, path)
    }

    /// Create the file `at`, which messages call `path`.
    pub(crate) fn create_at(at: &Path, path: &Path) -> Result<Output> {
        let fail = |e| Error::io("create a file of the backup", path, e);
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(PRIVATE_FILE);
        let created = created.open(at).map_err(|e| taken(path, e))?;
        let how = Open {
            create: false,
            direct: false,
        };
        // What was created, and not what has its name by now.
        let again = pinned::of(&created);
        let opened = RealVfs::new().open(Site("backup.target.open"), &again, how);
        Ok(Output {
            file: opened.map_err(fail)?,
            path: path.to_owned(),
            length: 0,
        })
    }

    /// Make room for bytes that follow, so that a full disk is found before hours of copying.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<()> {
        let reserved = self
            .file
            .allocate(Site("backup.target.allocate"), self.length, bytes);
        reserved.map_err(|e| Error::io("make room for the backup", &self.path, e))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Write at an offset, also behind the end.
    pub(crate) fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        self.overwrite(offset, bytes)?;
        // What is left for the sync at the end is little.
        self.file.start_writeback(offset, bytes.len() as u64);
        Ok(())
    }

    /// Write at an offset before the end.
    pub(crate) fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let written = self
            .file
            .write_at(Site("backup.target.write"), bytes, offset);
        written.map_err(|e| Error::io("write the backup", &self.path, e))
    }

    pub(crate) fn sync(&mut self) -> Result<()> {
        let synced = self.file.sync(Site("backup.target.sync"));
        synced.map_err(|e| Error::io("sync the backup", &self.path, e))
    }
}

/// The error of a name that exists already, or another one.
pub(crate) fn taken(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        let message = "it exists already; a backup overwrites nothing, name another place";
        return Error::new(ErrorKind::Exists, message).with_path(path);
    }
    Error::io("create the backup", path, error)
}

/// The error of a place with what a backup leaves that has not ended.
pub(crate) fn unfinished(path: &Path) -> Error {
    let message = "a backup to this place is running, or was killed; if none is running, remove \
                   what it left, or name another place";
    Error::new(ErrorKind::Exists, message).with_path(path)
}

/// Give a file its name, which no other file has. The directory is synced.
pub(crate) fn give_name(from: &Path, to: &Path) -> Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    let here = rustix::fs::CWD;
    let named = match rustix::fs::renameat_with(here, from, here, to, flags) {
        // A file system without this flag: the check and the renaming are two steps.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        named => named.map_err(io::Error::from),
    };
    named.map_err(|e| taken(to, e))?;
    let parent = to.parent().unwrap_or(Path::new("."));
    vfs::sync_dir(parent).map_err(|e| Error::io("name the backup", to, e))
}
