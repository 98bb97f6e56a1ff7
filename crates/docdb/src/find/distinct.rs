//! `distinct`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf};
use query::collation::Collator;
use query::meter::Held;
use query::path::{Leaves, Path, walk_leaves};
use query::value::{compare_with, equivalence_key_raw};
use query::{Error, Namespace, Result, meter};

use super::count::drain;
use super::distinct_scan::{Scanned, index_for, scan};
use super::prepare::Query;
use super::request::FindRequest;
use crate::catalog::Named;
use crate::collection::Collection;
use crate::cursor::{BATCH_BYTES, or_killed_if};
use crate::exec::Item;
use crate::limits::element_around;
use crate::store::Store;
use crate::txn::{Op, View, with_view};
use crate::variables::Let;

/// The arguments of `distinct`, with MongoDB's names and defaults.
#[derive(Debug, Clone, Default)]
pub struct DistinctRequest {
    /// The path whose distinct values are returned.
    pub key: String,
    /// The filter that documents must match (default: all match).
    pub filter: RawDocumentBuf,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions.
    pub variables: Option<Let>,
}

/// Collects distinct values.
pub(crate) struct Distinct {
    path: Path,
    collator: Option<Arc<Collator>>,
    seen: HashSet<Vec<u8>>,
    values: Vec<Bson>,
    /// Bytes of the values as elements of the answer.
    answer: usize,
    /// Bytes of the keys.
    keys: usize,
    /// The memory it has reserved from the budget shared by all operations.
    held: Held,
}

/// Estimated bytes of a value with its key, per byte of the key.
const DECODED: usize = 8;

impl Distinct {
    /// An empty collection of values.
    pub(crate) fn new(path: Path, collator: Option<Arc<Collator>>) -> Distinct {
        Distinct {
            path,
            collator,
            seen: HashSet::new(),
            values: Vec::new(),
            answer: 0,
            keys: 0,
            held: Held::new(),
        }
    }

    /// Add the values of a document; for an array, its elements and not the array itself. Returns
    /// whether the document has any value.
    pub(crate) fn add(&mut self, document: &RawDocument) -> Result<bool> {
        let mut result = Ok(());
        let mut any = false;
        let path = self.path.clone();
        // Only an error stops the walk early; it is in `result`.
        let _ = walk_leaves(document, &path, Leaves::Whole, &mut |leaf| {
            any |= leaf.value.is_some();
            result = match leaf.value {
                None => Ok(()),
                Some(RawBsonRef::Array(array)) => array
                    .into_iter()
                    .try_for_each(|value| self.add_value(value?)),
                Some(value) => self.add_value(value),
            };
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        result.map(|()| any)
    }

    /// Add a value.
    pub(super) fn add_value(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        let size = encoded_size(value);
        meter::read(size)?;
        let mut key = Vec::new();
        equivalence_key_raw(value, self.collator.as_deref(), &mut key);
        if self.seen.contains(&key) {
            return Ok(());
        }
        self.answer += element_around(self.values.len()) + size;
        if BATCH_BYTES < self.answer {
            return Err(Error::location(17217, "distinct too big, 16mb cap"));
        }
        self.keys += key.len() + 8;
        self.held.require("distinct", self.keys * DECODED)?;
        self.seen.insert(key);
        self.values.push(Bson::try_from(value)?);
        Ok(())
    }

    /// The values in ascending order, strings in the order of the collation.
    pub(crate) fn into_values(mut self) -> Vec<Bson> {
        let collator = self.collator.as_deref();
        self.values
            .sort_by(|left, right| compare_with(left, right, collator));
        self.values
    }
}

/// Bytes of a value in BSON. Values of the rare types are at most so long.
fn encoded_size(value: RawBsonRef<'_>) -> usize {
    match value {
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) | RawBsonRef::JavaScriptCode(text) => {
            5 + text.len()
        }
        RawBsonRef::Array(array) => array.as_bytes().len(),
        RawBsonRef::Document(document) => document.as_bytes().len(),
        RawBsonRef::Binary(binary) => 9 + binary.bytes.len(),
        RawBsonRef::RegularExpression(regex) => {
            2 + regex.pattern.as_str().len() + regex.options.as_str().len()
        }
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            9 + code.code.len() + code.scope.as_bytes().len()
        }
        RawBsonRef::Null | RawBsonRef::Undefined | RawBsonRef::MinKey | RawBsonRef::MaxKey => 0,
        RawBsonRef::Boolean(_) => 1,
        RawBsonRef::Int32(_) => 4,
        RawBsonRef::ObjectId(_) => 12,
        RawBsonRef::Double(_)
        | RawBsonRef::Int64(_)
        | RawBsonRef::DateTime(_)
        | RawBsonRef::Timestamp(_) => 8,
        RawBsonRef::Decimal128(_) | RawBsonRef::DbPointer(_) => 16,
    }
}

impl DistinctRequest {
    /// The `find` request that returns the documents with the values.
    pub(crate) fn as_find(&self) -> FindRequest {
        FindRequest {
            filter: self.filter.clone(),
            collation: self.collation.clone(),
            variables: self.variables.clone(),
            ..FindRequest::default()
        }
    }

    /// The query that reads the values, also used by `explain`.
    pub(crate) fn query(&self, op: &Op<'_>, collection: &Collection) -> Result<Query> {
        let mut query = Query::plain(
            op,
            collection,
            &self.filter,
            self.collation.as_deref(),
            self.variables.as_ref(),
        )?;
        query.set_hint(self.hint.as_ref())?;
        query.set_needed(Some(vec![self.key.clone()]));
        Ok(query)
    }
}

impl Store {
    /// [`Store::distinct`] in a collection; `None` if the name is a view's.
    pub(crate) fn distinct_in_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &DistinctRequest,
    ) -> Result<Option<Vec<Bson>>> {
        loop {
            match self.named(op, ns)? {
                Some(Named::Collection(_)) => {}
                Some(Named::View(_)) => return Ok(None),
                None => {
                    op.plan("EOF");
                    return Ok(Some(Vec::new()));
                }
            }
            let mut was = None;
            let values = with_view(self, op, &mut |view| match view.named(ns)? {
                Some(Named::Collection(collection)) => {
                    let collection = was.insert(collection);
                    distinct_in(view, collection, request).map(Some)
                }
                _ => Ok(None),
            });
            let values = values.map_err(|error| or_killed_if(self, op, was.as_ref(), error))?;
            // The collection may have been dropped before the snapshot was opened.
            if values.is_some() {
                return Ok(values);
            }
        }
    }
}

/// The values in a collection, read from a view of the store.
fn distinct_in(
    view: &mut View<'_>,
    collection: &Arc<Collection>,
    request: &DistinctRequest,
) -> Result<Vec<Bson>> {
    let op = view.op();
    let query = request.query(op, collection)?;
    let path = Path::parse(&request.key)?;
    let new = || Distinct::new(path.clone(), query.collated.collator.clone());
    if let Some(index) = &index_for(collection, request, &query) {
        let (mut distinct, mut done) = (new(), Scanned::default());
        let of = (&**collection, &**index);
        let whole = scan(op, view.snapshot()?, of, &mut distinct, &mut done)?;
        done.report(op, index);
        if whole {
            index.usage().note();
            return Ok(distinct.into_values());
        }
    }
    let mut executor = query.execute(collection, view)?;
    let mut distinct = new();
    let mut add = |item: &Item| distinct.add(&item.document).map(|_| ());
    drain(collection, &mut executor, view, &mut add)
        .map_err(|error| error.within("Executor error during distinct command"))?;
    Ok(distinct.into_values())
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};
    use query::Code;
    use query::meter::LOOK_EVERY;

    use super::*;
    use crate::looks;

    /// The outcome for a document, the number of values then known, and the number of looks.
    fn of(document: &Document, path: &str, last: usize) -> (Result<bool>, usize, usize) {
        let raw = RawDocumentBuf::try_from(document).unwrap();
        let mut distinct = Distinct::new(Path::parse(path).unwrap(), None);
        let (outcome, looks) = looks::counted(last, || distinct.add(&raw));
        (outcome, distinct.values.len(), looks)
    }

    /// Documents whose values at the path are all the same, missing, or of their own.
    #[test]
    fn an_array_of_any_values_is_read_with_looks_at_the_clock() {
        let count = 64 * 1024;
        let numbers: Vec<i32> = (0..count).collect();
        let same: Vec<i32> = vec![7; 64 * 1024];
        let missing: Vec<Document> = vec![doc! {}; 64 * 1024];
        let cases = [
            (doc! { "a": numbers.clone() }, "a"),
            (doc! { "a": numbers }, "a.b"),
            (doc! { "a": same }, "a"),
            (doc! { "a": missing }, "a.b"),
        ];
        for (document, path) in cases {
            let (outcome, _, looks) = of(&document, path, usize::MAX);
            outcome.unwrap();
            assert!(64 * 1024 / LOOK_EVERY <= looks, "{path}: {looks} looks");
            let (outcome, known, looks) = of(&document, path, 2);
            assert_eq!(outcome.unwrap_err().code, Code::INTERRUPTED, "{path}");
            assert!(known <= 2 * LOOK_EVERY && looks <= 3, "{path}: {known}");
        }
    }

    /// A key may be longer than its value or shorter.
    #[test]
    fn what_fits_into_an_answer_is_answered_and_more_is_refused_at_once() {
        let numbers: Vec<i32> = (0..1_000_000).collect();
        let (outcome, known, _) = of(&doc! { "a": numbers }, "a", usize::MAX);
        assert!(outcome.unwrap());
        assert_eq!(known, 1_000_000);
        // About 10 MB in BSON each, and one byte of the key for each element.
        let nulls = |count: usize| vec![Bson::Null; count];
        let mut distinct = Distinct::new(Path::parse("a").unwrap(), None);
        let mut add = |count: usize| {
            let document = doc! { "a": [nulls(count)] };
            distinct.add(&RawDocumentBuf::try_from(&document).unwrap())
        };
        assert!(add(1_100_000).unwrap());
        let error = add(1_100_001).unwrap_err();
        assert_eq!(error.code, Code(17_217));
        assert_eq!(distinct.values.len(), 1, "the value too many is not kept");
    }

    #[test]
    fn the_size_of_a_value_is_that_of_its_encoding() {
        let values = doc! {
            "i": 1, "l": 1_i64, "d": 1.5, "s": "text", "n": Bson::Null, "b": true,
            "o": { "x": 1 }, "a": [1, 2], "t": bson::DateTime::from_millis(5),
            "id": bson::oid::ObjectId::from_bytes([1; 12]),
        };
        for (at, (name, value)) in values.iter().enumerate() {
            let array = Bson::Array(vec![value.clone()]);
            let raw = RawDocumentBuf::try_from(&doc! { "": array }).unwrap();
            // The document with an empty array has 12 bytes.
            let value = bson::RawBson::try_from(value.clone()).unwrap();
            let size = element_around(0) + encoded_size(value.as_raw_bson_ref());
            assert_eq!(raw.as_bytes().len(), 12 + size, "{at}: {name}");
        }
    }
}
