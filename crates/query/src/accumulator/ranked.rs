//! The first N values in some order: `$top`, `$bottom`, `$topN`, `$bottomN`, `$minN`, `$maxN`.
//!
//! At most `limit` entries are held, sorted; entries with equal keys keep the order in which they
//! came.

use std::cmp::Ordering;

use bson::{Bson, Document};

use crate::collation::Collator;
use crate::expr::{Dependencies, FieldPath};
use crate::value::compare_with;
use crate::{Error, Result, meter};

/// The order of `sortBy`.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    fields: Vec<(FieldPath, bool)>,
}

impl Order {
    /// Parses `{a: 1, b: -1}` for the operator `name`.
    pub(crate) fn parse(spec: &Document, name: &str) -> Result<Order> {
        if spec.is_empty() {
            let message = "$sort stage must have at least one sort key";
            return Err(Error::location(15_976, message));
        }
        let mut fields = Vec::with_capacity(spec.len());
        for (path, direction) in spec {
            let number = crate::number::Number::from_bson(direction);
            let descending = match number.and_then(|number| number.to_i64_exact()) {
                Some(1) => false,
                Some(-1) => true,
                _ => {
                    return Err(Error::location(
                        15_975,
                        format!(
                            "$sort key ordering must be 1 (for ascending) or -1 (for descending): \
                             invalid direction of '{path}' in {name}"
                        ),
                    ));
                }
            };
            fields.push((FieldPath::parse(path)?, descending));
        }
        Ok(Order { fields })
    }

    /// Adds the paths that the order reads.
    pub(crate) fn dependencies(&self, found: &mut Dependencies) {
        for (path, _) in &self.fields {
            found.fields.insert(path.to_string());
        }
    }

    /// The sort key of a document.
    pub(crate) fn key(&self, document: &Document, collator: Option<&Collator>) -> Vec<Bson> {
        self.fields
            .iter()
            .map(|(path, descending)| {
                let value = path.in_document(document);
                sort_value(value.as_deref(), *descending, collator)
            })
            .collect()
    }

    /// The order of two keys.
    pub(crate) fn compare(
        &self,
        left: &[Bson],
        right: &[Bson],
        collator: Option<&Collator>,
    ) -> Ordering {
        for ((_, descending), (left, right)) in self.fields.iter().zip(left.iter().zip(right)) {
            let order = compare_with(left, right, collator);
            let order = if *descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// The value by which a document is sorted: of an array its least element, or its greatest in
/// descending order.
fn sort_value(value: Option<&Bson>, descending: bool, collator: Option<&Collator>) -> Bson {
    match value {
        None => Bson::Null,
        Some(Bson::Array(items)) => {
            let order = |a: &&Bson, b: &&Bson| compare_with(a, b, collator);
            let chosen = if descending {
                items.iter().max_by(order)
            } else {
                items.iter().min_by(order)
            };
            // An empty array sorts below null, as undefined does.
            chosen.cloned().unwrap_or(Bson::Undefined)
        }
        Some(value) => value.clone(),
    }
}

/// The entries held, in order.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    limit: usize,
    /// Estimated bytes of the entries.
    bytes: usize,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    key: Vec<Bson>,
    value: Bson,
}

impl Entry {
    fn bytes(&self) -> usize {
        let key: usize = self.key.iter().map(meter::size).sum();
        size_of::<Entry>() + key + meter::size(&self.value)
    }
}

/// Number of moved entries that count as one step.
const MOVED: usize = 16;

impl Ranked {
    pub(super) fn new(limit: usize) -> Ranked {
        Ranked {
            limit,
            bytes: 0,
            entries: Vec::new(),
        }
    }

    /// Inserts an entry after those that are not greater; an entry beyond the limit is dropped from
    /// the end.
    pub(super) fn add(
        &mut self,
        key: Vec<Bson>,
        value: impl FnOnce() -> Result<Bson>,
        compare: impl Fn(&[Bson], &[Bson]) -> Ordering,
    ) -> Result<()> {
        let at = self
            .entries
            .partition_point(|entry| compare(&entry.key, &key).is_le());
        if at >= self.limit {
            return Ok(());
        }
        let entry = Entry {
            key,
            value: value()?,
        };
        // Counts the entries that the insertion moves.
        meter::count((self.entries.len() - at) / MOVED);
        self.bytes += entry.bytes();
        self.entries.insert(at, entry);
        if self.limit < self.entries.len()
            && let Some(dropped) = self.entries.pop()
        {
            self.bytes -= dropped.bytes();
        }
        Ok(())
    }

    /// Estimated bytes of the entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the entries of `other`, whose documents came later.
    pub(super) fn merge(
        &mut self,
        other: Ranked,
        compare: impl Fn(&[Bson], &[Bson]) -> Ordering,
    ) -> Result<()> {
        for entry in other.entries {
            self.add(entry.key, || Ok(entry.value), &compare)?;
        }
        Ok(())
    }

    pub(super) fn into_values(self) -> Vec<Bson> {
        self.entries.into_iter().map(|entry| entry.value).collect()
    }

    pub(super) fn into_keys(self) -> Vec<Bson> {
        self.entries
            .into_iter()
            .flat_map(|entry| entry.key)
            .collect()
    }
}
