//! The catalog: the names of the trees, and the LMDB database of each.
//!
//! LMDB closes the handle of a database when it deletes it, and a handle must not be closed or
//! opened while other transactions use it. So no database is ever deleted: the environment holds
//! databases `t0`, `t1`, ... ("slots"), all opened with the store, and one more, `catalog`, which
//! maps the name of each tree to the number of its slot (4 bytes, big endian). Creating a tree
//! takes an empty slot or makes the next; dropping it empties the slot and leaves it for the next
//! tree. Snapshots older than the drop continue to read the old pages.
//!
//! - I1. A slot belongs to at most one tree.
//! - I2. Slots are numbered without gaps, so their number is the count of the entries of the
//!   unnamed database less one (the catalog).
//! - I3. A handle (`TreeId`) is never used twice.
//! - I4. A published list never changes: a snapshot keeps the list of its time, so it does not know
//!   a tree that is newer, even if it knows the tree's slot, and it still knows a tree that is
//!   dropped later.
//!
//! The list is published under a lock that no call holds while it reads or writes the disk. A new
//! tree is published after its commit and a dropped one is taken out before its commit, so a
//! snapshot that knows a tree always sees its data.

use std::collections::BTreeSet;
use std::sync::Arc;

use heed::types::{Bytes, DecodeIgnore};
use heed::{Database, Env, RoTxn, RwTxn, WithoutTls};
use kv::{Error, ErrorKind, Result, TreeId};
use stdx::sync::RwLock;

use super::errors::Place;
use crate::support::NAME;

/// An LMDB database as this adapter uses it.
pub(super) type Db = Database<Bytes, Bytes>;

const CATALOG: &str = "catalog";

#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) id: TreeId,
    pub(super) name: Arc<str>,
    pub(super) db: Db,
    slot: u32,
}

/// The trees at one time, in ascending order of their handles.
#[derive(Clone, Debug, Default)]
pub(super) struct Trees(Vec<Tree>);

impl Trees {
    /// The tree with handle `id`.
    #[inline]
    pub(super) fn get(&self, id: TreeId) -> Result<&Tree> {
        self.0
            .binary_search_by_key(&id, |tree| tree.id)
            .ok()
            .and_then(|at| self.0.get(at))
            .ok_or_else(|| unknown(id))
    }

    pub(super) fn named(&self, name: &str) -> Option<&Tree> {
        self.0.iter().find(|tree| &*tree.name == name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tree> {
        self.0.iter()
    }
}

fn unknown(id: TreeId) -> Error {
    let message = format!(
        "tree handle {} is not valid here: the tree was dropped, or is newer than the snapshot or \
         transaction; open the tree by name",
        id.0
    );
    Error::invalid(message).with_engine(NAME)
}

struct State {
    trees: Arc<Trees>,
    next: u32,
    /// Empty slots, by number.
    free: Vec<(u32, Db)>,
    /// The number of slots.
    slots: u32,
}

pub(super) struct Catalog {
    db: Db,
    state: RwLock<State>,
}

impl Catalog {
    /// Read the catalog of `env` (create an empty one if it has none) and open every slot. Must run
    /// before any other transaction; `most` is the maximum number of slots.
    pub(super) fn load(env: &Env<WithoutTls>, most: u32, place: &Place<'_>) -> Result<Catalog> {
        let fail = |e| place.error(e, "open");
        let mut txn = env.write_txn().map_err(fail)?;
        let db: Db = env.create_database(&mut txn, Some(CATALOG)).map_err(fail)?;
        let slots = count_slots(env, &txn).map_err(fail)?;
        if slots > u64::from(most) {
            let message = format!(
                "the store has slots for {slots} trees, more than the option trees ({most}); open \
                 it with trees={slots} or more"
            );
            return Err(Error::invalid(message).with_engine(NAME));
        }
        let slots = u32::try_from(slots).expect("at most `most`, which is a u32");
        let mut databases = Vec::new();
        for slot in 0..slots {
            let found = env.open_database(&txn, Some(&slot_name(slot)));
            databases.push(
                found
                    .map_err(fail)?
                    .ok_or_else(|| broken("a slot is missing"))?,
            );
        }
        let trees = read_trees(&txn, db, &databases, place)?;
        txn.commit().map_err(fail)?;
        let used: BTreeSet<u32> = trees.iter().map(|tree| tree.slot).collect();
        let free = (0..slots)
            .zip(databases)
            .filter(|(slot, _)| !used.contains(slot));
        let state = State {
            next: u32::try_from(trees.len()).expect("at most `slots`, which is a u32"),
            trees: Arc::new(Trees(trees)),
            free: free.collect(),
            slots,
        };
        Ok(Catalog {
            db,
            state: RwLock::new(state),
        })
    }

    /// Run `begin`; returns the trees at that time and its result. No tree is published or removed
    /// while `begin` runs.
    pub(super) fn with<T>(&self, begin: impl FnOnce() -> Result<T>) -> Result<(Arc<Trees>, T)> {
        let state = self.state.read();
        let made = begin()?;
        Ok((Arc::clone(&state.trees), made))
    }

    /// The current trees.
    pub(super) fn trees(&self) -> Arc<Trees> {
        Arc::clone(&self.state.read().trees)
    }

    /// The database that holds the catalog.
    pub(super) fn db(&self) -> Db {
        self.db
    }

    /// The number of empty slots.
    pub(super) fn free_slots(&self) -> usize {
        self.state.read().free.len()
    }

    /// Create the tree `name` in a transaction, commit that with `commit`, and publish the tree.
    /// The caller holds the turn.
    pub(super) fn create<'e>(
        &self,
        env: &'e Env<WithoutTls>,
        name: &str,
        place: &Place<'_>,
        commit: impl FnOnce(RwTxn<'e>) -> Result<()>,
    ) -> Result<TreeId> {
        let fail = |e| place.error(e, "create_tree").with_tree(name);
        if self.trees().named(name).is_some() {
            let error = Error::new(ErrorKind::Exists, "there is a tree of that name");
            return Err(error.with_engine(NAME).with_tree(name));
        }
        let (reused, slots, id) = {
            let state = self.state.read();
            (state.free.last().copied(), state.slots, TreeId(state.next))
        };
        let next = id.0.checked_add(1).ok_or_else(|| {
            let message = "no more tree handles; open the store again";
            Error::new(ErrorKind::Full, message).with_engine(NAME)
        })?;
        let mut txn = env.write_txn().map_err(fail)?;
        let (slot, db) = match reused {
            Some(reused) => reused,
            None if slots == place.trees => return Err(fail(heed::MdbError::DbsFull.into())),
            None => {
                let db = env.create_database(&mut txn, Some(&slot_name(slots)));
                (slots, db.map_err(fail)?)
            }
        };
        let record = slot.to_be_bytes();
        self.db
            .put(&mut txn, name.as_bytes(), &record)
            .map_err(fail)?;
        commit(txn)?;
        let mut state = self.state.write();
        if reused.is_some() {
            state.free.pop();
        } else {
            state.slots += 1;
        }
        state.next = next;
        let mut trees = Trees::clone(&state.trees);
        let name = Arc::from(name);
        trees.0.push(Tree { id, name, db, slot });
        state.trees = Arc::new(trees);
        Ok(id)
    }

    /// Remove the tree `name` from the list, empty its slot in a transaction, and commit that with
    /// `commit`. The caller holds the turn.
    pub(super) fn remove<'e>(
        &self,
        env: &'e Env<WithoutTls>,
        name: &str,
        place: &Place<'_>,
        commit: impl FnOnce(RwTxn<'e>) -> Result<()>,
    ) -> Result<()> {
        let before = self.trees();
        let Some(tree) = before.named(name) else {
            return Err(no_such_tree(name));
        };
        let rest = before.iter().filter(|other| other.id != tree.id).cloned();
        self.state.write().trees = Arc::new(Trees(rest.collect()));
        let result = self.empty(env, tree, commit, place);
        let mut state = self.state.write();
        match result {
            Ok(()) => state.free.push((tree.slot, tree.db)),
            // No other thread changes the list while this one holds the turn.
            Err(_) => state.trees = before.clone(),
        }
        result
    }

    fn empty<'e>(
        &self,
        env: &'e Env<WithoutTls>,
        tree: &Tree,
        commit: impl FnOnce(RwTxn<'e>) -> Result<()>,
        place: &Place<'_>,
    ) -> Result<()> {
        let fail = |e| place.error(e, "drop_tree").with_tree(&*tree.name);
        let mut txn = env.write_txn().map_err(fail)?;
        tree.db.clear(&mut txn).map_err(fail)?;
        self.db
            .delete(&mut txn, tree.name.as_bytes())
            .map_err(fail)?;
        commit(txn)
    }
}

/// The error `NotFound`, naming the tree.
pub(super) fn no_such_tree(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, "there is no tree of that name")
        .with_engine(NAME)
        .with_tree(name)
}

fn slot_name(slot: u32) -> String {
    format!("t{slot}")
}

fn broken(what: &str) -> Error {
    let message = format!("the catalog is wrong: {what}; restore the store from a backup");
    Error::new(ErrorKind::Corrupt, message).with_engine(NAME)
}

fn count_slots(env: &Env<WithoutTls>, txn: &RoTxn<'_>) -> heed::Result<u64> {
    let unnamed = env.open_database::<Bytes, DecodeIgnore>(txn, None)?;
    let entries = unnamed.map_or(Ok(0), |db| db.len(txn))?;
    Ok(entries.saturating_sub(1))
}

fn read_trees(txn: &RoTxn<'_>, db: Db, slots: &[Db], place: &Place<'_>) -> Result<Vec<Tree>> {
    let fail = |e| place.error(e, "open");
    let mut trees = Vec::new();
    let mut used = BTreeSet::new();
    for entry in db.iter(txn).map_err(fail)? {
        let (name, record) = entry.map_err(fail)?;
        let name = std::str::from_utf8(name).map_err(|_| broken("a name is not text"))?;
        kv::check_name(name).map_err(|e| broken(&e))?;
        let record = record.try_into();
        let record = record.map_err(|_| broken("a record has not 4 bytes"))?;
        let slot = u32::from_be_bytes(record);
        let known = usize::try_from(slot).ok().and_then(|at| slots.get(at));
        let db = *known.ok_or_else(|| broken("a tree has a slot that does not exist"))?;
        if !used.insert(slot) {
            return Err(broken("two trees have the same slot"));
        }
        let id = u32::try_from(trees.len()).expect("no more trees than slots, which is a u32");
        trees.push(Tree {
            id: TreeId(id),
            name: Arc::from(name),
            db,
            slot,
        });
    }
    Ok(trees)
}
