//! The compressor of the log: Snappy behind its length in 8 bytes, as in WiredTiger's
//! `ext/compressors/snappy`.
//!
//! A record of the log says that it is compressed and not by what: the log is read by the
//! compressor the store is opened with. It must not follow the codec of trees, or a store could not
//! be recovered with another codec than it crashed with. So both compressors of the log, the one
//! that compresses and the one that does not, read the same.

use std::cell::RefCell;
use std::ffi::CStr;

use snap::raw::{Decoder, Encoder, max_compress_len};

use super::{Packer, put_length, take_length};

/// The name of the one that compresses.
pub(crate) const LOG: &CStr = c"romanesco_log";

/// The name of the one that leaves records as they are.
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

/// Compresses nothing, and reads what [`Snappy`] compressed.
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
