//! An increment with its bases, down to the full backup.
//!
//! - K1. A base is the backup that the increment was made from: its manifest has the digest that
//!   the increment names. So every byte of a chain is covered by the manifest of its newest member.
//! - K2. Each piece that a member leaves out is in a member below it, with the same length.
//!
//! The members lie beside each other: an increment knows the names of no other directory (B4).

use std::collections::BTreeMap;
use std::path::Path;

use kv::{Error, ErrorKind, PieceId, Result};

use crate::manifest::{FileEntry, Manifest};
use crate::pieces::Piece;
use crate::source::Source;

/// Members of a chain at most. Each must be read to restore it.
pub(crate) const MEMBERS_MAX: usize = 128;

/// A base, with its bases below.
pub(crate) struct Member {
    pub(crate) source: Source,
    pub(crate) manifest: Manifest,
    /// Its name, in messages.
    pub(crate) name: String,
}

/// A range of a file that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Its offset in the bytes of the file that the member has.
    pub(crate) from: u64,
    /// Its offset in the file.
    pub(crate) to: u64,
    pub(crate) length: u64,
}

/// The bases of a backup, the newest first; none of a full one.
///
/// # Errors
/// `NotFound` for a base that is missing; `Corrupt` for one that is another backup (K1), not
/// complete, or lacks a piece (K2).
pub(crate) fn bases(source: &Source, manifest: &Manifest) -> Result<Vec<Member>> {
    let mut members: Vec<Member> = Vec::new();
    let mut next = manifest.base.clone();
    while let Some(base) = next {
        if MEMBERS_MAX <= members.len() + 1 {
            let message = format!("a chain has at most {MEMBERS_MAX} members");
            return Err(Error::corrupt(message).with_path(source.path()));
        }
        let parent = parent(source.path())?;
        let path = parent.join(&base.name);
        let opened = match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                let message = format!("the base {} is a symbolic link", base.name);
                return Err(Error::invalid(message).with_path(path));
            }
            _ => Source::open(&path),
        };
        let found = opened.map_err(|error| missing(error, &base.name, &path))?;
        let (read, digest) = found.read_manifest()?;
        if digest != base.digest {
            let message = format!(
                "{} is not the backup that the increment was made from: put that one back, or use \
                 another backup",
                base.name
            );
            return Err(Error::corrupt(message).with_path(path));
        }
        if (&read.engine, &read.lineage) != (&manifest.engine, &manifest.lineage) {
            let message = format!("the base {} is of another store", base.name);
            return Err(Error::corrupt(message).with_path(path));
        }
        next = read.base.clone();
        members.push(Member {
            source: found,
            manifest: read,
            name: base.name,
        });
    }
    for file in manifest.files.iter().filter(|file| 0 < file.kept()) {
        ranges(file, &members)?;
    }
    Ok(members)
}

/// The directory that a backup lies in.
fn parent(path: &Path) -> Result<std::path::PathBuf> {
    let whole = path.canonicalize();
    let whole = whole.map_err(|e| Error::io("find the bases", path, e))?;
    Ok(whole.parent().unwrap_or(Path::new("/")).to_owned())
}

/// The error of a base that cannot be opened.
fn missing(error: Error, name: &str, path: &Path) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    let message = format!(
        "the base {name} of the increment is missing; put it, and its own bases, into the \
         directory of the increment"
    );
    Error::new(ErrorKind::NotFound, message).with_path(path)
}

/// Where the bytes of `file` are: in its own backup, and then in each of its `bases`.
///
/// # Errors
/// `Corrupt` (K2).
pub(crate) fn ranges(file: &FileEntry, bases: &[Member]) -> Result<Vec<Vec<Range>>> {
    let mut wanted = BTreeMap::new();
    let mut found = vec![own(file, &mut |piece, to| {
        wanted.insert(piece.id, (to, piece.length));
    })];
    for member in bases {
        let mut files = member.manifest.files.iter();
        let same = files.find(|other| other.path == file.path);
        found.push(same.map_or(Vec::new(), |other| wanted_of(other, &mut wanted)));
    }
    match wanted.len() {
        0 => Ok(found),
        lacking => {
            let message = format!(
                "{lacking} pieces of {} are in no base: use another backup",
                file.path
            );
            Err(Error::corrupt(message))
        }
    }
}

/// The ranges of a file that its own backup has; `kept` gets the others, with their offsets.
fn own(file: &FileEntry, kept: &mut dyn FnMut(&Piece, u64)) -> Vec<Range> {
    let (mut from, mut to, mut begun) = (0, 0, 0);
    let mut found = Vec::new();
    let mut add = |begun: u64, end: u64| {
        let length = end - begun;
        if 0 < length {
            let to = begun;
            found.push(Range { from, to, length });
            from += length;
        }
    };
    for piece in file.pieces.iter().flat_map(|pieces| &pieces.0) {
        to += piece.gap;
        if piece.kept {
            add(begun, to);
            kept(piece, to);
            begun = to + piece.length;
        }
        to += piece.length;
    }
    add(begun, file.size);
    found
}

/// The ranges of a base's file that are wanted, which are wanted no longer.
fn wanted_of(file: &FileEntry, wanted: &mut BTreeMap<PieceId, (u64, u64)>) -> Vec<Range> {
    let mut from = 0;
    let mut found = Vec::new();
    for piece in file.pieces.iter().flat_map(|pieces| &pieces.0) {
        from += piece.gap;
        if piece.kept {
            continue;
        }
        let is_wanted = wanted.get(&piece.id).filter(|(_, l)| *l == piece.length);
        if let Some((to, length)) = is_wanted.copied() {
            found.push(Range { from, to, length });
            wanted.remove(&piece.id);
        }
        from += piece.length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;
    use crate::pieces::Pieces;

    fn file(size: u64, pieces: &[(u8, u64, u64, bool)]) -> FileEntry {
        let mut file = manifest(&["a"]).files.remove(0);
        let piece = |&(id, gap, length, kept): &(u8, u64, u64, bool)| Piece {
            id: [id; 16],
            gap,
            length,
            kept,
        };
        file.size = size;
        file.pieces = Some(Pieces(pieces.iter().map(piece).collect()));
        file
    }

    fn range((from, to, length): (u64, u64, u64)) -> Range {
        Range { from, to, length }
    }

    #[test]
    fn a_file_is_what_is_here_and_what_is_kept() {
        // 2 bytes, a kept piece of 3, one of 4 that is here, a kept one of 5, 6 bytes.
        let file = file(20, &[(1, 2, 3, true), (2, 0, 4, false), (3, 0, 5, true)]);
        let mut kept = Vec::new();
        let here = own(&file, &mut |piece, to| kept.push((piece.id[0], to)));
        assert_eq!(here, [(0, 0, 2), (2, 5, 4), (6, 14, 6)].map(range));
        assert_eq!(kept, [(1, 2), (3, 9)]);
    }

    #[test]
    fn a_base_gives_what_it_has_itself() {
        // In the base below: 1 byte, piece 9 elsewhere, piece 3, piece 1 with another length.
        let base = file(30, &[(9, 1, 7, true), (3, 2, 5, false), (1, 0, 4, false)]);
        let mut wanted = BTreeMap::from([([1; 16], (2, 3)), ([3; 16], (9, 5))]);
        assert_eq!(wanted_of(&base, &mut wanted), [range((3, 9, 5))]);
        assert_eq!(wanted.len(), 1, "K2");
    }

    #[test]
    fn a_piece_that_no_base_has_is_an_error() {
        let error = ranges(&file(9, &[(1, 0, 3, true)]), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "K2");
        assert!(error.to_string().contains("1 pieces of a"), "{error}");
    }
}
