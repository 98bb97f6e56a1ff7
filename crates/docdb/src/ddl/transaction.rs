//! Creating collections and indexes in a multi-document transaction: visible to others after its
//! commit, and discarded if it aborts (see `txn::catalog`).

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};

use super::create::exists;
use super::indexes::{Standing, compare};
use crate::collection::{Collection, CollectionOptions};
use crate::index::IndexSpec;
use crate::store::Store;
use crate::txn::{Created, InTransaction, Op, SeenCatalog};

impl Store {
    /// `create` in a transaction.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` for a view; `NamespaceExists`; errors of
    /// [`Store::create_uncommitted`].
    pub(super) fn create_in(
        &self,
        op: &Op<'_>,
        seen: &SeenCatalog,
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
            None => self.create_uncommitted(op, seen, ns, options).map(|_| ()),
        }
    }

    /// Create a collection visible only to the transaction. An engine with one writer creates trees
    /// only before that writer has begun: after that the transaction itself is the writer.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` after the transaction became the writer; `LockTimeout`
    /// while another operation is the engine's writer.
    pub(super) fn create_uncommitted(
        &self,
        op: &Op<'_>,
        seen: &SeenCatalog,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<Arc<Collection>> {
        self.check_trees_can_be_made(seen, ns)?;
        self.ensure_images_in(op, seen, &options)?;
        let _turn = self.turn(op)?;
        let created = self.make(ns, options, bson::Uuid::new())?;
        let collection = Arc::clone(&created.collection);
        seen.note_created(created);
        Ok(collection)
    }

    /// `createIndexes` in a transaction, on an empty collection that the transaction has created.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` for any other collection, unless all indexes exist.
    pub(super) fn index_uncommitted(
        &self,
        op: &Op<'_>,
        transaction: &dyn InTransaction,
        collection: &Arc<Collection>,
        wanted: &[IndexSpec],
    ) -> Result<()> {
        let seen = transaction.catalog();
        let ns = collection.ns();
        let mut state = seen.created(ns);
        for spec in wanted {
            let collection = state
                .as_ref()
                .map_or(collection, |created| &created.collection);
            // An index that another operation is building does not exist for the transaction.
            if let Standing::There = compare(collection, &[], spec)? {
                continue;
            }
            let Some(created) = &mut state else {
                return Err(refused(format!(
                    "Cannot create new indexes on existing collection {ns} in a multi-document \
                     transaction."
                )));
            };
            let mut documents = 0;
            transaction.with(&mut |work| {
                documents = work.counts(&created.collection).0;
                Ok(())
            })?;
            if documents != 0 {
                return Err(refused(format!(
                    "Cannot create new indexes on non-empty collection {ns} in a multi-document \
                     transaction."
                )));
            }
            self.check_trees_can_be_made(seen, ns)?;
            let _turn = self.turn(op)?;
            *created = self.with_index(created, spec)?;
            seen.note_created(created.clone());
        }
        Ok(())
    }

    fn with_index(&self, created: &Created, spec: &IndexSpec) -> Result<Created> {
        let mut stored = created.stored.clone();
        let index = self.new_index(&mut stored, spec.clone(), true)?;
        let mut indexes = created.collection.indexes().to_vec();
        indexes.push(Arc::new(index));
        let core = Arc::clone(created.collection.core());
        let made = self.assemble(stored.ns.clone(), stored.options.clone(), indexes, core)?;
        Ok(Created {
            stored,
            collection: Arc::new(made),
        })
    }

    fn check_trees_can_be_made(&self, seen: &SeenCatalog, ns: &Namespace) -> Result<()> {
        if self.engine().capabilities().concurrent_writers || !seen.is_begun() {
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
