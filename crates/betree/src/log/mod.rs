//! The redo log: every commit, in order, before anything else knows of it.
//!
//! A log is a row of segment files of a size given beforehand, preallocated, and used again under a
//! new number when released; they are small at first and grow under load. Records are appended to a
//! group in memory; full groups wait in a queue of a few buffers; a *writer* writes them with one
//! call each, a *syncer* syncs for all who wait. Both may be any thread. The writer does not wait
//! for the syncer: groups are written while a sync runs, to the same segment and to later ones.
//! Commits slow down as the buffers fill ([`pace`]); an append waits only when all are full, for a
//! missing segment, or when [`append::DIRTY_MAX`] segments are not synced. A record longer than a
//! buffer is streamed as a group of its own; one longer than a segment gets a segment of its own.
//!
//! # Invariants
//!
//! * **I1** Records are numbered without gaps, in log order. The number of a record follows from
//!   its group's first number and is stored in it all the same.
//! * **I2** A group lies in one segment and is written once, behind all groups of this segment. It
//!   begins in the block in which the one before it ends, unless a sync has begun since: then with
//!   the next block, and a sync does not begin while a group that shares a block is being written.
//!   So no write touches a block that holds a record which a sync has made durable, or may have.
//! * **I3** A segment's number rises and is never used twice. Its length is durable before its
//!   header is written, its name and header before its first group is,
//!   and before the next segment is made. Checksums are seeded with store and number, so what a
//!   file held under another number, or in another store, does not decode.
//! * **I4** A group header says up to which record everything was synced *before* the group was
//!   written. It is evidence: a valid group proves that those records were durable. Nothing else
//!   does: that a group, or a later segment, is there proves nothing of what was written before it.
//! * **I5** A segment is dirty from its first write on until a sync that began after its last write
//!   has succeeded. A sync takes what is written when it begins, syncs the dirty segments oldest
//!   first, and after each one `durable` is the last record that this segment held when the sync
//!   began. So `durable` rises in log order only, and nothing written later is counted in.
//! * **I6** One writer writes and one syncer syncs at a time (two syncs of one file may share one
//!   report of an error); neither holds a lock while it does. The syncer may wait for the writer,
//!   never the other way round.
//! * **I7** After a failed write or sync nothing is written again: what is on disk is unknown, and
//!   a second sync that succeeds proves nothing. The log is poisoned until it is opened again. A
//!   sync that was under way when something failed makes nothing durable either.
//! * **I8** A segment that recovery finds behind the end of the chain is set aside, durably, before
//!   the next header is written.
//!
//! In an encrypted store every group is encrypted when it is written: see `frame`.
//!
//! # Why a torn tail is safe, and damage is not taken for one
//!
//! After a crash the groups written since the last sync may each be there, missing or torn, in any
//! combination: a later segment may be there whole while the end of the one before is not.
//! Recovery reads from group to group and from segment to segment, and the chain of records ends
//! where a group does not decode and no later segment continues with the record that is then next.
//! Everything acknowledged was synced, so it lies before that end (I2: no later write could hurt
//! it; I5: everything before it was synced, too). The rest is cut, whatever valid groups there are
//! in it: it was never acknowledged. If instead an acknowledged group was damaged, the chain ends
//! there just the same; but then recovery looks for evidence (I4) in the rest of that segment and
//! in all later ones. A valid group that says the missing record was durable turns the cut into
//! [`ErrorKind::Corrupt`]. What was synced last, with nothing written since, leaves no evidence in
//! the log: damage to that alone looks like a torn tail. A checkpoint bounds it: recovery gets
//! what the checkpoint covers, and the store checks that the log reaches its last record.
//!
//! What was cut may still hold valid groups. So that they never come back, a recovered log
//! continues in a *new* segment whose groups say from which record on earlier segments are void,
//! and whole segments behind the end lose their names first (I8): new records with the same numbers
//! could otherwise lead the chain back into them, should the first new group be damaged. Records
//! whose durability has no evidence are copied there first: after a failed sync the operating
//! system may show bytes that the device does not have. On a full disk, where only the reserve is
//! left for copies, they are read from the device instead if there are too many (`proof`).
//!
//! # Locks
//!
//! One mutex, `state`, held for a copy at most, never across I/O. What others ask at every commit
//! (how full the buffers are) is in atomics. `append` runs under the commit
//! lock of the store, which is taken before; everything else may be called from any thread.
//!
//! [`ErrorKind::Corrupt`]: crate::ErrorKind::Corrupt

mod append;
mod chain;
mod commit;
pub(crate) mod format;
mod frame;
mod group;
mod options;
mod pace;
mod presence;
mod proof;
mod recover;
mod reserve;
mod segment;
pub(crate) mod sites;
mod state;
mod stream;
mod survey;
mod upkeep;
mod writeback;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use stdx::sync::{Condvar, Mutex};
use vfs::Vfs;

pub(crate) use options::{LogOptions, LogStats, Position};

use crate::types::Seq;

use pace::Pace;
use segment::Place;
use state::State;
use writeback::Written;

/// The redo log of one store, open for appending.
pub(crate) struct Log {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    store: u128,
    options: LogOptions,
    state: Mutex<State>,
    /// What was written but not yet scheduled for writeback. A leaf in the lock order.
    written: Mutex<Option<Written>>,
    /// Notified when a group was written, a segment was created, or the log was poisoned.
    moved: Condvar,
    /// Notified when a sync has ended, or the log was poisoned.
    synced: Condvar,
    /// Notified when there is enough for a write.
    work: Condvar,
    /// Notified when a segment should be created ahead.
    chores: Condvar,
    /// The fraction of the buffers that waits to be written, in thousandths.
    filled: AtomicUsize,
    /// Microseconds that appends have waited for a buffer or a segment.
    append_waited: AtomicU64,
    pace: Pace,
}

impl Log {
    /// The newest record known to be durable.
    pub(crate) fn durable(&self) -> Seq {
        let state = self.state.lock();
        assert!(
            state.durable <= state.written,
            "I5: what is durable was written"
        );
        assert!(
            state.written <= state.appended,
            "I1: what is written was appended"
        );
        state.durable
    }

    /// The newest appended record.
    pub(crate) fn appended(&self) -> Seq {
        self.state.lock().appended
    }

    #[cfg(test)]
    /// Whether a write or sync has failed: appends and syncs are refused until the store is opened
    /// again.
    pub(crate) fn poisoned(&self) -> bool {
        self.state.lock().poison.is_some()
    }

    /// Bytes in all segments not yet released.
    pub(crate) fn bytes_held(&self) -> u64 {
        self.state.lock().bytes_held()
    }

    /// Statistics since it was opened.
    pub(crate) fn stats(&self) -> LogStats {
        self.state.lock().stats
    }

    /// The fraction of the buffers that waits to be written, from 0 to 1.
    pub(crate) fn pressure(&self) -> f64 {
        self.filled.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// How long a commit of `bytes` should sleep before it is appended, so that the buffers do not
    /// fill up: see [`Pace::delay`].
    pub(crate) fn delay(&self, bytes: usize) -> Duration {
        self.pace.delay(bytes, self.pressure())
    }

    /// Total time that appends have waited for a buffer or a segment.
    pub(crate) fn append_waited(&self) -> Duration {
        Duration::from_micros(self.append_waited.load(Ordering::Relaxed))
    }

    fn place(&self) -> Place<'_> {
        Place {
            vfs: &*self.vfs,
            directory: &self.directory,
            store: self.store,
            direct: self.options.direct,
            keys: self.options.keys.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests;
