//! The catalog: which collections and views there are.
//!
//! - G1. A state of the catalog never changes; a change makes the next state and swaps it in, after
//!   the engine has committed it. Readers take a state and keep it as long as they like.
//! - G2. Changes come one after another (under [`crate::Store`]'s lock of changes).
//!
//! In the tree `_catalog` a collection's key is `c` and its namespace, the value a BSON document:
//! see `stored`.

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

/// The name of the tree.
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
    /// The options.
    #[must_use]
    pub fn options(&self) -> &CollectionOptions {
        match self {
            Named::Collection(collection) => collection.options(),
            Named::View(options) => options,
        }
    }

    /// The collection, if it is one.
    #[must_use]
    pub fn collection(&self) -> Option<&Arc<Collection>> {
        match self {
            Named::Collection(collection) => Some(collection),
            Named::View(_) => None,
        }
    }
}

impl Catalog {
    /// The collection or view of a name.
    #[must_use]
    pub fn get(&self, ns: &Namespace) -> Option<&Named> {
        self.entries.get(ns)
    }

    /// The collection of a name. Views are none.
    #[must_use]
    pub fn collection(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.get(ns)?.collection()
    }

    /// The collection of a UUID.
    #[must_use]
    pub fn of_uuid(&self, uuid: bson::Uuid) -> Option<&Arc<Collection>> {
        let mut all = self.entries.values().filter_map(Named::collection);
        all.find(|collection| collection.uuid() == uuid)
    }

    /// Everything, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&Namespace, &Named)> {
        self.entries.iter()
    }

    /// What there is in a database, in the order of the names.
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

    /// A database whose name differs from `db` in the case of letters only, if `db` itself has no
    /// collections and views.
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
