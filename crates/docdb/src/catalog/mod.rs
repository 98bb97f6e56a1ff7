//! The catalog: the collections and views of the store.
//!
//! - G1. A catalog state is immutable. A change builds the next state and swaps it in after the
//!   engine has committed the change. Readers may keep a state for any length of time.
//! - G2. Changes are serialized by [`crate::Store`]'s lock of changes.
//!
//! In the tree `_catalog` a collection's key is `c` followed by its namespace; the value is a BSON
//! document, see `stored`.

mod stored;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use query::Namespace;

use crate::collection::{Collection, CollectionOptions};

pub(crate) use stored::{
    NOTES_CUTS, Stored, StoredIndex, key as stored_key, multikey_key, multikey_range, property_key,
    read_multikey,
};

pub(crate) const TREE: &str = "_catalog";

/// One state of the catalog.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    entries: BTreeMap<Namespace, Named>,
}

/// The collection or view of a namespace.
#[derive(Clone, Debug)]
pub enum Named {
    /// A collection.
    Collection(Arc<Collection>),
    /// A view: its options have [`CollectionOptions::view`].
    View(Arc<CollectionOptions>),
}

impl Named {
    /// The options of the collection or view.
    #[must_use]
    pub fn options(&self) -> &CollectionOptions {
        match self {
            Named::Collection(collection) => collection.options(),
            Named::View(options) => options,
        }
    }

    /// The collection; `None` for a view.
    #[must_use]
    pub fn collection(&self) -> Option<&Arc<Collection>> {
        match self {
            Named::Collection(collection) => Some(collection),
            Named::View(_) => None,
        }
    }
}

impl Catalog {
    /// The collection or view with this namespace.
    #[must_use]
    pub fn get(&self, ns: &Namespace) -> Option<&Named> {
        self.entries.get(ns)
    }

    /// The collection with this namespace; `None` for a view.
    #[must_use]
    pub fn collection(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.get(ns)?.collection()
    }

    /// The collection with this UUID.
    #[must_use]
    pub fn of_uuid(&self, uuid: bson::Uuid) -> Option<&Arc<Collection>> {
        let mut all = self.entries.values().filter_map(Named::collection);
        all.find(|collection| collection.uuid() == uuid)
    }

    /// All collections and views, ordered by namespace.
    pub fn iter(&self) -> impl Iterator<Item = (&Namespace, &Named)> {
        self.entries.iter()
    }

    /// The collections and views of a database, ordered by name.
    pub fn in_database<'c>(
        &'c self,
        db: &'c str,
    ) -> impl Iterator<Item = (&'c Namespace, &'c Named)> + use<'c> {
        let start = Namespace {
            db: db.to_owned(),
            coll: String::new(),
        };
        let range = (Bound::Included(start), Bound::Unbounded);
        self.entries
            .range(range)
            .take_while(move |(ns, _)| ns.db == db)
    }

    /// A database whose name differs from `db` only in letter case, if `db` itself has no
    /// collections or views.
    pub(crate) fn differs_in_case(&self, db: &str) -> Option<&str> {
        if self.in_database(db).next().is_some() {
            return None;
        }
        let names = self.entries.keys().map(|ns| ns.db.as_str());
        names
            .into_iter()
            .find(|name| *name != db && name.eq_ignore_ascii_case(db))
    }

    /// The names of the databases, in order.
    #[must_use]
    pub fn databases(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.entries.keys().map(|ns| ns.db.as_str()).collect();
        names.dedup();
        names
    }

    pub(crate) fn with(&self, ns: Namespace, named: Named) -> Catalog {
        let mut next = self.clone();
        next.entries.insert(ns, named);
        next
    }

    pub(crate) fn without(&self, ns: &Namespace) -> Catalog {
        let mut next = self.clone();
        next.entries.remove(ns);
        next
    }

    pub(crate) fn insert(&mut self, ns: Namespace, named: Named) {
        self.entries.insert(ns, named);
    }
}
