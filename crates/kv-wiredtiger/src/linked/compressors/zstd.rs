//! Zstandard: the length in 8 bytes, little endian, then a frame, as in WiredTiger's
//! `ext/compressors/zstd`.
//!
//! The library's threads compress and decompress one page at a time. Creating a context costs more
//! than compressing a page, so each thread keeps its own context.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use super::{Packer, put_length, take_length};

/// The compression level: MongoDB's default (`zstdCompressionLevel`).
const LEVEL: i32 = 6;

const PREFIX: usize = 8;

thread_local! {
    static PACK: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACK: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub(super) struct Zstd;

impl Packer for Zstd {
    fn room(length: usize) -> usize {
        zstd::zstd_safe::compress_bound(length).saturating_add(PREFIX)
    }

    fn pack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        let (prefix, frame) = to.split_at_mut_checked(PREFIX)?;
        let pack = |context: &RefCell<Option<Compressor<'static>>>| {
            let mut context = context.try_borrow_mut().ok()?;
            if context.is_none() {
                *context = Compressor::new(LEVEL).ok();
            }
            context.as_mut()?.compress_to_buffer(from, frame).ok()
        };
        let packed = PACK.try_with(pack).ok()??;
        put_length(packed, prefix)?;
        let total = packed.checked_add(PREFIX)?;
        (total < from.len()).then_some(total)
    }

    fn unpack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        let frame = take_length(from)?;
        let unpack = |context: &RefCell<Option<Decompressor<'static>>>| {
            let mut context = context.try_borrow_mut().ok()?;
            if context.is_none() {
                *context = Decompressor::new().ok();
            }
            context.as_mut()?.decompress_to_buffer(frame, to).ok()
        };
        UNPACK.try_with(unpack).ok()?
    }
}
