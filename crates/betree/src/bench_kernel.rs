//! The passes that `benches/kernel.rs` measures: those over a key between its commit and its run.
//!
//! Each function does one pass and returns how long it took, and a checksum of what it read, so
//! that no pass can be left out by the compiler and a bench can assert that passes agree.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use stdx::{Rng, time};

use crate::buffer::{Buffer, SortedBuffer, Window};
use crate::merge::{Merger, Retention, Source};
use crate::types::{Direction, Op, Seq};

/// The result of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Total time.
    pub elapsed: Duration,
    /// Number of entries processed.
    pub entries: usize,
    /// Checksum of the entries read.
    pub checksum: u64,
}

/// `count` random keys of `len` bytes, one after the other.
#[must_use]
pub fn keys(seed: u64, count: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; count * len];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

/// Buffers, active or frozen.
#[derive(Debug)]
pub struct Buffers(Vec<Arc<Buffer>>);

impl Buffers {
    /// Push keys of `len` bytes to `buffers` buffers, selected by the first byte. With one buffer,
    /// `batch` pushes share one lock.
    #[must_use]
    pub fn fill(keys: &[u8], len: usize, buffers: usize, batch: usize) -> (Buffers, Pass) {
        let list: Vec<_> = (0..buffers).map(|_| Arc::new(Buffer::new(0))).collect();
        let start = time::now();
        let mut seq = 0;
        for part in keys.chunks(len * batch.max(1)) {
            seq += 1;
            if let ([only], true) = (list.as_slice(), 1 < batch) {
                let mut guard = only.lock();
                for key in part.chunks_exact(len) {
                    guard.push(Seq(seq), Op::Put, key, &[]);
                }
                continue;
            }
            for key in part.chunks_exact(len) {
                let first = key.first().copied().map_or(0, usize::from);
                let buffer = list.get(first * buffers / 256).expect("one of them");
                buffer.push(Seq(seq), Op::Put, key, &[]);
            }
        }
        let elapsed = start.elapsed();
        let entries = list.iter().map(|buffer| buffer.entries()).sum();
        let checksum = list.iter().map(|buffer| buffer.bytes() as u64).sum();
        let pass = Pass {
            elapsed,
            entries,
            checksum,
        };
        (Buffers(list), pass)
    }

    /// Freeze and sort all buffers.
    #[must_use]
    pub fn sort(&self) -> Pass {
        let start = time::now();
        let mut entries = 0;
        for buffer in &self.0 {
            buffer.freeze();
            entries += buffer.sorted().remaining();
        }
        Pass {
            elapsed: start.elapsed(),
            entries,
            checksum: 0,
        }
    }

    /// Read all buffers, one after another, in key order.
    #[must_use]
    pub fn gather(&self) -> Pass {
        let sources = self.0.iter().map(|buffer| buffer.sorted()).collect();
        drain(sources, |_| true)
    }

    /// Read all buffers in windows of `limit` entries.
    #[must_use]
    pub fn windows(&self, limit: usize) -> Pass {
        let mut window = Window::default();
        let start = time::now();
        let (mut entries, mut checksum) = (0, 0);
        for buffer in &self.0 {
            let mut from = Bound::Unbounded;
            let mut last = Vec::new();
            loop {
                let (direction, to) = (Direction::Forward, Bound::Unbounded);
                buffer.window(direction, from, to, Seq::MAX, limit, &mut window);
                entries += window.len();
                for index in 0..window.len() {
                    checksum += sum(window.entry(index).key);
                }
                if window.exhausted() {
                    break;
                }
                last.clear();
                last.extend_from_slice(window.entry(window.len() - 1).key);
                from = Bound::Excluded(last.as_slice());
            }
        }
        Pass {
            elapsed: start.elapsed(),
            entries,
            checksum,
        }
    }

    /// Merge all buffers, newest first, and drop the versions that no snapshot needs.
    #[must_use]
    pub fn merge(&self, retention: bool) -> Pass {
        let sources: Vec<SortedBuffer> = self.0.iter().map(|buffer| buffer.sorted()).collect();
        let merger = Merger::new(sources);
        let mut judge = Retention::new(Vec::new(), Seq::MAX, false);
        drain(vec![merger], |entry| {
            !retention || judge.keep(entry).is_some()
        })
    }

    /// These buffers followed by `others`, which are older.
    #[must_use]
    pub fn and(mut self, others: Buffers) -> Buffers {
        self.0.extend(others.0);
        self
    }
}

fn sum(key: &[u8]) -> u64 {
    key.first().copied().map_or(0, u64::from) + key.last().copied().map_or(0, u64::from)
}

fn drain<S: Source>(
    sources: Vec<S>,
    mut keep: impl FnMut(crate::types::Entry<'_>) -> bool,
) -> Pass {
    let start = time::now();
    let (mut entries, mut checksum) = (0, 0);
    for mut source in sources {
        while let Some(entry) = source.current() {
            if keep(entry) {
                entries += 1;
                checksum += sum(entry.key);
            }
            source.advance().expect("memory does not fail");
        }
    }
    Pass {
        elapsed: start.elapsed(),
        entries,
        checksum,
    }
}
