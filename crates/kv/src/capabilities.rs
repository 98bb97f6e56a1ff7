//! What an engine supports, as data: code above this API makes no decision by an engine's name.

use kv_types::Limits;
use serde::{Deserialize, Serialize};

/// What an engine supports. If a capability is false, the call that needs it returns `Unsupported`;
/// if no call needs it, the conformance law that checks it is skipped, and counted as skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The longest keys and values.
    pub limits: Limits,
    /// The empty key is allowed.
    pub empty_keys: bool,
    /// Commits survive the end of the process (kill -9) at every level above `none`.
    pub persistent: bool,
    /// `Durability::Interval` keeps a prefix of the commits after a power loss, without a sync in
    /// every commit. If false, the engine treats `interval` as a stronger (and slower) level.
    pub interval: bool,
    /// Concurrent commits at `Durability::Group` share a sync.
    pub group_commit: bool,
    /// A power loss that loses commits at `Durability::None` still leaves a store that opens.
    pub none_is_consistent: bool,
    /// Two write transactions can be open at once. If false, a second `begin_write` waits for the
    /// first transaction to end (and is refused on the thread that holds the first), and conflicts
    /// cannot happen.
    pub concurrent_writers: bool,
    /// Blind writes neither read nor conflict.
    pub blind_writes: bool,
    /// A range delete costs less than deleting its keys one by one.
    pub cheap_range_delete: bool,
    /// `drop_tree` succeeds while snapshots that read the tree are open (they continue to read it).
    pub drop_with_readers: bool,
    /// The engine can compact on request.
    pub compaction: bool,
    /// The engine can copy itself to a directory while it is written.
    pub backup: bool,
    /// A backup leaves out what an earlier one has: the engine announces pieces
    /// ([`BackupSink::piece`](crate::BackupSink::piece)).
    #[serde(default)]
    pub increments: bool,
    /// The engine can report a storage map.
    pub storage_map: bool,
    /// The engine counts the bytes it writes by reason.
    pub io_by_reason: bool,
    /// The engine can bypass the page cache of the operating system.
    pub direct_io: bool,
    /// The engine compresses what it stores.
    pub compression: bool,
}

/// How an engine writes changed entries to disk. This determines how its rate changes when data
/// outgrow memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Writes {
    /// The engine writes whole pages that contain changed entries, as a B-tree does.
    Pages,
    /// The engine writes the changed entries and merges them with others later, as an LSM tree
    /// does.
    Changes,
}

impl Capabilities {
    /// Each yes-or-no capability with its name, in the order of the fields.
    #[must_use]
    pub fn list(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("empty_keys", self.empty_keys),
            ("persistent", self.persistent),
            ("interval", self.interval),
            ("group_commit", self.group_commit),
            ("none_is_consistent", self.none_is_consistent),
            ("concurrent_writers", self.concurrent_writers),
            ("blind_writes", self.blind_writes),
            ("cheap_range_delete", self.cheap_range_delete),
            ("drop_with_readers", self.drop_with_readers),
            ("compaction", self.compaction),
            ("backup", self.backup),
            ("increments", self.increments),
            ("storage_map", self.storage_map),
            ("io_by_reason", self.io_by_reason),
            ("direct_io", self.direct_io),
            ("compression", self.compression),
        ]
    }
}
