//! Applying the entries of another member.
//!
//! ```text
//! entries after the mark --> batch --> documents folded in memory --> one engine transaction
//!                        +-> a command of the catalog, alone
//! ```
//!
//! - J1. A batch of changes of documents is one engine transaction, with the mark. A transaction of
//!   the primary is applied whole, with the batch that has its last entry.
//! - J2. The operations of a document in a batch are folded: it is read once, and written once as
//!   the last of them leaves it. Record numbers are taken in the order of the inserts, so a capped
//!   collection has its order.
//! - J3. The primary has made all checks. That a document is there for an insert, or missing for an
//!   update or a delete, means that the members differ: applying stops with an error that names the
//!   entry and the namespace, and nothing of the batch is applied.
//! - J4. A command that needs several commits can be applied again after a crash between them: only
//!   the one that completes it moves the mark.

mod batch;
mod command;
mod documents;

use bson::{DateTime, RawDocument, Timestamp};
use kv::TreeId;
use query::Result;

use super::append::StoredEntry;
use super::role::{Replica, shown};
use crate::error;
use crate::oplog::entry::{Command, Entry, OpTime, Operation};
use crate::oplog::{Advanced, Retry, Stored, Undo, segment, touch};
use crate::plant::{Plant, planted};
use crate::session::put_records;
use crate::txn::{Op, SessionId, Work, former_records};
use crate::writes::Touched;
pub(super) use documents::Documents;

/// What an entry needs.
enum Kind {
    /// Nothing but the mark: a note, or an entry of a transaction before the last one.
    Nothing,
    /// A transaction of its own or of the batch.
    Documents,
    /// A change of the catalog.
    Command,
}

impl Replica<'_> {
    /// Apply the written entries after [`Replica::applied`] up to `until`, which a majority has, in
    /// batches; returns what is applied then.
    ///
    /// # Errors
    /// `IllegalOperation` for a primary; the operation must end; errors of the engine. An entry
    /// that cannot be applied, by its time and namespace: the batches before it are applied.
    pub fn apply_to(&self, op: &Op<'_>, until: OpTime) -> Result<OpTime> {
        let _applies = self.locks().applies.lock();
        self.check_follows("apply entries")?;
        let until = until.ts.min(self.written().ts);
        loop {
            op.check()?;
            let batch = self.next_batch(self.applied().ts, until)?;
            let Some(last) = batch.last() else {
                return Ok(self.applied());
            };
            match kind(&Entry::parse(Stored::split(&last.value)?.entry)?)? {
                Kind::Command => self.apply_command(op, last)?,
                Kind::Nothing | Kind::Documents => self.apply_documents(op, &batch)?,
            }
        }
    }

    /// Apply a batch without commands (J1).
    fn apply_documents(&self, op: &Op<'_>, batch: &[StoredEntry]) -> Result<()> {
        let Some(last) = batch.last().map(|entry| entry.at) else {
            return Ok(());
        };
        let (sessions, touched) = self.store.write(op, &mut |work| {
            work.apply_to(last);
            let mut documents = Documents::new(self.store);
            let undo = self.log.undo().kept();
            documents.keep_undo(undo.is_some());
            let mut sessions = Vec::new();
            let mut touched = Touched::default();
            for entry in batch {
                let stored = Stored::split(&entry.value)?;
                let parsed = Entry::parse(stored.entry)?;
                if !planted(Plant::CopyForgetsEntries) || !self.is_copying() {
                    self.apply_entry(work, (&mut documents, &mut touched), &parsed)
                        .map_err(|error| failed(&parsed, error))?;
                }
                let retry = stored.retry()?;
                let retry = retry.filter(|_| !planted(Plant::ApplyForgetsSessions));
                if let Some(tree) = undo {
                    let former = documents.take_undo();
                    self.put_undo(work, (tree, entry.at.ts), former, retry.as_ref())?;
                }
                if let Some(retry) = retry {
                    sessions.extend(put_records(work, &retry)?);
                }
            }
            documents.write(work)?;
            // Also a batch of notes moves the mark.
            work.txn()?;
            Ok::<(Vec<SessionId>, Touched), _>((sessions, touched))
        })?;
        self.store.forget_sessions(&sessions);
        self.log.wake(Advanced {
            times: vec![last.ts],
            touched,
        });
        Ok(())
    }

    fn is_copying(&self) -> bool {
        let copy = self.copying();
        copy.is_some_and(|copy| copy.phase == super::copy::Phase::Copying)
    }

    /// Put the undo record of an entry: a primary may apply entries that are not committed before
    /// it writes its own.
    pub(super) fn put_undo(
        &self,
        work: &mut Work<'_>,
        place: (TreeId, Timestamp),
        mut undo: Undo,
        retry: Option<&Retry>,
    ) -> Result<()> {
        let tree = self.store.trees().sessions;
        let txn = work.txn()?;
        if let Some(retry) = retry {
            let keys = retry.records.iter();
            let keys = keys.map(|(rest, _)| [&retry.session[..], rest].concat());
            let of = (retry.session.as_slice(), retry.clear);
            undo.sessions = former_records(txn, tree, of, keys)?;
        }
        match undo.is_empty() {
            true => Ok(()),
            false => undo.put(txn, place),
        }
    }

    fn apply_entry(
        &self,
        work: &mut Work<'_>,
        (documents, touched): (&mut Documents<'_>, &mut Touched),
        entry: &Entry<'_>,
    ) -> Result<()> {
        let Operation::Command { command, .. } = &entry.operation else {
            touch(touched, &entry.operation);
            return documents.apply(work, (entry.at.ts, entry.wall, 0), &entry.operation);
        };
        let Command::ApplyOps(group) = Command::parse(command)? else {
            return Ok(());
        };
        if group.partial {
            return Ok(());
        }
        // The entries of its transaction before it, the first one first.
        for link in self.links(work, entry)? {
            let value = self.stored_at(work, link)?;
            let parsed = Entry::parse(Stored::split(&value)?.entry)?;
            let mut group = (&mut *documents, &mut *touched);
            apply_group(work, &mut group, (link, parsed.wall), command_of(&parsed)?)?;
        }
        let mut group = (documents, touched);
        apply_group(work, &mut group, (entry.at.ts, entry.wall), command)
    }

    /// The times of the earlier entries of a chain, in order.
    pub(in crate::replica) fn links(
        &self,
        work: &mut Work<'_>,
        last: &Entry<'_>,
    ) -> Result<Vec<Timestamp>> {
        let mut links = Vec::new();
        let mut previous = last.previous;
        let mut next = last.at.ts;
        while let Some(at) = previous
            && at != OpTime::NONE
        {
            if next <= at.ts {
                return Err(error::corrupt(
                    "a chain of oplog entries that does not go back",
                ));
            }
            next = at.ts;
            links.push(next);
            let value = self.stored_at(work, next)?;
            previous = Entry::parse(Stored::split(&value)?.entry)?.previous;
        }
        links.reverse();
        Ok(links)
    }

    /// The stored entry of a time, which must exist.
    pub(in crate::replica) fn stored_at(
        &self,
        work: &mut Work<'_>,
        time: Timestamp,
    ) -> Result<Vec<u8>> {
        let placed = self.log.segments().between(super::before(time), time);
        let key = segment::key(time);
        let snapshot = work.snapshot()?;
        for placed in placed.iter().rev() {
            let found = snapshot.get(placed.segment.tree(), &key);
            if let Some(value) = found.map_err(error::engine)? {
                return Ok(value);
            }
        }
        Err(query::Error::new(
            query::Code::CAPPED_POSITION_LOST,
            format!(
                "the entry Timestamp({}, {}) of a transaction is missing in the oplog",
                time.time, time.increment
            ),
        ))
    }
}

/// The operations of a group.
fn apply_group(
    work: &mut Work<'_>,
    (documents, touched): &mut (&mut Documents<'_>, &mut Touched),
    (time, wall): (Timestamp, DateTime),
    command: &RawDocument,
) -> Result<()> {
    let Command::ApplyOps(group) = Command::parse(command)? else {
        let message = "an entry of a transaction has another command than applyOps";
        return Err(query::Error::bad_value(message));
    };
    for (index, operation) in group.operations.iter().enumerate() {
        touch(touched, operation);
        documents.apply(work, (time, wall, index), operation)?;
    }
    Ok(())
}

fn command_of<'e>(entry: &Entry<'e>) -> Result<&'e RawDocument> {
    match entry.operation {
        Operation::Command { command, .. } => Ok(command),
        _ => Err(query::Error::bad_value(
            "an entry of a transaction has no command",
        )),
    }
}

fn kind(entry: &Entry<'_>) -> Result<Kind> {
    Ok(match &entry.operation {
        Operation::Nothing { .. } => Kind::Nothing,
        Operation::Insert { .. } | Operation::Update { .. } | Operation::Delete { .. } => {
            Kind::Documents
        }
        Operation::Command { command, .. } => match Command::parse(command) {
            Ok(Command::ApplyOps(group)) if group.partial => Kind::Nothing,
            Ok(Command::ApplyOps(_)) => Kind::Documents,
            Ok(_) => Kind::Command,
            Err(error) => return Err(failed(entry, error)),
        },
    })
}

/// The error of an entry that cannot be taken back.
pub(super) fn failed_back(entry: &Entry<'_>, error: query::Error) -> query::Error {
    if error::is_passing(&error) {
        return error;
    }
    error.within(format_args!(
        "cannot take back the entry {}",
        shown(entry.at)
    ))
}

/// The error of an entry that cannot be applied.
fn failed(entry: &Entry<'_>, error: query::Error) -> query::Error {
    let ns = match &entry.operation {
        Operation::Insert { place, .. }
        | Operation::Update { place, .. }
        | Operation::Delete { place, .. } => place.ns.to_owned(),
        Operation::Command { database, .. } => format!("{database}.$cmd"),
        Operation::Nothing { ns, .. } => (*ns).to_owned(),
    };
    if error::is_passing(&error) {
        return error;
    }
    error.within(format_args!(
        "cannot apply the entry {} to {ns}",
        shown(entry.at)
    ))
}
