//! Compares codecs on the files of a store: compression ratio, and the speeds of compression and
//! decompression.
//!
//! - C1. Every block is decompressed and compared with the original: a codec that does not restore
//!   its input has no ratio worth printing (a published comparison without this check was wrong by
//!   a factor of two).
//! - C2. Blocks are real: they come from the largest files of a store, without logs and zeros.

mod codecs;
mod sample;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stdx::time;

pub use codecs::{Codec, all};

use lab_report::error::Result;
use lab_report::record::experiment::compression::BLOCKS;

/// Runs of each measurement; the result is their median.
const RUNS: usize = 3;

/// Result of a codec at a block size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The codec.
    pub codec: String,
    /// Size of a block, in bytes.
    pub block: u32,
    /// Uncompressed bytes divided by compressed bytes.
    pub ratio: f64,
    /// Compression speed, in million uncompressed bytes per second.
    pub compress: f64,
    /// Decompression speed, in million uncompressed bytes per second.
    pub decompress: f64,
    /// Blocks that were not restored exactly.
    pub wrong: u64,
}

/// Measure all codecs on the files below a directory. Each run of a compression or decompression
/// takes at least `each`.
///
/// # Errors
/// If the files contain no data to compress or cannot be read, or if a codec fails.
pub fn on_files(directory: &Path, each: Duration) -> Result<Vec<Tried>> {
    let bytes = sample::of(directory)?;
    let mut tried = Vec::new();
    for block in BLOCKS {
        for codec in all() {
            tried.push(one(codec, &bytes, block, each)?);
        }
    }
    Ok(tried)
}

/// Measure one codec at one block size.
fn one(codec: &dyn Codec, bytes: &[u8], block: u32, each: Duration) -> Result<Tried> {
    let size = block as usize;
    let blocks: Vec<&[u8]> = bytes.chunks(size).collect();
    let mut packed = Vec::with_capacity(blocks.len());
    let mut wrong = 0;
    let mut unpacked = Vec::new();
    for block in &blocks {
        let mut small = Vec::new();
        codec.compress(block, &mut small)?;
        codec.decompress(&small, block.len(), &mut unpacked)?;
        wrong += u64::from(unpacked != *block);
        packed.push(small);
    }
    let after: usize = packed.iter().map(Vec::len).sum();
    let mut buffer = Vec::new();
    let compress = speed(each, &blocks, &mut |block| {
        codec.compress(block, &mut buffer)?;
        Ok(block.len())
    })?;
    let pairs: Vec<(&Vec<u8>, usize)> = packed.iter().zip(blocks.iter().map(|b| b.len())).collect();
    let decompress = speed(each, &pairs, &mut |(small, length)| {
        codec.decompress(small, *length, &mut buffer)?;
        Ok(*length)
    })?;
    Ok(Tried {
        codec: codec.name().to_owned(),
        block,
        ratio: bytes.len() as f64 / (after as f64).max(1.0),
        compress,
        decompress,
        wrong,
    })
}

/// Run `work` on all items in turn for `each`; returns million bytes per second: the median of
/// [`RUNS`] runs.
fn speed<T>(each: Duration, items: &[T], work: &mut dyn FnMut(&T) -> Result<usize>) -> Result<f64> {
    let mut rates = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = time::now();
        let mut done = 0_usize;
        // At least one pass over all items, so that each run covers the same bytes.
        loop {
            for item in items {
                done += std::hint::black_box(work(item)?);
            }
            if each <= start.elapsed() {
                break;
            }
        }
        rates.push(done as f64 / 1e6 / start.elapsed().as_secs_f64().max(1e-9));
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates.get(RUNS / 2).copied().unwrap_or(0.0))
}
