//! Taking back changes of the catalog: its documents before a change are kept in the undo record of
//! the entry, and what they refer to is dropped once no record needs it (`oplog::undo`: Z2).

use std::collections::{BTreeMap, BTreeSet};

use bson::Timestamp;
use kv::{Durability, KeyRange};
use query::{Namespace, Result};

use crate::catalog::{Catalog, Named, Stored, multikey_range, stored_key};
use crate::collection::{Collection, remove_counts};
use crate::error;
use crate::oplog::entry::OpTime;
use crate::oplog::{Formers, Undo, is_replicated};
use crate::session::restore_records;
use crate::store::Store;
use crate::txn::{Op, SessionId, Work};

/// Numbers of the indexes of collections, by their UUIDs.
type Trees = BTreeMap<[u8; 16], BTreeSet<u32>>;

impl Store {
    /// Whether what takes back changes is kept.
    pub(crate) fn keeps_undo(&self) -> bool {
        self.oplog()
            .is_some_and(|oplog| oplog.undo().kept().is_some())
    }

    /// Whether what a change of this name drops stays for an undo record (Z2).
    pub(super) fn retains(&self, ns: &Namespace) -> bool {
        self.keeps_undo() && is_replicated(ns)
    }

    /// The catalog's documents of some names, if they are kept. Call it before the transaction of
    /// the change.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(super) fn formers(&self, names: &[&Namespace]) -> Result<Formers> {
        if !self.keeps_undo() {
            return Ok(Formers::new());
        }
        let former = |ns: &&Namespace| Ok(((*ns).clone(), self.get_stored(ns)?));
        names.iter().map(former).collect()
    }

    /// Put the catalog's documents of an undo record back, and that the entries up to `left` are
    /// applied.
    ///
    /// # Errors
    /// The operation must end; errors of the engine.
    pub(crate) fn restore_catalog(
        &self,
        op: &Op<'_>,
        (time, left): (Timestamp, OpTime),
        undo: &Undo,
    ) -> Result<Vec<SessionId>> {
        let changes = self.changes(op)?;
        let mut replaced = Trees::new();
        let mut work = Work::in_change(self);
        work.apply_to(left);
        let tree = self.trees().catalog;
        let mut restored = Vec::new();
        for (name, former) in &undo.catalog {
            let ns = parsed(name)?;
            let key = stored_key(&ns);
            let txn = work.txn()?;
            if let Some(now) = self.get_stored_in(&*txn, &ns)? {
                add(&mut replaced, &now);
            }
            let done = match former {
                Some(bytes) => txn.put(tree, &key, bytes),
                None => txn.delete(tree, &key).map(|_| ()),
            };
            done.map_err(error::engine)?;
            let former = former.as_deref().map(Stored::from_bytes).transpose()?;
            restored.push((ns, former));
        }
        let sessions = restore_records(&mut work, &undo.sessions)?;
        if let Some(undo) = self.oplog().and_then(|oplog| oplog.undo().tree()) {
            Undo::remove(work.txn()?, undo, (time, time))?;
        }
        work.commit(Durability::Group)?;
        self.show_restored(restored)?;
        self.drop_unneeded(replaced)?;
        drop(changes);
        self.drop_left_trees();
        Ok(sessions)
    }

    /// Swap the catalog for one with restored documents.
    fn show_restored(&self, restored: Formers) -> Result<()> {
        let mut next = (*self.catalog()).clone();
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        for (ns, _) in &restored {
            if let Some(Named::Collection(gone)) = next.get(ns) {
                gone.core().note_drop();
            }
            next = next.without(ns);
        }
        for (ns, stored) in restored {
            let named = match stored {
                None => continue,
                Some(stored) => self.load_named(snapshot.as_ref(), stored)?,
            };
            next.insert(ns, named);
        }
        self.set_catalog(next);
        Ok(())
    }

    /// Remove the undo records of committed entries, and drop what only they needed.
    ///
    /// # Errors
    /// Errors of the engine. A later call tries again.
    pub(crate) fn purge_undo(&self) -> Result<()> {
        let Some(undo) = self.oplog().map(|oplog| oplog.undo()) else {
            return Ok(());
        };
        let (Some(tree), committed) = (undo.tree(), undo.committed()) else {
            return Ok(());
        };
        let begin = OpTime::NONE.ts;
        let mut unneeded = Trees::new();
        {
            let snapshot = self.engine().begin_read().map_err(error::engine)?;
            if !Undo::has(snapshot.as_ref(), tree, committed)? {
                return Ok(());
            }
            for bytes in Undo::formers(snapshot.as_ref(), tree, (begin, committed))? {
                add(&mut unneeded, &Stored::from_bytes(&bytes)?);
            }
        }
        let Some(turn) = self.turns().take_soon(&|| self.check_not_closed())? else {
            return Ok(());
        };
        let Some(changes) = self.changes_within(crate::turn::WAIT) else {
            return Ok(());
        };
        let mut txn = self.engine().begin_write().map_err(error::engine)?;
        Undo::remove(txn.as_mut(), tree, (begin, committed))?;
        txn.commit(Durability::Interval).map_err(error::engine)?;
        let names = self.forget_unneeded(unneeded)?;
        drop(changes);
        drop(turn);
        self.drop_named(names);
        Ok(())
    }

    /// Drop the trees of these indexes and collections that neither the catalog nor an undo record
    /// needs. The caller holds the lock of changes and the turn.
    fn drop_unneeded(&self, trees: Trees) -> Result<()> {
        let names = self.forget_unneeded(trees)?;
        self.drop_later(names);
        Ok(())
    }

    /// Remove the counts of collections that are not needed; returns the names of all trees that
    /// are not. The caller holds the lock of changes and the turn.
    fn forget_unneeded(&self, trees: Trees) -> Result<Vec<String>> {
        let needed = self.needed()?;
        let mut names = Vec::new();
        let mut txn = None;
        for (uuid, numbers) in trees {
            let kept = needed.get(&uuid);
            let gone = numbers.iter();
            let gone = gone.filter(|number| !kept.is_some_and(|kept| kept.contains(number)));
            names.extend(gone.map(|number| Stored::index_tree(&uuid, *number)));
            if kept.is_some() {
                continue;
            }
            names.push(Stored::records_tree(&uuid));
            if txn.is_none() {
                txn = Some(self.engine().begin_write().map_err(error::engine)?);
            }
            if let Some(txn) = &mut txn {
                let (start, end) = multikey_range(&uuid);
                let range = KeyRange::half_open(&start, &end);
                let deleted = txn.delete_range(self.trees().catalog, range);
                deleted.map_err(error::engine)?;
                remove_counts(txn.as_mut(), self.trees().counts, &uuid)?;
            }
        }
        if let Some(txn) = txn {
            txn.commit(Durability::Interval).map_err(error::engine)?;
        }
        Ok(names)
    }

    /// What the catalog and the undo records refer to.
    fn needed(&self) -> Result<Trees> {
        let mut needed = in_catalog(&self.catalog());
        let kept = self.kept_formers()?;
        kept.iter().for_each(|stored| add(&mut needed, stored));
        Ok(needed)
    }
}

fn parsed(name: &str) -> Result<Namespace> {
    let parts = name.split_once('.');
    let (db, coll) = parts.ok_or_else(|| error::corrupt("a name in an undo record"))?;
    Ok(Namespace {
        db: db.to_owned(),
        coll: coll.to_owned(),
    })
}

fn add(trees: &mut Trees, stored: &Stored) {
    if let Some(uuid) = stored.uuid {
        let numbers = stored.indexes.iter().map(|index| index.number);
        trees.entry(uuid).or_default().extend(numbers);
    }
}

fn in_catalog(catalog: &Catalog) -> Trees {
    let mut trees = Trees::new();
    let collections = catalog.iter().filter_map(|(_, named)| named.collection());
    for collection in collections {
        let collection: &Collection = collection;
        let numbers = collection.indexes().iter().map(|index| index.number());
        let uuid = collection.core().uuid;
        trees.entry(uuid).or_default().extend(numbers);
    }
    trees
}
