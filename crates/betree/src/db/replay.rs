//! Replaying the commits of the log when a store is opened.
//!
//! - I1. The number under the commit lock follows the replay: of a bucket that is flushed meanwhile
//!   everything up to that number is in runs, not more.
//! - I2. The parts of a bulk commit are applied when its last part was met, and not before: they
//!   are read from the log a second time then. Parts without a last one were never committed, and
//!   are passed over: the number does not follow them.
//! - I3. A replay that begins with a later part of a bulk commit begins in one that is complete:
//!   the log is released up to there only when the commit is visible.

use std::sync::Arc;

use super::commit::{RECORD_BATCH, RECORD_CREATE, RECORD_DROP, RECORD_LAST, RECORD_PART};
use super::core::Core;
use super::ddl;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::LIMITS;
use crate::log::Log;
use crate::plant::{Plant, planted};
use crate::types::{Batch, Change, Op, Seq};

/// Chunks of a bulk commit whose last one was not yet read.
struct Parts {
    first: Seq,
    next: u32,
}

/// The replay of a log.
pub(super) struct Replay<'c> {
    core: &'c Core,
    store: u128,
    /// Whether only chunks were read so far whose predecessors were released (I3).
    begins: bool,
    parts: Option<Parts>,
    /// Whether the disk is full: buffers are then not flushed, and memory exceeds its limit.
    full: bool,
}

impl<'c> Replay<'c> {
    /// A replay of the log of `store` into `core`.
    pub(super) fn new(core: &'c Core, store: u128) -> Replay<'c> {
        Replay {
            core,
            store,
            begins: true,
            parts: None,
            full: false,
        }
    }

    /// Replay the next record.
    pub(super) fn record(&mut self, seq: Seq, payload: &[u8]) -> Result<()> {
        let core = self.core;
        let (&kind, rest) = payload
            .split_first()
            .ok_or_else(|| Error::corrupt(format!("commit {seq} in the log is empty")))?;
        if kind == RECORD_PART || kind == RECORD_LAST {
            return self.part(seq, rest, kind == RECORD_LAST);
        }
        self.begins = false;
        self.parts = None;
        self.make_room()?;
        match kind {
            RECORD_BATCH => replay_batch(core, seq, rest)?,
            RECORD_CREATE => ddl::replay_create(core, seq, rest)?,
            RECORD_DROP => ddl::replay_drop(core, seq, rest)?,
            other => {
                let message = format!("commit {seq} in the log is of unknown kind {other}");
                return Err(Error::corrupt(message));
            }
        }
        reach(core, seq);
        Ok(())
    }

    /// End the replay; the log continues after `reached`.
    pub(super) fn finish(self, reached: Seq) {
        let last = self.core.commit.lock().last;
        if last < reached {
            assert!(self.parts.is_some(), "the log was replayed to its end");
            reach(self.core, reached);
        }
    }

    fn part(&mut self, seq: Seq, rest: &[u8], end: bool) -> Result<()> {
        let Some((index, batch)) = rest.split_first_chunk::<4>() else {
            return Err(Error::corrupt(format!(
                "commit {seq} in the log is cut short"
            )));
        };
        let index = u32::from_le_bytes(*index);
        if planted(Plant::HalfABulkCommit) {
            return self.replay_part(seq, batch);
        }
        if index == 0 {
            self.begins = false;
            self.parts = Some(Parts {
                first: seq,
                next: 1,
            });
            return Ok(());
        }
        match &mut self.parts {
            Some(parts) if parts.next == index => parts.next += 1,
            None if self.begins => {
                self.begins = !end;
                return self.replay_part(seq, batch);
            }
            _ => {
                let message = format!("commit {seq} in the log is part {index} of another");
                return Err(Error::corrupt(message));
            }
        }
        match self.parts.take_if(|_| end) {
            Some(parts) => self.apply(parts.first, seq),
            None => Ok(()),
        }
    }

    fn replay_part(&mut self, seq: Seq, batch: &[u8]) -> Result<()> {
        self.make_room()?;
        replay_batch(self.core, seq, batch)?;
        reach(self.core, seq);
        Ok(())
    }

    /// Flush until there is room in memory. On a full disk the limit is exceeded instead, because
    /// data could not be deleted from a store that does not open. The length of the log bounds the
    /// excess.
    fn make_room(&mut self) -> Result<()> {
        while self.core.memory.is_full() && !self.full {
            match self.core.make_replay_room() {
                Err(error) if error.kind() == ErrorKind::Full => self.full = true,
                made => made?,
            }
        }
        Ok(())
    }

    /// Apply the complete chunks `first..=last` (I2).
    fn apply(&mut self, first: Seq, last: Seq) -> Result<()> {
        let (core, store) = (self.core, self.store);
        let mut visit = |seq: Seq, payload: &[u8]| match payload {
            [RECORD_PART | RECORD_LAST, _, _, _, _, batch @ ..] => self.replay_part(seq, batch),
            _ => Err(Error::corrupt(format!(
                "commit {seq} in the log has changed"
            ))),
        };
        Log::read_again(
            &*core.vfs,
            &core.directory,
            (store, core.keys.as_deref()),
            (first, last),
            &mut visit,
        )
    }
}

/// Record that everything up to `seq` is in the buffers (I1).
fn reach(core: &Core, seq: Seq) {
    let mut committer = core.commit.lock();
    committer.last = seq;
    if core.snapshots.visible() < seq {
        core.snapshots.publish(seq);
    }
    core.freeze_when_full(seq);
}

/// Push the operations that the buckets do not have yet. Operations on missing trees are skipped: a
/// later record dropped them.
fn replay_batch(core: &Core, seq: Seq, payload: &[u8]) -> Result<()> {
    for change in Batch::decode(payload, LIMITS).map_err(|e| in_commit(seq, &e))? {
        let (tree, op, key, value) = match change {
            Change::Put { tree, key, value } => (tree, Op::Put, key, value),
            Change::Delete { tree, key } => (tree, Op::Delete, key, &[][..]),
            Change::DeleteRange { .. } => {
                let message = "a range delete is logged as deletes of its keys";
                return Err(in_commit(seq, &Error::corrupt(message)));
            }
        };
        let Ok(tree) = core.catalog.tree(tree) else {
            continue;
        };
        let routing = tree.routing();
        let bucket = routing.bucket(key);
        let active = {
            let state = bucket.state();
            if seq <= state.flushed {
                continue;
            }
            Arc::clone(&state.active)
        };
        let before = active.bytes();
        active.push(seq, op, key, value);
        core.memory.grow(active.bytes() - before);
    }
    Ok(())
}

fn in_commit(seq: Seq, error: &Error) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("commit {seq} in the log: {error}"),
    )
}
