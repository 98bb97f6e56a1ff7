//! `distinct`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf};
use query::collation::Collator;
use query::meter::Held;
use query::path::{Leaves, Path, walk_leaves};
use query::value::{compare_with, equivalence_key_raw};
use query::{Error, Namespace, Result};

use super::count::drain;
use super::distinct_scan::{Scanned, index_for, scan};
use super::prepare::Query;
use super::request::FindRequest;
use crate::catalog::Named;
use crate::collection::Collection;
use crate::cursor::{BATCH_BYTES, or_killed_if};
use crate::exec::Item;
use crate::store::Store;
use crate::txn::{Op, View, with_view};

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
    pub variables: Option<Document>,
}

/// Collects distinct values.
pub(crate) struct Distinct {
    path: Path,
    collator: Option<Arc<Collator>>,
    seen: HashSet<Vec<u8>>,
    values: Vec<Bson>,
    bytes: usize,
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
            bytes: 0,
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
        let mut key = Vec::new();
        equivalence_key_raw(value, self.collator.as_deref(), &mut key);
        if self.seen.contains(&key) {
            return Ok(());
        }
        self.bytes += key.len() + 8;
        if BATCH_BYTES < self.bytes {
            return Err(Error::location(17217, "distinct too big, 16mb cap"));
        }
        self.held.require("distinct", self.bytes * DECODED)?;
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
