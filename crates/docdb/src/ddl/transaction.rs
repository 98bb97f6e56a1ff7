//! Creating collections and indexes in a multi-document transaction: seen by others when it
//! commits, and never if it does not (see `txn::names`).

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};

use super::create::exists;
use super::indexes::{Standing, compare};
use crate::collection::{Collection, CollectionOptions};
use crate::index::IndexSpec;
use crate::store::Store;
use crate::txn::{Born, InTransaction, Names, Op};

impl Store {
    /// `create` in a transaction.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` for a view; `NamespaceExists`; as [`Store::bear`].
    pub(super) fn create_in(
        &self,
        op: &Op<'_>,
        names: &Names,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<()> {
        if options.view.is_some() {
            return Err(refused(format!(
                "Cannot create a view in a multi-document transaction: {ns}"
            )));
        }
        match self.named(op, ns)? {
            Some(_) => Err(exists(ns)),
            None => self.bear(op, names, ns, options).map(|_| ()),
        }
    }

    /// Create a collection that only the transaction sees. An engine with one writer makes trees
    /// only before that writer has begun: then the transaction itself is the writer.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` as said; `LockTimeout` while another is its writer.
    pub(super) fn bear(
        &self,
        op: &Op<'_>,
        names: &Names,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<Arc<Collection>> {
        self.check_trees_can_be_made(names, ns)?;
        let _turn = self.turn(op)?;
        let born = self.make(ns, options, bson::Uuid::new())?;
        let collection = Arc::clone(&born.collection);
        names.bear(born);
        Ok(collection)
    }

    /// `createIndexes` in a transaction, on an empty collection that the transaction has created.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` for another collection, unless all indexes are there.
    pub(super) fn index_born(
        &self,
        op: &Op<'_>,
        transaction: &dyn InTransaction,
        collection: &Arc<Collection>,
        wanted: &[IndexSpec],
    ) -> Result<()> {
        let names = transaction.names();
        let ns = collection.ns();
        let mut state = names.born(ns);
        for spec in wanted {
            let collection = state.as_ref().map_or(collection, |born| &born.collection);
            // An index that another operation builds is not there for the transaction.
            if let Standing::There = compare(collection, &[], spec)? {
                continue;
            }
            let Some(born) = &mut state else {
                return Err(refused(format!(
                    "Cannot create new indexes on existing collection {ns} in a multi-document \
                     transaction."
                )));
            };
            let mut documents = 0;
            transaction.with(&mut |work| {
                documents = work.counts(&born.collection).0;
                Ok(())
            })?;
            if documents != 0 {
                return Err(refused(format!(
                    "Cannot create new indexes on non-empty collection {ns} in a multi-document \
                     transaction."
                )));
            }
            self.check_trees_can_be_made(names, ns)?;
            let _turn = self.turn(op)?;
            *born = self.with_index(born, spec)?;
            names.bear(born.clone());
        }
        Ok(())
    }

    fn with_index(&self, born: &Born, spec: &IndexSpec) -> Result<Born> {
        let mut stored = born.stored.clone();
        let index = self.new_index(&mut stored, spec.clone(), true)?;
        let mut indexes = born.collection.indexes().to_vec();
        indexes.push(Arc::new(index));
        let core = Arc::clone(born.collection.core());
        let made = self.assemble(stored.ns.clone(), stored.options.clone(), indexes, core)?;
        Ok(Born {
            stored,
            collection: Arc::new(made),
        })
    }

    fn check_trees_can_be_made(&self, names: &Names, ns: &Namespace) -> Result<()> {
        if self.engine().capabilities().concurrent_writers || !names.is_begun() {
            return Ok(());
        }
        Err(refused(format!(
            "Cannot create namespace {ns} in multi-document transaction: the engine {} can do so \
             only before the transaction has read or written anything.",
            self.engine().name()
        )))
    }
}

fn refused(message: String) -> Error {
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}
