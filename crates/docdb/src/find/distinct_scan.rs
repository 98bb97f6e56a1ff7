//! `distinct` from an index: a key of each value is read, and the scan continues behind all the
//! keys that begin with it.
//!
//! - D1. The index must hold each document once by the path: no arrays on it, every document, and
//!   strings as they are. The values are then those that documents have.
//! - D2. No key may have been cut: a cut one does not say its value, nor do the others say where
//!   those of the same value are.
//! - D3. An index does not tell null from missing: of the keys of null documents are read until
//!   one has a null.

use std::sync::Arc;

use bson::{Bson, RawDocument, doc};
use kv::{Cursor, Direction, KeyRange, Snapshot};
use query::Result;

use super::distinct::{Distinct, DistinctRequest};
use super::prepare::Query;
use crate::collection::Collection;
use crate::error;
use crate::examined::Leaf;
use crate::index::{FieldKind, Index};
use crate::key::{AFTER, component_length, decode};
use crate::txn::Op;

/// Steps that are tried before the scan seeks: a seek costs about as much as some steps.
const STEPS: u32 = 4;
/// Keys between two looks whether the operation may go on.
const LOOK: u64 = 256;

/// What a scan has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) keys: u64,
    pub(crate) documents: u64,
    pub(crate) seeks: u64,
}

impl Scanned {
    /// Tell an operation what was read of an index.
    pub(super) fn report(&self, op: &Op<'_>, index: &Arc<Index>) {
        if let Some(examined) = &op.examined {
            examined.add(self.keys, self.documents);
            examined.plan(&[Leaf::of_index("DISTINCT_SCAN", index)]);
        }
    }
}

/// The index that serves a request, if there is one (D1).
pub(crate) fn index_for(
    collection: &Collection,
    request: &DistinctRequest,
    query: &Query,
) -> Option<Arc<Index>> {
    let plain = request.filter.is_empty()
        && request.hint.is_none()
        && query.collated.collator.is_none()
        && !collection.is_clustered();
    let serves = |index: &&Arc<Index>| {
        let spec = index.spec();
        let leads = index.fields().first().is_some_and(|(path, kind)| {
            *path == request.key && matches!(kind, FieldKind::Ascending | FieldKind::Descending)
        });
        leads
            && index.usable()
            && !spec.sparse
            && spec.partial.is_none()
            && index.maker().collation().is_none()
            && index.multikey_parts(0) == 0
            && !index.may_be_cut()
    };
    let found = collection.indexes().iter().filter(serves);
    // The fewest fields: the shortest keys.
    let found = found.min_by_key(|index| index.fields().len());
    found.filter(|_| plain).map(Arc::clone)
}

/// Gather the values. `false` when keys do not say their values: the documents must be read.
/// What was read is added to `done` in either case.
pub(crate) fn scan(
    op: &Op<'_>,
    snapshot: &dyn Snapshot,
    (collection, index): (&Collection, &Index),
    distinct: &mut Distinct,
    done: &mut Scanned,
) -> Result<bool> {
    // It may have come since the index was chosen, but not since the snapshot was taken.
    if index.may_be_cut() {
        return Ok(false);
    }
    let descending = index.directions().next().unwrap_or(false);
    let null = byte_of_null(descending);
    let cursor = snapshot.cursor(index.tree(), KeyRange::ALL, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    let (mut prefix, mut bytes) = (Vec::new(), Vec::new());
    let mut there = cursor.advance().map_err(error::engine)?;
    while there {
        if done.keys.is_multiple_of(LOOK) {
            op.check()?;
        }
        done.keys += 1;
        let entry = index.read_entry(cursor.key(), cursor.value());
        let entry = entry.ok_or_else(|| collection.corrupt_index(index))?;
        let Some(length) = component_length(entry.key, descending) else {
            return Ok(false);
        };
        let component = entry.key.get(..length).unwrap_or_default();
        prefix.clear();
        prefix.extend_from_slice(component);
        let known = if *component == [null] {
            done.documents += 1;
            collection.fetch(snapshot, &entry.record, &mut bytes)?
                && distinct.add(RawDocument::from_bytes(&bytes)?)?
        } else {
            let decoded = decode(entry.key, entry.type_bits, index.directions());
            let Some(value) = decoded
                .ok()
                .and_then(|(values, _)| values.into_iter().next())
            else {
                return Ok(false);
            };
            distinct.add_value(value.as_raw_bson_ref())?;
            true
        };
        there = match known {
            true => skip(cursor.as_mut(), &mut prefix, done)?,
            false => cursor.advance().map_err(error::engine)?,
        };
    }
    Ok(true)
}

/// The byte of null, in the direction of a field.
fn byte_of_null(descending: bool) -> u8 {
    let ascending = crate::key::NULL;
    if descending { !ascending } else { ascending }
}

/// Go on to the first key that does not begin with `prefix`. Whether there is one.
fn skip(cursor: &mut dyn Cursor, prefix: &mut Vec<u8>, done: &mut Scanned) -> Result<bool> {
    for _ in 0..STEPS {
        if !cursor.advance().map_err(error::engine)? {
            return Ok(false);
        }
        if !cursor.key().starts_with(prefix) {
            return Ok(true);
        }
        done.keys += 1;
    }
    done.seeks += 1;
    prefix.push(AFTER);
    cursor.seek(prefix).map_err(error::engine)
}

/// The plan as `explain` shows it.
pub(crate) fn describe(request: &DistinctRequest, index: &Index, done: Option<Scanned>) -> Bson {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let mut bounds = bson::Document::new();
    for (path, kind) in index.fields() {
        let all = match kind {
            FieldKind::Descending => "[MaxKey, MinKey]",
            _ => "[MinKey, MaxKey]",
        };
        bounds.insert(path.as_str(), vec![Bson::from(all)]);
    }
    let mut scan = doc! {
        "stage": "DISTINCT_SCAN",
        "keyPattern": index.spec().key.clone(),
        "indexName": index.name(),
        "isMultiKey": index.is_multikey(),
        "isUnique": index.unique(),
        "isSparse": false,
        "isPartial": false,
        "indexVersion": 2,
        "direction": "forward",
        "indexBounds": bounds,
    };
    let mut outer = doc! {
        "stage": "PROJECTION_COVERED",
        "transformBy": { "_id": 0, request.key.as_str(): 1 },
    };
    if let Some(done) = done {
        scan.insert("keysExamined", count(done.keys));
        scan.insert("seeks", count(done.seeks));
        scan.insert("docsExamined", count(done.documents));
        outer.insert("nReturned", count(done.keys));
    }
    outer.insert("inputStage", scan);
    Bson::Document(outer)
}
