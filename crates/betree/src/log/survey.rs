//! Finding and reading the segments during recovery.

use std::path::{Path, PathBuf};

use crypt::{Kind, Opener};
use vfs::{File, Vfs};

use crate::error::{Error, ErrorKind, Result};
use crate::types::Seq;

use super::format::{
    self, ALIGN, BLOCK, Flaw, GROUP_HEADER, GroupHeader, SEGMENT_HEADER, SegmentHeader, padded,
};
use super::segment::{Name, Place, Spare, parse_name, segment_path, spare_path};
use super::sites;

/// Number of bytes read at once, because small groups are adjacent.
const WINDOW: usize = 1 << 20;

/// A segment file that exists.
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn File>,
    pub(super) length: u64,
    /// Why the segment header does not decode, if it does not: the crash happened while the segment
    /// was created, or the header is damaged.
    pub(super) unborn: Option<Flaw>,
    /// Whether a later segment has a header, which proves that this one had one as well (I3).
    pub(super) outlived: bool,
    /// The first group.
    pub(super) first: Option<GroupHeader>,
    /// Decrypts its groups, if the store is encrypted.
    pub(super) opener: Option<Opener>,
}

/// All files of a log.
pub(super) struct Survey {
    /// Ascending by number.
    pub(super) segments: Vec<Found>,
    pub(super) spares: Vec<Spare>,
}

impl Survey {
    /// Examine every file of the log in `place`.
    pub(super) fn take(place: &Place<'_>) -> Result<Survey> {
        let mut survey = Survey {
            segments: Vec::new(),
            spares: Vec::new(),
        };
        for name in names(place.vfs, place.directory)? {
            match name {
                Name::Segment(number) => {
                    let path = segment_path(place.directory, number);
                    let file = place.open(sites::OPEN, &path, false)?;
                    survey.segments.push(look(place, number, path, file)?);
                }
                Name::Spare(number) => {
                    let path = spare_path(place.directory, number);
                    let size = place.open(sites::OPEN, &path, false)?.len();
                    let size = size.map_err(|e| Error::io("opening a spare segment", &path, e))?;
                    survey.spares.push(Spare { number, path, size });
                }
            }
        }
        survey.segments.sort_by_key(|found| found.number);
        let mut outlived = false;
        for found in survey.segments.iter_mut().rev() {
            found.outlived = outlived;
            outlived |= found.unborn.is_none();
        }
        Ok(survey)
    }

    /// The largest number of any file; 0 if there is none.
    pub(super) fn newest(&self) -> u64 {
        let segments = self.segments.iter().map(|found| found.number);
        let spares = self.spares.iter().map(|spare| spare.number);
        segments.chain(spares).max().unwrap_or(0)
    }

    /// Size of the segment that was started last; 0 if there is none.
    pub(super) fn last_size(&self) -> u64 {
        self.segments.last().map_or(0, |found| found.length)
    }

    /// Per segment: the first record that is void because a later segment voids it.
    pub(super) fn limits(&self) -> Vec<Seq> {
        let mut least = Seq::MAX;
        let mut limits: Vec<Seq> = self
            .segments
            .iter()
            .rev()
            .map(|found| {
                let limit = least;
                least = found.first.map_or(least, |group| least.min(group.void));
                limit
            })
            .collect();
        limits.reverse();
        debug_assert_eq!(
            limits.len(),
            self.segments.len(),
            "a limit for each segment"
        );
        debug_assert!(limits.is_sorted(), "what is void stays void");
        limits
    }
}

/// The log's files in `directory`.
pub(super) fn names(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<Name>> {
    let names = vfs
        .list(directory)
        .map_err(|e| Error::io("listing the log segments", directory, e))?;
    Ok(names.iter().filter_map(|name| parse_name(name)).collect())
}

fn look(place: &Place<'_>, number: u64, path: PathBuf, file: Box<dyn File>) -> Result<Found> {
    let length = file
        .len()
        .map_err(|e| Error::io("opening a log segment", &path, e))?;
    let mut found = Found {
        number,
        path,
        file,
        length,
        unborn: None,
        outlived: false,
        first: None,
        opener: None,
    };
    let mut reader = Reader::new(&found, place.store);
    let header = reader.slice(0, SEGMENT_HEADER)?;
    match header.map_or(Err(Flaw::Short), format::decode_segment) {
        Err(Flaw::Version(version)) => {
            let message = format!(
                "the log is of format version {version}, which this version cannot read: use the \
                 version that wrote it"
            );
            return Err(Error::new(ErrorKind::Invalid, message).with_path(&found.path));
        }
        Err(flaw) => found.unborn = Some(flaw),
        Ok(header) if header.store != place.store => {
            let message = format!(
                "the log segment belongs to store {:032x}, not to {:032x}",
                header.store, place.store
            );
            return Err(Error::corrupt(message).with_path(&found.path));
        }
        // A recycled file that had its new name but not yet its new header.
        Ok(header) if header.number < number => found.unborn = Some(Flaw::Magic),
        Ok(header) if number < header.number => {
            let message = format!("the log segment was number {:x}: renamed?", header.number);
            return Err(Error::corrupt(message).with_path(&found.path));
        }
        // I3: the length was durable before the header.
        Ok(header) if length < header.size => {
            let message = format!(
                "the log segment ends at offset {length} instead of {}: it was cut",
                header.size
            );
            return Err(Error::corrupt(message).with_path(&found.path));
        }
        Ok(header) => {
            let opener = opener(place, &header).map_err(|error| error.with_path(&found.path))?;
            found.opener = opener;
            let first = Reader::new(&found, place.store).group(BLOCK)?.ok();
            found.first = first;
        }
    }
    Ok(found)
}

/// What decrypts the groups of a segment.
fn opener(place: &Place<'_>, header: &SegmentHeader) -> Result<Option<Opener>> {
    match (header.seal, place.keys) {
        (None, None) => Ok(None),
        (Some(seal), Some(keys)) => keys.opener(Kind::Log, &seal).map(Some),
        _ => Err(Error::corrupt(
            "the log segment is not encrypted as the store is: restore a backup",
        )),
    }
}

/// Reads a segment through a window.
pub(super) struct Reader<'a> {
    found: &'a Found,
    pub(super) seed: u32,
    window: Vec<u8>,
    at: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(found: &'a Found, store: u128) -> Reader<'a> {
        Reader {
            found,
            seed: format::seed(store, found.number),
            window: Vec::new(),
            at: 0,
        }
    }

    /// The `len` bytes from `offset`; `None` if the file ends before.
    pub(super) fn slice(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let end = offset.saturating_add(len as u64);
        if self.found.length < end {
            return Ok(None);
        }
        let have = self.at + self.window.len() as u64;
        if offset < self.at || have < end {
            let whole = (self.found.length - offset).min(WINDOW.max(len) as u64);
            let whole = usize::try_from(whole).expect("at most the window or a length in memory");
            // If the read fails, the window contains nothing useful.
            self.window.clear();
            self.window.resize(whole, 0);
            self.at = offset;
            self.found
                .file
                .read_at(sites::READ, &mut self.window, offset)
                .map_err(|e| Error::io("reading the log", &self.found.path, e))?;
        }
        let from = usize::try_from(offset - self.at).expect("inside the window");
        let bytes = self.window.get(from..from + len);
        Ok(Some(bytes.expect("the window covers it")))
    }

    /// The group that follows one ending at `end`, and its offset: directly behind it, or at the
    /// next block.
    pub(super) fn next(&mut self, end: u64) -> Result<Result<(u64, GroupHeader), Flaw>> {
        let (near, far) = (end.next_multiple_of(ALIGN), padded(end));
        let flaw = match self.group(near)? {
            Ok(group) => return Ok(Ok((near, group))),
            Err(flaw) => flaw,
        };
        match self.group(far)? {
            Ok(group) => Ok(Ok((far, group))),
            // If there is no group at the first offset, the error at the second one is more
            // informative.
            Err(other) if flaw == Flaw::Magic => Ok(Err(other)),
            Err(_) => Ok(Err(flaw)),
        }
    }

    /// Whether the group is encrypted as its segment is, if that is known.
    fn as_segment(&self, group: GroupHeader) -> Result<GroupHeader, Flaw> {
        let known = self.found.unborn.is_none();
        if known && (group.piece == 0) != self.found.opener.is_none() {
            return Err(Flaw::Field("length of a piece"));
        }
        Ok(group)
    }

    /// The header of the group at `offset`, if there is one and the file holds all of it.
    pub(super) fn group(&mut self, offset: u64) -> Result<Result<GroupHeader, Flaw>> {
        let (seed, number) = (self.seed, self.found.number);
        let bytes = self.slice(offset, GROUP_HEADER)?;
        Ok(bytes
            .ok_or(Flaw::Short)
            .and_then(|bytes| format::decode_group(bytes, seed, number, offset))
            .and_then(|group| self.as_segment(group)))
    }
}
