//! Specifications of sorts, such as `{a: 1, b: -1}`.

use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument};

use super::SortKey;
use crate::collation::Collator;
use crate::number::Number;
use crate::path::Path;
use crate::repeated::check_order;
use crate::{Code, Error, Result, show};

/// Maximum number of fields, the same as for an index key.
const MAX_FIELDS: usize = 32;

/// The direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The least value first.
    Ascending,
    /// The greatest value first.
    Descending,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        }
    }

    /// `order` in this direction: reversed when descending.
    #[must_use]
    pub fn apply(self, order: std::cmp::Ordering) -> std::cmp::Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }
}

/// The fields to sort by, the most important first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sort {
    fields: Vec<(Path, Direction)>,
    directions: Arc<[Direction]>,
}

impl Sort {
    /// Parses a specification; an empty one leaves documents in their order.
    ///
    /// # Errors
    /// `BadValue`, 15974, 15975, 7472500 for a path that is given twice, and others, as MongoDB.
    pub fn parse(spec: &RawDocument) -> Result<Sort> {
        let mut fields: Vec<(Path, Direction)> = Vec::new();
        for element in spec {
            let (name, value) = element?;
            let path = sort_path(name.as_str())?;
            fields.push((path, direction(name.as_str(), value)?));
            if fields.len() > MAX_FIELDS {
                return Err(Error::new(
                    Code(13103),
                    format!("too many compound keys: at most {MAX_FIELDS}"),
                ));
            }
        }
        check_order(spec)?;
        Ok(Sort::by(fields))
    }

    /// A sort by these fields.
    #[must_use]
    pub fn by(fields: Vec<(Path, Direction)>) -> Sort {
        let directions = fields.iter().map(|(_, direction)| *direction).collect();
        Sort { fields, directions }
    }

    /// The fields, the most important first.
    #[must_use]
    pub fn fields(&self) -> &[(Path, Direction)] {
        &self.fields
    }

    /// The directions of the fields.
    pub(super) fn directions(&self) -> &Arc<[Direction]> {
        &self.directions
    }

    /// Whether the specification names no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The key of `document`: documents are sorted by the order of their keys.
    ///
    /// # Errors
    /// `BadValue` for parallel arrays (`{a: [1, 2], b: [3, 4]}` by `a` and `b`), `InvalidBSON` for
    /// invalid bytes.
    pub fn key(&self, document: &RawDocument, collator: Option<&Collator>) -> Result<SortKey> {
        SortKey::of(self, document, collator)
    }

    /// The specification as a document, such as `{a: 1, b: -1}`.
    #[must_use]
    pub fn to_document(&self) -> Document {
        let sign = |direction: &Direction| match direction {
            Direction::Ascending => 1,
            Direction::Descending => -1,
        };
        let field = |(path, direction): &(Path, Direction)| {
            (path.as_str().to_owned(), Bson::Int32(sign(direction)))
        };
        self.fields.iter().map(field).collect()
    }
}

fn sort_path(name: &str) -> Result<Path> {
    if name.is_empty() {
        return Err(Error::new(
            Code(40352),
            "FieldPath cannot be constructed with empty string",
        ));
    }
    if name.starts_with('$') {
        return Err(Error::new(
            Code(16410),
            format!(
                "FieldPath field names may not start with '$'. Consider using $getField or \
                 $setField. Found: '{name}'"
            ),
        ));
    }
    let path = Path::parse(name)?;
    if path.components().iter().any(|part| part.name().is_empty()) {
        let (number, text) = if name.ends_with('.') {
            (40353, "FieldPath must not end with a '.'.")
        } else {
            (15998, "FieldPath field names may not be empty strings.")
        };
        return Err(Error::new(Code(number), text));
    }
    Ok(path)
}

fn direction(name: &str, value: RawBsonRef<'_>) -> Result<Direction> {
    if let RawBsonRef::Document(meta) = value {
        let first = meta.iter_elements().next().transpose()?;
        if first.is_some_and(|first| first.key().as_str() == "$meta") {
            return Err(Error::bad_value(
                "query requires text score metadata, but it is not available",
            ));
        }
        return Err(Error::new(
            Code(17312),
            "$meta is the only expression supported by $sort right now",
        ));
    }
    let Some(number) = Number::from_raw(value) else {
        let shown = Bson::try_from(value).map_or(String::new(), |value| show::value(&value));
        return Err(Error::new(
            Code(15974),
            format!("Illegal key in $sort specification: {name}: {shown}"),
        ));
    };
    match number.to_i64_exact() {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => Err(Error::new(
            Code(15975),
            "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
        )),
    }
}
