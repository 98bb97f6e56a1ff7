//! What LMDB supports: its limits and capabilities.

use kv::{Capabilities, Limits};

/// The engine's name.
pub(crate) const NAME: &str = "lmdb";

/// Maximum length of a key, in bytes. Two nodes must fit in a page. Of a page of 4096 bytes, 16 are
/// the header; half the rest is 2040, less the slot (2) 2038, less the header of the node (8) and
/// the record of a named database (48), which LMDB reserves in every node. Larger pages would allow
/// longer keys; the limit is the same everywhere so that a store can move between machines.
pub(crate) const KEY_MAX: usize = 1982;

/// Maximum length of a value, in bytes. LMDB itself accepts 4 GiB, but needs contiguous free pages
/// for the whole value.
pub(crate) const VALUE_MAX: usize = 1 << 30;

/// What LMDB supports; no option changes it.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        limits: Limits {
            key_max: KEY_MAX,
            value_max: VALUE_MAX,
        },
        empty_keys: false,
        // Commits are written with pwrite, so they are in the page cache when they return.
        persistent: true,
        interval: false,
        group_commit: false,
        none_is_consistent: false,
        concurrent_writers: false,
        blind_writes: false,
        cheap_range_delete: false,
        // Trees are emptied, not deleted (see `engine::catalog`), and readers keep their older
        // pages.
        drop_with_readers: true,
        compaction: false,
        backup: true,
        increments: false,
        storage_map: true,
        // The kernel reads pages through the map; LMDB does not see these reads.
        io_by_reason: false,
        direct_io: false,
        compression: false,
    }
}
