//! Codecs on what the files of a store hold: how much smaller it gets, how fast, each way.
//!
//! - C1. Every block is decompressed and compared with what was compressed: a codec that does not
//!   give back its input has no ratio worth printing (a published comparison was wrong by a factor
//!   of two for want of this).
//! - C2. Blocks are real: they come from the largest files of a store, logs and zeros left out.

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

/// Runs of each measurement; the median counts.
const RUNS: usize = 3;

/// What came of a codec at a size of block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The codec.
    pub codec: String,
    /// Bytes of a block.
    pub block: u32,
    /// Bytes before by bytes after.
    pub ratio: f64,
    /// Million bytes compressed a second.
    pub compress: f64,
    /// Million bytes given back a second.
    pub decompress: f64,
    /// Blocks that came back other than they were.
    pub wrong: u64,
}

/// Try all codecs on the files below a directory, for `seconds` each way and run.
///
/// # Errors
/// There is nothing to compress, or it cannot be read; a codec refuses.
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

/// Try one codec at one size of block.
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

/// Million bytes a second of `work` on all items in turn: the median of some runs.
fn speed<T>(each: Duration, items: &[T], work: &mut dyn FnMut(&T) -> Result<usize>) -> Result<f64> {
    let mut rates = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = time::now();
        let mut done = 0_usize;
        // At least once through everything, so that each run is of the same bytes.
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
