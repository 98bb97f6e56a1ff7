//! Renaming collections, also from database to database.

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};
use stdx::sync::atomic::Ordering;

use super::change::commit;
use crate::catalog::{Named, stored_key};
use crate::error;
use crate::op::Op;
use crate::store::{Store, is_view};

impl Store {
    /// Give a collection another name. `drop_target` drops the collection that has it.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `NamespaceExists`, `IllegalOperation` for the same name,
    /// `InvalidNamespace`, `CommandNotSupportedOnView`.
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
        if self.lookup(from).is_none() {
            let message = format!("Source collection {from} does not exist");
            return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
        }
        let change = self.begin_change(op, from)?;
        let target = match self.lookup(to) {
            None => None,
            Some(Named::View(_)) => return Err(is_view(to)),
            Some(Named::Collection(_)) if !drop_target => {
                return Err(Error::new(
                    Code::NAMESPACE_EXISTS,
                    "target namespace exists",
                ));
            }
            Some(Named::Collection(target)) => Some(target),
        };
        let _target_alone = target.as_ref().map(|t| self.hold(op, t)).transpose()?;
        let mut stored = change.stored.clone();
        stored.ns = to.clone();
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
        commit(txn)?;
        change.publish(to.clone(), stored.options.clone(), change.indexes())?;
        if let Some(target) = &target {
            target.core().dropped.store(true, Ordering::Release);
        }
        drop(change);
        if let Some(target) = target {
            let target = Arc::clone(&target);
            self.drop_trees(&target);
        }
        Ok(())
    }
}
