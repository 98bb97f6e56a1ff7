//! Chooses fields of a document in bytes, without building a tree.
//!
//! Recursion is bounded by the depth of the tree of fields, and by that of arrays in arrays, which
//! the wire protocol bounds.

use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::Projection;
use super::spec::Mode;
use super::tree::{Child, Fields};
use crate::{Result, meter};

/// Applies a projection for which [`Projection::is_simple`] holds.
pub(super) fn apply(projection: &Projection, document: &RawDocument) -> Result<RawDocumentBuf> {
    choose(
        &projection.fields,
        document,
        projection.mode == Mode::Include,
    )
}

fn choose(fields: &Fields, document: &RawDocument, include: bool) -> Result<RawDocumentBuf> {
    let mut kept = RawDocumentBuf::new();
    let mut left = fields.len();
    for element in document {
        meter::step()?;
        let (name, value) = element?;
        match fields.get(name.as_str()) {
            None => {
                if !include {
                    kept.append(name, value);
                }
                continue;
            }
            Some(Child::Fields(inner)) => {
                if let Some(value) = choose_value(inner, value, include)? {
                    kept.append(name, value);
                }
            }
            Some(_) => {
                if include {
                    kept.append(name, value);
                }
            }
        }
        left = left.saturating_sub(1);
        if include && left == 0 {
            // Every listed field has been found: no later field is kept.
            break;
        }
    }
    Ok(kept)
}

fn choose_value(fields: &Fields, value: RawBsonRef<'_>, include: bool) -> Result<Option<RawBson>> {
    Ok(match value {
        RawBsonRef::Document(document) => {
            Some(RawBson::Document(choose(fields, document, include)?))
        }
        RawBsonRef::Array(array) => Some(RawBson::Array(choose_array(fields, array, include)?)),
        other => (!include).then(|| other.into()),
    })
}

fn choose_array(fields: &Fields, array: &RawArray, include: bool) -> Result<RawArrayBuf> {
    let mut kept = RawArrayBuf::new();
    for value in array {
        meter::step()?;
        if let Some(value) = choose_value(fields, value?, include)? {
            kept.push(value);
        }
    }
    Ok(kept)
}
