//! The index keys of a document.

use std::sync::Arc;

use bson::RawDocument;
use query::Result;
use query::update::Update;

use crate::collection::{Collection, Gathered};
use crate::index::{FieldKind, Index, KeySet};

/// Key sets of one document, in the order of the collection's indexes.
#[derive(Default)]
pub(super) struct KeySets(Vec<KeySet>);

/// Indexes, by their position in the collection, whose entries an update does not affect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Untouched(u64);

impl Untouched {
    /// Indexes that this update cannot affect. Partial and wildcard indexes are excluded: their
    /// entries depend on more than the fields of their keys.
    pub(crate) fn by(update: &Update, collection: &Collection) -> Untouched {
        let mut places = 0;
        for (at, index) in collection.indexes().iter().enumerate().take(64) {
            let keeps = |(path, kind): &(String, FieldKind)| {
                *kind != FieldKind::Wildcard && !update.touches(path)
            };
            if index.spec().partial.is_none() && index.fields().iter().all(keeps) {
                places |= 1 << at;
            }
        }
        Untouched(places)
    }

    fn has(self, at: usize) -> bool {
        at < 64 && self.0 >> at & 1 == 1
    }
}

impl KeySets {
    /// The keys of an index, by its position in the collection.
    pub(super) fn of(&self, at: usize) -> Option<&KeySet> {
        self.0.get(at)
    }

    /// Make it the keys of no document.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Each index with its keys.
    pub(super) fn with<'s>(
        &'s self,
        indexes: &'s [Arc<Index>],
    ) -> impl Iterator<Item = (usize, (&'s Arc<Index>, &'s KeySet))> {
        indexes.iter().zip(&self.0).enumerate()
    }

    pub(super) fn make<'d>(
        &mut self,
        collection: &Collection,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        self.make_but(collection, document, gathered, Untouched::default())
    }

    /// Make the keys, with empty sets for the unaffected indexes.
    pub(super) fn make_but<'d>(
        &mut self,
        collection: &Collection,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
        untouched: Untouched,
    ) -> Result<()> {
        self.fill((collection, document), gathered, untouched, |_| false)
    }

    /// Make the keys of a stored document, with empty sets for the unaffected indexes. An index
    /// that is being built has no entries of a document that it cannot contain: its build will
    /// fail, or the document is deleted or replaced before.
    pub(super) fn make_stored(
        &mut self,
        collection: &Collection,
        document: &RawDocument,
        untouched: Untouched,
    ) -> Result<()> {
        let of = (collection, document);
        self.fill(of, &mut Gathered::new(), untouched, |index| {
            !index.is_ready()
        })
    }

    /// Make the keys; those that cannot be made are left out if `may_lack` accepts the index.
    fn fill<'d>(
        &mut self,
        (collection, document): (&Collection, &'d RawDocument),
        gathered: &mut Gathered<'d>,
        untouched: Untouched,
        may_lack: impl Fn(&Index) -> bool,
    ) -> Result<()> {
        collection.gather(document, gathered)?;
        let indexes = collection.indexes();
        self.0.resize_with(indexes.len(), KeySet::new);
        for (at, (index, keys)) in indexes.iter().zip(&mut self.0).enumerate() {
            if untouched.has(at) {
                keys.clear();
                continue;
            }
            let top = |field| collection.top(at, field, gathered);
            match index.maker().make(document, top, keys) {
                Err(_) if may_lack(index) => keys.clear(),
                made => made?,
            }
        }
        Ok(())
    }
}
