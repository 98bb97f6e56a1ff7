//! Work on whole trees: create, drop, check, compact, settle.
//!
//! Dropping and checking need a table without open cursors. First the cursors of idle sessions in
//! the pool are closed. Then the table can be in use only by the library's own work, which ends, or
//! by a snapshot, which may stay open.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kv::{Compaction, Error, ErrorKind, Flow, Progress, Result, TreeId, TreeOptions};

use super::catalog::Tree;
use super::config::TreeType;
use super::error::Called;
use super::session::Session;
use super::shared::Shared;
use super::{stats, sys};
use crate::support::NAME;

/// Maximum wait for a table that only the library itself can be using.
const PATIENCE_ALONE: Duration = Duration::from_secs(20);

/// Maximum wait for a table that a caller's snapshot may be using: long enough for a transaction
/// that is about to end.
const PATIENCE_SHARED: Duration = Duration::from_millis(250);

/// Duration of the first slice of a compaction, in seconds; each slice is twice as long as the one
/// before, because each starts at the beginning of the file. The caller may cancel between slices.
const COMPACT_SLICE: u64 = 4;

/// Maximum duration of a slice, in seconds.
const COMPACT_SLICE_MAX: u64 = 600;

/// Create a tree of the type with which the store was opened.
pub(super) fn create_tree(shared: &Shared, name: &str, _options: &TreeOptions) -> Result<TreeId> {
    kv::check_name(name).map_err(|why| Error::invalid(why).with_engine(NAME))?;
    shared.check_writable()?;
    let _schema = shared.schema.lock();
    let id = {
        let mut catalog = shared.catalog.write();
        if catalog.by_name(name).is_some() {
            return Err(
                Error::new(ErrorKind::Exists, "there is a tree of that name")
                    .with_engine(NAME)
                    .with_tree(name),
            );
        }
        catalog.reserve()?
    };
    let tree = Tree::new(id, name.to_owned(), shared.config.tree_type);
    let lease = shared.own()?;
    let created = lease
        .session()
        .create(&tree.uri, &shared.config.table(name));
    created.map_err(|fault| shared.failed_write(fault, "create").with_tree(name))?;
    shared.catalog.write().add(tree);
    Ok(id)
}

pub(super) fn drop_tree(shared: &Shared, name: &str) -> Result<()> {
    shared.check_writable()?;
    let _schema = shared.schema.lock();
    let tree = shared
        .catalog
        .read()
        .by_name(name)
        .ok_or_else(|| no_tree(name))?;
    exclusively(shared, &tree, "drop", PATIENCE_SHARED, |session| {
        session.drop_table(&tree.uri)
    })?;
    shared.catalog.write().remove(&tree);
    Ok(())
}

/// The error for a name without a tree.
pub(super) fn no_tree(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, "there is no tree of that name")
        .with_engine(NAME)
        .with_tree(name)
}

/// Check every tree with the library's own check. Where a snapshot has the table open, read all of
/// the table instead, which checks every page that is not in the cache.
pub(super) fn verify(shared: &Shared) -> Result<()> {
    let _schema = shared.schema.lock();
    let trees = shared.catalog.read().trees();
    for tree in trees {
        let checked = exclusively(shared, &tree, "verify", Duration::ZERO, |session| {
            session.verify(&tree.uri)
        });
        match checked {
            Err(e) if e.kind() == ErrorKind::Conflict => stats::read_all(shared, &tree)?,
            result => result?,
        }
    }
    Ok(())
}

/// Run `act` on a table without open cursors, or return `Conflict` after waiting for `patience`
/// while callers hold snapshots.
fn exclusively(
    shared: &Shared,
    tree: &Tree,
    operation: &'static str,
    patience: Duration,
    act: impl Fn(&Session) -> Called<()>,
) -> Result<()> {
    shared.pool.want(tree.id);
    let result = wait_for(shared, tree, operation, patience, act);
    shared.pool.release();
    result
}

fn wait_for(
    shared: &Shared,
    tree: &Tree,
    operation: &'static str,
    patience: Duration,
    act: impl Fn(&Session) -> Called<()>,
) -> Result<()> {
    let begun = stdx::time::now();
    let mut pause = Duration::from_micros(200);
    // Idle sessions have no cursor on the tree, and the session leased here was idle.
    let lease = shared.own()?;
    loop {
        match act(lease.session()) {
            Err(fault) if fault.is_busy() => {}
            result => {
                return result
                    .map_err(|fault| shared.failed_write(fault, operation).with_tree(&tree.name));
            }
        }
        let patience = if shared.pool.has_callers() || shared.backing.is_locked() {
            patience
        } else {
            PATIENCE_ALONE
        };
        if patience <= begun.elapsed() {
            let message = "the tree is in use; end the snapshots, transactions and backups that \
                           were open, then do it again";
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_engine(NAME)
                .with_operation(operation)
                .with_tree(&tree.name));
        }
        stdx::time::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Compact a whole tree: WiredTiger cannot compact a range. Free space at the end of the file is
/// returned to the system.
///
/// Only B-trees are compacted. For an LSM the library would wait until its newest chunk is on disk,
/// which does not happen while a snapshot pins a change in it; so the compaction of an LSM is
/// refused, even in a store opened for B-trees.
pub(super) fn compact(
    shared: &Shared,
    tree: TreeId,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    shared.check_writable()?;
    let tree = shared.tree(tree)?;
    if shared.config.tree_type == TreeType::Lsm || tree.tree_type == TreeType::Lsm {
        let message = "WiredTiger does not end compacting an LSM while a snapshot pins its newest \
                       chunk; use settle, which waits for the merges that are due";
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_engine(NAME)
            .with_operation("compact")
            .with_tree(&tree.name));
    }
    let total_bytes = stats::file_bytes(shared, &tree)?;
    let mut slice = COMPACT_SLICE;
    loop {
        let begun = Progress {
            done_bytes: 0,
            total_bytes,
        };
        if watch(begun) == Flow::Cancel {
            return Ok(Compaction::Cancelled);
        }
        let lease = shared.own()?;
        match lease.session().compact(&tree.uri, slice) {
            Ok(()) => break,
            // The next slice continues the compaction.
            Err(fault) if fault.is_timeout() => slice = (2 * slice).min(COMPACT_SLICE_MAX),
            Err(fault) => {
                return Err(shared.failed_write(fault, "compact").with_tree(&tree.name));
            }
        }
    }
    // The compaction is done, so the callback's answer is ignored.
    watch(Progress {
        done_bytes: total_bytes,
        total_bytes,
    });
    Ok(Compaction::Complete)
}

/// Write dirty pages by a checkpoint, and wait for the LSM's queued flushes and merges. Does not
/// compact, which would be more work than the engine does by itself.
pub(super) fn settle(shared: &Shared, limit: Duration) -> Result<Compaction> {
    let begun = stdx::time::now();
    shared.checkpoint()?;
    shared.unsynced.store(false, Ordering::Release);
    let lsm = shared.catalog.read().trees();
    if lsm.iter().all(|tree| tree.tree_type == TreeType::Btree) {
        return Ok(Compaction::Complete);
    }
    settle_lsm(shared, begun, limit)
}

fn settle_lsm(shared: &Shared, begun: Instant, limit: Duration) -> Result<Compaction> {
    const QUEUES: [i32; 3] = [
        sys::WT_STAT_CONN_LSM_WORK_QUEUE_APP,
        sys::WT_STAT_CONN_LSM_WORK_QUEUE_SWITCH,
        sys::WT_STAT_CONN_LSM_WORK_QUEUE_MANAGER,
    ];
    loop {
        let waiting = stats::connection(shared, &QUEUES)?;
        if waiting.iter().all(|&units| units == 0) {
            return Ok(Compaction::Complete);
        }
        if limit <= begun.elapsed() {
            return Ok(Compaction::Cancelled);
        }
        stdx::time::sleep(Duration::from_millis(2));
    }
}
