//! The oplog entries of changes of the catalog.
//!
//! - O4. An entry is put in the engine transaction that changes the catalog: every function that
//!   commits such a change takes the entries of it.

use std::sync::Arc;

use bson::raw::cstr;
use bson::{RawDocument, RawDocumentBuf, Uuid, rawdoc};
use query::{Error, Namespace, Result};

use super::entry::{Command, IndexBuild, Operation};
use super::former::Kept;
use super::is_replicated;
use super::pending::Pending;
use crate::catalog::Stored;
use crate::collection::{Collection, CollectionOptions};
use crate::error;
use crate::index::{Index, IndexSpec};

/// What the catalog's change of one collection, view or database adds to the oplog: commands in
/// order, each with what it replaced. Several commands are for several indexes.
#[derive(Debug, Default)]
pub(crate) struct Noted(Vec<(RawDocumentBuf, Option<RawDocumentBuf>)>);

impl Noted {
    /// No entry: for changes of what belongs to this member.
    pub(crate) fn nothing() -> Noted {
        Noted::default()
    }

    /// One command.
    pub(crate) fn one(command: &Command<'_>) -> Result<Noted> {
        Ok(Noted(vec![(command.to_raw()?, None)]))
    }

    /// One command that replaced or removed something.
    pub(crate) fn replacing(command: &Command<'_>, replaced: RawDocumentBuf) -> Result<Noted> {
        Ok(Noted(vec![(command.to_raw()?, Some(replaced))]))
    }

    /// Whether the commit of the change completes its entry: not the begin or the end of an index
    /// build that is not usable, and not what the member needs for itself.
    pub(crate) fn completes(&self) -> bool {
        let name = |(command, _): &(RawDocumentBuf, _)| {
            let first = command.iter().next().and_then(|first| first.ok());
            first.map(|(name, _)| name.as_str().to_owned())
        };
        match self.0.last().and_then(name).as_deref() {
            None | Some("startIndexBuild" | "abortIndexBuild") => false,
            Some(_) => true,
        }
    }

    /// Append the commands of another.
    pub(crate) fn and(mut self, other: Noted) -> Noted {
        self.0.extend(other.0);
        self
    }

    /// The creation of a collection or a view. A temporary collection has `temp: true`.
    pub(crate) fn created(stored: &Stored) -> Result<Noted> {
        let mut options = stored.options.to_raw()?;
        if stored.temporary {
            options.append(cstr!("temp"), true);
        }
        let id = stored.indexes.iter().find(|index| index.spec.is_id());
        if let Some(id) = id {
            options.append(cstr!("idIndex"), id.spec.to_raw()?);
        }
        Noted::one(&Command::Create {
            collection: &stored.ns.coll,
            options,
        })
    }

    /// The creation of the other indexes of a new collection.
    pub(crate) fn indexed(stored: &Stored) -> Result<Noted> {
        let mut all = Noted::nothing();
        for index in stored.indexes.iter().filter(|index| !index.spec.is_id()) {
            all = all.and(Noted::one(&Command::CreateIndexes {
                collection: &stored.ns.coll,
                index: in_full(&index.spec, &stored.options)?,
            })?);
        }
        Ok(all)
    }

    /// The removal of a collection.
    pub(crate) fn dropped(collection: &Collection) -> Result<Noted> {
        let command = Command::Drop {
            collection: &collection.ns().coll,
        };
        Noted::replacing(&command, records(collection))
    }

    /// The removal of indexes: of each one that is ready, and of builds under way, which fail.
    pub(crate) fn dropped_indexes(collection: &Collection, gone: &[Arc<Index>]) -> Result<Noted> {
        let (name, options) = (&collection.ns().coll, collection.options());
        let mut all = Noted::nothing();
        let mut builds: Vec<Uuid> = Vec::new();
        for index in gone {
            if let Some(build) = index.build_under_way() {
                let id = build.id();
                if !builds.contains(&id) {
                    builds.push(id);
                    let of =
                        |other: &&Arc<Index>| other.build().is_some_and(|build| build.id() == id);
                    let specs = gone.iter().filter(of).map(|index| index.spec());
                    let cause = error::index_build_aborted("dropIndexes command");
                    all = all.and(Build::new((name, options), id, specs)?.aborted(&cause)?);
                }
            } else if index.is_ready() {
                let command = Command::DropIndexes {
                    collection: name,
                    index: index.name(),
                };
                all = all.and(Noted::replacing(&command, in_full(index.spec(), options)?)?);
            }
        }
        Ok(all)
    }

    /// The new name of a collection, and the collection that had it.
    pub(crate) fn renamed(
        (from, to): (&Namespace, &Namespace),
        target: Option<&Collection>,
    ) -> Result<Noted> {
        let command = Command::RenameCollection {
            from: &from.to_string(),
            to: &to.to_string(),
            dropped: target.map(Collection::uuid),
        };
        match target {
            None => Noted::one(&command),
            Some(target) => Noted::replacing(&command, records(target)),
        }
    }

    /// `collMod` with the fields of the command; `old` are the options before.
    pub(crate) fn modified(
        ns: &Namespace,
        given: &RawDocument,
        old: &RawDocument,
    ) -> Result<Noted> {
        let mut changes = RawDocumentBuf::new();
        for (name, value) in given.iter().flatten() {
            if name.as_str() != "dryRun" {
                changes.append(name, value);
            }
        }
        let command = Command::CollMod {
            collection: &ns.coll,
            changes,
        };
        let mut replaced = RawDocumentBuf::new();
        replaced.append(cstr!("collectionOptions_old"), old);
        Noted::replacing(&command, replaced)
    }

    /// The commands.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &RawDocument> {
        self.0.iter().map(|(command, _)| &**command)
    }

    /// Add the entries to those of a transaction, each with the catalog's documents before it if
    /// those are kept.
    pub(crate) fn add_to(
        &self,
        pending: &mut Pending,
        (ns, uuid): (&Namespace, Option<Uuid>),
        formers: Vec<Kept>,
    ) {
        if !is_replicated(ns) {
            return;
        }
        let mut formers = formers.into_iter();
        for (command, replaced) in &self.0 {
            pending.command(&Operation::Command {
                database: &ns.db,
                uuid,
                command,
                replaced: replaced.as_deref(),
            });
            if let Some(former) = formers.next() {
                pending.former_catalog(former);
            }
        }
    }
}

/// A build of indexes, for its entries.
pub(crate) struct Build {
    collection: String,
    id: Uuid,
    indexes: Vec<RawDocumentBuf>,
}

impl Build {
    pub(crate) fn new<'i>(
        (collection, options): (&str, &CollectionOptions),
        id: Uuid,
        specs: impl Iterator<Item = &'i IndexSpec>,
    ) -> Result<Build> {
        Ok(Build {
            collection: collection.to_owned(),
            id,
            indexes: specs
                .map(|spec| in_full(spec, options))
                .collect::<Result<_>>()?,
        })
    }

    pub(crate) fn begun(&self) -> Result<Noted> {
        Noted::one(&Command::StartIndexBuild(self.build()))
    }

    pub(crate) fn committed(&self) -> Result<Noted> {
        Noted::one(&Command::CommitIndexBuild(self.build()))
    }

    pub(crate) fn aborted(&self, cause: &Error) -> Result<Noted> {
        let cause = rawdoc! {
            "ok": false,
            "code": cause.code.0,
            "codeName": cause.code.name().into_owned(),
            "errmsg": cause.message.clone(),
        };
        Noted::one(&Command::AbortIndexBuild {
            build: self.build(),
            cause: &cause,
        })
    }

    fn build(&self) -> IndexBuild<'_> {
        IndexBuild {
            collection: &self.collection,
            id: self.id,
            indexes: self.indexes.iter().map(|index| &**index).collect(),
        }
    }
}

/// The specification of an index, with the collation that it has in place of the collection's.
pub(crate) fn in_full(spec: &IndexSpec, options: &CollectionOptions) -> Result<RawDocumentBuf> {
    let mut out = spec.to_raw()?;
    if spec.collation.is_none() && options.collation.is_some() {
        out.append(cstr!("collation"), rawdoc! { "locale": "simple" });
    }
    Ok(out)
}

fn records(collection: &Collection) -> RawDocumentBuf {
    rawdoc! { "numRecords": collection.count() }
}
