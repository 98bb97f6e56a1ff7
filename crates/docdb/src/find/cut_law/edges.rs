//! `min` and `max`: the documents that have a key between two edges.
//!
//! The model compares the values of keys, field by field and by each field's direction, and no
//! bytes: it does not share the faults of the encoding of bounds.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Bson, Document, doc};
use query::collation::Collator;
use query::value::compare_with;

use super::super::FindRequest;
use super::super::tests::{Fixture, raw};
use super::builds::is_hinted;
use super::{Case, Lane, whole_keys};
use crate::index::{FieldKind, Index, KeyMaker, KeySet};
use crate::key::decode;

/// The index that is read between edges; without an index the records of a clustered collection.
struct Read {
    index: Option<Arc<Index>>,
    collator: Option<Arc<Collator>>,
}

impl Read {
    fn name(&self) -> &str {
        self.index.as_ref().map_or("by_id", |index| index.name())
    }

    /// The paths of the fields, and whether each is descending.
    fn fields(&self) -> Vec<(String, bool)> {
        let Some(index) = &self.index else {
            return vec![("_id".to_owned(), false)];
        };
        let fields = index.fields().iter();
        let field = |(path, kind): &(String, _)| (path.clone(), *kind == FieldKind::Descending);
        fields.map(field).collect()
    }

    /// The values of the keys of a document.
    fn keys(&self, document: &Document) -> Vec<Vec<Bson>> {
        let Some(index) = &self.index else {
            return vec![vec![document.get("_id").unwrap().clone()]];
        };
        if whole_keys(index, document).is_empty() {
            return Vec::new();
        }
        self.values(document)
    }

    /// As `keys`, also of a document that a partial index leaves out. Hashed fields have the hash.
    fn values(&self, document: &Document) -> Vec<Vec<Bson>> {
        let Some(index) = &self.index else {
            return vec![vec![document.get("_id").unwrap().clone()]];
        };
        // Keys without a collation can be decoded.
        let maker = KeyMaker::new(index.spec(), None, usize::MAX).unwrap();
        let mut keys = KeySet::uncut();
        maker.keys(&raw(document), &mut keys).unwrap();
        let values = |key: crate::index::Key<'_>| {
            let decoded = decode(key.bytes, key.type_bits, index.directions());
            let values = decoded.unwrap().0.into_iter();
            values.map(|value| Bson::try_from(value).unwrap()).collect()
        };
        keys.keys().map(values).collect()
    }

    fn compare(&self, one: &[Bson], other: &[Bson]) -> Ordering {
        for ((one, other), (_, descending)) in one.iter().zip(other).zip(self.fields()) {
            let order = compare_with(one, other, self.collator.as_deref());
            let order = if descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

impl Lane {
    /// A drawn index without wildcards, or the records of a clustered collection.
    fn drawn_read(&mut self) -> Option<Read> {
        let collection = self.collection();
        let plain = |index: &&Arc<Index>| {
            let mut fields = index.fields().iter();
            is_hinted(index) && fields.all(|f| f.1 != FieldKind::Wildcard)
        };
        let indexes = collection.indexes().iter().filter(plain);
        let mut all: Vec<Option<Arc<Index>>> =
            indexes.map(|index| Some(Arc::clone(index))).collect();
        all.extend(self.clustered.then_some(None));
        let index = all.get(self.rng.index(all.len().max(1)))?.clone();
        let collation = match &index {
            Some(index) => index.spec().collation.as_ref(),
            None => collection.options().collation.as_ref(),
        };
        let collator = collation.map(crate::collate::collator);
        let collator = collator.and_then(|collator| collator.unwrap());
        Some(Read { index, collator })
    }

    /// A drawn edge, some of whose values are those of a document, and its values in the index.
    fn edge(&mut self, read: &Read) -> Option<(Vec<Bson>, Document)> {
        let like = &self.documents[self.rng.index(self.documents.len().max(1))..];
        let like = like.first()?;
        let (mut edge, mut nested) = (Document::new(), Document::new());
        for (path, _) in read.fields() {
            let (top, rest) = path.split_once('.').unwrap_or((&path, ""));
            let known = match (like.get(top), rest) {
                (Some(Bson::Document(inner)), rest) if !rest.is_empty() => inner.get(rest),
                (value, "") => value,
                _ => None,
            };
            let known = known.filter(|value| !matches!(value, Bson::Array(_)));
            let value = match known {
                Some(value) if self.rng.chance(0.5) => value.clone(),
                _ => self.pool.draw(&mut self.rng),
            };
            edge.insert(path.as_str(), value.clone());
            match rest {
                "" => nested.insert(top, value),
                rest => nested.insert(top, doc! { rest: value }),
            };
        }
        // `a` and `a.x` cannot have independent values.
        if nested.len() != edge.len() {
            return None;
        }
        let values = read.values(&nested).into_iter().next()?;
        Some((values, edge))
    }

    /// `min` and `max` of a drawn index.
    pub(super) fn between_edges(&mut self, case: &Case) {
        let Some(read) = self.drawn_read() else {
            return;
        };
        let (Some((start, min)), Some((end, max))) = (self.edge(&read), self.edge(&read)) else {
            return;
        };
        // Each edge may be missing.
        let (with_min, with_max) = (self.rng.chance(0.9), self.rng.chance(0.9));
        let request = FindRequest {
            min: with_min.then(|| min.clone()),
            max: with_max.then(|| max.clone()),
            hint: Some(Bson::from(read.name())),
            ..self.request(case)
        };
        let how = format!(
            "{} from {:?} to {:?}",
            read.name(),
            request.min,
            request.max
        );
        if !with_min && !with_max {
            return;
        }
        let Fixture { store, op, ns, .. } = &self.fixture;
        if with_min && with_max && read.compare(&end, &start).is_le() {
            let error = store.find(op, ns, &request).unwrap_err();
            assert_eq!(error.code.0, 51175, "{}", self.what(case, &how));
            return;
        }
        let within = |document: &&Document| {
            read.keys(document).iter().any(|key| {
                (!with_min || read.compare(&start, key).is_le())
                    && (!with_max || read.compare(key, &end).is_lt())
            })
        };
        let between = Case {
            expected: case.expected.iter().filter(within).cloned().collect(),
            filter: case.filter.clone(),
            sort: case.sort.clone(),
            collation: case.collation.clone(),
            collator: case.collator.clone(),
        };
        let found = self.fixture.find(&request);
        self.agree(&between, &found, None, &how);
    }
}
