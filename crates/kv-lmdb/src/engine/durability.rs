//! What a commit syncs, and the thread that syncs in the background.
//!
//! LMDB has no log: a commit writes the pages it copied, then the meta page that makes them the
//! tree. Two flags of the environment determine what is synced in between:
//!
//! | level | flags | synced in the commit | a power loss may take |
//! | --- | --- | --- | --- |
//! | `sync`, `group` | none | pages, then meta page | nothing |
//! | `interval` (metasync) | `NOMETASYNC` | pages | the last commit, until `interval` has passed |
//! | `interval` (nosync) | `NOSYNC` | nothing | about `interval`, or the whole store |
//! | `none` | `NOSYNC` | nothing | everything since the last sync, or the whole store |
//!
//! With `NOSYNC` the kernel may write the meta page before the pages it points to, so a power loss
//! before the next sync may leave a store that does not open. The end of the process alone loses no
//! commit at any level: all commits are in the page cache.
//!
//! The mode `interval=background` does away with this danger, by the rounds of `super::rounds`,
//! and has other costs:
//!
//! | level | flags | synced in the commit | a power loss may take |
//! | --- | --- | --- | --- |
//! | `sync`, `group` | `NOSYNC` | a round, shared by concurrent commits | nothing |
//! | `interval`, `none` | `NOSYNC` | nothing | about `interval` |
//!
//! - I1. The flags are changed only by the holder of the writer's turn, right before its commit.
//! - I2. After a failed sync the store refuses writes, because it is unknown which pages the kernel
//!   dropped.
//! - I3. Every commit at `interval` is followed by a background sync about `interval` later; in the
//!   mode `background` also every commit at `none`, because pages are reused only after a round.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heed::{Env, EnvFlags, FlagSetMode, RwTxn, WithoutTls};
use kv::{Durability, Error, ErrorKind, Result};
use stdx::sync::{Condvar, Mutex};

use super::errors::Place;
use super::rounds::Rounds;
use super::synced;
use super::turn::TurnGuard;
use crate::settings::{IntervalMode, Settings};
use crate::support::NAME;

/// If less space than this is free on the disk, in bytes, a short write is taken to mean that the
/// disk is full: the part that was written has used up the last block.
const DISK_FULL: u64 = 1 << 20;

/// The error code that LMDB returns for a short write.
const EIO: i32 = 5;

/// What a commit syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// It syncs its pages and the meta page.
    Full,
    /// It syncs its pages.
    Pages,
    /// It syncs nothing.
    Nothing,
    /// It syncs nothing, and waits for a round afterwards.
    Round,
}

impl Level {
    fn flags(self) -> EnvFlags {
        match self {
            Level::Full => EnvFlags::empty(),
            Level::Pages => EnvFlags::NO_META_SYNC,
            Level::Nothing | Level::Round => EnvFlags::NO_SYNC,
        }
    }
}

/// What must still be done before a commit may be acknowledged.
#[must_use]
pub(super) enum Then {
    /// Nothing.
    Done,
    /// Wait until this transaction is synced, best without the writer's turn, so that other
    /// commits can share the sync.
    Wait(usize),
}

/// The environment and the durability of its commits. Shared by the engine and the thread that
/// syncs.
pub(super) struct Store {
    pub(super) env: Env<WithoutTls>,
    pub(super) directory: PathBuf,
    pub(super) settings: Settings,
    map_bytes: u64,
    /// The rounds of the mode `background`.
    rounds: Option<Rounds>,
    /// The option `log`: false allows `Durability::None` only.
    log: bool,
    /// The reason why writes are refused (I2).
    poison: OnceLock<String>,
    /// A commit since the last sync was not fully synced.
    unsynced: AtomicBool,
    /// The last commit left more than its meta page unsynced.
    unsynced_pages: AtomicBool,
    /// A background sync is in progress.
    syncing: AtomicBool,
    /// A background sync was requested (I3).
    due: AtomicBool,
    /// A change found no room in the map.
    full: AtomicBool,
    stop: Mutex<bool>,
    wake: Condvar,
}

impl Store {
    pub(super) fn new(
        env: Env<WithoutTls>,
        directory: PathBuf,
        settings: Settings,
        log: bool,
        rounds: Option<Rounds>,
    ) -> Store {
        let map_bytes = env.info().map_size as u64;
        Store {
            env,
            directory,
            settings,
            map_bytes,
            rounds,
            log,
            poison: OnceLock::new(),
            unsynced: AtomicBool::new(false),
            unsynced_pages: AtomicBool::new(false),
            syncing: AtomicBool::new(false),
            due: AtomicBool::new(false),
            full: AtomicBool::new(false),
            stop: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place {
            directory: &self.directory,
            map_bytes: self.map_bytes,
            readers: self.settings.readers,
            trees: self.settings.trees,
        }
    }

    /// Convert `error` of the call `operation`.
    pub(super) fn error(&self, error: heed::Error, operation: &'static str) -> Error {
        if !(is_short_write(&error) && self.disk_is_full()) {
            return self.place().error(error, operation);
        }
        let message = "no room left on the disk; make room and try again";
        Error::new(ErrorKind::Full, message)
            .with_engine(NAME)
            .with_operation(operation)
            .with_path(&self.directory)
            .with_source(error)
    }

    /// What a commit at `durability` syncs.
    pub(super) fn level(&self, durability: Durability) -> Result<Level> {
        let full = match self.rounds {
            None => Level::Full,
            Some(_) => Level::Round,
        };
        match durability {
            Durability::None => Ok(Level::Nothing),
            stronger if !self.log => {
                let what = format!("durability {stronger} without a log (option log)");
                Err(Error::unsupported(NAME, &what))
            }
            Durability::Interval => Ok(match self.settings.interval {
                IntervalMode::MetaSync => Level::Pages,
                IntervalMode::NoSync | IntervalMode::Background => Level::Nothing,
            }),
            Durability::Group | Durability::Sync => Ok(full),
        }
    }

    /// The strongest level that the options allow, for changes whose caller names no level.
    pub(super) fn strongest(&self) -> Durability {
        if self.log {
            Durability::Sync
        } else {
            Durability::None
        }
    }

    /// Refuse to write after a failed sync.
    pub(super) fn check_writable(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(reason) => {
                let message = format!("closed for writes: {reason}; open the store again");
                let error = Error::new(ErrorKind::Closed, message);
                Err(error.with_engine(NAME).with_path(&self.directory))
            }
        }
    }

    /// Commit `txn` at `durability`. On an error nothing of it is visible.
    pub(super) fn commit(
        &self,
        txn: RwTxn<'_>,
        durability: Durability,
        turn: &TurnGuard<'_>,
    ) -> Result<Then> {
        let level = self.level(durability)?;
        self.check_writable()?;
        self.set_level(level, turn)?;
        let id = txn.id();
        let _between_rounds = self.rounds.as_ref().map(Rounds::keep_out);
        if let Err(error) = txn.commit() {
            return Err(self.commit_failed(error, level));
        }
        if self.env.info().last_txn_id != id {
            // The transaction changed nothing, so LMDB wrote nothing, and did not sync earlier
            // commits.
            return Ok(Then::Done);
        }
        self.unsynced_pages
            .store(level.flags() == EnvFlags::NO_SYNC, Ordering::Release);
        if level == Level::Full {
            self.unsynced.store(false, Ordering::Release);
            return Ok(Then::Done);
        }
        self.unsynced.store(true, Ordering::Release);
        if level == Level::Round {
            return Ok(Then::Wait(id));
        }
        if durability == Durability::Interval || self.rounds.is_some() {
            self.request_sync();
        }
        Ok(Then::Done)
    }

    /// Do what a commit left to do.
    pub(super) fn finish(&self, then: &Then) -> Result<()> {
        match then {
            Then::Done => Ok(()),
            Then::Wait(id) => self.round(Some(*id)),
        }
    }

    /// Have the thread sync about `interval` later.
    fn request_sync(&self) {
        if !self.due.swap(true, Ordering::AcqRel) {
            // The lock ensures that the thread either sees `due` set or receives the notification.
            let _stop = self.stop.lock();
            self.wake.notify_one();
        }
    }

    /// Before a transaction begins: if the map was found full, run a round, because LMDB reuses no
    /// page that was freed after the last one.
    pub(super) fn make_room(&self) -> Result<()> {
        if self.full.swap(false, Ordering::AcqRel) && self.rounds.is_some() && self.owes() {
            return self.round(None);
        }
        Ok(())
    }

    /// Remember that a change or commit failed with `error`, for [`Store::make_room`].
    pub(super) fn note_full(&self, error: &Error) {
        if error.kind() == ErrorKind::Full {
            self.full.store(true, Ordering::Release);
        }
    }

    /// The error of a failed commit. If later commits would not be safe, it closes the store for
    /// writes (I2).
    ///
    /// A commit that finds the map or the disk full has changed nothing and may be retried: no meta
    /// page refers to its pages, and the next commit writes them again. This also holds if the sync
    /// failed, unless pages of earlier commits were waiting for it too.
    fn commit_failed(&self, error: heed::Error, level: Level) -> Error {
        let by_system = matches!(error, heed::Error::Io(_));
        let error = self.error(error, "commit");
        self.note_full(&error);
        let sync_may_have_failed = by_system && level.flags() != EnvFlags::NO_SYNC;
        let harmless = match error.kind() {
            ErrorKind::Full => {
                !(sync_may_have_failed && self.unsynced_pages.load(Ordering::Acquire))
            }
            ErrorKind::Io | ErrorKind::Closed | ErrorKind::NotFound => false,
            _ => true,
        };
        if !harmless {
            self.poison(&error);
        }
        error
    }

    fn disk_is_full(&self) -> bool {
        vfs::free_bytes(&self.directory).is_ok_and(|free| free < DISK_FULL)
    }

    /// Refuse later writes because of `error` (I2).
    pub(super) fn poison(&self, error: &Error) {
        // Only the first reason is kept; it is the cause of the others.
        let _ = self.poison.set(error.to_string());
    }

    fn set_level(&self, level: Level, turn: &TurnGuard<'_>) -> Result<()> {
        assert!(turn.is_mine(), "I1: the holder of the turn sets the flags");
        let fail = |e| self.error(e, "commit");
        let changeable = EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC;
        let has = EnvFlags::from_bits_truncate(self.env.get_flags().map_err(fail)?) & changeable;
        let wanted = level.flags();
        if has == wanted {
            return Ok(());
        }
        // SAFETY: LMDB requires that one thread at a time calls this: the holder of the turn (I1).
        // The flags are an aligned word; threads that begin or end snapshots meanwhile read other
        // bits of it, which do not change. LMDB itself sets bits of it only in a commit, under the
        // same turn. That the flags chosen weaken durability is documented above.
        unsafe {
            self.env
                .set_flags(changeable - wanted, FlagSetMode::Disable)
                .map_err(fail)?;
            if !wanted.is_empty() {
                self.env
                    .set_flags(wanted, FlagSetMode::Enable)
                    .map_err(fail)?;
            }
        }
        Ok(())
    }

    /// Sync everything committed so far.
    pub(super) fn sync(&self) -> Result<()> {
        self.check_writable()?;
        if self.rounds.is_some() {
            return self.round(None);
        }
        self.unsynced.store(false, Ordering::Release);
        self.env.force_sync().map_err(|e| {
            let error = self.error(e, "sync");
            self.poison(&error);
            error
        })
    }

    /// Sync and record everything committed so far, or at least the transaction `through`; another
    /// thread may have done it meanwhile.
    fn round(&self, through: Option<usize>) -> Result<()> {
        let Some(rounds) = &self.rounds else {
            return Ok(());
        };
        let sync = || {
            self.check_writable()?;
            self.env.force_sync().map_err(|e| self.error(e, "sync"))
        };
        let result = rounds.run(self, through, sync);
        if result.is_err() {
            self.unsynced.store(true, Ordering::Release);
        }
        result
    }

    /// Everything committed so far is about to be synced.
    pub(super) fn begin_round(&self) {
        self.unsynced.store(false, Ordering::Release);
    }

    /// After the last sync, before the store is closed.
    pub(super) fn forget_rounds(&self) -> Result<()> {
        match self.rounds {
            None => Ok(()),
            Some(_) => synced::remove(&self.directory),
        }
    }

    /// Whether a power loss may lose commits that were acknowledged.
    pub(super) fn owes(&self) -> bool {
        self.unsynced.load(Ordering::Acquire)
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.syncing.load(Ordering::Relaxed)
    }

    /// The body of the thread that syncs: after every commit at `interval` it syncs at most about
    /// `interval` later.
    pub(super) fn run(&self, interval: Duration) {
        let mut stop = self.stop.lock();
        while !*stop {
            if !self.due.load(Ordering::Acquire) {
                self.wake.wait(&mut stop);
                continue;
            }
            let end = stdx::time::now() + interval;
            while !*stop && !self.wake.wait_until(&mut stop, end).timed_out() {}
            if *stop {
                return;
            }
            drop(stop);
            self.due.store(false, Ordering::Release);
            self.syncing.store(true, Ordering::Relaxed);
            // A failed sync is recorded as the reason why later writes are refused. A round that
            // could not begin is tried again.
            if self.sync().is_err() && self.poison.get().is_none() {
                self.due.store(true, Ordering::Release);
            }
            self.syncing.store(false, Ordering::Relaxed);
            stop = self.stop.lock();
        }
    }

    /// Make [`Store::run`] return.
    pub(super) fn stop(&self) {
        *self.stop.lock() = true;
        self.wake.notify_one();
    }
}

/// LMDB reports a short write, such as the last write to a full disk, as `EIO`.
fn is_short_write(error: &heed::Error) -> bool {
    matches!(error, heed::Error::Io(e) if e.raw_os_error() == Some(EIO))
}

#[cfg(test)]
mod tests {
    use kv::EngineOptions;

    use super::super::open::map;
    use super::super::turn::Turn;
    use super::*;

    #[test]
    fn after_a_failed_sync_every_commit_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            size_max: stdx::ByteSize::mib(16),
            ..EngineOptions::default()
        };
        let settings = Settings::read(&options).unwrap();
        let env = map(directory.path(), options.size_max, settings).unwrap();
        let store = Store::new(env, directory.path().to_owned(), settings, true, None);
        let turn = Turn::default();
        let guard = turn.take().unwrap();
        let commit = |level| {
            let txn = store.env.write_txn().unwrap();
            store.commit(txn, level, &guard).map(|_| ())
        };
        commit(Durability::Sync).unwrap();
        let failed = heed::Error::Io(std::io::Error::from_raw_os_error(28));
        store.commit_failed(failed, Level::Nothing);
        commit(Durability::Sync).unwrap();
        // The cause of the system: any write of a page may be lost.
        let failed = heed::Error::Io(std::io::Error::from_raw_os_error(EIO));
        store.commit_failed(failed, Level::Full);
        for level in Durability::ALL {
            let error = commit(level).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "I2: {level}");
        }
        assert_eq!(store.sync().unwrap_err().kind(), ErrorKind::Closed, "I2");
    }
}
