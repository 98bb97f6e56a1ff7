//! The collection of pre-images (see `oplog::image`). A store has it if it keeps an oplog and a
//! collection whose pre-images are to be kept.
//!
//! - D4. It is created before the first collection that keeps pre-images is, or is changed to, in
//!   the catalog: a write of such a collection finds it.
//! - D5. It never outlives its oplog, whose times another oplog may issue again.

use kv::Durability;
use query::{Code, Error, Namespace, Result};

use crate::catalog::Named;
use crate::collection::CollectionOptions;
use crate::error;
use crate::oplog::{Noted, image};
use crate::store::Store;
use crate::txn::{Created, Op, SeenCatalog};

/// The option of a collection.
const OPTION: &str = "changeStreamPreAndPostImages";

/// The databases whose collections have no events.
const WITHOUT_EVENTS: [&str; 3] = ["admin", "config", "local"];

/// Check that a collection or a view may have these options.
///
/// # Errors
/// `InvalidOptions` for pre-images of a view, or of a collection without events.
pub(super) fn check_images(ns: &Namespace, options: &CollectionOptions) -> Result<()> {
    if !options.pre_images {
        return Ok(());
    }
    if options.view.is_some() {
        return Err(refused(format!("option not supported on a view: {OPTION}")));
    }
    if WITHOUT_EVENTS.contains(&ns.db.as_str()) {
        return Err(refused(format!(
            "{OPTION} collection option is not supported on the {} database",
            ns.db
        )));
    }
    Ok(())
}

impl Store {
    /// Create the collection if these options need it (D4). The caller holds the lock of changes.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub(super) fn ensure_images(&self, options: &CollectionOptions) -> Result<()> {
        let ns = image::namespace();
        if !options.pre_images || self.oplog().is_none() || self.lookup(&ns).is_some() {
            return Ok(());
        }
        let Created { stored, collection } = self.make(&ns, image::options(), bson::Uuid::new())?;
        self.put_stored(&stored, &Noted::nothing())?;
        let named = Named::Collection(collection);
        self.set_catalog(self.catalog().with(ns, named));
        Ok(())
    }

    /// The same for a collection that is changed to these options.
    ///
    /// # Errors
    /// As [`check_images`] and [`Store::create`].
    pub(super) fn ensure_images_of(
        &self,
        ns: &Namespace,
        options: &CollectionOptions,
    ) -> Result<()> {
        check_images(ns, options)?;
        self.ensure_images(options)
    }

    /// The same for a collection that a transaction creates: they become visible together.
    ///
    /// # Errors
    /// As [`Store::create_uncommitted`].
    pub(super) fn ensure_images_in(
        &self,
        op: &Op<'_>,
        seen: &SeenCatalog,
        options: &CollectionOptions,
    ) -> Result<()> {
        let ns = image::namespace();
        let wanted = options.pre_images && self.oplog().is_some();
        if wanted && self.named(op, &ns)?.is_none() {
            self.create_uncommitted(op, seen, &ns, image::options())?;
        }
        Ok(())
    }

    /// Bring it into line with the oplog, when the store is opened.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn prepare_images(&self) -> Result<()> {
        let ns = image::namespace();
        let found = self.lookup(&ns);
        let usable = found
            .as_ref()
            .is_some_and(|found| *found.options() == image::options());
        let kept = self.oplog().is_some() && !self.options().foreign_oplog;
        if found.is_some() && !(kept && usable) {
            self.discard_images(&ns)?;
        }
        let wants = |named: &Named| named.options().pre_images;
        let catalog = self.catalog();
        match catalog.iter().find(|(_, named)| wants(named)) {
            Some((_, named)) => self.ensure_images(named.options()),
            None => Ok(()),
        }
    }

    /// Remove the collection. The caller holds the lock of changes, or is the only one.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn discard_images(&self, ns: &Namespace) -> Result<()> {
        let collection = self.collection(ns);
        if let Some(stored) = self.get_stored(ns)? {
            let mut txn = self.engine().begin_write().map_err(error::engine)?;
            self.forget(txn.as_mut(), &stored)?;
            txn.commit(Durability::Group).map_err(error::engine)?;
        }
        self.set_catalog(self.catalog().without(ns));
        if let Some(collection) = collection {
            self.drop_trees(&collection);
        }
        Ok(())
    }
}

fn refused(message: String) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}
