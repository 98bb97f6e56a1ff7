//! Dropping collections, views, databases and indexes.

use std::sync::Arc;

use bson::Document;
use query::{Code, Error, Namespace, Result};

use super::change::outside;
use super::indexes::count;
use crate::catalog::{Named, Stored, multikey_range, stored_key};
use crate::collection::{Collection, remove_counts};
use crate::document::shell;
use crate::error;
use crate::index::{Index, same_pattern};
use crate::oplog::entry::Command;
use crate::oplog::{Formers, Noted, fixed};
use crate::store::Store;
use crate::txn::Op;

/// Which indexes to drop.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexNames {
    /// All but the one on `_id`.
    All,
    /// By name.
    Names(Vec<String>),
    /// By key pattern.
    Key(Document),
}

impl Store {
    /// Drop a collection or a view. Returns false if it does not exist.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn drop_collection(&self, op: &Op<'_>, ns: &Namespace) -> Result<bool> {
        op.check()?;
        outside(op)?;
        match self.lookup(ns) {
            None => return Ok(false),
            Some(Named::View(_)) => {
                let _changes = self.changes(op)?;
                let formers = self.formers(&[ns])?;
                let mut txn = self.engine().begin_write().map_err(error::engine)?;
                let deleted = txn.delete(self.trees().catalog, &stored_key(ns));
                deleted.map_err(error::engine)?;
                let noted = Noted::one(&Command::Drop {
                    collection: &ns.coll,
                })?;
                self.commit_change(txn, (ns, None), (&noted, &formers))?;
                self.set_catalog(self.catalog().without(ns));
                return Ok(true);
            }
            Some(Named::Collection(found)) if found.is_oplog() => return Err(fixed("drop")),
            Some(Named::Collection(_)) => {}
        }
        let change = match self.begin_change(op, ns) {
            Err(e) if e.code == Code::NAMESPACE_NOT_FOUND => return Ok(false),
            other => other?,
        };
        let formers = self.formers(&[ns])?;
        let mut txn = self.engine().begin_write().map_err(error::engine)?;
        self.forget(txn.as_mut(), &change.stored)?;
        let noted = Noted::dropped(&change.collection)?;
        self.commit_change(txn, (ns, change.stored.uuid), (&noted, &formers))?;
        self.set_catalog(self.catalog().without(ns));
        let collection = Arc::clone(&change.collection);
        collection.core().note_drop();
        drop(change);
        if !self.retains(ns) {
            self.drop_trees(&collection);
        }
        Ok(true)
    }

    /// Drop a database and everything in it. Returns false if it does not exist.
    ///
    /// # Errors
    /// As [`Store::drop_collection`].
    pub fn drop_database(&self, op: &Op<'_>, db: &str) -> Result<bool> {
        let catalog = self.catalog();
        if self.oplog().is_some() && db == "local" {
            let message = "Cannot drop 'local' database while replication is active";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        let names: Vec<Namespace> = catalog.in_database(db).map(|(ns, _)| ns.clone()).collect();
        for ns in &names {
            self.drop_collection(op, ns)?;
        }
        if self.oplog().is_some() && !names.is_empty() {
            let ns = Namespace {
                db: db.to_owned(),
                coll: String::new(),
            };
            let _changes = self.changes(op)?;
            let txn = self.engine().begin_write().map_err(error::engine)?;
            let noted = Noted::one(&Command::DropDatabase)?;
            self.commit_change(txn, (&ns, None), (&noted, &Formers::new()))?;
        }
        Ok(!names.is_empty())
    }

    /// Drop indexes; returns the number of indexes before. Indexes being built are dropped, and
    /// their build is aborted, if exactly the indexes of that build, or all indexes, are named.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `IndexNotFound`, also for an index that is being built with others;
    /// `InvalidOptions` for the index on `_id`; `AmbiguousIndexKeyPattern` for a key pattern that
    /// several indexes have.
    pub fn drop_indexes(&self, op: &Op<'_>, ns: &Namespace, names: &IndexNames) -> Result<i32> {
        let mut change = self.begin_change(op, ns)?;
        let before = count(&change.collection);
        let gone = choose(&change.collection, names)?;
        if *names != IndexNames::All {
            check_whole_builds(&change.collection, &gone)?;
        }
        let indexes = change.without(&gone);
        let noted = Noted::dropped_indexes(&change.collection, &gone)?;
        change.finish(indexes, &noted)?;
        self.end_without(change, &gone);
        Ok(before)
    }

    /// Remove the stored records of a collection, other than its trees; only its document of the
    /// catalog if an undo record keeps the rest.
    pub(super) fn forget(&self, txn: &mut dyn kv::Transaction, stored: &Stored) -> Result<()> {
        let trees = self.trees();
        txn.delete(trees.catalog, &stored_key(&stored.ns))
            .map_err(error::engine)?;
        let Some(uuid) = stored.uuid.as_ref().filter(|_| !self.retains(&stored.ns)) else {
            return Ok(());
        };
        let (start, end) = multikey_range(uuid);
        let range = kv::KeyRange::half_open(&start, &end);
        txn.delete_range(trees.catalog, range)
            .map_err(error::engine)?;
        remove_counts(txn, trees.counts, uuid)
    }
}

fn choose(collection: &Arc<Collection>, names: &IndexNames) -> Result<Vec<Arc<Index>>> {
    let id = || Error::new(Code::INVALID_OPTIONS, "cannot drop _id index");
    let all = collection.indexes();
    match names {
        IndexNames::All => Ok(all.iter().filter(|i| !i.spec().is_id()).cloned().collect()),
        IndexNames::Names(names) => {
            let mut chosen = Vec::new();
            for name in names {
                let index = collection.index(name).ok_or_else(|| {
                    let message = format!("index not found with name [{name}]");
                    Error::new(Code::INDEX_NOT_FOUND, message)
                })?;
                if index.spec().is_id() {
                    return Err(id());
                }
                chosen.push(Arc::clone(index));
            }
            Ok(chosen)
        }
        IndexNames::Key(key) => {
            let same = |i: &&Arc<Index>| same_pattern(&i.spec().key, key);
            let found: Vec<&Arc<Index>> = all.iter().filter(same).collect();
            match found.as_slice() {
                [] => Err(Error::new(
                    Code::INDEX_NOT_FOUND,
                    format!("can't find index with key: {}", shell(key)),
                )),
                [one] if one.spec().is_id() => Err(id()),
                [one] => Ok(vec![Arc::clone(one)]),
                _ => Err(Error::new(
                    Code::AMBIGUOUS_INDEX_KEY_PATTERN,
                    format!(
                        "{} indexes found for key: {}, identify by name instead",
                        found.len(),
                        shell(key)
                    ),
                )),
            }
        }
    }
}

/// Check that none of the indexes to drop is being built, or that they are exactly those of one
/// build: a build can only be aborted as a whole.
///
/// # Errors
/// `IndexNotFound`.
fn check_whole_builds(collection: &Collection, gone: &[Arc<Index>]) -> Result<()> {
    for index in gone {
        let Some(build) = index.build_under_way() else {
            continue;
        };
        let is_of = |i: &&Arc<Index>| i.build().is_some_and(|b| b.id() == build.id());
        let is_gone = |i: &Arc<Index>| gone.iter().any(|g| g.number() == i.number());
        let mut of_build = collection.indexes().iter().filter(is_of);
        if !of_build.all(is_gone) || gone.iter().any(|i| !is_of(&i)) {
            let message = format!("can't drop unfinished index with name: {}", index.name());
            return Err(Error::new(Code::INDEX_NOT_FOUND, message));
        }
    }
    Ok(())
}
