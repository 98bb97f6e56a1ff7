//! Renaming collections, also across databases.

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};

use super::change::{Change, is_same, outside};
use crate::catalog::{Named, stored_key};
use crate::collection::{Alone, Collection};
use crate::error;
use crate::oplog::{Noted, fixed, is_replicated};
use crate::store::{Store, is_view};
use crate::txn::Op;

/// The change of the source, the target and the target's latch.
type Begun<'s> = (Change<'s>, Option<Arc<Collection>>, Option<Alone>);

impl Store {
    /// Rename a collection. With `drop_target`, an existing collection of the new name is dropped.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `NamespaceExists`, `IllegalOperation` if both names are equal,
    /// `InvalidNamespace`, `CommandNotSupportedOnView`, `BackgroundOperationInProgressForNamespace`
    /// while an index of either collection is being built.
    pub fn rename(
        &self,
        op: &Op<'_>,
        from: &Namespace,
        to: &Namespace,
        drop_target: bool,
    ) -> Result<()> {
        if from == to {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "Can't rename a collection to itself",
            ));
        }
        super::create::check_new(to)?;
        for ns in [from, to] {
            if let Some(found) = self.collection(ns) {
                if found.is_oplog() {
                    return Err(fixed("rename"));
                }
                found.check_changeable()?;
            }
        }
        self.check_members(from, to)?;
        if self.lookup(from).is_none() {
            let message = format!("Source collection {from} does not exist");
            return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
        }
        let (change, target, _target_alone) = self.begin_rename(op, from, to, drop_target)?;
        let mut stored = change.stored.clone();
        stored.ns = to.clone();
        stored.temporary = false;
        let formers = self.formers(&[from, to])?;
        let mut txn = self.engine().begin_write().map_err(error::engine)?;
        if target.is_some()
            && let Some(old) = self.get_stored_in(txn.as_ref(), to)?
        {
            self.forget(txn.as_mut(), &old)?;
        }
        let tree = self.trees().catalog;
        txn.delete(tree, &stored_key(from)).map_err(error::engine)?;
        let put = txn.put(tree, &stored_key(to), &stored.to_bytes()?);
        put.map_err(error::engine)?;
        let noted = Noted::renamed((from, to), target.as_deref())?;
        self.commit_change(txn, (from, stored.uuid), (&noted, &formers))?;
        change.publish(to.clone(), stored.options.clone(), change.indexes())?;
        if let Some(target) = &target {
            target.core().note_drop();
        }
        drop(change);
        if let Some(target) = target.filter(|_| !self.retains(to)) {
            self.drop_trees(&target);
        }
        Ok(())
    }

    /// Check that a collection does not move between those with oplog entries and those without:
    /// the entries would not have its documents.
    ///
    /// # Errors
    /// `IllegalOperation`.
    fn check_members(&self, from: &Namespace, to: &Namespace) -> Result<()> {
        if self.oplog().is_none() || is_replicated(from) == is_replicated(to) {
            return Ok(());
        }
        let message = "Cannot rename collections between a replicated and an unreplicated database";
        Err(Error::new(Code::ILLEGAL_OPERATION, message))
    }

    /// Begin the change; also returns the collection to drop and its latch.
    fn begin_rename(
        &self,
        op: &Op<'_>,
        from: &Namespace,
        to: &Namespace,
        drop_target: bool,
    ) -> Result<Begun<'_>> {
        op.check()?;
        outside(op)?;
        loop {
            let source = self.existing(from)?;
            let target = self.target(to, drop_target)?;
            let (alone, target_alone) = match &target {
                None => (self.hold(op, &source)?, None),
                // Latches are taken in the order of the names, as `applyOps` does.
                Some(target) if to < from => {
                    let (two, one) = self.hold_both(op, target, &source)?;
                    (one, Some(two))
                }
                Some(target) => {
                    let (one, two) = self.hold_both(op, &source, target)?;
                    (one, Some(two))
                }
            };
            let changes = self.changes(op)?;
            self.check_case(to)?;
            let now = self.target(to, drop_target)?;
            let same = match (&target, &now) {
                (None, None) => true,
                (Some(then), Some(now)) => is_same(then, now),
                _ => false,
            };
            if same && let Some(change) = self.change_under(from, &source, alone, changes)? {
                change.check_no_build()?;
                if let Some(target) = &now {
                    target.check_no_build()?;
                }
                return Ok((change, now, target_alone));
            }
        }
    }

    /// The existing collection of the new name, which is to be dropped.
    fn target(&self, to: &Namespace, drop_target: bool) -> Result<Option<Arc<Collection>>> {
        match self.lookup(to) {
            None => Ok(None),
            Some(Named::View(_)) => Err(is_view(to)),
            Some(Named::Collection(_)) if !drop_target => Err(Error::new(
                Code::NAMESPACE_EXISTS,
                "target namespace exists",
            )),
            Some(Named::Collection(target)) => Ok(Some(target)),
        }
    }
}
