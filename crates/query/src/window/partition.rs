//! Partitions: documents with equal keys, each partition in the order of `sortBy`.
//!
//! What is put in order here was sorted, as MongoDB does it, by a `$sort` on what it is parted by
//! and what it is ordered by: rows are told so where that is asked for (`{$meta: "sortKey"}`).

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf};

use super::fill::fields_name;
use crate::collation::Collator;
use crate::expr::{Env, Expr, FieldPath, Scope, Variables};
use crate::sort::{Direction, Sort, SortKey, collated};
use crate::value::compare_with;
use crate::{Error, Result, Row, meter};

/// How documents are parted and ordered.
#[derive(Debug, Clone, Default)]
pub(super) struct Partitioning {
    pub(super) by: Option<Expr>,
    pub(super) sort: Option<Sort>,
    collator: Option<Arc<Collator>>,
    /// How many fields the partition's key has, when each is sorted by for itself.
    fields: Option<usize>,
}

/// What a row was sorted by, where that is asked for.
pub(super) type Told = Option<Arc<[Bson]>>;

/// The documents of a partition in their order, and what each was sorted by.
#[derive(Default)]
pub(super) struct Partition {
    pub(super) documents: Vec<Document>,
    pub(super) told: Vec<Told>,
}

impl Partition {
    /// Its rows.
    pub(super) fn into_rows(self) -> impl Iterator<Item = Row> {
        let told = self.told.into_iter();
        let pairs = self.documents.into_iter().zip(told);
        pairs.map(|(document, told)| Row::from_document(document).with_sort_key(told))
    }
}

struct Entry {
    partition: Bson,
    key: Option<SortKey>,
    told: Told,
    document: Document,
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
            Some(Bson::Document(spec)) => Some(Sort::parse(&RawDocumentBuf::try_from(spec)?)?),
            Some(_) => {
                return Err(Error::parse(format!(
                    "'sortBy' of {name} must be an object"
                )));
            }
        };
        Ok(Partitioning {
            by: by.map(|by| Expr::parse(by, scope)).transpose()?,
            sort: sort.filter(|sort| !sort.is_empty()),
            collator: scope.collator().cloned(),
            fields: None,
        })
    }

    /// The same by a key of so many fields, each of which is sorted by for itself.
    pub(super) fn by_fields(mut self, count: usize) -> Partitioning {
        self.fields = Some(count);
        self
    }

    /// The one field by which documents are sorted, and whether it descends.
    pub(super) fn single(&self) -> Result<Option<(FieldPath, bool)>> {
        let Some([(path, direction)]) = self.sort.as_ref().map(Sort::fields) else {
            return Ok(None);
        };
        let path = FieldPath::parse(path.as_str())?;
        Ok(Some((path, *direction == Direction::Descending)))
    }

    /// The partitions in their order; `keyed` says that rows are told what they are sorted by.
    pub(super) fn part(
        &self,
        rows: Vec<Row>,
        vars: &Variables,
        keyed: bool,
    ) -> Result<Vec<Partition>> {
        let collator = self.collator.as_deref();
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let key = match &self.sort {
                Some(sort) => Some(sort.key(row.raw()?, collator)?),
                None => None,
            };
            let told = row.sort_key();
            let document = row.into_document()?;
            let partition = self.key_of(&document, vars)?;
            meter::charge("The key of a partition", meter::size(&partition))?;
            let told = match keyed && self.sorts() {
                true => Some(self.sorted_by(&partition, key.as_ref())),
                false => told,
            };
            entries.push(Entry {
                partition,
                key,
                told,
                document,
            });
        }
        let order = |a: &Entry, b: &Entry| compare_with(&a.partition, &b.partition, collator);
        let entries = meter::sort_by(entries, |a, b| order(a, b).then_with(|| a.key.cmp(&b.key)))?;
        let mut partitions: Vec<Partition> = Vec::new();
        let mut last: Option<Bson> = None;
        for entry in entries {
            let same = last.as_ref().is_some_and(|last| {
                compare_with(last, &entry.partition, collator) == Ordering::Equal
            });
            if !same {
                partitions.push(Partition::default());
            }
            if let Some(partition) = partitions.last_mut() {
                partition.documents.push(entry.document);
                partition.told.push(entry.told);
            }
            last = Some(entry.partition);
        }
        Ok(partitions)
    }

    /// What documents are parted by, when it can differ.
    fn parted(&self) -> Option<&Expr> {
        self.by.as_ref().filter(|by| by.as_constant().is_none())
    }

    /// Whether documents are put in an order at all.
    fn sorts(&self) -> bool {
        self.sort.is_some() || self.parted().is_some()
    }

    /// What a document is sorted by: by what it is parted, then by what is left of the order.
    fn sorted_by(&self, partition: &Bson, key: Option<&SortKey>) -> Arc<[Bson]> {
        let mut parts = match (self.parted(), self.fields, partition) {
            (None, ..) => Vec::new(),
            (_, Some(count), Bson::Document(fields)) => (0..count)
                .map(|at| fields.get(fields_name(at)).cloned().unwrap_or(Bson::Null))
                .collect(),
            _ => vec![partition.clone()],
        };
        if let Some(collator) = self.collator.as_deref() {
            parts = parts.into_iter().map(|p| collated(p, collator)).collect();
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
        parts.into()
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

    /// What a document of a partition sorts by, to tell ties; `None` without an order.
    pub(super) fn sort_key(&self, document: &Document) -> Result<Option<SortKey>> {
        let Some(sort) = &self.sort else {
            return Ok(None);
        };
        let raw = RawDocumentBuf::try_from(document)?;
        sort.key(&raw, self.collator.as_deref()).map(Some)
    }
}
