//! Taking back the changes of applied entries, by their undo records (see `oplog::undo`).

use bson::{RawDocument, Timestamp};
use query::{Code, Error, Result};

use super::append::StoredEntry;
use super::apply::{Documents, failed_back};
use super::removed::Removed;
use super::role::Replica;
use crate::error;
use crate::oplog::entry::{Command, Entry, OpTime, Operation};
use crate::oplog::{Advanced, Stored, Undo};
use crate::plant::{Plant, planted};
use crate::session::restore_records;
use crate::txn::{Op, Work};
use crate::writes::Touched;

/// Entries whose changes one transaction takes back.
const ENTRIES_MAX: usize = 1_000;

/// Bytes of entries whose changes one transaction takes back, which are held in memory.
const BYTES_MAX: usize = 16 << 20;

/// Applied entries to take back together, the newest first, and the entry before them.
struct Batch {
    entries: Vec<StoredEntry>,
    left: OpTime,
    /// Whether it is one change of the catalog.
    command: bool,
}

impl Replica<'_> {
    /// Take back the changes of all applied entries after a position, the newest first.
    pub(super) fn take_back(
        &self,
        op: &Op<'_>,
        position: OpTime,
        removed: &mut Removed,
    ) -> Result<()> {
        loop {
            op.check()?;
            let applied = self.applied();
            if applied.ts <= position.ts {
                return Ok(());
            }
            let batch = self.newest_applied(position, applied)?;
            match batch.entries.first() {
                Some(entry) if batch.command => self.take_back_command(op, entry, batch.left)?,
                _ => self.take_back_documents(op, &batch, removed)?,
            }
        }
    }

    fn newest_applied(&self, position: OpTime, applied: OpTime) -> Result<Batch> {
        let mut batch = Batch {
            entries: Vec::new(),
            left: position,
            command: false,
        };
        let mut bytes = 0;
        self.visit_back(applied.ts, |_, at, value| {
            let alone = is_command(value)?;
            let full = ENTRIES_MAX <= batch.entries.len() || BYTES_MAX < bytes + value.len();
            let ends = batch.command || ((alone || full) && !batch.entries.is_empty());
            if at.ts <= position.ts || ends {
                batch.left = at;
                return Ok(false);
            }
            batch.command = alone;
            bytes += value.len();
            let value = value.to_vec();
            batch.entries.push(StoredEntry { at, value });
            Ok(true)
        })?;
        if batch.left.ts < position.ts {
            batch.left = position;
        }
        Ok(batch)
    }

    fn take_back_documents(&self, op: &Op<'_>, batch: &Batch, removed: &mut Removed) -> Result<()> {
        let sessions = self.store.write(op, &mut |work| {
            work.apply_to(batch.left);
            let mut documents = Documents::new(self.store);
            let mut sessions = Vec::new();
            for stored in &batch.entries {
                let entry = Entry::parse(Stored::split(&stored.value)?.entry)?;
                let undo = self.undo_of(work, stored.at.ts)?;
                if !planted(Plant::RollbackForgetsUndo) {
                    self.take_back_entry(work, (&mut documents, removed), (&entry, &undo))
                        .map_err(|error| failed_back(&entry, error))?;
                }
                if !planted(Plant::RollbackForgetsSessions) {
                    sessions.extend(restore_records(work, &undo.sessions)?);
                }
                if let Some(tree) = self.log.undo().tree() {
                    Undo::remove(work.txn()?, tree, (stored.at.ts, stored.at.ts))?;
                }
            }
            documents.write_back(work, removed)?;
            removed.sync()?;
            work.txn()?;
            Ok(sessions)
        })?;
        self.store.forget_sessions(&sessions);
        self.log.wake(Advanced {
            times: Vec::new(),
            touched: Touched::default(),
        });
        Ok(())
    }

    /// Take back a change of the catalog, the only one of its batch.
    fn take_back_command(&self, op: &Op<'_>, stored: &StoredEntry, left: OpTime) -> Result<()> {
        let entry = Entry::parse(Stored::split(&stored.value)?.entry)?;
        let time = stored.at.ts;
        let undo = match self.log.undo().tree() {
            None => Undo::default(),
            Some(tree) => {
                let snapshot = self.store.engine().begin_read().map_err(error::engine)?;
                Undo::load(snapshot.as_ref(), tree, time)?
            }
        };
        let none = match entry.operation {
            Operation::Command { command, .. } => matches!(
                Command::parse(command)?,
                // A follower does not begin builds before they end.
                Command::DropDatabase
                    | Command::StartIndexBuild(_)
                    | Command::AbortIndexBuild { .. }
            ),
            _ => false,
        };
        if undo.catalog.is_empty() && !none {
            return Err(no_record(time));
        }
        let restored = self.store.restore_catalog(op, (time, left), &undo);
        let sessions = restored.map_err(|error| failed_back(&entry, error))?;
        self.store.forget_sessions(&sessions);
        self.log.wake(Advanced {
            times: Vec::new(),
            touched: Touched::default(),
        });
        Ok(())
    }

    /// Take back an entry; of a chain the last one takes back all.
    fn take_back_entry(
        &self,
        work: &mut Work<'_>,
        (documents, removed): (&mut Documents<'_>, &mut Removed),
        (entry, undo): (&Entry<'_>, &Undo),
    ) -> Result<()> {
        let Operation::Command { command, .. } = &entry.operation else {
            let at = (entry.at.ts, entry.wall, 0);
            let operation = (&entry.operation, undo);
            return documents.take_back(work, (at, 0), operation, removed);
        };
        let Command::ApplyOps(group) = Command::parse(command)? else {
            return Ok(());
        };
        if group.partial {
            return Ok(());
        }
        let links = self.links(work, entry)?;
        let mut base = group.count.and_then(|count| usize::try_from(count).ok());
        let mut group_of = |work: &mut Work<'_>, time: Timestamp, command: &RawDocument| {
            let Command::ApplyOps(group) = Command::parse(command)? else {
                return Err(Error::bad_value(
                    "an entry of a transaction has no operations",
                ));
            };
            let end = base.unwrap_or(group.operations.len());
            let start = end.checked_sub(group.operations.len());
            let start = start.ok_or_else(|| Error::bad_value("a chain has a wrong count"))?;
            base = Some(start);
            for (index, operation) in group.operations.iter().enumerate().rev() {
                let at = (time, entry.wall, index);
                let place = (at, start + index);
                documents.take_back(work, place, (operation, undo), removed)?;
            }
            Ok(())
        };
        group_of(work, entry.at.ts, command)?;
        for link in links.into_iter().rev() {
            let value = self.stored_at(work, link)?;
            let parsed = Entry::parse(Stored::split(&value)?.entry)?;
            if let Operation::Command { command, .. } = parsed.operation {
                group_of(work, link, command)?;
            }
        }
        Ok(())
    }

    /// The undo record of an entry.
    fn undo_of(&self, work: &mut Work<'_>, time: Timestamp) -> Result<Undo> {
        match self.log.undo().tree() {
            None => Ok(Undo::default()),
            Some(tree) => Undo::load(work.snapshot()?, tree, time),
        }
    }
}

fn is_command(value: &[u8]) -> Result<bool> {
    let entry = Entry::parse(Stored::split(value)?.entry)?;
    let Operation::Command { command, .. } = entry.operation else {
        return Ok(false);
    };
    Ok(!matches!(Command::parse(command)?, Command::ApplyOps(_)))
}

/// The error of an applied entry without the undo record that it needs.
pub(super) fn no_record(at: Timestamp) -> Error {
    let message = format!(
        "the entry Timestamp({}, {}) is applied and has no undo record: copy this member again \
         from another",
        at.time, at.increment
    );
    Error::new(Code::ILLEGAL_OPERATION, message)
}
