//! Sort keys: one value per field of the sort.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Bson, RawBsonRef, RawDocument};

use super::extract::tuples;
use super::{Direction, Sort};
use crate::collation::Collator;
use crate::value::{compare, compare_raw_with};
use crate::{Result, meter};

/// The values a document is sorted by.
///
/// Without a collation, strings are kept as they are; with one, they are replaced by their
/// collation sort keys in hexadecimal digits, so that a comparison needs no collator. Only keys of
/// the same sort and collation can be compared.
#[derive(Debug, Clone)]
pub struct SortKey {
    values: Box<[Bson]>,
    directions: Arc<[Direction]>,
}

impl SortKey {
    /// The key of `document`. If arrays give several tuples, the key is the first of them in the
    /// order of the sort.
    pub(super) fn of(
        sort: &Sort,
        document: &RawDocument,
        collator: Option<&Collator>,
    ) -> Result<SortKey> {
        meter::read(document.as_bytes().len())?;
        let mut best: Vec<RawBsonRef<'_>> = Vec::new();
        let mut paths = sort.fields().iter().map(|(path, _)| path);
        tuples(document, &mut paths, &mut |tuple| {
            meter::count(1);
            let better = best.is_empty() || precedes(tuple, &best, sort.directions(), collator);
            if better {
                best.clear();
                best.extend_from_slice(tuple);
            }
        })?;
        let mut values = Vec::with_capacity(best.len());
        for value in best {
            values.push(Bson::try_from(value)?);
        }
        SortKey::from_values(sort, values, collator)
    }

    /// A key of these values, one per field of `sort`.
    ///
    /// # Errors
    /// Errors of [`Collator::sort_key`].
    pub fn from_values(
        sort: &Sort,
        values: Vec<Bson>,
        collator: Option<&Collator>,
    ) -> Result<SortKey> {
        let values = match collator {
            None => values.into_boxed_slice(),
            Some(collator) => values
                .into_iter()
                .map(|value| collated(value, collator))
                .collect::<Result<_>>()?,
        };
        Ok(SortKey {
            values,
            directions: Arc::clone(sort.directions()),
        })
    }

    /// The values, in the order of the fields.
    #[must_use]
    pub fn values(&self) -> &[Bson] {
        &self.values
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<SortKey>() + self.values.iter().map(size).sum::<usize>()
    }
}

fn precedes(
    left: &[RawBsonRef<'_>],
    right: &[RawBsonRef<'_>],
    directions: &[Direction],
    collator: Option<&Collator>,
) -> bool {
    for ((left, right), direction) in left.iter().zip(right).zip(directions) {
        match direction.apply(compare_raw_with(*left, *right, collator)) {
            Ordering::Less => return true,
            Ordering::Equal => {}
            Ordering::Greater => return false,
        }
    }
    false
}

impl Ord for SortKey {
    fn cmp(&self, other: &SortKey) -> Ordering {
        let pairs = self.values.iter().zip(&other.values);
        for ((left, right), direction) in pairs.zip(self.directions.iter()) {
            let order = direction.apply(compare(left, right));
            if order != Ordering::Equal {
                return order;
            }
        }
        self.values.len().cmp(&other.values.len())
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &SortKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortKey {
    fn eq(&self, other: &SortKey) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortKey {}

/// `value` with each string replaced by its collation sort key, as text that sorts in the same
/// order.
///
/// # Errors
/// Errors of [`Collator::sort_key`].
pub(crate) fn collated(value: Bson, collator: &Collator) -> Result<Bson> {
    Ok(match value {
        Bson::String(text) | Bson::Symbol(text) => {
            Bson::String(hexadecimal(&collator.sort_key(&text)?))
        }
        Bson::Array(items) => Bson::Array(
            items
                .into_iter()
                .map(|item| collated(item, collator))
                .collect::<Result<_>>()?,
        ),
        Bson::Document(fields) => Bson::Document(
            fields
                .into_iter()
                .map(|(name, value)| Ok((name, collated(value, collator)?)))
                .collect::<Result<_>>()?,
        ),
        other => other,
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 0xF)];
    bytes.iter().flat_map(digits).collect()
}

fn size(value: &Bson) -> usize {
    size_of::<Bson>()
        + match value {
            Bson::String(text) | Bson::Symbol(text) => text.len(),
            Bson::Array(items) => items.iter().map(size).sum(),
            Bson::Document(fields) => fields
                .iter()
                .map(|(name, value)| name.len() + size(value))
                .sum(),
            Bson::Binary(binary) => binary.bytes.len(),
            _ => 0,
        }
}
