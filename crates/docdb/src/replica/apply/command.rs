//! Entries that change the catalog.

use bson::{RawDocument, RawDocumentBuf, Uuid};
use query::{Code, Error, Namespace, Result};

use super::failed;
use crate::collection::CollectionOptions;
use crate::ddl::IndexNames;
use crate::oplog::entry::{Command, Entry, OpTime, Operation};
use crate::oplog::{Advanced, Replayed, Stored, is_replicated, touch};
use crate::replica::append::StoredEntry;
use crate::replica::role::Replica;
use crate::txn::Op;
use crate::writes::Touched;

/// Fields of `create` that are no options of the collection.
const NO_OPTIONS: [&str; 2] = ["idIndex", "temp"];

impl Replica<'_> {
    /// Apply an entry that changes the catalog (J4).
    pub(super) fn apply_command(&self, op: &Op<'_>, entry: &StoredEntry) -> Result<()> {
        let stored = Stored::split(&entry.value)?;
        let parsed = Entry::parse(stored.entry)?;
        let Operation::Command {
            database,
            uuid,
            command,
            ..
        } = &parsed.operation
        else {
            return Ok(());
        };
        let done = Command::parse(command).and_then(|command| {
            let _replayed = Replayed::begin(entry.at);
            self.run(op, (database, *uuid), command)
        });
        done.map_err(|error| failed(&parsed, error))?;
        if self.applied() != entry.at || stored.hidden.is_some() {
            // A command without an effect here, or with records of its session.
            self.mark(op, entry.at, &stored)?;
        }
        let mut touched = Touched::default();
        touch(&mut touched, &parsed.operation);
        self.log.wake(Advanced {
            times: vec![entry.at.ts],
            touched,
        });
        Ok(())
    }

    /// Move the mark, and put the records of the entry's session.
    fn mark(&self, op: &Op<'_>, at: OpTime, stored: &Stored<'_>) -> Result<()> {
        let retry = stored.retry()?;
        let session = self.store.write(op, &mut |work| {
            work.apply_to(at);
            work.txn()?;
            match &retry {
                Some(retry) => crate::session::put_records(work, retry),
                None => Ok(None),
            }
        })?;
        self.store.forget_sessions(session.as_slice());
        Ok(())
    }

    fn run(
        &self,
        op: &Op<'_>,
        (database, uuid): (&str, Option<Uuid>),
        command: Command<'_>,
    ) -> Result<()> {
        let store = self.store;
        let of = |collection: &str| self.named(database, collection, uuid);
        match command {
            Command::Create {
                collection,
                options,
            } => self.create(op, (database, collection, uuid), &options),
            Command::Drop { collection } => store.drop_collection(op, &of(collection)?).map(|_| ()),
            Command::CreateIndexes { collection, index } => {
                let ns = of(collection)?;
                store.create_indexes_raw(op, &ns, &[index]).map(|_| ())
            }
            Command::CommitIndexBuild(build) => {
                let ns = of(build.collection)?;
                let specs: Vec<RawDocumentBuf> = build
                    .indexes
                    .iter()
                    .map(|spec| (*spec).to_owned())
                    .collect();
                store.create_indexes_raw(op, &ns, &specs).map(|_| ())
            }
            // The indexes are built when they become usable.
            Command::StartIndexBuild(_) | Command::AbortIndexBuild { .. } => Ok(()),
            Command::DropIndexes { collection, index } => {
                let names = IndexNames::Names(vec![index.to_owned()]);
                store.drop_indexes(op, &of(collection)?, &names).map(|_| ())
            }
            Command::CollMod {
                collection,
                changes,
            } => store.coll_mod(op, &of(collection)?, &changes).map(|_| ()),
            Command::ConvertToCapped { collection, size } => {
                store.convert_to_capped(op, &of(collection)?, size)
            }
            Command::RenameCollection { from, to, dropped } => {
                let (from, to) = (Namespace::parse(from)?, Namespace::parse(to)?);
                let from = self.named(&from.db, &from.coll, uuid)?;
                if dropped.is_some() {
                    self.named(&to.db, &to.coll, dropped)?;
                }
                store.rename(op, &from, &to, dropped.is_some())
            }
            // Each of its collections has an entry before.
            Command::DropDatabase => Ok(()),
            Command::ApplyOps(_) => Err(Error::bad_value("applyOps is no command of the catalog")),
        }
    }

    /// The namespace of a collection or a view, which must exist and have the UUID.
    fn named(&self, database: &str, collection: &str, uuid: Option<Uuid>) -> Result<Namespace> {
        let ns = Namespace::new(database, collection)?;
        let found = self.store.lookup(&ns);
        let same = found.is_some_and(|found| {
            let there = found.collection().map(|collection| collection.uuid());
            there == uuid && is_replicated(&ns)
        });
        if same {
            return Ok(ns);
        }
        let message = match uuid {
            Some(uuid) => format!("no collection {ns} has the UUID {uuid}"),
            None => format!("no view {ns} exists"),
        };
        Err(Error::new(Code::NAMESPACE_NOT_FOUND, message))
    }

    fn create(
        &self,
        op: &Op<'_>,
        (database, collection, uuid): (&str, &str, Option<Uuid>),
        given: &RawDocument,
    ) -> Result<()> {
        let ns = Namespace::new(database, collection)?;
        if !is_replicated(&ns) {
            let message = format!("{ns} belongs to one member, and has no entries");
            return Err(Error::new(Code::INVALID_NAMESPACE, message));
        }
        let mut fields = RawDocumentBuf::new();
        for field in given {
            let (name, value) = field?;
            if !NO_OPTIONS.contains(&name.as_str()) {
                fields.append(name, value);
            }
        }
        let options = CollectionOptions::parse_raw(&fields)?;
        let temporary = given.get("temp")? == Some(bson::RawBsonRef::Boolean(true));
        match uuid {
            Some(uuid) => self.store.create_again(op, &ns, options, (uuid, temporary)),
            None if options.view.is_some() => self.store.create(op, &ns, options),
            None => Err(Error::bad_value("a created collection has no UUID")),
        }
    }
}
