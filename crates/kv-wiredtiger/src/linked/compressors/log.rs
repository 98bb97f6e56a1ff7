//! The compressors of the log. The format is the length in 8 bytes, then Snappy, as in WiredTiger's
//! `ext/compressors/snappy`.
//!
//! A log record states that it is compressed, but not by which codec: the library reads the log
//! with the compressor that the store is opened with. So the log's compressor must not depend on
//! the codec of trees; otherwise a store that crashed with one codec could not be recovered with
//! another one. Both compressors of the log, the one that compresses and the one that does not,
//! read the same format.

use std::cell::RefCell;
use std::ffi::CStr;

use snap::raw::{Decoder, Encoder, max_compress_len};

use super::{Packer, put_length, take_length};

/// The name of the log compressor that compresses.
pub(crate) const LOG: &CStr = c"romanesco_log";

/// The name of the log compressor that does not compress.
pub(crate) const LOG_PLAIN: &CStr = c"romanesco_log_plain";

const PREFIX: usize = 8;

thread_local! {
    static ENCODER: RefCell<Option<Encoder>> = const { RefCell::new(None) };
}

pub(super) struct Snappy;

impl Packer for Snappy {
    fn room(length: usize) -> usize {
        max_compress_len(length).saturating_add(PREFIX)
    }

    fn pack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        let (prefix, body) = to.split_at_mut_checked(PREFIX)?;
        let pack = |encoder: &RefCell<Option<Encoder>>| {
            let mut encoder = encoder.try_borrow_mut().ok()?;
            let encoder = encoder.get_or_insert_with(Encoder::new);
            encoder.compress(from, body).ok()
        };
        let packed = ENCODER.try_with(pack).ok()??;
        put_length(packed, prefix)?;
        let total = packed.checked_add(PREFIX)?;
        (total < from.len()).then_some(total)
    }

    fn unpack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        Decoder::new().decompress(take_length(from)?, to).ok()
    }
}

/// The log compressor that does not compress; it reads the records of [`Snappy`].
pub(super) struct Plain;

impl Packer for Plain {
    fn room(_: usize) -> usize {
        0
    }

    fn pack(_: &[u8], _: &mut [u8]) -> Option<usize> {
        None
    }

    fn unpack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        Snappy::unpack(from, to)
    }
}
