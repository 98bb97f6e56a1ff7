//! Compressors of our own for WiredTiger: `lz4` and `zstd`, of which the system's package has no
//! extension, and the one of the log.
//!
//! Each is a pair of functions from bytes to bytes, here; `table` gives them to the library. The
//! library rounds the length of a page up to its unit of allocation, so what is stored begins with
//! the true length, in the layout of the library's own extension of that name: a library that has
//! it reads the same files.
//!
//! C1: lengths that come from a file are compared with the bytes that are there before they are
//! used; what does not fit is `None`, never a panic.

mod log;
mod lz4;
mod table;
#[cfg(test)]
mod tests;
mod zstd;

pub(super) use log::{LOG, LOG_PLAIN};
pub(super) use table::register;

/// A codec of blocks. `None` is the answer to what cannot be done.
trait Packer {
    /// The room to compress `length` bytes in.
    fn room(length: usize) -> usize;

    /// Compress `from` into `to`: how much of `to` it takes. `None` when it would not be shorter.
    fn pack(from: &[u8], to: &mut [u8]) -> Option<usize>;

    /// Give back what was compressed, in `to`: how much of `to` it takes. Bytes after the end of
    /// what was compressed are ignored. `None` when `from` is damaged.
    fn unpack(from: &[u8], to: &mut [u8]) -> Option<usize>;
}

/// Put `length` in front as the extensions for Snappy and Zstandard do: 8 bytes, little endian.
fn put_length(length: usize, prefix: &mut [u8]) -> Option<()> {
    let length = u64::try_from(length).ok()?;
    prefix.copy_from_slice(&length.to_le_bytes());
    Some(())
}

/// What follows a length of 8 bytes (C1).
fn take_length(from: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = from.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*prefix)).ok()?;
    rest.get(..length)
}
