//! Payload memory of one buffer: chunks that are only ever appended to, and freed together.
//!
//! A chunk is allocated once at its full size and never moves, so an address stays good for the
//! life of the arena. Chunks grow from 256 bytes, so that the buffer of a tree that is hardly ever
//! written costs nothing worth counting, to 64 KiB, so that large buffers hold few of them. A piece
//! of more than 24 KiB that does not fit gets a chunk of its own, exactly its size, and the open
//! chunk stays open: at most 24 KiB of 64 are wasted.
//!
//! Invariants:
//! - I1: an address is `chunk index << 16 | offset in the chunk`; the offset is below 64 KiB, since
//!   only a chunk of one piece is larger, and that piece begins at 0.
//! - I2: `held` is the memory of all chunks, capacity counted.
//! - I3: at most 2^16 chunks. Chunks at full size hold more than 24 KiB each, so an arena takes at
//!   least 1.5 GiB before it is out of addresses; a commit has at most 1 GiB.
//!
//! No lock: the owner of the arena guards it. The only `unsafe` is the prefetch.

/// Size of the first chunk, in bytes.
const SMALLEST: usize = 256;
/// Size from which chunks stop growing, in bytes: the maximum that 16 bits of an address can
/// express.
const LARGEST: usize = 1 << 16;
/// Pieces above this many bytes may get a chunk of their own.
const OWN: usize = 24 << 10;
/// Chunks an arena may have: the other 16 bits of an address.
const CHUNKS: usize = 1 << 16;

/// The address of a piece (I1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) u32);

impl Address {
    fn new(chunk: usize, offset: usize) -> Address {
        debug_assert!(offset < LARGEST, "I1: offset {offset}");
        let number = chunk << 16 | offset;
        Address(u32::try_from(number).expect("I1, I3: 16 bits of chunk and 16 of offset"))
    }

    /// Index of the chunk.
    #[inline]
    pub(crate) fn chunk(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// Offset in the chunk.
    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }
}

/// One chunk: its bytes, and the base that its pieces are numbered from.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Never grown beyond its first capacity.
    pub(crate) bytes: Vec<u8>,
    /// Set by the owner when the chunk is created.
    pub(crate) base: u64,
}

/// The chunks of one buffer.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Chunk>,
    /// Index of the chunk being filled.
    open: usize,
    held: usize,
}

impl Arena {
    /// The chunk for the next piece of at most `len` bytes, and the address of the piece. A new
    /// chunk is numbered from `base`.
    #[inline]
    pub(crate) fn room(&mut self, len: usize, base: u64) -> (Address, &mut Chunk) {
        let fits = match self.chunks.get(self.open) {
            Some(chunk) => {
                let used = chunk.bytes.len();
                used < LARGEST && len <= chunk.bytes.capacity() - used
            }
            None => false,
        };
        let index = if fits {
            self.open
        } else {
            self.begin(len, base)
        };
        let chunk = self.chunks.get_mut(index).expect("begun or found open");
        (Address::new(index, chunk.bytes.len()), chunk)
    }

    /// Add a chunk with room for `len` bytes; returns its index.
    #[cold]
    fn begin(&mut self, len: usize, base: u64) -> usize {
        let index = self.chunks.len();
        assert!(
            index < CHUNKS,
            "I3: a buffer of {} bytes is out of addresses; flush buffers, or split commits, sooner",
            self.held
        );
        let alone = len > OWN;
        let size = if alone {
            len
        } else {
            // Doubles with every chunk: 256, 512, .. 64 KiB.
            let grown = SMALLEST << index.min(8);
            grown.max(len.next_power_of_two()).min(LARGEST)
        };
        assert!(len <= size, "a piece of {len} bytes in a chunk of {size}");
        let bytes = Vec::with_capacity(size);
        self.held += bytes.capacity();
        self.chunks.push(Chunk { bytes, base });
        if !alone {
            self.open = index;
        }
        index
    }

    /// The chunk of `address`.
    #[inline]
    pub(crate) fn chunk(&self, address: Address) -> &Chunk {
        self.chunks
            .get(address.chunk())
            .expect("I1: addresses come from `room`, and chunks are never removed")
    }

    /// Memory held, in bytes (I2).
    pub(crate) fn held(&self) -> usize {
        self.held + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// Prefetch the first cache line at `address`.
    #[inline]
    pub(crate) fn prefetch(&self, address: Address) {
        let line = self.chunk(address).bytes.get(address.offset()..);
        if let Some(line) = line {
            prefetch(line);
        }
    }
}

/// Prefetch the cache line in which `bytes` begins.
#[inline]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch neither faults nor changes anything, whatever the address; SSE, which
        // has the instruction, is part of x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast::<i8>()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes; // No stable prefetch elsewhere: reads wait for memory, nothing else changes.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_the_capacity_of_all_chunks() {
        let mut arena = Arena::default();
        for len in [1, 100, OWN, OWN + 1, LARGEST, 2 * LARGEST, 200, 40_000] {
            let (address, chunk) = arena.room(len, 0);
            chunk.bytes.resize(chunk.bytes.len() + len, 1);
            assert!(address.offset() < LARGEST, "I1: an offset of 16 bits");
        }
        let bytes: usize = arena.chunks.iter().map(|it| it.bytes.capacity()).sum();
        let list = arena.chunks.capacity() * size_of::<Chunk>();
        assert_eq!(arena.held(), bytes + list, "I2: with the list of chunks");
    }
}
