//! Segment files: their names, their creation, and setting them aside for reuse.

use std::io;
use std::path::{Path, PathBuf};

use crypt::{Kind, Sealer};
use stdx::sync::Mutex;
use vfs::{File, Open, Site, Vfs};

use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keys;
use crate::plant::{Plant, planted};

use super::format::{BLOCK, SegmentHeader, encode_segment};
use super::{frame, sites};

/// Number of zeros written and synced at once: the device needs less than a millisecond for them.
const ZEROS: usize = 256 << 10;

/// A segment that can be written.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn File>,
    pub(super) size: u64,
    /// Encrypts its groups, if the store is encrypted. Only the writer locks it.
    pub(super) sealer: Option<Mutex<Sealer>>,
}

impl Segment {
    /// Bytes before the records of a group.
    pub(super) fn head(&self) -> usize {
        frame::head(self.sealer.is_some())
    }
}

/// A file set aside for reuse; its content is void.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spare {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) size: u64,
}

/// The role of a file in the log's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Segment(u64),
    Spare(u64),
}

/// `log-<number>.wal`.
pub(super) fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("log-{number:016x}.wal"))
}

/// `spare-<number>.wal`, with the number of the segment that it was.
pub(super) fn spare_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("spare-{number:016x}.wal"))
}

/// The role of the file `name`; `None` if it is not a file of the log.
pub(super) fn parse_name(name: &str) -> Option<Name> {
    let stem = name.strip_suffix(".wal")?;
    let (digits, make): (&str, fn(u64) -> Name) = match stem.strip_prefix("log-") {
        Some(digits) => (digits, Name::Segment),
        None => (stem.strip_prefix("spare-")?, Name::Spare),
    };
    let plain = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok().filter(|_| plain)?;
    Some(make(number))
}

/// The error of a failed sync, or of a failed write to a block that may hold records: `Io` whatever
/// the cause, because a successful retry would prove nothing.
pub(super) fn fatal(operation: &'static str, path: &Path, source: &io::Error) -> Error {
    Error::new(ErrorKind::Io, source.to_string())
        .with_operation(operation)
        .with_path(path)
}

/// The directory of segments, and how they are created.
pub(super) struct Place<'a> {
    pub(super) vfs: &'a dyn Vfs,
    pub(super) directory: &'a Path,
    pub(super) store: u128,
    pub(super) direct: bool,
    pub(super) keys: Option<&'a Keys>,
}

impl Place<'_> {
    /// Make segment `number` of `size` bytes, from `spare` if there is one; it is ready to be
    /// written to, and its name and header are durable (I3). `Full` leaves nothing behind.
    /// With `zeros` new blocks are filled.
    pub(super) fn prepare(
        &self,
        number: u64,
        size: u64,
        spare: Option<&Spare>,
        zeros: bool,
    ) -> Result<Segment> {
        assert!(size.is_multiple_of(BLOCK), "segments are whole blocks");
        assert!(2 * BLOCK <= size, "a segment has room for a group");
        let path = segment_path(self.directory, number);
        if let Some(spare) = spare {
            assert!(spare.number < number, "I3: numbers rise");
            self.vfs
                .rename(sites::REUSE, &spare.path, &path)
                .map_err(|e| Error::io("renaming a spare log segment", &spare.path, e))?;
        }
        let made = self.fill(number, size, &path, zeros);
        if made.is_err() {
            // I3: a file without header must not stay behind when later segments are made. If it
            // cannot be removed the error must not be `Full`, which would allow another try.
            match self.vfs.remove(sites::REMOVE, &path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(fatal("removing a log segment", &path, &e));
                }
                _ => {}
            }
        }
        made
    }

    fn fill(&self, number: u64, size: u64, path: &Path, zeros: bool) -> Result<Segment> {
        let file = self.open(sites::CREATE, path, true)?;
        let io = |e| Error::io("making a log segment", path, e);
        let length = file.len().map_err(io)?;
        if length < size {
            file.allocate(sites::ALLOCATE, 0, size).map_err(io)?;
            // I3: a header in a file that is shorter than the header states counts as damage.
            file.sync(sites::LENGTH_SYNC)
                .map_err(|e| fatal("syncing a new log segment", path, &e))?;
            if zeros {
                self.zero(&*file, path, length - length % BLOCK, size)?;
            }
        }
        // I3: while the file may still be known by its old name, its old content must stay.
        self.sync_names()?;
        // Of each use of a file, so that no key is used again.
        let sealer = self.keys.map(|keys| keys.sealer(Kind::Log)).transpose()?;
        let header = SegmentHeader {
            store: self.store,
            number,
            size,
            seal: sealer.as_ref().map(Sealer::seal),
        };
        let mut block = vec![0; 4096];
        let (front, _) = block.split_at_mut(super::format::SEGMENT_HEADER);
        front.copy_from_slice(&encode_segment(&header));
        file.write_at(sites::HEADER, &block, 0).map_err(io)?;
        file.sync(sites::HEADER_SYNC)
            .map_err(|e| fatal("syncing a new log segment", path, &e))?;
        Ok(Segment {
            number,
            path: path.to_owned(),
            file,
            size,
            sealer: sealer.map(Mutex::new),
        })
    }

    /// Write zeros to what was only reserved: a file system marks such blocks as written when they
    /// are synced for the first time, which a commit would wait for. In pieces that are synced one
    /// by one, so that a commit that syncs meanwhile waits for one at most.
    fn zero(&self, file: &dyn File, path: &Path, start: u64, end: u64) -> Result<()> {
        let piece = vec![0; ZEROS];
        let mut at = start;
        while at < end {
            let length = (end - at).min(ZEROS as u64);
            let bytes = usize::try_from(length).ok().and_then(|l| piece.get(..l));
            let bytes = bytes.expect("no longer than a piece");
            file.write_at(sites::ZEROS, bytes, at)
                .map_err(|e| Error::io("filling a log segment", path, e))?;
            file.sync(sites::ZEROS_SYNC)
                .map_err(|e| fatal("syncing a new log segment", path, &e))?;
            at += length;
        }
        Ok(())
    }

    /// Make names durable.
    pub(super) fn sync_names(&self) -> Result<()> {
        if planted(Plant::SkipDirectorySync) {
            return Ok(());
        }
        self.vfs
            .sync_dir(sites::DIRECTORY, self.directory)
            .map_err(|e| fatal("syncing the directory of the log", self.directory, &e))
    }

    pub(super) fn open(&self, site: Site, path: &Path, create: bool) -> Result<Box<dyn File>> {
        let how = Open {
            create,
            direct: self.direct,
        };
        self.vfs
            .open(site, path, how)
            .map_err(|e| Error::io("opening a log segment", path, e))
    }

    /// Set the file of segment `number` aside. Not durable, and need not be: its content stays
    /// until its next name is.
    pub(super) fn recycle(&self, number: u64, size: u64) -> Result<Spare> {
        let (from, path) = (
            segment_path(self.directory, number),
            spare_path(self.directory, number),
        );
        self.vfs
            .rename(sites::RECYCLE, &from, &path)
            .map_err(|e| Error::io("setting a log segment aside", &from, e))?;
        Ok(Spare { number, path, size })
    }

    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        self.vfs
            .remove(sites::REMOVE, path)
            .map_err(|e| Error::io("removing a log segment", path, e))
    }
}
