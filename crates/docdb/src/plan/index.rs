//! The planner's description of an index.

use std::sync::Arc;

use bson::{Document, doc};
use query::collation::{Collation, Collator};
use query::filter::Filter;
use query::path::Path;
use query::settings::Settings;
use query::{Error, Result};

use super::effort::Effort;
use super::implies::implies;
use super::predicate::Conjunction;
use super::scan::Coding;
use crate::index::{FieldKind, Index, Wildcard};
use crate::key::Collate;

/// Number of bytes at the end of a truncated key that are a hash.
const HASH_BYTES: usize = 16;

/// One field of an index's key.
#[derive(Clone, Debug)]
pub(crate) struct IndexField {
    /// The field's path.
    pub(crate) path: Path,
    /// Whether its order is reversed.
    pub(crate) descending: bool,
    /// Whether the key holds a hash of the value.
    pub(crate) hashed: bool,
    /// The components of the path that are arrays in any document, as bits.
    pub(crate) arrays: u64,
}

/// How an index derives entries from documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IndexKind {
    /// Values of the fields (one of which may be hashed).
    Plain,
    /// Path and value of every field.
    Wildcard,
}

/// The source of the value encoding.
#[derive(Clone)]
enum Origin {
    /// An index.
    Index(Arc<Index>),
    /// The records of a clustered collection.
    Records(Option<Arc<dyn Collate>>),
}

/// The planner's view of an index, or of the records of a clustered collection.
#[derive(Clone)]
pub(crate) struct IndexView {
    /// Its position among the collection's indexes.
    pub(crate) position: usize,
    /// Its name.
    pub(crate) name: String,
    /// The key pattern as the user gave it.
    pub(crate) key: Document,
    /// How entries are derived.
    pub(crate) kind: IndexKind,
    /// The fields in order.
    pub(crate) fields: Vec<IndexField>,
    /// Whether documents that have none of the fields are not indexed.
    pub(crate) sparse: bool,
    /// Whether no two documents may have the same key.
    pub(crate) unique: bool,
    /// Whether plans must not use it.
    pub(crate) hidden: bool,
    /// The filter of a partial index: only documents that match are indexed.
    pub(crate) partial: Option<Arc<Filter>>,
    /// The collator for strings.
    pub(crate) collator: Option<Arc<Collator>>,
    /// The collation in full, which is compared with the query's.
    pub(crate) collation: Option<Document>,
    /// The number of leading bytes in which a truncated key equals the key of its values; the rest
    /// is a hash.
    pub(crate) true_bytes: usize,
    /// Whether the index may contain truncated keys: the order of entries then differs from that of
    /// values.
    pub(crate) cut: bool,
    origin: Origin,
}

impl IndexView {
    /// Whether every document that matches `all` is in the index, as far as the filter of a partial
    /// index decides it.
    ///
    /// # Errors
    /// The operation must end.
    pub(crate) fn includes(
        &self,
        all: &Conjunction<'_>,
        same_collation: bool,
        effort: &mut Effort,
    ) -> Result<bool> {
        let place = (self.collator.as_deref(), same_collation);
        match &self.partial {
            Some(partial) => implies(all, partial.root(), place, effort),
            None => Ok(true),
        }
    }

    /// The view of `index`, at `position` among its collection's.
    ///
    /// # Errors
    /// A specification that cannot be read.
    pub(crate) fn of(position: usize, index: &Arc<Index>) -> Result<IndexView> {
        let spec = index.spec();
        let wildcard = index
            .fields()
            .iter()
            .any(|(_, kind)| *kind == FieldKind::Wildcard);
        let fields = if wildcard {
            // Path and value: see `plan::wildcard`.
            vec![
                field("$_path", FieldKind::Ascending, 0)?,
                field("$**", FieldKind::Ascending, 0)?,
            ]
        } else {
            index
                .fields()
                .iter()
                .enumerate()
                .map(|(at, (path, kind))| field(path, *kind, index.multikey_parts(at)))
                .collect::<Result<_>>()?
        };
        let collator = spec.collation.as_ref().map(collator).transpose()?.flatten();
        let partial = spec.partial.as_ref().map(|partial| {
            let settings = Settings {
                collator: collator.clone(),
                ..Settings::default()
            };
            Filter::parse(partial, &settings).map(Arc::new)
        });
        Ok(IndexView {
            position,
            name: spec.name.clone(),
            key: spec.key.clone(),
            kind: if wildcard {
                IndexKind::Wildcard
            } else {
                IndexKind::Plain
            },
            fields,
            sparse: spec.sparse,
            unique: spec.unique,
            hidden: spec.hidden,
            partial: partial.transpose()?,
            collator,
            collation: spec.collation.clone(),
            true_bytes: index.maker().limit().saturating_sub(HASH_BYTES),
            cut: index.may_be_cut(),
            origin: Origin::Index(Arc::clone(index)),
        })
    }

    /// The records of a clustered collection, as an index on `_id` with this name.
    ///
    /// # Errors
    /// A collation that cannot be read.
    pub(crate) fn of_records(
        name: &str,
        collation: Option<Document>,
        collate: Option<Arc<dyn Collate>>,
    ) -> Result<IndexView> {
        Ok(IndexView {
            position: usize::MAX,
            name: name.to_owned(),
            key: doc! { "_id": 1 },
            kind: IndexKind::Plain,
            fields: vec![field("_id", FieldKind::Ascending, 0)?],
            sparse: false,
            unique: true,
            hidden: false,
            partial: None,
            collator: collation.as_ref().map(collator).transpose()?.flatten(),
            collation,
            true_bytes: usize::MAX,
            cut: false,
            origin: Origin::Records(collate),
        })
    }

    /// The index; `None` for the records of a clustered collection.
    pub(crate) fn source(&self) -> Option<&Arc<Index>> {
        match &self.origin {
            Origin::Index(index) => Some(index),
            Origin::Records(_) => None,
        }
    }

    /// Whether any document may have several entries.
    pub(crate) fn multikey(&self) -> bool {
        self.kind == IndexKind::Wildcard || self.fields.iter().any(|field| field.arrays != 0)
    }

    /// Whether a wildcard index contains the values at `path`.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('.').collect();
        let numeric = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        self.source()
            .and_then(|index| index.maker().wildcard())
            .is_some_and(|wildcard: &Wildcard| wildcard.covers(&parts))
            && !parts.iter().any(numeric)
    }

    /// The encoding of each field.
    pub(crate) fn coding(&self) -> Vec<Coding<'_>> {
        let collation = match &self.origin {
            Origin::Index(index) => index.maker().collation(),
            Origin::Records(collate) => collate.as_deref(),
        };
        let names = self.kind == IndexKind::Wildcard;
        self.fields
            .iter()
            .enumerate()
            .map(|(at, field)| Coding {
                descending: field.descending,
                hashed: field.hashed,
                collation: collation.filter(|_| !(names && at == 0)),
            })
            .collect()
    }
}

/// The collator of a collation in full.
pub(crate) fn collator(collation: &Document) -> Result<Option<Arc<Collator>>> {
    let raw = bson::RawDocumentBuf::try_from(collation)?;
    Collation::parse(&raw)?
        .map(|collation| Collator::new(collation).map(Arc::new))
        .transpose()
}

fn field(path: &str, kind: FieldKind, arrays: u32) -> Result<IndexField> {
    Ok(IndexField {
        path: Path::parse(path).map_err(|_| Error::bad_value("a path of an index is none"))?,
        descending: kind == FieldKind::Descending,
        hashed: kind == FieldKind::Hashed,
        arrays: u64::from(arrays),
    })
}
