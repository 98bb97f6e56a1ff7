//! Creating collections and views.

use std::sync::Arc;

use kv::{ErrorKind, TreeOptions};
use query::{Code, Error, Namespace, Result};

use super::images::check_images;
use crate::catalog::{Named, Stored, StoredIndex, stored_key};
use crate::collection::{Collection, CollectionOptions, Counts};
use crate::error;
use crate::index::{Index, IndexSpec};
use crate::oplog::Noted;
use crate::store::{Store, is_view};
use crate::txn::{Created, Op};

impl Store {
    /// Create a collection with a given UUID, as restoring a collection requires.
    ///
    /// # Errors
    /// As [`Store::create`]; `InvalidUUID` for a UUID in use.
    pub fn create_with_uuid(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        options: CollectionOptions,
        uuid: bson::Uuid,
    ) -> Result<()> {
        self.create_again(op, ns, options, (uuid, false))
    }

    /// Create a collection with a given UUID, which is temporary if it was where it is from.
    ///
    /// # Errors
    /// As [`Store::create_with_uuid`].
    pub(crate) fn create_again(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        mut options: CollectionOptions,
        (uuid, temporary): (bson::Uuid, bool),
    ) -> Result<()> {
        op.check()?;
        if let Some(collation) = &options.collation {
            options.collation = crate::collate::in_full(collation)?;
        }
        check_new(ns)?;
        check_images(ns, &options)?;
        let _changes = self.changes(op)?;
        let catalog = self.catalog();
        if let Some(found) = catalog.get(ns) {
            let same = found.collection().is_some_and(|found| found.uuid() == uuid);
            return match same {
                true => Ok(()),
                false => Err(exists(ns)),
            };
        }
        if catalog.of_uuid(uuid).is_some() {
            let message = format!("a collection with the UUID {uuid} exists already");
            return Err(Error::new(Code::INVALID_UUID, message));
        }
        self.ensure_images(&options)?;
        let Created {
            mut stored,
            collection,
        } = self.make(ns, options, uuid)?;
        stored.temporary = temporary;
        self.put_stored(&stored, &Noted::created(&stored)?)?;
        let named = Named::Collection(collection);
        self.set_catalog(self.catalog().with(ns.clone(), named));
        Ok(())
    }

    /// Create a collection or a view. Succeeds if one with the same name and options exists.
    ///
    /// # Errors
    /// `NamespaceExists`, `InvalidNamespace`, errors of the engine.
    pub fn create(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        mut options: CollectionOptions,
    ) -> Result<()> {
        op.check()?;
        if let Some(collation) = &options.collation {
            options.collation = crate::collate::in_full(collation)?;
        }
        check_new(ns)?;
        check_images(ns, &options)?;
        if options.auto_index_id == Some(false) && ns.db != "local" {
            let message = format!(
                "autoIndexId:false is not allowed for collection {ns} because it can be replicated"
            );
            return Err(Error::location(50_001, message));
        }
        if let Some(transaction) = op.transaction {
            return self.create_in(op, transaction.catalog(), ns, options);
        }
        let _changes = self.changes(op)?;
        if let Some(found) = self.catalog().get(ns) {
            if *found.options() == options {
                return Ok(());
            }
            return Err(exists(ns));
        }
        self.create_locked(ns, options).map(|_| ())
    }

    /// Create a temporary collection, which is dropped when the store is next opened unless it was
    /// renamed before.
    ///
    /// # Errors
    /// `NamespaceExists`, errors of the engine.
    pub(crate) fn create_temporary(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<()> {
        check_new(ns)?;
        let _changes = self.changes(op)?;
        if self.lookup(ns).is_some() {
            return Err(exists(ns));
        }
        self.ensure_images(&options)?;
        let Created {
            mut stored,
            collection,
        } = self.make(ns, options, bson::Uuid::new())?;
        stored.temporary = true;
        self.put_stored(&stored, &Noted::created(&stored)?)?;
        let named = Named::Collection(collection);
        self.set_catalog(self.catalog().with(ns.clone(), named));
        Ok(())
    }

    /// The collection with this name, created if it does not exist. For writes.
    ///
    /// # Errors
    /// As [`Store::create_uncommitted`] in a transaction.
    pub(crate) fn ensure_collection(&self, op: &Op<'_>, ns: &Namespace) -> Result<Arc<Collection>> {
        check_not_views(ns)?;
        let found = self.named(op, ns)?;
        let collection = found.as_ref().and_then(|found| found.collection());
        self.check_uuid(op, ns, collection.map(|collection| &**collection))?;
        if let Some(found) = found {
            return found.collection().cloned().ok_or_else(|| is_view(ns));
        }
        check_new(ns)?;
        if let Some(transaction) = op.transaction {
            return self.create_uncommitted(
                op,
                transaction.catalog(),
                ns,
                CollectionOptions::default(),
            );
        }
        let _changes = self.changes(op)?;
        if let Some(found) = self.lookup(ns) {
            return found.collection().cloned().ok_or_else(|| is_view(ns));
        }
        let made = self.create_locked(ns, CollectionOptions::default())?;
        made.ok_or_else(|| is_view(ns))
    }

    /// Create the collection or view under the lock of changes. Returns `None` for a view.
    pub(crate) fn create_locked(
        &self,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<Option<Arc<Collection>>> {
        if options.view.is_some() {
            self.check_case(ns)?;
            self.check_view(ns, &options)?;
            let stored = Stored {
                ns: ns.clone(),
                uuid: None,
                options: options.clone(),
                next_index: 0,
                indexes: Vec::new(),
                temporary: false,
            };
            self.put_stored(&stored, &Noted::created(&stored)?)?;
            let view = Named::View(Arc::new(options));
            self.set_catalog(self.catalog().with(ns.clone(), view));
            return Ok(None);
        }
        self.ensure_images(&options)?;
        let Created { stored, collection } = self.make(ns, options, bson::Uuid::new())?;
        self.put_stored(&stored, &Noted::created(&stored)?)?;
        let named = Named::Collection(Arc::clone(&collection));
        self.set_catalog(self.catalog().with(ns.clone(), named));
        Ok(Some(collection))
    }

    /// Create a collection and its trees, without adding it to the catalog.
    pub(super) fn make(
        &self,
        ns: &Namespace,
        options: CollectionOptions,
        uuid: bson::Uuid,
    ) -> Result<Created> {
        self.check_case(ns)?;
        let uuid = uuid.bytes();
        let mut stored = Stored {
            ns: ns.clone(),
            uuid: Some(uuid),
            options,
            next_index: 0,
            indexes: Vec::new(),
            temporary: false,
        };
        let ascending = TreeOptions {
            ascending: stored.options.clustered.is_none(),
            point_lookups: false,
        };
        let records = self.create_tree(&Stored::records_tree(&uuid), &ascending)?;
        let core = Arc::new(self.core(uuid, records, Counts::new()));
        let mut indexes = Vec::new();
        if stored.options.clustered.is_none() {
            let spec = IndexSpec::id(stored.options.collation.clone());
            indexes.push(Arc::new(self.new_index(&mut stored, spec, true)?));
        }
        let made = self.assemble(ns.clone(), stored.options.clone(), indexes, core)?;
        Ok(Created {
            stored,
            collection: Arc::new(made),
        })
    }

    /// Check that no database has a name that differs only in letter case.
    ///
    /// # Errors
    /// `DatabaseDifferCase`.
    pub(super) fn check_case(&self, ns: &Namespace) -> Result<()> {
        let catalog = self.catalog();
        let Some(other) = catalog.differs_in_case(&ns.db) else {
            return Ok(());
        };
        let message = format!(
            "db already exists with different case already have: [{other}] trying to create [{}]",
            ns.db
        );
        Err(Error::new(Code::DATABASE_DIFFER_CASE, message))
    }

    /// Create the tree of a new index and add the index to the stored form.
    pub(crate) fn new_index(
        &self,
        stored: &mut Stored,
        spec: IndexSpec,
        ready: bool,
    ) -> Result<Index> {
        let uuid = stored.uuid.unwrap_or_default();
        let options = TreeOptions {
            ascending: false,
            point_lookups: spec.unique,
        };
        let (number, tree) = loop {
            let number = stored.next_index;
            stored.next_index += 1;
            let name = Stored::index_tree(&uuid, number);
            match self.engine().create_tree(&name, &options) {
                // A failed change left this tree behind.
                Err(e) if e.kind() == ErrorKind::Exists => {}
                made => break (number, made.map_err(error::engine)?),
            }
        };
        let index = StoredIndex {
            number,
            ready,
            spec,
        };
        stored.indexes.push(index.clone());
        self.index(index, tree, &stored.options, Vec::new())
    }

    /// Read the stored form of a collection or view.
    pub(crate) fn get_stored(&self, ns: &Namespace) -> Result<Option<Stored>> {
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        self.get_stored_in(snapshot.as_ref(), ns)
    }

    /// Read the stored form of a collection or view from a snapshot.
    pub(super) fn get_stored_in(
        &self,
        snapshot: &(impl kv::Snapshot + ?Sized),
        ns: &Namespace,
    ) -> Result<Option<Stored>> {
        let bytes = snapshot.get(self.trees().catalog, &stored_key(ns));
        bytes
            .map_err(error::engine)?
            .map(|b| Stored::from_bytes(&b))
            .transpose()
    }

    /// Write the stored form of a collection or view with its oplog entries, durably.
    pub(crate) fn put_stored(&self, stored: &Stored, noted: &Noted) -> Result<()> {
        let bytes = stored.to_bytes()?;
        let formers = self.formers(&[&stored.ns])?;
        let mut txn = self.engine().begin_write().map_err(error::engine)?;
        let put = txn.put(self.trees().catalog, &stored_key(&stored.ns), &bytes);
        put.map_err(error::engine)?;
        self.commit_change(txn, (&stored.ns, stored.uuid), (noted, &formers))
    }
}

/// The error for a name that is in use.
pub(super) fn exists(ns: &Namespace) -> Error {
    let message = format!("namespace {ns} already exists, but with different options");
    Error::new(Code::NAMESPACE_EXISTS, message)
}

/// Check that the collection is not `system.views`: only commands change view definitions, since
/// writes to it could not be validated as view definitions.
///
/// # Errors
/// `InvalidNamespace`.
pub(crate) fn check_not_views(ns: &Namespace) -> Result<()> {
    if ns.coll != "system.views" {
        return Ok(());
    }
    let message = format!("cannot write to '{ns}'");
    Err(Error::new(Code::INVALID_NAMESPACE, message))
}

/// Check that a collection may be created under this name.
pub(super) fn check_new(ns: &Namespace) -> Result<()> {
    // The fields of `Namespace` are public: check values that may not come from its constructor.
    Namespace::new(ns.db.as_str(), ns.coll.as_str())?;
    check_not_views(ns)?;
    match ns.coll.strip_prefix("system.") {
        Some(rest) if !is_known(&ns.db, rest) => Err(Error::new(
            Code::INVALID_NAMESPACE,
            format!("Invalid system namespace: {ns}"),
        )),
        _ => Ok(()),
    }
}

/// Whether MongoDB has a collection named `system.` and `rest` in this database.
fn is_known(db: &str, rest: &str) -> bool {
    let here: &[&str] = match db {
        "admin" => &["roles", "version", "keys", "backup_users", "new_users"],
        "config" => &["sessions", "indexBuilds"],
        "local" => &["replset", "healthlog"],
        _ => &[],
    };
    matches!(rest, "profile" | "users" | "js")
        || here.contains(&rest)
        || rest.starts_with("buckets.")
}

/// Check that client commands may write documents to a collection.
///
/// # Errors
/// `InvalidNamespace` for collections that only the server writes, and for unknown `system.` names.
pub fn check_user_write(ns: &Namespace) -> Result<()> {
    if matches!(ns.coll.as_str(), "system.profile" | "system.views") {
        let message = format!("cannot write to {ns}");
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    check_new(ns)
}
