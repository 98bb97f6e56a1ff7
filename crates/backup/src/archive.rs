//! A backup as one tar archive: regular entries with the names of the directory form, the manifest
//! last. While it is written its name ends with `.incomplete`.
//!
//! The size of a compressed file is known when it is written; then it is put into the header before
//! it. Only archives with exactly the headers that are written here are read; links, sparse files
//! and long names are refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use kv::{Error, Result};
use tar::{Archive, EntryType, Header};
use vfs::PRIVATE_FILE;

use crate::directory::FILES;
use crate::entry::{Entry, Kind};
use crate::manifest;
use crate::pinned::Pinned;
use crate::target::{Output, Target, give_name, taken, unfinished};

/// Bytes of a block of an archive.
const BLOCK: u64 = 512;

/// Blocks of zeros at the end.
const END_BLOCKS: u64 = 2;

/// What is added to the name of an archive that is being written.
const PART: &str = ".incomplete";

/// What is added to the name of an archive for the directory in which an engine prepares a copy.
const STAGING: &str = ".staging";

pub(crate) struct ArchiveTarget {
    /// Its name, for messages: its parent may have another name by now.
    path: PathBuf,
    /// Its parent.
    held: Pinned,
    output: Output,
    /// When it was created: seconds since 1970-01-01 UTC.
    created: u64,
    /// The name of the file that is being written, and the offset of its header.
    open: Option<(String, u64)>,
}

fn extended(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Open the directory of an archive.
fn parent(path: &Path) -> Result<Pinned> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let is_dir = parent.symlink_metadata().map(|found| found.is_dir());
    Pinned::open(parent).map_err(|error| {
        if is_dir.is_ok_and(|is_dir| !is_dir) {
            let message = "the parent of the archive is a symbolic link or no directory; name a \
                           directory";
            return Error::invalid(message).with_path(parent);
        }
        Error::io("create the backup", parent, error)
    })
}

impl ArchiveTarget {
    pub(crate) fn create(path: &Path) -> Result<ArchiveTarget> {
        let Some(name) = path.file_name() else {
            return Err(Error::invalid("the archive has no name; name a file").with_path(path));
        };
        let held = parent(path)?;
        let at = held.at.join(name);
        if at.symlink_metadata().is_ok() {
            let exists = io::ErrorKind::AlreadyExists.into();
            return Err(taken(path, exists));
        }
        // B2. From here on it is what this backup has made, and it may be removed.
        for suffix in [STAGING, PART] {
            if extended(&at, suffix).symlink_metadata().is_ok() {
                return Err(unfinished(&extended(path, suffix)));
            }
        }
        let output = Output::create_at(&extended(&at, PART), &extended(path, PART))?;
        Ok(ArchiveTarget {
            path: path.to_owned(),
            held,
            output,
            created: stdx::time::wall().as_secs(),
            open: None,
        })
    }

    /// The path of the archive for calls, with `suffix` added.
    fn at(&self, suffix: &str) -> PathBuf {
        let name = self.path.file_name().expect("it was checked");
        extended(&self.held.at.join(name), suffix)
    }

    fn header(&self, name: &str, size: u64) -> Result<Header> {
        let header = header(name, size, self.created);
        header.map_err(|e| Error::io("name a file of the archive", &self.path, e))
    }

    fn begin_entry(&mut self, name: String, size: u64) -> Result<()> {
        let header = self.header(&name, size)?;
        self.open = Some((name, self.output.length));
        self.output.write(header.as_bytes())
    }

    /// Put the size into the header, and fill up the last block.
    fn end_entry(&mut self) -> Result<()> {
        let (name, at) = self.open.take().expect("a file was begun");
        let size = self.output.length - at - BLOCK;
        let header = self.header(&name, size)?;
        self.output.overwrite(at, header.as_bytes())?;
        self.zeros(size.next_multiple_of(BLOCK) - size)
    }

    fn zeros(&mut self, count: u64) -> Result<()> {
        let count = usize::try_from(count).expect("two blocks at most");
        self.output.write(&vec![0; count])
    }
}

/// The header of an entry.
fn header(name: &str, size: u64, time: u64) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(PRIVATE_FILE);
    header.set_mtime(time);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

impl Target for ArchiveTarget {
    fn staging(&self) -> PathBuf {
        self.at(STAGING)
    }

    fn begin(&mut self, name: &str, size: Option<u64>) -> Result<()> {
        let size = size.unwrap_or(0);
        self.begin_entry(format!("{FILES}/{name}"), size)?;
        self.output.reserve(size)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write(bytes)
    }

    fn end(&mut self) -> Result<()> {
        self.end_entry()
    }

    fn seal(&mut self, bytes: &[u8]) -> Result<()> {
        // B1. The manifest is durable after the files.
        self.output.sync()?;
        self.begin_entry(manifest::FILE.to_owned(), bytes.len() as u64)?;
        self.output.write(bytes)?;
        self.end_entry()?;
        self.zeros(END_BLOCKS * BLOCK)?;
        self.output.sync()?;
        give_name(&self.at(PART), &self.at("")).map_err(|error| error.with_path(&self.path))
    }

    fn discard(&mut self) {
        // What cannot be removed is named as incomplete.
        let _ = fs::remove_file(self.at(PART));
        let _ = fs::remove_dir_all(self.staging());
    }
}

/// The entries of an archive.
///
/// # Errors
/// `Corrupt` for an archive that this module did not write.
pub(crate) fn index(file: &mut fs::File, path: &Path) -> Result<BTreeMap<String, Entry>> {
    let damaged = |what: String| {
        let message = format!("the archive is incomplete or damaged: {what}; use another backup");
        Error::corrupt(message).with_path(path)
    };
    let broken = |e: io::Error| damaged(e.to_string());
    let length = file.metadata().map_err(broken)?.len();
    let mut entries = BTreeMap::new();
    let mut paddings = Vec::new();
    let mut end = 0;
    let mut archive = Archive::new(&*file);
    for entry in archive.entries_with_seek().map_err(broken)?.raw(true) {
        let entry = entry.map_err(broken)?;
        let header = entry.header();
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let size = header.entry_size().map_err(broken)?;
        let offset = entry.raw_file_position();
        if header.entry_type() != EntryType::Regular {
            return Err(damaged(format!("{name:?} is not a regular file")));
        }
        // B3. Also what readers of archives pass over.
        let time = header.mtime().map_err(broken)?;
        let exact = self::header(&name, size, time);
        if !exact.is_ok_and(|exact| exact.as_bytes() == header.as_bytes()) {
            return Err(damaged(format!(
                "the header of {name:?} differs from what is written"
            )));
        }
        let inside = offset.checked_add(size).filter(|end| *end <= length);
        let Some(after) = inside else {
            return Err(damaged(format!("{name:?} goes beyond its end")));
        };
        if manifest::FILES_MAX < entries.len() {
            return Err(damaged("it has too many entries".into()));
        }
        end = after.next_multiple_of(BLOCK);
        paddings.push((after, end - after));
        let kind = Kind::File { size, offset };
        if entries.insert(name.clone(), Entry { kind }).is_some() {
            return Err(damaged(format!("{name:?} is in it twice")));
        }
    }
    let last = end.checked_add(END_BLOCKS * BLOCK);
    if last != Some(length) {
        return Err(damaged("it does not end behind its last entry".into()));
    }
    // B3. The bytes that belong to no file.
    paddings.push((end, END_BLOCKS * BLOCK));
    for (at, count) in paddings {
        let mut bytes = vec![0; usize::try_from(count).expect("two blocks at most")];
        file.seek(SeekFrom::Start(at)).map_err(broken)?;
        file.read_exact(&mut bytes).map_err(broken)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(damaged(format!("bytes between its entries, at {at}")));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_parent_that_is_replaced_by_a_link_redirects_nothing() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("victim/copy.tar.staging/kept")).unwrap();
        fs::write(at("victim/copy.tar.incomplete"), b"precious").unwrap();
        let count = |name: &str| fs::read_dir(at(name)).unwrap().count();
        for ends in [true, false] {
            fs::create_dir(at("backups")).unwrap();
            let mut target = ArchiveTarget::create(&at("backups/copy.tar")).unwrap();
            fs::rename(at("backups"), at("moved")).unwrap();
            symlink(at("victim"), at("backups")).unwrap();
            target.begin("one", Some(3)).unwrap();
            target.write(b"abc").unwrap();
            target.end().unwrap();
            fs::create_dir(target.staging()).unwrap();
            assert!(at("moved/copy.tar.staging").exists());
            if ends {
                fs::remove_dir(target.staging()).unwrap();
                target.seal(b"manifest").unwrap();
                assert!(at("moved/copy.tar").is_file());
            } else {
                target.discard();
            }
            assert_eq!(count("moved"), usize::from(ends));
            assert_eq!(count("victim"), 2);
            assert!(at("victim/copy.tar.staging/kept").exists());
            let kept = fs::read(at("victim/copy.tar.incomplete")).unwrap();
            assert_eq!(kept, b"precious");
            fs::remove_dir_all(at("moved")).unwrap();
            fs::remove_file(at("backups")).unwrap();
        }
        symlink(at("victim"), at("link")).unwrap();
        let refused = ArchiveTarget::create(&at("link/new.tar")).err().unwrap();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }
}
