//! Our compressors for WiredTiger: `lz4` and `zstd`, for which the system's package has no
//! extension, and those of the log.
//!
//! Each compressor is a pair of functions from bytes to bytes; `table` passes them to the library.
//! The library rounds the length of a page up to its allocation unit, so the stored bytes begin
//! with the true length, in the layout of the library's own extension of the same name: a library
//! with that extension can read the same files.
//!
//! C1: lengths from a file are compared with the available bytes before they are used; if they do
//! not fit, the result is `None`, never a panic.

mod log;
mod lz4;
mod table;
#[cfg(test)]
mod tests;
mod zstd;

pub(super) use log::{LOG, LOG_PLAIN};
pub(super) use table::register;

/// A block codec. Its functions return `None` on failure.
trait Packer {
    /// The buffer size needed to compress `length` bytes.
    fn room(length: usize) -> usize;

    /// Compress `from` into `to`; returns the number of bytes written. `None` when the result would
    /// not be shorter.
    fn pack(from: &[u8], to: &mut [u8]) -> Option<usize>;

    /// Decompress `from` into `to`; returns the number of bytes written. Bytes after the end of the
    /// compressed data are ignored. `None` when `from` is damaged.
    fn unpack(from: &[u8], to: &mut [u8]) -> Option<usize>;
}

/// Write `length` as the extensions for Snappy and Zstandard do: 8 bytes, little endian.
fn put_length(length: usize, prefix: &mut [u8]) -> Option<()> {
    let length = u64::try_from(length).ok()?;
    prefix.copy_from_slice(&length.to_le_bytes());
    Some(())
}

/// The bytes that follow a length of 8 bytes (C1).
fn take_length(from: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = from.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*prefix)).ok()?;
    rest.get(..length)
}
