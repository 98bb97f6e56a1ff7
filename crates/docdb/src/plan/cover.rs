//! Whether an index covers a query, and documents built from its keys.
//!
//! C1: what is made is what was stored: types come from the type bits, and a null, which may stand
//!     for a missing field, is never made (the caller reads the document then).

use std::collections::BTreeSet;

use bson::{RawBson, RawDocumentBuf};
use query::filter::Node;
use query::{Result, meter};

use super::candidates::Request;
use super::index::{IndexKind, IndexView};
use super::predicate::Conjunction;
use crate::limits::INDEX_FIELDS_MAX;

/// The paths that a query reads; `None` if they are not known, or more than an index contains.
///
/// # Errors
/// The operation must end.
pub(crate) fn reads(request: &Request<'_>) -> Result<Option<BTreeSet<String>>> {
    let Some(needed) = request.needed else {
        return Ok(None);
    };
    let sort = request.sort.map(|sort| sort.fields());
    let sorted = sort.into_iter().flatten().map(|(path, _)| path.as_str());
    let mut paths = BTreeSet::new();
    for path in needed.iter().map(String::as_str).chain(sorted) {
        if !add(path.to_owned(), &mut paths)? {
            return Ok(None);
        }
    }
    let known = filter_paths(request.filter.root(), &mut paths)?;
    Ok(known.then_some(paths))
}

/// Whether the keys of `index` contain the paths that a query reads (see [`reads`]).
pub(crate) fn covers(
    index: &IndexView,
    request: &Request<'_>,
    reads: Option<&BTreeSet<String>>,
) -> bool {
    if index.kind == IndexKind::Wildcard || index.collator.is_some() || request.collation.is_some()
    {
        return false;
    }
    reads.is_some_and(|paths| paths.iter().all(|path| holds(index, path))) && !overlapping(index)
}

/// Adds a path; false if there are too many.
fn add(path: String, paths: &mut BTreeSet<String>) -> Result<bool> {
    meter::step()?;
    paths.insert(path);
    Ok(paths.len() <= INDEX_FIELDS_MAX)
}

fn holds(index: &IndexView, path: &str) -> bool {
    let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    index.fields.iter().any(|field| {
        field.path.as_str() == path
            && field.arrays == 0
            && !field.hashed
            && !path.split('.').any(numeric)
    })
}

/// Whether the path of one field is a prefix of another field's path.
fn overlapping(index: &IndexView) -> bool {
    index.fields.iter().enumerate().any(|(at, field)| {
        index
            .fields
            .iter()
            .skip(at + 1)
            .any(|other| field.path.overlaps(&other.path))
    })
}

/// Add the paths that a filter reads; false if it may read other paths, or too many.
fn filter_paths(node: &Node, paths: &mut BTreeSet<String>) -> Result<bool> {
    let all = Conjunction::of(node);
    if all.others {
        return Ok(false);
    }
    for predicate in &all.predicates {
        if !add(predicate.path.dotted(), paths)? {
            return Ok(false);
        }
    }
    for branch in all.ors.iter().copied().flatten() {
        if !filter_paths(branch, paths)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Builds documents from keys.
#[derive(Clone)]
pub(crate) struct Cover {
    /// Per field of the key: its path, if the document is to contain it.
    fields: Vec<Option<Vec<String>>>,
    descending: Vec<bool>,
}

impl Cover {
    /// Builds documents from the fields of `index` for which `wanted` returns true.
    pub(crate) fn new(index: &IndexView, wanted: &dyn Fn(&str) -> bool) -> Cover {
        Cover {
            fields: index
                .fields
                .iter()
                .map(|field| {
                    let path = field.path.as_str();
                    wanted(path).then(|| path.split('.').map(str::to_owned).collect())
                })
                .collect(),
            descending: index.fields.iter().map(|field| field.descending).collect(),
        }
    }

    /// The document of a key; `None` if the stored document must be read instead (C1).
    pub(crate) fn document(&self, key: &[u8], type_bits: &[u8]) -> Option<RawDocumentBuf> {
        let (values, _) =
            crate::key::decode(key, type_bits, self.descending.iter().copied()).ok()?;
        let wanted: Vec<(&[String], RawBson)> = self
            .fields
            .iter()
            .zip(values)
            .filter_map(|(path, value)| path.as_deref().map(|path| (path, value)))
            .collect();
        if wanted
            .iter()
            .any(|(_, value)| matches!(value, RawBson::Null | RawBson::Undefined))
        {
            return None;
        }
        build(wanted)
    }
}

/// Build a document from paths and values; paths with the same first name form one subdocument.
fn build(mut values: Vec<(&[String], RawBson)>) -> Option<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    while !values.is_empty() {
        let (path, value) = values.remove(0);
        let (head, rest) = path.split_first()?;
        let name = bson::raw::CString::try_from(head.as_str()).ok()?;
        if rest.is_empty() {
            document.append(name, value);
            continue;
        }
        let mut inner = vec![(rest, value)];
        let mut others = Vec::with_capacity(values.len());
        for (path, value) in values {
            match path.split_first() {
                Some((other, rest)) if other == head => inner.push((rest, value)),
                _ => others.push((path, value)),
            }
        }
        values = others;
        document.append(name, build(inner)?);
    }
    Some(document)
}
