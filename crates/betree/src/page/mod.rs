//! The page: some hundred entries of a run, stored as one checksummed block.
//!
//! ```text
//! header (32 bytes) | columns | packed | zeros | checksum (8 bytes)
//! ```
//! * `header` (`header.rs`): magic, version, codec, flags, counts and lengths.
//! * `columns`: what is stored as byte planes (`planes.rs`), each only if it says anything: keys of
//!   one length, or the lengths that front-coded keys need; operations unless all are puts;
//!   sequence numbers unless all are 0; lengths of values unless all are equal; what values of one
//!   length have in common (`template.rs`).
//! * `packed`: the suffixes of front-coded keys (`front.rs`), then all values (or what
//!   differs in them) back to back, through the codec when that saves a sixteenth.
//! * `zeros`: none, but for pages that shrank so much that a reader's bound on memory would refuse
//!   them (I3).
//! * `checksum`: XXH3 of everything before it, seeded by the page's identity.
//!
//! Invariants:
//! * I1: entries are in the order of [`Entry`]: ascending keys, newest version first.
//! * I2: the bytes of a page depend on its entries, its identity and the codec, on nothing else.
//! * I3: decoding any bytes gives a page or an error; it takes at most 64 times their length and
//!   1 MiB of memory.
//! * I4: a page decodes under the identity it was encoded under, and no other.
//!
//! Nothing here locks but the pool of zstd contexts; builders and pages belong to one thread at a
//! time, and decoded pages are shared as they do not change.

#[doc(hidden)]
pub mod bench;
mod builder;
mod bytes;
mod codec;
mod compress;
mod error;
mod front;
mod header;
mod plane;
mod planes;
mod template;
mod transpose;
mod view;

#[cfg(test)]
mod tests;

pub use codec::Codec;

pub(crate) use builder::PageBuilder;
pub(crate) use error::PageError;
pub(crate) use header::{HEADER_LEN, stored_len};
pub(crate) use view::Page;

use crate::plant::{Plant, planted};
use crate::types::{RunId, TreeId};

/// The identity of a page: page number `index` of a run of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageIdent {
    pub(crate) tree: TreeId,
    pub(crate) run: RunId,
    pub(crate) index: u32,
}

impl PageIdent {
    /// The checksum of `bytes` as a part of this page.
    pub(crate) fn checksum(self, bytes: &[u8]) -> u64 {
        if planted(Plant::SkipPageIdentity) {
            return stdx::hash::hash64_seeded(bytes, 0);
        }
        let place = u64::from(self.tree.0) << 32 | u64::from(self.index);
        let seed = stdx::hash::hash64_seeded(&place.to_le_bytes(), self.run.0);
        stdx::hash::hash64_seeded(bytes, seed)
    }
}
