//! Transactions and their model: what they see, what they write, and which of them must conflict.

use std::collections::BTreeMap;
use std::ops::Bound;

use betree::{Durability, ErrorKind, Transaction, TreeId};
use sim::checker::{Change, State};

use crate::acts::bound;
use crate::rig::{Step, World, apply};

/// A transaction, its snapshot, and its writes.
pub(crate) struct Txn {
    transaction: Transaction,
    before: State,
    changes: Vec<Change>,
    checked: Vec<(String, Vec<u8>)>,
    ids: BTreeMap<String, TreeId>,
}

impl World {
    /// Begin a transaction.
    pub(crate) fn begin(&mut self) -> Step<Option<Txn>> {
        if self.is_down() {
            return Ok(None);
        }
        match self.db().begin() {
            Ok(transaction) => Ok(Some(Txn {
                transaction,
                before: self.model.clone(),
                changes: Vec::new(),
                checked: Vec::new(),
                ids: self.ids.clone(),
            })),
            Err(error) => {
                assert!(self.poisoned || self.vfs.has_stopped(), "{error}");
                self.failed(error).map(|()| None)
            }
        }
    }

    /// Run one write of a transaction. Returns false if it met a conflict.
    pub(crate) fn transact(&mut self, txn: &mut Txn, change: Change, blind: bool) -> Step<bool> {
        let (Change::Put(tree, ..) | Change::Delete(tree, _) | Change::DeleteRange(tree, ..)) =
            &change
        else {
            unreachable!("not of a transaction");
        };
        let Some(&id) = txn.ids.get(tree) else {
            return Ok(true);
        };
        let mut own = txn.before.clone();
        txn.changes
            .iter()
            .for_each(|change| apply(&mut own, change));
        let t = &mut txn.transaction;
        let result = match (&change, blind) {
            (Change::Put(_, key, value), true) => t.put_blind(id, key, value),
            (Change::Put(_, key, value), false) => t.put(id, key, value),
            (Change::Delete(_, key), true) => t.delete_blind(id, key),
            (Change::Delete(_, key), false) => t.delete(id, key).map(|there| {
                let expected = own.get(tree).is_some_and(|tree| tree.contains_key(key));
                assert_eq!(
                    there,
                    expected,
                    "{tree}, deleted key {}",
                    key.escape_ascii()
                );
            }),
            (Change::DeleteRange(_, start, end), _) => t.delete_range(id, bound(start), bound(end)),
            _ => unreachable!("matched above"),
        };
        match result {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Conflict => return Ok(false),
            // The tree was dropped in the meantime.
            Err(e) if e.kind() == ErrorKind::Invalid => return Ok(false),
            Err(error) => return self.failed(error).map(|()| false),
        }
        let range = |tree: &str, start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>| {
            let keys = own.get(tree).into_iter().flat_map(|t| t.keys());
            let inside = keys
                .filter(|k| std::ops::RangeBounds::contains(&(start.as_ref(), end.as_ref()), k));
            inside
                .map(|k| (tree.to_owned(), k.clone()))
                .collect::<Vec<_>>()
        };
        match change {
            Change::DeleteRange(tree, start, end) => {
                let keys = range(&tree, &start, &end);
                txn.checked.extend(keys.iter().cloned());
                txn.changes
                    .extend(keys.into_iter().map(|(t, k)| Change::Delete(t, k)));
            }
            // A transaction does not remove keys that it does not see.
            Change::Delete(ref tree, ref key)
                if !blind && !own.get(tree).is_some_and(|tree| tree.contains_key(key)) => {}
            Change::Put(ref tree, ref key, _) | Change::Delete(ref tree, ref key) => {
                if !blind {
                    txn.checked.push((tree.clone(), key.clone()));
                }
                txn.changes.push(change);
            }
            _ => unreachable!("matched above"),
        }
        Ok(true)
    }

    /// Commit it.
    pub(crate) fn finish(&mut self, txn: Txn, durability: Durability) -> Step<bool> {
        let durability = if self.logged() {
            durability
        } else {
            Durability::None
        };
        let lives = |change: &Change| match change {
            Change::Put(tree, ..) | Change::Delete(tree, _) => {
                self.ids.get(tree) == txn.ids.get(tree)
            }
            _ => false,
        };
        let start = txn.transaction.seq().0;
        if !txn.changes.iter().all(lives) {
            let error = txn
                .transaction
                .commit(durability)
                .expect_err("it wrote to a dropped tree");
            let kind = error.kind();
            assert!(
                matches!(
                    kind,
                    ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::Closed
                ) || self.faulty
                    || self.vfs.has_stopped(),
                "{error}"
            );
            return Ok(false);
        }
        let newer = |at: &(String, Vec<u8>)| self.written.get(at).is_some_and(|&seq| start < seq);
        let must_fail = txn.checked.iter().any(newer);
        let transaction = txn.transaction;
        let changes = txn.changes.clone();
        let done = self.commit(txn.changes, durability.is_synced(), |_| {
            transaction.commit(durability)
        })?;
        if done {
            self.check_bounds(&changes);
        }
        assert!(
            !(done && must_fail),
            "a transaction overwrote another one's key unseen"
        );
        if done {
            let seq = self.db().begin_read().expect("an open store reads").seq().0;
            self.written
                .extend(txn.checked.into_iter().map(|at| (at, seq)));
        }
        Ok(done)
    }
}
