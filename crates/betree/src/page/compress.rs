//! The codecs at work, with the memory they keep.
//!
//! A builder keeps its own tables. Readers share a small pool of zstd contexts, because pages are
//! too many to keep one each; the pool's lock is held to take or return one, not while it works.

use lz4_flex::block::{
    CompressTable, compress_into, compress_into_with_table, decompress_into,
    get_maximum_output_size,
};

use super::{Codec, PageError};

pub(super) const NONE: u8 = 0;
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;

/// Shorter input is compressed with the table of 16-bit positions that is kept.
const LZ4_SHORT: usize = 65_535;

/// A codec and its memory.
pub(super) struct Compressor {
    codec: Codec,
    lz4: CompressTable,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::bulk::Compressor<'static>>,
    output: Vec<u8>,
}

impl Compressor {
    /// # Panics
    /// If the codec is not [`Codec::available`].
    pub(super) fn new(codec: Codec) -> Compressor {
        assert!(
            codec.available(),
            "the codec {codec} is not available in this build"
        );
        Compressor {
            codec,
            lz4: CompressTable::small(),
            #[cfg(feature = "zstd")]
            zstd: match codec {
                Codec::Zstd(level) => zstd::bulk::Compressor::new(level.into()).ok(),
                Codec::None | Codec::Lz4 => None,
            },
            output: Vec::new(),
        }
    }

    /// Append `input` to `out`, smaller if that saves at least a sixteenth, and tell the codec that
    /// undoes it.
    pub(super) fn append(&mut self, input: &[u8], out: &mut Vec<u8>) -> u8 {
        let limit = input.len() - input.len() / 16;
        let (codec, stored) = self.compress(input, limit);
        if codec == NONE || limit <= stored {
            out.extend_from_slice(input);
            return NONE;
        }
        out.extend_from_slice(self.output.get(..stored).unwrap_or_default());
        codec
    }

    /// Give back what a huge value took.
    pub(super) fn shrink(&mut self, most: usize) {
        self.output.truncate(most);
        self.output.shrink_to(most);
    }

    /// Compress into `self.output`; what cannot be done or would be too long is [`NONE`].
    fn compress(&mut self, input: &[u8], limit: usize) -> (u8, usize) {
        match self.codec {
            _ if input.len() < 32 => (NONE, 0),
            Codec::None => (NONE, 0),
            Codec::Lz4 => {
                let room = get_maximum_output_size(input.len());
                if self.output.len() < room {
                    self.output.resize(room, 0);
                }
                // Long input would exchange the table for another, and short input that comes
                // later would depend on it (I2).
                let done = if input.len() < LZ4_SHORT {
                    compress_into_with_table(input, &mut self.output, &mut self.lz4)
                } else {
                    compress_into(input, &mut self.output)
                };
                match done {
                    Ok(stored) => (LZ4, stored),
                    Err(_) => (NONE, 0),
                }
            }
            Codec::Zstd(_) => self.compress_zstd(input, limit),
        }
    }

    #[cfg(feature = "zstd")]
    fn compress_zstd(&mut self, input: &[u8], limit: usize) -> (u8, usize) {
        if self.output.len() < limit {
            self.output.resize(limit, 0);
        }
        let room = self.output.get_mut(..limit).unwrap_or_default();
        // An error says that the room does not suffice.
        match self
            .zstd
            .as_mut()
            .map(|zstd| zstd.compress_to_buffer(input, room))
        {
            Some(Ok(stored)) => (ZSTD, stored),
            Some(Err(_)) | None => (NONE, 0),
        }
    }

    #[cfg(not(feature = "zstd"))]
    fn compress_zstd(&mut self, _: &[u8], _: usize) -> (u8, usize) {
        (NONE, 0)
    }
}

/// Fill `output` from `input`, both of which have the lengths that were stored.
pub(super) fn decompress(codec: u8, input: &[u8], output: &mut [u8]) -> Result<(), PageError> {
    let written = match codec {
        NONE if input.len() == output.len() => {
            output.copy_from_slice(input);
            output.len()
        }
        NONE => return Err(PageError::Content("its packed part has two lengths")),
        LZ4 => decompress_into(input, output)
            .map_err(|_| PageError::Content("its packed part is not LZ4"))?,
        ZSTD => decompress_zstd(input, output)?,
        found => return Err(PageError::Codec { found }),
    };
    if written != output.len() {
        return Err(PageError::Content(
            "its packed part unpacks to another length",
        ));
    }
    Ok(())
}

#[cfg(feature = "zstd")]
fn decompress_zstd(input: &[u8], output: &mut [u8]) -> Result<usize, PageError> {
    use stdx::sync::Mutex;
    use zstd::bulk::Decompressor;

    /// About 100 KiB each; more readers at once than this make their own and throw it away.
    const POOL: usize = 8;
    static CONTEXTS: Mutex<Vec<Decompressor<'static>>> = Mutex::new(Vec::new());

    let wrong = PageError::Content("its packed part is not zstd");
    let pooled = CONTEXTS.lock().pop();
    let mut context = match pooled {
        Some(context) => context,
        None => Decompressor::new().map_err(|_| wrong)?,
    };
    let written = context
        .decompress_to_buffer(input, output)
        .map_err(|_| wrong);
    let mut contexts = CONTEXTS.lock();
    if contexts.len() < POOL {
        contexts.push(context);
    }
    written
}

#[cfg(not(feature = "zstd"))]
fn decompress_zstd(_: &[u8], _: &mut [u8]) -> Result<usize, PageError> {
    Err(PageError::NoZstd)
}
