//! `distinct` from an index: reads one key of each value and continues the scan after all keys with
//! that prefix.
//!
//! - D1. The index must hold each document exactly once for the path: no arrays on the path, all
//!   documents indexed, and strings stored as they are. The index then holds exactly the values of
//!   the documents.
//! - D2. No key may be truncated: a truncated key does not contain its whole value, and the
//!   position of other keys with the same value is unknown.
//! - D3. An index stores null and missing alike: documents with a null key are read until one of
//!   them has a null.

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
use crate::key::{self, AFTER, component_length, decode};
use crate::txn::Op;

/// Steps tried before the scan seeks: a seek costs about as much as this many steps.
const STEPS: u32 = 4;
/// Keys between two checks whether the operation must end.
const LOOK: u64 = 256;

/// Counts of a scan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) keys: u64,
    pub(crate) documents: u64,
    pub(crate) seeks: u64,
}

impl Scanned {
    /// Report to an operation what was read from an index.
    pub(super) fn report(&self, op: &Op<'_>, index: &Arc<Index>) {
        if let Some(examined) = &op.examined {
            examined.add(self.keys, self.documents);
            examined.plan(&[Leaf::of_index("DISTINCT_SCAN", index)]);
        }
    }
}

/// The index that can serve a request, if any (D1).
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
    // Prefer the fewest fields: the shortest keys.
    let found = found.min_by_key(|index| index.fields().len());
    found.filter(|_| plain).map(Arc::clone)
}

/// Collect the values. Returns `false` when the keys do not determine their values and the
/// documents must be read instead. Adds the counts to `done` in either case.
pub(crate) fn scan(
    op: &Op<'_>,
    snapshot: &dyn Snapshot,
    (collection, index): (&Collection, &Index),
    distinct: &mut Distinct,
    done: &mut Scanned,
) -> Result<bool> {
    // A truncated key may have been added since the index was chosen, but not since the snapshot
    // was taken.
    if index.may_be_cut() {
        return Ok(false);
    }
    let descending = index.directions().next().unwrap_or(false);
    let null = key::null(descending);
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

/// Move to the first key of another value than `component`. Returns whether one exists.
fn skip(cursor: &mut dyn Cursor, component: &mut Vec<u8>, done: &mut Scanned) -> Result<bool> {
    component.push(AFTER);
    for _ in 0..STEPS {
        if !cursor.advance().map_err(error::engine)? {
            return Ok(false);
        }
        if component.as_slice() <= cursor.key() {
            return Ok(true);
        }
        done.keys += 1;
    }
    done.seeks += 1;
    cursor.seek(component).map_err(error::engine)
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

#[cfg(test)]
mod tests {
    use bson::{Bson, Document, doc};

    use super::super::DistinctRequest;
    use super::super::tests::{Fixture, raw};
    use crate::InsertOptions;

    #[test]
    fn strings_that_continue_others_with_a_nul_are_values_of_their_own() {
        // Few and many documents of one value: the scan steps, and seeks.
        for (direction, copies) in [(1, 1), (-1, 1), (1, 9), (-1, 9)] {
            let fixture = Fixture::new();
            let texts = ["", "\0", "k", "k\0", "k\0\0", "kk"];
            let of = |text: &str| (0..copies).map(|_| doc! { "a": text }).collect::<Vec<_>>();
            let documents: Vec<Document> = texts.iter().flat_map(|text| of(text)).collect();
            let raws: Vec<_> = documents.iter().map(raw).collect();
            let raws: Vec<_> = raws.iter().map(AsRef::as_ref).collect();
            let Fixture { store, op, ns, .. } = &fixture;
            let inserted = store.insert(op, ns, &raws, InsertOptions::default());
            assert!(inserted.unwrap().errors.is_empty());
            let index = doc! { "key": { "a": direction }, "name": "a" };
            store.create_indexes(op, ns, &[index]).unwrap();
            let request = DistinctRequest {
                key: "a".to_owned(),
                ..DistinctRequest::default()
            };
            let values = store.distinct(op, ns, &request).unwrap();
            let wanted = texts.map(Bson::from);
            assert_eq!(values, wanted, "{direction}, {copies} copies");
        }
    }
}
