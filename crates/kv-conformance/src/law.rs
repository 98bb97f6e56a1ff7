//! A law: its name, the capabilities it needs, and the function that checks it.

use std::fmt;

use kv::{Capabilities, EngineOptions};

use crate::bench::Bench;

/// The maximum size, in bytes, of a key or value that laws about the engine's limits build.
const LIMIT_TRIED: usize = 16 << 20;

/// A capability that a law needs. If the engine lacks it, the law is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The empty key is allowed.
    EmptyKeys,
    /// The empty key is not allowed.
    NoEmptyKeys,
    /// Commits survive closing and reopening.
    Persistent,
    /// Two write transactions can be open at once.
    ConcurrentWriters,
    /// Only one write transaction can be open at once.
    SingleWriter,
    /// Blind writes neither read nor conflict.
    BlindWrites,
    /// A tree can be dropped under open snapshots.
    DropWithReaders,
    /// A tree cannot be dropped under open snapshots.
    NoDropWithReaders,
    /// The engine compacts on request.
    Compaction,
    /// The engine does not compact on request.
    NoCompaction,
    /// The engine copies itself.
    Backup,
    /// The engine does not copy itself.
    NoBackup,
    /// The engine reports a storage map.
    StorageMap,
    /// The engine announces pieces of its backups.
    Increments,
    /// The engine announces no pieces.
    NoIncrements,
    /// The engine reports no storage map.
    NoStorageMap,
    /// The engine counts written bytes by reason.
    IoByReason,
    /// The engine was opened with a redo log.
    Log,
    /// The engine's maximum key size is at most 16 MiB, so that a law can build such a key.
    KeyLimit,
    /// The engine's maximum value size is at most 16 MiB, so that a law can build such a value.
    ValueLimit,
}

impl Need {
    /// Whether an engine with these capabilities, opened with these options, has this capability.
    #[must_use]
    pub fn is_met(self, capabilities: &Capabilities, options: &EngineOptions) -> bool {
        match self {
            Need::EmptyKeys => capabilities.empty_keys,
            Need::NoEmptyKeys => !capabilities.empty_keys,
            Need::Persistent => capabilities.persistent,
            Need::ConcurrentWriters => capabilities.concurrent_writers,
            Need::SingleWriter => !capabilities.concurrent_writers,
            Need::BlindWrites => capabilities.blind_writes,
            Need::DropWithReaders => capabilities.drop_with_readers,
            Need::NoDropWithReaders => !capabilities.drop_with_readers,
            Need::Compaction => capabilities.compaction,
            Need::NoCompaction => !capabilities.compaction,
            Need::Backup => capabilities.backup,
            Need::NoBackup => !capabilities.backup,
            Need::Increments => capabilities.increments,
            Need::NoIncrements => !capabilities.increments,
            Need::StorageMap => capabilities.storage_map,
            Need::NoStorageMap => !capabilities.storage_map,
            Need::IoByReason => capabilities.io_by_reason,
            Need::Log => options.log,
            Need::KeyLimit => capabilities.limits.key_max <= LIMIT_TRIED,
            Need::ValueLimit => capabilities.limits.value_max <= LIMIT_TRIED,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Need::EmptyKeys => "empty_keys",
            Need::NoEmptyKeys => "no empty_keys",
            Need::Persistent => "persistent",
            Need::ConcurrentWriters => "concurrent_writers",
            Need::SingleWriter => "no concurrent_writers",
            Need::BlindWrites => "blind_writes",
            Need::DropWithReaders => "drop_with_readers",
            Need::NoDropWithReaders => "no drop_with_readers",
            Need::Compaction => "compaction",
            Need::NoCompaction => "no compaction",
            Need::Backup => "backup",
            Need::NoBackup => "no backup",
            Need::Increments => "increments",
            Need::NoIncrements => "no increments",
            Need::StorageMap => "storage_map",
            Need::NoStorageMap => "no storage_map",
            Need::IoByReason => "io_by_reason",
            Need::Log => "the option log",
            Need::KeyLimit => "a key limit of at most 16 MiB",
            Need::ValueLimit => "a value limit of at most 16 MiB",
        })
    }
}

/// One law.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// The theme of the law: the name of its module.
    pub theme: &'static str,
    /// The name of the law, unique within the theme.
    pub name: &'static str,
    /// The capabilities that the law needs.
    pub needs: &'static [Need],
    /// Checks the law on a new bench; panics if the engine breaks the law.
    pub run: fn(&mut Bench),
}

impl Law {
    /// The first needed capability that the engine lacks.
    #[must_use]
    pub fn unmet(&self, capabilities: &Capabilities, options: &EngineOptions) -> Option<Need> {
        self.needs
            .iter()
            .copied()
            .find(|need| !need.is_met(capabilities, options))
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.theme, self.name)
    }
}
