//! Compression and decompression, with the memory that codecs reuse.
//!
//! A builder keeps its own tables. Readers share small pools of the contexts that zlib and zstd
//! need, because pages are too many to keep one each; a pool's lock is held to take or return one,
//! not while it works.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use lz4_flex::block::{
    CompressTable, compress_into, compress_into_with_table, decompress_into,
    get_maximum_output_size,
};
use stdx::sync::Mutex;

use super::{Codec, PageError};

pub(super) const NONE: u8 = 0;
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;
pub(super) const SNAPPY: u8 = 3;
pub(super) const ZLIB: u8 = 4;

/// Input shorter than this is compressed with the reusable table of 16-bit positions.
const LZ4_SHORT: usize = 65_535;

/// Number of contexts per codec kept for readers, some tens of KiB each. More concurrent readers
/// create their own and drop it.
const POOL: usize = 8;

/// A codec with its reusable memory.
pub(super) struct Compressor {
    work: Work,
    output: Vec<u8>,
}

/// Memory of a codec that is reused from page to page.
enum Work {
    None,
    Lz4(CompressTable),
    Snappy(Box<snap::raw::Encoder>),
    Zlib(Box<Compress>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Work {
    fn new(codec: Codec) -> Work {
        match codec {
            Codec::Lz4 => Work::Lz4(CompressTable::small()),
            Codec::Snappy => Work::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Zlib(level) => {
                let level = Compression::new(u32::from(level.unsigned_abs()));
                Work::Zlib(Box::new(Compress::new(level, true)))
            }
            #[cfg(feature = "zstd")]
            Codec::Zstd(level) => {
                zstd::bulk::Compressor::new(level.into()).map_or(Work::None, Work::Zstd)
            }
            #[cfg(not(feature = "zstd"))]
            Codec::Zstd(_) => Work::None,
            Codec::None => Work::None,
        }
    }
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
            work: Work::new(codec),
            output: Vec::new(),
        }
    }

    /// Append `input` to `out`, compressed if that saves at least a sixteenth; returns the codec
    /// that decompresses it.
    pub(super) fn append(&mut self, input: &[u8], out: &mut Vec<u8>) -> u8 {
        let limit = input.len() - input.len() / 16;
        let done = if input.len() < 32 {
            None
        } else {
            self.compress(input, limit)
        };
        match done.filter(|(_, stored)| *stored < limit) {
            Some((codec, stored)) => {
                out.extend_from_slice(self.output.get(..stored).unwrap_or_default());
                codec
            }
            None => {
                out.extend_from_slice(input);
                NONE
            }
        }
    }

    /// Release memory that a huge value required.
    pub(super) fn shrink(&mut self, most: usize) {
        self.output.truncate(most);
        self.output.shrink_to(most);
    }

    /// Compress into `self.output`; returns the codec and the compressed length. `None` if
    /// compression fails or, where the codec detects it, the result would exceed `limit`.
    fn compress(&mut self, input: &[u8], limit: usize) -> Option<(u8, usize)> {
        let output = &mut self.output;
        match &mut self.work {
            Work::None => None,
            Work::Lz4(table) => {
                let room = room(output, get_maximum_output_size(input.len()));
                // Long input would replace the table, and the result for later short input would
                // depend on it (I2).
                let done = if input.len() < LZ4_SHORT {
                    compress_into_with_table(input, room, table)
                } else {
                    compress_into(input, room)
                };
                done.ok().map(|stored| (LZ4, stored))
            }
            Work::Snappy(encoder) => {
                let room = room(output, snap::raw::max_compress_len(input.len()));
                let done = encoder.compress(input, room);
                done.ok().map(|stored| (SNAPPY, stored))
            }
            Work::Zlib(encoder) => {
                encoder.reset();
                let done = encoder.compress(input, room(output, limit), FlushCompress::Finish);
                let ended = matches!(done, Ok(Status::StreamEnd));
                let stored = usize::try_from(encoder.total_out()).ok()?;
                ended.then_some((ZLIB, stored))
            }
            #[cfg(feature = "zstd")]
            Work::Zstd(encoder) => {
                // An error means that the output does not fit.
                let done = encoder.compress_to_buffer(input, room(output, limit));
                done.ok().map(|stored| (ZSTD, stored))
            }
        }
    }
}

/// The first `length` bytes of `output`, which grows if necessary.
fn room(output: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if output.len() < length {
        output.resize(length, 0);
    }
    output.get_mut(..length).unwrap_or_default()
}

/// Decompress `input` into `output`, which has the stored uncompressed length.
pub(super) fn decompress(codec: u8, input: &[u8], output: &mut [u8]) -> Result<(), PageError> {
    let written = match codec {
        NONE if input.len() == output.len() => {
            output.copy_from_slice(input);
            output.len()
        }
        NONE => return Err(PageError::Content("its packed part has two lengths")),
        LZ4 => decompress_into(input, output)
            .map_err(|_| PageError::Content("its packed part is not LZ4"))?,
        SNAPPY => snap::raw::Decoder::new()
            .decompress(input, output)
            .map_err(|_| PageError::Content("its packed part is not Snappy"))?,
        ZLIB => decompress_zlib(input, output)?,
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

fn decompress_zlib(input: &[u8], output: &mut [u8]) -> Result<usize, PageError> {
    static CONTEXTS: Mutex<Vec<Decompress>> = Mutex::new(Vec::new());

    let wrong = PageError::Content("its packed part is not zlib");
    let pooled = CONTEXTS.lock().pop();
    let mut context = pooled.unwrap_or_else(|| Decompress::new(true));
    context.reset(true);
    let done = context.decompress(input, output, FlushDecompress::Finish);
    let written = match done {
        Ok(Status::StreamEnd) => usize::try_from(context.total_out()).map_err(|_| wrong),
        _ => Err(wrong),
    };
    give_back(&CONTEXTS, context);
    written
}

#[cfg(feature = "zstd")]
fn decompress_zstd(input: &[u8], output: &mut [u8]) -> Result<usize, PageError> {
    use zstd::bulk::Decompressor;

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
    give_back(&CONTEXTS, context);
    written
}

#[cfg(not(feature = "zstd"))]
fn decompress_zstd(_: &[u8], _: &mut [u8]) -> Result<usize, PageError> {
    Err(PageError::NoZstd)
}

/// Return a context to the pool, unless the pool is full.
fn give_back<T>(contexts: &Mutex<Vec<T>>, context: T) {
    let mut contexts = contexts.lock();
    if contexts.len() < POOL {
        contexts.push(context);
    }
}
