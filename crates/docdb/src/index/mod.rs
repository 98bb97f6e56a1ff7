//! Indexes: specification, keys of documents, and the layout of entries.
//!
//! An entry of an ordinary index is the key followed by the record id, with the type bits as its
//! value. An entry of a unique index, and of the index on `_id`, is the key alone, with type bits
//! and record id as its value: the engine itself then ensures, without a search, that no two
//! documents have the same key, also for concurrent transactions.

mod build;
mod changed;
mod keys;
mod spec;
mod wildcard;

use std::fmt;
use std::sync::Arc;

use bson::RawDocument;
use kv::TreeId;
use query::Result;
use query::filter::Filter;
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::key::Collate;
use crate::record::RecordId;

pub(crate) use build::{Build, Outcome};
use keys::SOME_CUT;
pub use keys::{CUT, Key, KeyMaker, KeySet, append_hash};
pub(crate) use keys::{cut, is_cut};
pub(crate) use spec::number;
pub use spec::{FieldKind, IndexSpec, kinds, name_of, options, same_pattern};
pub use wildcard::Wildcard;

/// One state of an index of a collection. A state is immutable, including whether it is ready, so
/// that the reader of a snapshot plans by what the snapshot holds; the next state is another
/// `Index` with the same number. The parts shared by all states are in `Arrays`.
pub struct Index {
    spec: IndexSpec,
    /// Distinguishes the trees of a collection's indexes; never used again within the collection.
    number: u32,
    tree: TreeId,
    maker: KeyMaker,
    fields: Vec<(String, FieldKind)>,
    clustered: bool,
    arrays: Arc<Arrays>,
    /// The build that inserts its entries; `None` when the index is ready for reads.
    build: Option<Arc<Build>>,
    usage: Usage,
}

/// Records which parts of paths are arrays, and whether a key was truncated. All states of an index
/// share it: a reader of an old state must see arrays that a writer recorded in a new one.
struct Arrays {
    /// Per field, a bit for each part of its path that has been an array, and one more word that
    /// records whether a key was ever truncated. Bits are only added, before the first document
    /// that needs them is committed: a reader that sees the document sees the bits.
    known: Vec<AtomicU32>,
    /// The bits that are stored. The transaction that commits a document which needs another bit
    /// also stores that bit.
    stored: Vec<AtomicU32>,
}

/// Usage statistics of an index since the store was opened or the index was created.
#[derive(Debug)]
pub struct Usage {
    /// Start of the statistics, in milliseconds since 1970.
    pub since: i64,
    /// Number of operations that used it.
    pub count: AtomicU64,
}

impl Usage {
    /// Count one more operation that used the index.
    pub(crate) fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A decoded index entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The components and the end byte.
    pub key: &'a [u8],
    /// The type bits.
    pub type_bits: &'a [u8],
    /// The document.
    pub record: RecordId,
}

impl<'a> Entry<'a> {
    /// The key with its type bits.
    pub(crate) fn key(&self) -> Key<'a> {
        Key {
            bytes: self.key,
            type_bits: self.type_bits,
        }
    }
}

/// The parts of an [`Index`] other than its specification.
pub(crate) struct Parts {
    pub(crate) number: u32,
    pub(crate) tree: TreeId,
    pub(crate) collation: Option<Arc<dyn Collate>>,
    pub(crate) partial: Option<Filter>,
    pub(crate) clustered: bool,
    pub(crate) multikey: Vec<u32>,
    pub(crate) ready: bool,
    pub(crate) key_limit: usize,
    pub(crate) since: i64,
}

impl Index {
    pub(crate) fn new(spec: IndexSpec, parts: Parts) -> Result<Index> {
        let fields = spec.fields()?;
        let maker =
            KeyMaker::new(&spec, parts.collation, parts.key_limit)?.with_partial(parts.partial);
        let bits = |i: usize| parts.multikey.get(i).copied().unwrap_or(0);
        Ok(Index {
            number: parts.number,
            tree: parts.tree,
            maker,
            clustered: parts.clustered,
            arrays: Arc::new(Arrays {
                known: (0..=fields.len())
                    .map(|i| AtomicU32::new(bits(i)))
                    .collect(),
                stored: (0..=fields.len())
                    .map(|i| AtomicU32::new(bits(i)))
                    .collect(),
            }),
            build: (!parts.ready).then(|| Arc::new(Build::cut_off())),
            usage: Usage {
                since: parts.since,
                count: AtomicU64::new(0),
            },
            fields,
            spec,
        })
    }

    /// Make it the next state of `old`.
    pub(crate) fn after(mut self, old: &Index) -> Index {
        debug_assert_eq!(self.number, old.number, "states of one index");
        self.arrays = Arc::clone(&old.arrays);
        if self.build.is_some() {
            self.build.clone_from(&old.build);
        }
        self
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The number of the index within the collection.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The tree of its entries.
    #[must_use]
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// The generator of its keys.
    #[must_use]
    pub fn maker(&self) -> &KeyMaker {
        &self.maker
    }

    /// The fields of the key pattern and their kinds.
    #[must_use]
    pub fn fields(&self) -> &[(String, FieldKind)] {
        &self.fields
    }

    /// Whether each component is descending, in the form for [`crate::key::decode`]. A wildcard
    /// index has two components.
    pub fn directions(&self) -> impl Iterator<Item = bool> {
        let wildcard = self.fields.iter().any(|(_, k)| *k == FieldKind::Wildcard);
        let first = wildcard.then_some(false);
        let rest = self.fields.iter().map(|(_, k)| *k == FieldKind::Descending);
        first.into_iter().chain(rest)
    }

    /// Whether plans may use it: built and not hidden.
    #[must_use]
    pub fn usable(&self) -> bool {
        self.is_ready() && !self.spec.hidden
    }

    /// Whether its build is complete.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.build.is_none()
    }

    /// Whether its keys are unique and its entries hold the record id in their value.
    #[must_use]
    pub fn unique(&self) -> bool {
        self.spec.unique
    }

    /// Whether some document has more than one key, or could have.
    #[must_use]
    pub fn is_multikey(&self) -> bool {
        self.arrays
            .known
            .iter()
            .take(self.fields.len())
            .any(|bits| bits.load(Ordering::Acquire) != 0)
    }

    /// Whether a key was or may have been truncated: the order of entries then differs from that of
    /// values.
    #[must_use]
    pub fn may_be_cut(&self) -> bool {
        self.multikey_parts(self.fields.len()) & SOME_CUT != 0
    }

    /// The full key of `document` for `entry`, whose key may be truncated. `None` if the document
    /// has no such key.
    ///
    /// # Errors
    /// As [`KeyMaker::keys`].
    pub(crate) fn whole_key<'k>(
        &self,
        document: &RawDocument,
        entry: &[u8],
        keys: &'k mut KeySet,
    ) -> Result<Option<Key<'k>>> {
        let limit = self.maker.limit();
        self.maker.keys(document, keys)?;
        Ok(keys.keys().find(|key| match key.bytes.len() <= limit {
            true => key.bytes == entry,
            false => cut(key.bytes, limit) == entry,
        }))
    }

    /// The parts of the path of `field` (from bit 0 on) that have been an array in some document.
    #[must_use]
    pub fn multikey_parts(&self, field: usize) -> u32 {
        self.arrays
            .known
            .get(field)
            .map_or(0, |bits| bits.load(Ordering::Acquire))
    }

    /// Add bits; returns those not yet stored, as pairs of field and part.
    pub(crate) fn add_multikey(&self, found: &[u32]) -> Vec<(u8, u8)> {
        let mut news = Vec::new();
        for (field, found) in found.iter().enumerate() {
            if let Some(bits) = self.arrays.known.get(field) {
                bits.fetch_or(*found, Ordering::AcqRel);
            }
            let stored = self
                .arrays
                .stored
                .get(field)
                .map_or(0, |bits| bits.load(Ordering::Acquire));
            let field = u8::try_from(field).expect("an index has at most 32 fields");
            let new = (0..32).filter(|part| (found & !stored) >> part & 1 == 1);
            news.extend(new.map(|part| (field, part)));
        }
        news
    }

    /// Record that a bit was committed.
    pub(crate) fn stored(&self, field: u8, part: u8) {
        if let Some(bits) = self.arrays.stored.get(usize::from(field)) {
            bits.fetch_or(1 << part, Ordering::AcqRel);
        }
    }

    /// All multikey bits, and the bit for truncated keys.
    pub(crate) fn multikey(&self) -> Vec<u32> {
        let load = |bits: &AtomicU32| bits.load(Ordering::Acquire);
        self.arrays.known.iter().map(load).collect()
    }

    /// The usage statistics.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Append the key and the value of an entry to the buffers.
    pub fn append_entry(
        &self,
        key: Key<'_>,
        record: &RecordId,
        entry_key: &mut Vec<u8>,
        entry_value: &mut Vec<u8>,
    ) {
        entry_key.extend_from_slice(key.bytes);
        entry_value.extend_from_slice(key.type_bits);
        record.append_suffix(if self.unique() {
            entry_value
        } else {
            entry_key
        });
    }

    /// Decode an entry. `None` if it is invalid, which means that the index is corrupt.
    #[must_use]
    pub fn read_entry<'a>(&self, key: &'a [u8], value: &'a [u8]) -> Option<Entry<'a>> {
        if self.unique() {
            let (type_bits, record) = RecordId::split_suffix(value, self.clustered)?;
            Some(Entry {
                key,
                type_bits,
                record,
            })
        } else {
            let (key, record) = RecordId::split_suffix(key, self.clustered)?;
            Some(Entry {
                key,
                type_bits: value,
                record,
            })
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("spec", &self.spec)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
