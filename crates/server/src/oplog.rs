//! The oplog of a member of a replica set: how much of it is kept, and its notes.
//!
//! It is kept unless the configuration says that its size is 0. The store keeps the size of the
//! first start, or that of the last `replSetResizeOplog`.

use std::ops::RangeInclusive;
use std::time::Duration;

use bson::doc;
use docdb::oplog::Limits;
use docdb::{Op, Options, Store};
use kv::Durability;
use query::Result;

use crate::config::{Config, Memory};

const MIB: u64 = 1 << 20;

/// The sizes that MongoDB takes by default, in bytes.
const DISK: RangeInclusive<u64> = 990 * MIB..=50_000 * MIB;

/// The same for engines that keep data in memory.
const IN_MEMORY: RangeInclusive<u64> = 50 * MIB..=50_000 * MIB;

/// Default time without an entry after which a note is put (MongoDB's).
pub(crate) const IDLE_SECONDS: i32 = 10;

/// Name of the stored size.
const STORED: &str = "oplogSize";

/// The options of the oplog: without one the store does no work for it. `persistent` engines have
/// their data on disk.
pub(crate) fn options(config: &Config, persistent: bool, options: Options) -> Options {
    let bytes = config.oplog_bytes.unwrap_or_else(|| {
        if persistent {
            // Without knowing the disk, a small oplog.
            share(vfs::free_bytes(&config.db_path).unwrap_or(0), DISK)
        } else {
            share(Memory::read().limit, IN_MEMORY)
        }
    });
    if bytes == 0 || config.replica_set.is_none() {
        return options;
    }
    Options {
        oplog: true,
        oplog_limits: limits(bytes, config.oplog_age),
        ..options
    }
}

/// The default size of an oplog: 5 % of the free space, within `sizes`, but no more than a quarter
/// of it, and at least 1 MiB.
fn share(free: u64, sizes: RangeInclusive<u64>) -> u64 {
    let (least, most) = sizes.into_inner();
    (free / 20).clamp(least, most).min(free / 4).max(MIB)
}

/// The limits of an oplog of this size: it is removed in pieces of an eighth, or less.
fn limits(bytes: u64, age: Duration) -> Limits {
    Limits {
        segment_bytes: (bytes / 8).clamp(MIB, Limits::default().segment_bytes),
        bytes,
        age,
    }
}

/// Take the stored size, and put the first entry of this start if the server is a primary from its
/// start on. A failure must not keep the server from starting, for deleting data needs it.
pub(crate) fn begin(store: &Store, primary: bool) {
    if store.oplog_limits().is_none() {
        return;
    }
    let stored = store.property(STORED).ok().flatten();
    match stored.and_then(|bytes| <[u8; 8]>::try_from(bytes.as_slice()).ok()) {
        Some(bytes) => set(store, u64::from_be_bytes(bytes)),
        // The size of the first start.
        None => drop(keep(store)),
    }
    if !primary {
        return;
    }
    let op = Op::new(Durability::Interval);
    let note = bson::rawdoc! { "msg": "new primary" };
    // The next write puts an entry as well.
    drop(store.append_oplog_note(&op, &note));
}

/// Change the size, and store it.
///
/// # Errors
/// Those of the store.
pub(crate) fn resize(store: &Store, bytes: u64) -> Result<()> {
    set(store, bytes);
    keep(store)
}

fn set(store: &Store, bytes: u64) {
    store.set_oplog_limits(|old| *old = limits(bytes, old.age));
}

fn keep(store: &Store) -> Result<()> {
    match store.oplog_limits() {
        Some(limits) => store.set_property(STORED, &limits.bytes.to_be_bytes()),
        None => Ok(()),
    }
}

/// The oplog in `serverStatus`.
pub(crate) fn status(store: &Store) -> Option<bson::Document> {
    let long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let limits = store.oplog_limits()?;
    let (entries, bytes) = store.oplog_totals()?;
    let mut status = doc! {
        "entries": long(entries),
        "bytes": long(bytes),
        "maxBytes": long(limits.bytes),
        "minRetentionHours": limits.age.as_secs_f64() / 3_600.0,
        "openSlots": 0_i64,
    };
    if let Some(oldest) = store.oplog_slots() {
        status.insert("openSlots", long(oldest.open as u64));
        let millis = u64::try_from(oldest.since.elapsed().as_millis());
        status.insert(
            "oldestSlot",
            doc! {
                "time": oldest.time,
                "holder": oldest.holder,
                "openMillis": long(millis.unwrap_or(u64::MAX)),
            },
        );
    }
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_size_is_a_share_of_the_free_space() {
        for (free, size) in [
            (0, MIB),
            (160 * MIB, 40 * MIB),
            (3_000 * MIB, 750 * MIB),
            (10_000 * MIB, 990 * MIB),
            (100_000 * MIB, 5_000 * MIB),
            (10_000_000 * MIB, 50_000 * MIB),
            (u64::MAX, 50_000 * MIB),
        ] {
            assert_eq!(share(free, DISK), size, "{free} bytes are free");
        }
        assert_eq!(share(400 * MIB, IN_MEMORY), 50 * MIB);
    }

    #[test]
    fn an_oplog_is_removed_in_eighths_or_pieces_of_256_mib() {
        let hour = Duration::from_secs(3_600);
        for (bytes, segment) in [
            (MIB, MIB),
            (50 * MIB, 50 * MIB / 8),
            (990 * MIB, 990 * MIB / 8),
            (50_000 * MIB, 256 * MIB),
        ] {
            let limits = limits(bytes, hour);
            assert_eq!((limits.bytes, limits.segment_bytes), (bytes, segment));
            assert_eq!(limits.age, hour);
        }
    }
}
