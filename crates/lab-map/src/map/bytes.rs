//! Decodes numbers from untrusted bytes, and reads files page by page.
//!
//! No function here panics on a short or wrong input: for missing data the result is `None` or 0.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use lab_report::error::{Error, Result};

/// A file opened read-only.
pub(super) struct Source {
    file: File,
    pub(super) path: PathBuf,
    /// Length of the file when it was opened.
    pub(super) length: u64,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Source> {
        let fail = |e: &io::Error| Error::io("read", path, e);
        let file = File::open(path).map_err(|e| fail(&e))?;
        let length = file.metadata().map_err(|e| fail(&e))?.len();
        Ok(Source {
            file,
            path: path.to_owned(),
            length,
        })
    }

    /// Read at `offset`; bytes beyond the end are zeros. Returns the number of bytes read.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset.saturating_add(done as u64)) {
                Ok(0) => {
                    rest.fill(0);
                    break;
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, &e)),
            }
        }
        Ok(done)
    }
}

/// The big-endian number at `at`; 0 beyond the end.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, u16::from_be_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    array(bytes, at).map_or(0, u32::from_be_bytes)
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    array(bytes, at).map_or(0, u64::from_be_bytes)
}

/// The little-endian number at `at`; 0 beyond the end.
pub(super) fn le16(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, u16::from_le_bytes)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> u32 {
    array(bytes, at).map_or(0, u32::from_le_bytes)
}

pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    array(bytes, at).map_or(0, u64::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A cursor over bytes in RocksDB's and LevelDB's encoding of integers.
pub(super) struct Varints<'a>(pub(super) &'a [u8]);

impl<'a> Varints<'a> {
    pub(super) fn next(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// Read a byte string with a length prefix.
    pub(super) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = self.next()?;
        self.take(length)
    }
}

/// The share of `part` in `of`, in percent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 100"
)]
pub(super) fn percent(part: u64, of: u64) -> u8 {
    (100.0 * part as f64 / (of as f64).max(1.0))
        .round()
        .clamp(0.0, 100.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_there_are_zero() {
        assert_eq!(be32(&[1, 2, 3], 0), 0);
        assert_eq!(be16(&[1, 2, 3], 1), 0x0203);
        assert_eq!(le64(&[], usize::MAX), 0);
    }

    #[test]
    fn varints_end() {
        assert_eq!(Varints(&[0xac, 0x02]).next(), Some(300));
        assert_eq!(Varints(&[0x80; 20]).next(), None);
        assert_eq!(Varints(&[5, 1]).slice(), None);
        assert_eq!(percent(1, 0), 100);
    }
}
