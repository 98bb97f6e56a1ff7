//! The words every module uses: those that all engines share, sequence numbers, identities,
//! extents, entries. The number of a tree is never given to another tree in the whole life of the
//! store.

use std::fmt;

pub(crate) use kv_types::{
    Batch, Change, Direction, Durability, KeyRange, Ops, TreeId, TreeOptions,
};

/// The number of a commit. Commits are numbered 1, 2, 3, ... in the order in which they become
/// visible; a snapshot with number `s` sees the commits up to and including `s`. 0 means "older
/// than every snapshot".
#[doc(alias = "LSN")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Older than every snapshot.
    pub const ANCIENT: Seq = Seq(0);
    /// Newer than every commit.
    pub const MAX: Seq = Seq(u64::MAX);
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The id of a run. Never reused within a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(pub(crate) u64);

/// A part of a copy of the store that is passed to the caller.
#[derive(Clone, Copy, Debug)]
pub enum BackupPart<'a> {
    /// What follows: the first part.
    Begin {
        /// Length of the data file.
        data_bytes: u64,
        /// The content of the key file of an encrypted store.
        key_file: Option<&'a [u8]>,
    },
    /// The next `bytes` of the data file are a run. Its data follow, unless the answer is
    /// [`BackupNext::Skip`]. In all copies of one store (`Db::store_id`) equal ids stand for equal
    /// bytes.
    Run {
        /// Identifies the run.
        id: [u8; 16],
        /// Its length in the copy.
        bytes: u64,
    },
    /// The next bytes of the data file.
    Data(&'a [u8]),
}

/// What the receiver of a copy answers to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupNext {
    /// Pass the next part on.
    Continue,
    /// The receiver has the run already, whose data are left out. For other parts: continue.
    Skip,
    /// End the copy.
    Stop,
}

/// The allocation unit of the data file, in bytes: at best the size that a device writes
/// atomically.
pub(crate) const UNIT: u64 = 4096;

/// A contiguous piece of the data file. Both numbers are multiples of [`UNIT`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    /// Start.
    pub(crate) offset: u64,
    /// Length; never 0.
    pub(crate) len: u64,
}

impl Extent {
    /// End.
    pub(crate) fn end(self) -> u64 {
        self.offset + self.len
    }
}

/// The operation of one version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Op {
    /// The key has a value.
    Put = 0,
    /// The key is absent (a tombstone). Its value is empty.
    Delete = 1,
}

/// One version of one key, borrowed. Sorted sequences of entries are in ascending byte order of the
/// keys and, for one key, from the newest version to the oldest (`seq` falls strictly).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) seq: Seq,
    pub(crate) op: Op,
    pub(crate) value: &'a [u8],
}

/// The first 8 bytes of a key as a number with the same order. Missing bytes count as zeros, so the
/// whole keys must be compared if the numbers are equal.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_order_as_keys_do() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0b", b"abcdefgh", b"abcdefghi"];
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1] && head(pair[0]) <= head(pair[1]));
        }
        assert_eq!(head(b"abcdefghi"), head(b"abcdefgh"));
        assert_eq!(head(b"a"), u64::from(b'a') << 56);
    }
}
