//! The codecs, each as two functions: compress and decompress.

use std::io::{Read, Write};

use lab_report::error::{Error, Result};

/// A codec of blocks.
pub trait Codec: Sync {
    /// Name of the codec, with its level.
    fn name(&self) -> &'static str;

    /// Compress `block` into `out`, which is cleared first.
    ///
    /// # Errors
    /// An error of the codec.
    fn compress(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Decompress a block of `length` bytes into `out`, which is cleared first.
    ///
    /// # Errors
    /// An error of the codec.
    fn decompress(&self, small: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// All codecs of the comparison.
#[must_use]
pub fn all() -> [&'static dyn Codec; 7] {
    [
        &Plain,
        &Snappy,
        &Lz4,
        &Zlib,
        &Zstd("zstd-1", 1),
        &Zstd("zstd-3", 3),
        &Zstd("zstd-9", 9),
    ]
}

/// Copies the bytes: the upper limit of speed.
struct Plain;

impl Codec for Plain {
    fn name(&self) -> &'static str {
        "none"
    }

    fn compress(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(block);
        Ok(())
    }

    fn decompress(&self, small: &[u8], _: usize, out: &mut Vec<u8>) -> Result<()> {
        self.compress(small, out)
    }
}

struct Snappy;

impl Codec for Snappy {
    fn name(&self) -> &'static str {
        "snappy"
    }

    fn compress(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.resize(snap::raw::max_compress_len(block.len()), 0);
        let length = snap::raw::Encoder::new().compress(block, out);
        out.truncate(length.map_err(|e| failed("snappy", &e))?);
        Ok(())
    }

    fn decompress(&self, small: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
        out.resize(length, 0);
        let found = snap::raw::Decoder::new().decompress(small, out);
        out.truncate(found.map_err(|e| failed("snappy", &e))?);
        Ok(())
    }
}

struct Lz4;

impl Codec for Lz4 {
    fn name(&self) -> &'static str {
        "lz4"
    }

    fn compress(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.resize(lz4_flex::block::get_maximum_output_size(block.len()), 0);
        let length = lz4_flex::block::compress_into(block, out);
        out.truncate(length.map_err(|e| failed("lz4", &e))?);
        Ok(())
    }

    fn decompress(&self, small: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
        out.resize(length, 0);
        let found = lz4_flex::block::decompress_into(small, out);
        out.truncate(found.map_err(|e| failed("lz4", &e))?);
        Ok(())
    }
}

struct Zlib;

impl Codec for Zlib {
    fn name(&self) -> &'static str {
        "zlib-6"
    }

    fn compress(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::new(6));
        let written = encoder.write_all(block);
        let ended = written.and_then(|()| encoder.finish());
        ended.map(drop).map_err(|e| failed("zlib", &e))
    }

    fn decompress(&self, small: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve(length);
        let read = flate2::read::ZlibDecoder::new(small).read_to_end(out);
        read.map(drop).map_err(|e| failed("zlib", &e))
    }
}

/// zstd at a level.
struct Zstd(&'static str, i32);

impl Codec for Zstd {
    fn name(&self) -> &'static str {
        self.0
    }

    fn compress(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.resize(zstd::zstd_safe::compress_bound(block.len()), 0);
        let length = zstd::bulk::compress_to_buffer(block, out, self.1);
        out.truncate(length.map_err(|e| failed("zstd", &e))?);
        Ok(())
    }

    fn decompress(&self, small: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
        out.resize(length, 0);
        let found = zstd::bulk::decompress_to_buffer(small, out);
        out.truncate(found.map_err(|e| failed("zstd", &e))?);
        Ok(())
    }
}

fn failed(codec: &str, error: &dyn std::error::Error) -> Error {
    Error::environment(format!("{codec}: {error}"))
}
