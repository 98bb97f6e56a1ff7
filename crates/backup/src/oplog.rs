//! An oplog archive: a directory of slices, each of which continues the one before.
//!
//! ```text
//! LOCK                          held by the program that writes
//! 6523f1a200000001.oplog        a slice; its name is the time of the entry before it
//! 6523f1de00000007.oplog        the next one
//! ```
//!
//! - A1. A slice is complete or missing, also after a crash: it is written under another name,
//!   synced, and renamed. Nothing is overwritten.
//! - A2. Where a slice is missing, reading stops with an error that names both ends of the gap.
//!   Old slices may be deleted: the archive then begins later.
//! - A3. One program at a time writes an archive. Readers need no lock.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kv::{Error, ErrorKind, Result};
use vfs::DirLock;

use crate::codec::Codec;
use crate::directory::create_folder;
use crate::slice::{
    self, ArchivedEntry, FILE_MAX, Filling, LINES_MAX, Position, SLICE_BYTES, SliceHeader,
};
use crate::target::{Output, give_name};

/// The end of the name of a slice.
const SUFFIX: &str = ".oplog";

/// The end of the name of a slice that is being written.
const INCOMPLETE: &str = ".oplog.incomplete";

/// Slices of an archive: a year of one each minute has half of it.
const SLICES_MAX: usize = 1 << 20;

/// An archive to be read.
#[derive(Debug)]
pub struct OplogArchive {
    path: PathBuf,
    /// In the order of the times in their names.
    slices: Vec<((u32, u32), PathBuf)>,
}

impl OplogArchive {
    /// List the slices of an archive.
    ///
    /// # Errors
    /// `NotFound`; `Io`; `Corrupt` for more slices than an archive has.
    pub fn open(path: &Path) -> Result<OplogArchive> {
        let fail = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => {
                let message = "no oplog archive has this path; check the name";
                Error::new(ErrorKind::NotFound, message).with_path(path)
            }
            _ => Error::io("list the oplog archive", path, e),
        };
        let mut slices = Vec::new();
        for entry in fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            if let Some(time) = name.to_str().and_then(time_of) {
                slices.push((time, entry.path()));
            }
            if SLICES_MAX < slices.len() {
                let message = "the archive has too many slices; delete the oldest ones";
                return Err(Error::corrupt(message).with_path(path));
            }
        }
        slices.sort();
        Ok(OplogArchive {
            path: path.to_owned(),
            slices,
        })
    }

    /// The first slice.
    ///
    /// # Errors
    /// `NotFound` for an empty archive; those of [`OplogArchive::last`].
    pub fn first(&self) -> Result<SliceHeader> {
        let first = self.slices.first();
        first.map_or_else(|| Err(self.empty()), |(_, path)| header(path))
    }

    /// The last slice.
    ///
    /// # Errors
    /// `NotFound` for an empty archive; `Corrupt` for a damaged slice, which is named; `Io`.
    pub fn last(&self) -> Result<SliceHeader> {
        let last = self.slices.last();
        last.map_or_else(|| Err(self.empty()), |(_, path)| header(path))
    }

    /// The entries after `from`, which the archive has or begins behind. Compare
    /// [`ArchivedEntries::digest_before`]: another deployment may have an entry at this position.
    ///
    /// # Errors
    /// `NotFound` if it begins later, or does not have that entry: it is that of another
    /// deployment, or has a gap there; those of [`OplogArchive::last`].
    pub fn after(&self, from: Position) -> Result<ArchivedEntries<'_>> {
        let first = self.first()?;
        let within = self
            .slices
            .partition_point(|(time, _)| *time <= from.time());
        let Some(at) = within.checked_sub(1) else {
            let previous = first.previous;
            let message = format!(
                "the archive begins after the entry {previous}, and the entry {from} is earlier: \
                 entries between them are missing; use a later backup"
            );
            return Err(Error::new(ErrorKind::NotFound, message).with_path(&self.path));
        };
        let mut entries = ArchivedEntries {
            archive: self,
            next: at,
            last: None,
            set: first.set,
            read: VecDeque::new(),
            before: String::new(),
            failed: false,
        };
        let Some((_, path)) = self.slices.get(at) else {
            return Err(self.empty());
        };
        let header = header(path)?;
        let mut found = header.previous;
        entries.before = header.previous_digest;
        if found.time() < from.time() {
            entries.load()?;
            let passed = |entry: &ArchivedEntry| entry.at.time() <= from.time();
            let end = entries.read.partition_point(passed);
            if let Some(last) = entries.read.drain(..end).next_back() {
                found = last.at;
                entries.before = slice::digest(&last.value);
            }
        }
        if found == from {
            return Ok(entries);
        }
        let message = match entries.read.is_empty() && found.time() < from.time() {
            true => format!(
                "the archive has no entries between {found} and {from}: the archive ended there, \
                 or a slice is missing"
            ),
            false => format!(
                "the archive does not have the entry {from}: it is the archive of another \
                 deployment"
            ),
        };
        Err(Error::new(ErrorKind::NotFound, message).with_path(&self.path))
    }

    /// The header of the last slice, and the digest of its last entry; `None` for an empty archive.
    fn last_entry(&self) -> Result<Option<(SliceHeader, String)>> {
        let Some((_, path)) = self.slices.last() else {
            return Ok(None);
        };
        let decoded = slice::decode(&bytes_of(path)?);
        let (header, entries) = decoded.map_err(|error| error.with_path(path))?;
        let digest = last_digest(&entries);
        Ok(Some((header, digest)))
    }

    fn empty(&self) -> Error {
        let message = "the archive has no slices; archive the oplog by romanesco oplog-archive";
        Error::new(ErrorKind::NotFound, message).with_path(&self.path)
    }
}

/// Entries of an archive, in order. An error ends them.
#[derive(Debug)]
pub struct ArchivedEntries<'a> {
    archive: &'a OplogArchive,
    /// The index of the next slice.
    next: usize,
    /// The last entry of the slice that was read last, and its digest.
    last: Option<(Position, String)>,
    set: String,
    read: VecDeque<ArchivedEntry>,
    /// The digest of the entry before the first one.
    before: String,
    failed: bool,
}

impl ArchivedEntries<'_> {
    /// The [`slice::digest`] of the entry behind which they begin; empty before all entries.
    #[must_use]
    pub fn digest_before(&self) -> &str {
        &self.before
    }

    /// Read the next slice; false at the end.
    fn load(&mut self) -> Result<bool> {
        let Some((time, path)) = self.archive.slices.get(self.next) else {
            return Ok(false);
        };
        let named = |error: Error| error.with_path(path);
        let (header, entries) = slice::decode(&bytes_of(path)?).map_err(named)?;
        if let Some((last, _)) = &self.last
            && *last != header.previous
        {
            let previous = header.previous;
            let message =
                format!("the archive has a gap: entries between {last} and {previous} are missing");
            return Err(named(Error::new(ErrorKind::NotFound, message)));
        }
        let follows = |(_, digest): &(Position, String)| *digest == header.previous_digest;
        let follows = self.last.as_ref().is_none_or(follows);
        if header.previous.time() != *time || header.set != self.set || !follows {
            let message = "the slice does not belong to this archive: remove it";
            return Err(named(Error::corrupt(message)));
        }
        self.last = Some((header.last, last_digest(&entries)));
        self.next += 1;
        self.read = entries.into();
        Ok(true)
    }
}

impl Iterator for ArchivedEntries<'_> {
    type Item = Result<ArchivedEntry>;

    fn next(&mut self) -> Option<Result<ArchivedEntry>> {
        while self.read.is_empty() && !self.failed {
            match self.load() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.read.pop_front().map(Ok)
    }
}

/// An archive to be continued.
pub struct OplogWriter {
    path: PathBuf,
    product: String,
    set: String,
    codec: Codec,
    /// The last entry of the last slice, and its digest.
    last: Option<(Position, String)>,
    filling: Filling,
    _lock: DirLock,
}

impl OplogWriter {
    /// Open an archive of a replica set, or create one, to continue it. What a program that was
    /// killed has left of a slice is removed.
    ///
    /// # Errors
    /// `Exists` while another program writes it; `Invalid` for the archive of another set; those
    /// of [`OplogArchive::last`].
    pub fn open(path: &Path, (product, set): (&str, &str), codec: Codec) -> Result<OplogWriter> {
        let fail = |e| Error::io("open the oplog archive", path, e);
        match create_folder(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(fail)?,
        }
        let lock = DirLock::acquire(path).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => {
                let message = "another program writes this archive";
                Error::new(ErrorKind::Exists, message).with_path(path)
            }
            _ => fail(e),
        })?;
        for entry in fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_name().to_string_lossy().ends_with(INCOMPLETE) {
                fs::remove_file(entry.path()).map_err(fail)?;
            }
        }
        let archive = OplogArchive::open(path)?;
        let last = archive.last_entry()?;
        if let Some((header, _)) = &last
            && header.set != set
        {
            let other = &header.set;
            let message = format!(
                "it is the archive of the replica set {other}, and this server belongs to {set}; \
                 name another directory"
            );
            return Err(Error::invalid(message).with_path(path));
        }
        Ok(OplogWriter {
            path: path.to_owned(),
            product: product.to_owned(),
            set: set.to_owned(),
            codec,
            last: last.map(|(header, digest)| (header.last, digest)),
            filling: Filling::default(),
            _lock: lock,
        })
    }

    /// The last entry that was added or is in the archive.
    #[must_use]
    pub fn last(&self) -> Option<Position> {
        let written = self.last.as_ref().map(|(at, _)| *at);
        self.filling.last().or(written)
    }

    /// The [`slice::digest`] of that entry.
    #[must_use]
    pub fn last_digest(&self) -> Option<String> {
        let written = self.last.as_ref().map(|(_, digest)| digest.clone());
        self.filling.last_digest().or(written)
    }

    /// Begin an empty archive behind an entry with a digest, which is empty before all entries.
    pub fn begin(&mut self, previous: Position, digest: &str) {
        assert!(self.last().is_none(), "A2: an archive is continued");
        self.last = Some((previous, digest.to_owned()));
    }

    /// Add the next entry. A slice that is full is written.
    ///
    /// # Errors
    /// `Invalid` for an entry that is too large or not later; those of [`OplogWriter::cut`].
    pub fn add(&mut self, at: Position, value: &[u8]) -> Result<()> {
        let last = self.last().unwrap_or(Position::BEGIN);
        if at.time() <= last.time() {
            let message = format!("the entry {at} of the oplog does not follow {last}");
            return Err(Error::invalid(message));
        }
        self.filling.add(at, value)?;
        if SLICE_BYTES <= self.filling.bytes() {
            self.cut()?;
        }
        Ok(())
    }

    /// Write what was added as a slice (A1); `None` if nothing was.
    ///
    /// # Errors
    /// `Exists` for a file of its name; `Full`; `Io`.
    pub fn cut(&mut self) -> Result<Option<SliceHeader>> {
        let begin = (Position::BEGIN, String::new());
        let (previous, digest) = self.last.as_ref().unwrap_or(&begin);
        let names = (self.product.as_str(), self.set.as_str());
        let encoded = self
            .filling
            .encode(names, (*previous, digest), self.codec)?;
        let Some((bytes, header)) = encoded else {
            return Ok(None);
        };
        let name = name_of(*previous);
        let path = self.path.join(format!("{name}{SUFFIX}"));
        let part = self.path.join(format!("{name}{INCOMPLETE}"));
        let written = write(&part, &bytes).and_then(|()| give_name(&part, &path));
        if written.is_err() {
            // The next program to open the archive removes it.
            let _ = fs::remove_file(&part);
        }
        written?;
        let digest = self.filling.last_digest().unwrap_or_default();
        self.last = Some((header.last, digest));
        self.filling = Filling::default();
        Ok(Some(header))
    }
}

/// The digest of the last entry of a slice, which has one.
fn last_digest(entries: &[ArchivedEntry]) -> String {
    let digest = entries.last().map(|entry| slice::digest(&entry.value));
    digest.unwrap_or_default()
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = Output::create(path)?;
    output.write(bytes)?;
    output.sync()
}

/// The name of the slice behind an entry, without its end.
fn name_of(previous: Position) -> String {
    format!("{:08x}{:08x}", previous.seconds, previous.increment)
}

/// The time in the name of a slice.
fn time_of(name: &str) -> Option<(u32, u32)> {
    let digits = name.strip_suffix(SUFFIX)?;
    let (seconds, increment) = digits.split_at_checked(8)?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let time = (number(seconds)?, number(increment)?);
    (digits == format!("{:08x}{:08x}", time.0, time.1)).then_some(time)
}

/// The bytes of a slice.
fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let fail = |e| Error::io("read the oplog archive", path, e);
    let mut bytes = Vec::new();
    let most = FILE_MAX as u64 + 1;
    let file = fs::File::open(path).map_err(fail)?;
    file.take(most).read_to_end(&mut bytes).map_err(fail)?;
    match bytes.len() <= FILE_MAX {
        true => Ok(bytes),
        false => Err(Error::corrupt("the slice is damaged: it is too large").with_path(path)),
    }
}

/// The header of a slice.
fn header(path: &Path) -> Result<SliceHeader> {
    let fail = |e| Error::io("read the oplog archive", path, e);
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(fail)?;
    let most = LINES_MAX as u64;
    file.take(most).read_to_end(&mut bytes).map_err(fail)?;
    slice::header(&bytes).map_err(|error| error.with_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(increment: u32) -> Position {
        Position {
            seconds: 7,
            increment,
            term: 1,
        }
    }

    fn open(path: &Path) -> Result<OplogWriter> {
        OplogWriter::open(path, ("0.1.0", "rs0"), Codec::Lz4)
    }

    /// An archive of the entries 3 to 11, three in each slice.
    fn archive() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = open(folder.path()).unwrap();
        writer.begin(at(2), &slice::digest(b"2"));
        for increment in 3..12 {
            writer.add(at(increment), &increment.to_le_bytes()).unwrap();
            if increment % 3 == 2 {
                assert_eq!(writer.cut().unwrap().unwrap().entries, 3);
            }
        }
        assert_eq!(writer.cut().unwrap(), None);
        folder
    }

    fn slices(folder: &Path) -> Vec<PathBuf> {
        let archive = OplogArchive::open(folder).unwrap();
        archive.slices.into_iter().map(|(_, path)| path).collect()
    }

    fn read(folder: &Path, from: Position) -> Result<Vec<u32>> {
        let archive = OplogArchive::open(folder)?;
        let entries = archive.after(from)?;
        entries.map(|e| e.map(|e| e.at.increment)).collect()
    }

    #[test]
    fn entries_are_read_from_any_position_on() {
        let folder = archive();
        for from in 2..=11 {
            let found = read(folder.path(), at(from)).unwrap();
            assert_eq!(found, (from + 1..12).collect::<Vec<_>>(), "{from}");
        }
        let archive = OplogArchive::open(folder.path()).unwrap();
        let ends = (archive.first().unwrap(), archive.last().unwrap());
        assert_eq!((ends.0.previous, ends.1.last), (at(2), at(11)));
    }

    /// Entries of two deployments may have one position.
    #[test]
    fn an_archive_knows_the_entry_it_continues() {
        let folder = archive();
        let digest = |increment: u32| match increment {
            2 => slice::digest(b"2"),
            _ => slice::digest(&increment.to_le_bytes()),
        };
        let archive = OplogArchive::open(folder.path()).unwrap();
        for from in 2..=11 {
            let entries = archive.after(at(from)).unwrap();
            assert_eq!(entries.digest_before(), digest(from), "{from}");
        }
        let mut writer = open(folder.path()).unwrap();
        assert_eq!(writer.last_digest(), Some(digest(11)));
        writer.add(at(12), &12_u32.to_le_bytes()).unwrap();
        assert_eq!(writer.last_digest(), Some(digest(12)));
        writer.cut().unwrap();
        assert_eq!(writer.last_digest(), Some(digest(12)));
        drop(writer);
        // A slice that another archive has behind an entry at the same position.
        let other = tempfile::tempdir().unwrap();
        let mut writer = open(other.path()).unwrap();
        writer.begin(at(8), &slice::digest(b"8"));
        writer.add(at(9), b"other").unwrap();
        writer.cut().unwrap();
        let path = slices(folder.path())[2].clone();
        fs::copy(&slices(other.path())[0], path).unwrap();
        assert_eq!(
            read(folder.path(), at(5)).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
    }

    /// A2.
    #[test]
    fn what_is_missing_is_named() {
        let folder = archive();
        let fails = |from| read(folder.path(), from).unwrap_err().to_string();
        assert!(fails(at(1)).contains("begins after the entry 7:2 of term 1"));
        assert!(fails(at(12)).contains("no entries between 7:11 of term 1 and 7:12"));
        let other = Position { term: 2, ..at(4) };
        assert!(fails(other).contains("another deployment"));
        let middle = &slices(folder.path())[1];
        fs::remove_file(middle).unwrap();
        let gap = fails(at(3));
        assert!(
            gap.contains("a gap: entries between 7:5 of term 1 and 7:8"),
            "{gap}"
        );
        assert!(
            fails(at(6)).contains("no entries between"),
            "{}",
            fails(at(6))
        );
        assert_eq!(read(folder.path(), at(9)).unwrap(), [10, 11]);
        fs::remove_file(&slices(folder.path())[0]).unwrap();
        assert!(fails(at(3)).contains("begins after"));
        let missing = OplogArchive::open(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_damaged_slice_is_named() {
        let folder = archive();
        let second = &slices(folder.path())[1];
        let mut bytes = fs::read(second).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(second, &bytes).unwrap();
        let error = read(folder.path(), at(2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().contains(second.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(read(folder.path(), at(8)).unwrap(), [9, 10, 11]);
    }

    /// A1, A3.
    #[test]
    fn an_archive_is_continued_by_one_program_after_a_kill() {
        let folder = archive();
        let left = folder
            .path()
            .join(format!("{}{INCOMPLETE}", name_of(at(11))));
        fs::write(&left, b"half").unwrap();
        assert_eq!(read(folder.path(), at(10)).unwrap(), [11]);
        let mut writer = open(folder.path()).unwrap();
        assert!(!left.exists());
        assert_eq!(writer.last(), Some(at(11)));
        assert_eq!(open(folder.path()).err().unwrap().kind(), ErrorKind::Exists);
        let old = writer.add(at(11), b"again").unwrap_err();
        assert_eq!(old.kind(), ErrorKind::Invalid);
        writer.add(at(12), b"entry").unwrap();
        assert_eq!(writer.last(), Some(at(12)));
        drop(writer);
        // What was not cut is fetched again.
        let mut writer = open(folder.path()).unwrap();
        assert_eq!(writer.last(), Some(at(11)));
        writer.add(at(12), b"entry").unwrap();
        writer.cut().unwrap();
        drop(writer);
        assert_eq!(read(folder.path(), at(10)).unwrap(), [11, 12]);
        let other = OplogWriter::open(folder.path(), ("0.1.0", "rs1"), Codec::Lz4);
        assert_eq!(other.err().unwrap().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_full_slice_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = open(folder.path()).unwrap();
        let entry = vec![0; SLICE_BYTES / 2];
        for increment in 1..=5 {
            writer.add(at(increment), &entry).unwrap();
        }
        drop(writer);
        assert_eq!(read(folder.path(), Position::BEGIN).unwrap(), [1, 2, 3, 4]);
        assert_eq!(slices(folder.path()).len(), 2);
    }
}
