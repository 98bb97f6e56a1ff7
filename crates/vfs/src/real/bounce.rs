//! Aligned memory for direct input and output, kept for reuse.
//!
//! - I1: the bytes of [`Bounce::bytes`] start at an address that is a multiple of [`BLOCK`], and
//!   their length is a multiple of [`BLOCK`]. Any allocator will do, because one block more is
//!   allocated than is used.
//!
//! A pool keeps at most [`SMALL_KEPT`] small and [`LARGE_KEPT`] large unused buffers, 4 MiB of
//! each. Any number of buffers may be in use at the same time; the pool's locks are held only for a
//! push or a pop.

use std::mem;
use std::sync::Arc;

use stdx::sync::Mutex;

/// Alignment of the offsets, lengths and addresses of direct requests: sufficient for every device
/// with logical blocks of 512 to 4,096 bytes.
pub(super) const BLOCK: usize = 4096;
/// Maximum size of a direct request; longer ones are split.
pub(super) const LARGE: usize = 1 << 20;
/// Size of a small buffer: somewhat more than a page of an engine, so that random reads do not need
/// a large buffer.
const SMALL: usize = 64 << 10;
const SMALL_KEPT: usize = 64;
const LARGE_KEPT: usize = 4;

/// A pool of unused buffers.
#[derive(Default)]
pub(super) struct Pool {
    small: Mutex<Vec<Vec<u8>>>,
    large: Mutex<Vec<Vec<u8>>>,
}

/// A buffer taken from a pool; dropping it puts it back.
pub(super) struct Bounce {
    pool: Arc<Pool>,
    memory: Vec<u8>,
    start: usize,
    size: usize,
}

impl Pool {
    /// Takes a buffer for at least `length` bytes, which must not exceed [`LARGE`]. Its content is
    /// arbitrary.
    pub(super) fn take(self: &Arc<Self>, length: usize) -> Bounce {
        assert!(length <= LARGE, "direct requests are cut into pieces");
        let size = if length <= SMALL { SMALL } else { LARGE };
        let kept = self.shelf(size).lock().pop();
        let memory = kept.unwrap_or_else(|| vec![0; size + BLOCK]);
        let start = memory.as_ptr().align_offset(BLOCK);
        assert!(
            start < BLOCK,
            "I1: the block of slack holds an aligned address"
        );
        Bounce {
            pool: Arc::clone(self),
            memory,
            start,
            size,
        }
    }

    fn shelf(&self, size: usize) -> &Mutex<Vec<Vec<u8>>> {
        if size == SMALL {
            &self.small
        } else {
            &self.large
        }
    }
}

impl Bounce {
    /// The first `length` bytes, rounded up to whole blocks.
    pub(super) fn bytes(&mut self, length: usize) -> &mut [u8] {
        let length = length.next_multiple_of(BLOCK);
        assert!(length <= self.size, "a buffer is used within its size");
        let bytes = self.memory.get_mut(self.start..self.start + length);
        let bytes = bytes.expect("memory is a block longer than size, and start is below a block");
        debug_assert!(is_aligned(bytes), "I1: aligned memory");
        bytes
    }
}

impl Drop for Bounce {
    fn drop(&mut self) {
        let kept = if self.size == SMALL {
            SMALL_KEPT
        } else {
            LARGE_KEPT
        };
        let mut shelf = self.pool.shelf(self.size).lock();
        if shelf.len() < kept {
            shelf.push(mem::take(&mut self.memory));
        }
    }
}

/// Whether direct requests may use this memory without a bounce buffer.
pub(super) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(BLOCK) == 0 && bytes.len().is_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let pool = Arc::new(Pool::default());
        for length in [1, BLOCK, SMALL, SMALL + 1, LARGE] {
            let mut bounce = pool.take(length);
            let bytes = bounce.bytes(length);
            assert!(is_aligned(bytes));
            assert!(bytes.len() >= length);
        }
        assert_eq!(pool.small.lock().len(), 1);
        assert_eq!(pool.large.lock().len(), 1);
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_limit() {
        let pool = Arc::new(Pool::default());
        let out: Vec<_> = (0..LARGE_KEPT + 3).map(|_| pool.take(LARGE)).collect();
        drop(out);
        assert_eq!(pool.large.lock().len(), LARGE_KEPT);
    }
}
