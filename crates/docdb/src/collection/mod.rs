//! Collections: their definition, and reading documents.
//!
//! A [`Collection`] is one state of a collection's definition; a change of the definition makes a
//! new state. The parts shared by all states - trees, counts, the latch - are its [`Core`].

mod counts;
mod duplicate;
mod latch;
mod options;
mod view;

use std::fmt;
use std::sync::Arc;

use bson::{RawBsonRef, RawDocument};
use kv::{Snapshot, TreeId};
use query::filter::Filter;
use query::{Namespace, Result};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::error;
use crate::index::Index;
use crate::key::{Collate, Encoder};
use crate::plan::{Definition, PlanCache, Space};
use crate::record::RecordId;
use crate::writes::Writes;

pub(crate) use counts::{
    Counts, Delta, TREE as COUNTS, fold as fold_counts, remove as remove_counts,
};
pub(crate) use duplicate::{duplicate, duplicate_values};
pub(crate) use latch::{Alone, Latch, Shared};
pub use options::{Action, Capped, CollectionOptions, Level};
pub(crate) use options::{DEFINITIONS, capped_size};
pub use view::View;

/// The tree of the oplog's records, which no engine has: engines count their trees from zero.
pub(crate) const OPLOG: TreeId = TreeId(u32::MAX);

/// One state of a collection's definition.
pub struct Collection {
    ns: Namespace,
    options: CollectionOptions,
    /// The index on `_id`, if it exists, comes first.
    indexes: Vec<Arc<Index>>,
    core: Arc<Core>,
    collation: Option<Arc<dyn Collate>>,
    gather: Gather,
    validator: Option<Filter>,
    plans: PlanCache,
}

/// The parts shared by all states of a collection.
pub(crate) struct Core {
    pub(crate) uuid: [u8; 16],
    pub(crate) records: TreeId,
    pub(crate) counts: Counts,
    pub(crate) latch: Arc<Latch>,
    pub(crate) dropped: AtomicBool,
    /// Commits that may have changed its documents.
    pub(crate) writes: Arc<Writes>,
    /// An upper bound of all keys ever in the index on `_id`: a higher key is new.
    pub(crate) highest_id: Mutex<Vec<u8>>,
    /// Serializes the writers of a capped collection.
    pub(crate) capped: Arc<Latch>,
}

impl Core {
    /// Record that the collection was dropped, and end the waits for its documents.
    pub(crate) fn note_drop(&self) {
        self.dropped.store(true, Ordering::Release);
        self.writes.note(u64::MAX);
        self.writes.wake();
    }
}

/// The top-level values of documents that the indexes need, found in one pass.
struct Gather {
    names: Vec<Box<str>>,
    /// Per index and field: the position of its name in `names`.
    slots: Vec<Vec<usize>>,
}

/// The values of one document that [`Gather`] found.
pub(crate) struct Gathered<'d> {
    values: Vec<Option<RawBsonRef<'d>>>,
}

impl Collection {
    pub(crate) fn new(
        ns: Namespace,
        options: CollectionOptions,
        indexes: Vec<Arc<Index>>,
        core: Arc<Core>,
        collation: Option<Arc<dyn Collate>>,
    ) -> Collection {
        Collection {
            ns,
            options,
            gather: Gather::new(&indexes),
            indexes,
            core,
            collation,
            validator: None,
            plans: PlanCache::default(),
        }
    }

    pub(crate) fn with_validator(mut self, validator: Option<Filter>) -> Collection {
        self.validator = validator;
        self
    }

    /// The validator that documents must match.
    pub(crate) fn validator(&self) -> Option<&Filter> {
        self.validator.as_ref()
    }

    /// The cache of plans.
    pub(crate) fn plans(&self) -> &PlanCache {
        &self.plans
    }

    /// The indexes that plans can choose from.
    ///
    /// # Errors
    /// A definition that cannot be read.
    pub(crate) fn space(&self) -> Result<Arc<Space>> {
        self.plans.space(&Definition {
            indexes: &self.indexes,
            clustered: self.options.clustered.as_deref(),
            oplog: self.is_oplog(),
            collation: self.options.collation.as_ref(),
            collate: self.collation.as_ref(),
        })
    }

    /// The name.
    #[must_use]
    pub fn ns(&self) -> &Namespace {
        &self.ns
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &CollectionOptions {
        &self.options
    }

    /// The collection's UUID, which survives a change of the name.
    #[must_use]
    pub fn uuid(&self) -> bson::Uuid {
        bson::Uuid::from_bytes(self.core.uuid)
    }

    /// All indexes, the one on `_id` first (a clustered collection has none), those being built
    /// included: see [`Index::usable`].
    #[must_use]
    pub fn indexes(&self) -> &[Arc<Index>] {
        &self.indexes
    }

    /// The index with this name.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.name() == name)
    }

    /// The index on `_id`; `None` for clustered collections.
    #[must_use]
    pub fn id_index(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|index| index.spec().is_id())
    }

    /// The tree of the documents; its keys are [`RecordId::key`].
    #[must_use]
    pub fn records(&self) -> TreeId {
        self.core.records
    }

    /// Whether records are keyed by `_id`.
    #[must_use]
    pub fn is_clustered(&self) -> bool {
        self.options.clustered.is_some()
    }

    /// Whether it is the oplog.
    #[must_use]
    pub fn is_oplog(&self) -> bool {
        self.records() == OPLOG
    }

    /// Whether it is capped: the oldest documents are removed when it is full.
    #[must_use]
    pub fn is_capped(&self) -> bool {
        self.options.capped.is_some()
    }

    /// The default collation of operations.
    #[must_use]
    pub fn collation(&self) -> Option<&Arc<dyn Collate>> {
        self.collation.as_ref()
    }

    /// Whether it was dropped; readers then find no documents.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.core.dropped.load(Ordering::Acquire)
    }

    /// The number of documents.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.core.counts.documents()
    }

    /// The bytes of all documents.
    #[must_use]
    pub fn data_size(&self) -> i64 {
        self.core.counts.bytes()
    }

    /// Read a document's bytes into `into` (cleared first). Returns false if it does not exist.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn fetch(
        &self,
        snapshot: &dyn Snapshot,
        record: &RecordId,
        into: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = match record.as_number() {
            Some(number) => snapshot.get_into(self.records(), &number.to_be_bytes(), into),
            None => snapshot.get_into(self.records(), &record.key(), into),
        };
        found.map_err(error::engine)
    }

    /// Decode the record id from a key of the records tree.
    ///
    /// # Errors
    /// A key that is not a record id.
    pub fn record(&self, key: &[u8]) -> Result<RecordId> {
        RecordId::from_key(key, self.is_clustered())
            .ok_or_else(|| error::corrupt(format_args!("a record of {}", self.ns)))
    }

    /// The record id that a document with this `_id` has in a clustered collection.
    ///
    /// # Errors
    /// An `_id` that no key can have.
    pub(crate) fn clustered_record(&self, id: RawBsonRef<'_>) -> Result<RecordId> {
        let mut encoder = Encoder::new();
        encoder.append(id, false, self.collation.as_deref())?;
        encoder.end();
        Ok(RecordId::clustered(encoder.bytes()))
    }

    /// The record id of the document whose `_id` is `id`.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn find_id(&self, snapshot: &dyn Snapshot, id: RawBsonRef<'_>) -> Result<Option<RecordId>> {
        let mut encoder = Encoder::new();
        encoder.append(id, false, self.collation.as_deref())?;
        encoder.end();
        let limit = self.key_limit();
        let cut =
            (limit < encoder.bytes().len()).then(|| crate::index::cut(encoder.bytes(), limit));
        let key = cut.as_deref().unwrap_or(encoder.bytes());
        let mut value = Vec::new();
        match self.id_index() {
            None => {
                let found = snapshot.get_into(self.records(), key, &mut value);
                Ok(found
                    .map_err(error::engine)?
                    .then(|| RecordId::clustered(key)))
            }
            Some(index) => {
                let found = snapshot.get_into(index.tree(), key, &mut value);
                if !found.map_err(error::engine)? {
                    return Ok(None);
                }
                let entry = index.read_entry(key, &value);
                let entry = entry.ok_or_else(|| self.corrupt_index(index))?;
                Ok(Some(entry.record))
            }
        }
    }

    pub(crate) fn corrupt_index(&self, index: &Index) -> query::Error {
        error::corrupt(format_args!(
            "an entry of index {} of {}",
            index.name(),
            self.ns
        ))
    }

    /// The longest key of the index on `_id`, or of a clustered collection's records.
    fn key_limit(&self) -> usize {
        match self.id_index() {
            Some(index) => index.maker().limit(),
            None => usize::MAX,
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Find the values that the indexes need.
    pub(crate) fn gather<'d>(
        &self,
        document: &'d RawDocument,
        into: &mut Gathered<'d>,
    ) -> Result<()> {
        self.gather.find(document, into)
    }

    /// The value for a field of an index's key, from the result of [`Collection::gather`].
    pub(crate) fn top<'d>(
        &self,
        index: usize,
        field: usize,
        gathered: &Gathered<'d>,
    ) -> Option<RawBsonRef<'d>> {
        let slot = *self.gather.slots.get(index)?.get(field)?;
        gathered.values.get(slot).copied().flatten()
    }
}

impl Gather {
    fn new(indexes: &[Arc<Index>]) -> Gather {
        let mut names: Vec<Box<str>> = Vec::new();
        let mut slots = Vec::new();
        for index in indexes {
            let of_index = index.maker().tops().map(|top| {
                names
                    .iter()
                    .position(|name| **name == *top)
                    .unwrap_or_else(|| {
                        names.push(top.into());
                        names.len() - 1
                    })
            });
            slots.push(of_index.collect());
        }
        Gather { names, slots }
    }

    fn find<'d>(&self, document: &'d RawDocument, into: &mut Gathered<'d>) -> Result<()> {
        into.values.clear();
        into.values.resize(self.names.len(), None);
        let mut missing = self.names.len();
        for element in document.iter_elements() {
            if missing == 0 {
                break;
            }
            let element = element?;
            let key = element.key().as_str();
            let slot = self.names.iter().position(|name| **name == *key);
            if let Some(slot) = slot.and_then(|slot| into.values.get_mut(slot))
                && slot.is_none()
            {
                *slot = Some(element.value()?);
                missing -= 1;
            }
        }
        Ok(())
    }
}

impl Gathered<'_> {
    pub(crate) fn new() -> Self {
        Gathered { values: Vec::new() }
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection")
            .field("ns", &self.ns)
            .field("indexes", &self.indexes)
            .finish_non_exhaustive()
    }
}
