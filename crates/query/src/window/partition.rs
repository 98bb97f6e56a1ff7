//! Partitions: documents with equal keys, each partition in the order of `sortBy`.
//!
//! As in MongoDB, a `$sort` by the partition key and then by `sortBy` orders the documents; it may
//! spill to disk. Where the pipeline reads them (`{$meta: "sortKey"}`), rows keep the values by
//! which they were sorted.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::raw::{CStr, cstr};
use bson::{Bson, Document, RawBson, RawBsonRef, RawDocumentBuf};

use super::fill::fields_name;
use crate::collation::Collator;
use crate::expr::{Env, Expr, FieldPath, Scope, Variables};
use crate::path::Path;
use crate::sort::{Direction, Sort, SortKey, collated};
use crate::value::compare_with;
use crate::{Error, Result, Row, meter};

/// Names of the fields of a row while it is sorted; see [`Partitioning::wrap`].
const KEY: &CStr = cstr!("k");
const DOCUMENT: &CStr = cstr!("d");

/// How documents are partitioned and ordered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitioning {
    pub(super) by: Option<Expr>,
    pub(super) sort: Option<Sort>,
    collator: Option<Arc<Collator>>,
    /// Number of fields of the partition key, if documents are sorted by each of them; `None` if
    /// they are sorted by the key as a whole.
    fields: Option<usize>,
}

/// The values by which a row was sorted; `None` where the pipeline does not read them.
pub(crate) type SortValues = Option<Arc<[Bson]>>;

/// The documents of a partition in their order, each with the values by which it was sorted.
#[derive(Default)]
pub(crate) struct Partition {
    pub(super) documents: Vec<Document>,
    pub(super) sort_values: Vec<SortValues>,
}

impl Partition {
    /// Adds the next document.
    pub(crate) fn push(&mut self, document: Document, sort_values: SortValues) {
        self.documents.push(document);
        self.sort_values.push(sort_values);
    }

    /// The rows of the partition.
    pub(super) fn into_rows(self) -> impl Iterator<Item = Row> {
        let pairs = self.documents.into_iter().zip(self.sort_values);
        pairs.map(|(document, values)| Row::from_document(document).with_sort_key(values))
    }
}

/// A document with the key of its partition.
pub(crate) struct Entry {
    /// The key of the partition.
    pub(crate) key: Bson,
    /// The document.
    pub(crate) document: Document,
    /// Size of the document as BSON, in bytes.
    pub(crate) stored: usize,
    /// The values by which the document was sorted.
    pub(crate) sort_values: SortValues,
}

impl Partitioning {
    /// Parses `partitionBy` and `sortBy` of the stage `name`.
    pub(super) fn parse(
        by: Option<&Bson>,
        sort: Option<&Bson>,
        name: &str,
        scope: &Scope,
    ) -> Result<Partitioning> {
        let sort = match sort {
            None => None,
            Some(Bson::Document(spec)) => Some(Sort::parse_keys(spec)?),
            Some(_) => {
                return Err(Error::parse(format!(
                    "'sortBy' of {name} must be an object"
                )));
            }
        };
        Ok(Partitioning {
            by: by.map(|by| Expr::parse(by, scope)).transpose()?,
            sort,
            collator: scope.collator().cloned(),
            fields: None,
        })
    }

    /// Returns this partitioning with a key of `count` fields, by each of which documents are
    /// sorted.
    pub(super) fn by_fields(mut self, count: usize) -> Partitioning {
        self.fields = Some(count);
        self
    }

    /// The field by which documents are sorted, and whether in descending order; `None` if they are
    /// not sorted by exactly one field.
    pub(super) fn single(&self) -> Result<Option<(FieldPath, bool)>> {
        let Some([(path, direction)]) = self.sort.as_ref().map(Sort::fields) else {
            return Ok(None);
        };
        let path = FieldPath::parse(path.as_str())?;
        Ok(Some((path, *direction == Direction::Descending)))
    }

    /// The sort order of rows made by [`Partitioning::wrap`]: by partition key, then by `sortBy`.
    pub(crate) fn order(&self) -> Result<Sort> {
        let mut fields = Vec::new();
        if self.parted().is_some() {
            fields.push((Path::parse(KEY.as_str())?, Direction::Ascending));
        }
        for (path, direction) in self.sort.as_ref().map_or(&[][..], Sort::fields) {
            let path = Path::parse(&format!("{}.{}", DOCUMENT.as_str(), path.as_str()))?;
            fields.push((path, *direction));
        }
        Ok(Sort::by(fields))
    }

    /// A row for sorting: `{k: partition key, d: document}`.
    pub(crate) fn wrap(&self, row: &Row, vars: &Variables) -> Result<Row> {
        let _scope = meter::scope();
        let key = match &self.by {
            Some(_) => self.key_of(row.document()?, vars)?,
            None => Bson::Null,
        };
        let mut wrapped = RawDocumentBuf::new();
        wrapped.append(KEY, RawBson::try_from(key)?);
        wrapped.append(DOCUMENT, row.raw()?.to_owned());
        Ok(Row::from_raw(wrapped))
    }

    /// The entry of a wrapped row; with `keyed`, it has the values by which the row was sorted.
    pub(crate) fn unwrap(&self, row: &Row, keyed: bool) -> Result<Entry> {
        let raw = row.raw()?;
        let key = match raw.get(KEY)? {
            Some(key) => Bson::try_from(key)?,
            None => Bson::Null,
        };
        let document = match raw.get(DOCUMENT)? {
            Some(RawBsonRef::Document(document)) => document,
            _ => raw,
        };
        let sort_values = match (keyed, &self.sort) {
            (true, Some(sort)) => {
                let values = sort.key(document, self.collator.as_deref())?;
                Some(self.sorted_by(&key, Some(&values))?)
            }
            (true, None) => Some(self.sorted_by(&key, None)?),
            (false, _) => None,
        };
        Ok(Entry {
            key,
            document: Document::try_from(document)?,
            stored: document.as_bytes().len(),
            sort_values,
        })
    }

    /// The entry of a row that needs no sort.
    pub(crate) fn entry(&self, row: Row, vars: &Variables) -> Result<Entry> {
        let _scope = meter::scope();
        Ok(Entry {
            key: self.key_of(row.document()?, vars)?,
            stored: row.raw()?.as_bytes().len(),
            sort_values: row.sort_key(),
            document: row.into_document()?,
        })
    }

    /// Whether two keys belong to the same partition.
    pub(crate) fn same(&self, left: &Bson, right: &Bson) -> bool {
        compare_with(left, right, self.collator.as_deref()) == Ordering::Equal
    }

    /// The collation that documents are sorted under.
    pub(crate) fn collator(&self) -> Option<Arc<Collator>> {
        self.collator.clone()
    }

    /// The expression of the partition key; `None` when there is none or it is constant.
    fn parted(&self) -> Option<&Expr> {
        self.by.as_ref().filter(|by| by.as_constant().is_none())
    }

    /// Whether the stage sorts its input.
    pub(crate) fn sorts(&self) -> bool {
        self.sort.is_some() || self.parted().is_some()
    }

    /// The values by which a document is sorted: its partition key, then its values of the `sortBy`
    /// fields.
    fn sorted_by(&self, partition: &Bson, key: Option<&SortKey>) -> Result<Arc<[Bson]>> {
        let mut parts = match (self.parted(), self.fields, partition) {
            (None, ..) => Vec::new(),
            (_, Some(count), Bson::Document(fields)) => (0..count)
                .map(|at| fields.get(fields_name(at)).cloned().unwrap_or(Bson::Null))
                .collect(),
            _ => vec![partition.clone()],
        };
        if let Some(collator) = self.collator.as_deref() {
            let collated = parts.into_iter().map(|part| collated(part, collator));
            parts = collated.collect::<Result<_>>()?;
        }
        let parted = self
            .parted()
            .and_then(Expr::as_field)
            .map(FieldPath::to_string);
        if let (Some(sort), Some(key)) = (&self.sort, key) {
            let fields = sort.fields().iter().zip(key.values());
            let rest = fields.filter(|((path, _), _)| parted.as_deref() != Some(path.as_str()));
            parts.extend(rest.map(|(_, value)| value.clone()));
        }
        Ok(parts.into())
    }

    fn key_of(&self, document: &Document, vars: &Variables) -> Result<Bson> {
        let Some(by) = &self.by else {
            return Ok(Bson::Null);
        };
        match by.evaluate_or_null(&Env::new(document, vars))? {
            Bson::Array(_) => Err(Error::type_mismatch(
                "An expression used to partition cannot evaluate to value of type array",
            )),
            key => Ok(key),
        }
    }

    /// The sort key of a document, for comparing it with others of its partition; `None` without
    /// `sortBy`.
    pub(super) fn sort_key(&self, document: &Document) -> Result<Option<SortKey>> {
        let Some(sort) = &self.sort else {
            return Ok(None);
        };
        let raw = RawDocumentBuf::try_from(document)?;
        sort.key(&raw, self.collator.as_deref()).map(Some)
    }
}
