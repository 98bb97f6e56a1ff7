//! Partitions: documents with equal keys, each partition in the order of `sortBy`.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf};

use crate::collation::Collator;
use crate::expr::{Env, Expr, FieldPath, Scope, Variables};
use crate::sort::{Direction, Sort, SortKey};
use crate::value::compare_with;
use crate::{Error, Result, Row};

/// How documents are parted and ordered.
#[derive(Debug, Clone, Default)]
pub(super) struct Partitioning {
    pub(super) by: Option<Expr>,
    pub(super) sort: Option<Sort>,
    collator: Option<Arc<Collator>>,
}

struct Entry {
    partition: Bson,
    key: Option<SortKey>,
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
        })
    }

    /// The one field by which documents are sorted, and whether it descends.
    pub(super) fn single(&self) -> Result<Option<(FieldPath, bool)>> {
        let Some([(path, direction)]) = self.sort.as_ref().map(Sort::fields) else {
            return Ok(None);
        };
        let path = FieldPath::parse(path.as_str())?;
        Ok(Some((path, *direction == Direction::Descending)))
    }

    /// The partitions in their order.
    pub(super) fn part(&self, rows: Vec<Row>, vars: &Variables) -> Result<Vec<Vec<Document>>> {
        let collator = self.collator.as_deref();
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let key = match &self.sort {
                Some(sort) => Some(sort.key(row.raw()?, collator)?),
                None => None,
            };
            let document = row.into_document()?;
            let partition = self.key_of(&document, vars)?;
            entries.push(Entry {
                partition,
                key,
                document,
            });
        }
        let order = |a: &Entry, b: &Entry| compare_with(&a.partition, &b.partition, collator);
        entries.sort_by(|a, b| order(a, b).then_with(|| a.key.cmp(&b.key)));
        let mut partitions: Vec<Vec<Document>> = Vec::new();
        let mut last: Option<Bson> = None;
        for entry in entries {
            let same = last.as_ref().is_some_and(|last| {
                compare_with(last, &entry.partition, collator) == Ordering::Equal
            });
            match partitions.last_mut() {
                Some(partition) if same => partition.push(entry.document),
                _ => partitions.push(vec![entry.document]),
            }
            last = Some(entry.partition);
        }
        Ok(partitions)
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
