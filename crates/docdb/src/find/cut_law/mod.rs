//! The law of truncated keys: with values beyond the maximum key length, and with any plan, a
//! query, a write, a count and a sort return what a scan with the filter returns.
//!
//! The engine takes keys of 64 bytes, and values have 20 more and 20 less, most of them alike up to
//! the cut; some continue others with a NUL. Each query is run by every plan there is and by one of
//! the ways to ask. The number of queries can be set with `ROMANESCO_QUERIES`, the first seed with
//! `ROMANESCO_SEED`.

mod builds;
mod data;
mod edges;
mod narrow;
mod writes;

use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf, doc};
use query::collation::Collator;
use query::filter::Filter;
use query::sort::{Sort, SortKey};
use query::value::compare_with;
use stdx::Rng;

use self::builds::is_hinted;
use self::data::Pool;
use self::narrow::{LIMIT, Narrow};
use super::law::{case, number, run};
use super::prepare::Query;
use super::tests::{Fixture, raw};
use super::{CountRequest, DistinctRequest, FindRequest};
use crate::index::{FieldKind, Index, KeySet};
use crate::txn::with_view;
use crate::{Collection, CollectionOptions, InsertOptions};

/// Number of queries per fixture.
const QUERIES: u64 = 50;
/// Number of queries in `make test`.
const DEFAULT: u64 = 2_000;

/// A store with documents and indexes, and the values they are drawn from.
struct Lane {
    seed: u64,
    rng: Rng,
    pool: Pool,
    fixture: Fixture,
    /// The field that may hold an array.
    arrays: &'static str,
    clustered: bool,
    documents: Vec<Document>,
}

/// Counts of a run.
#[derive(Debug, Default)]
struct Done {
    queries: u64,
    /// Plans that were executed, and how many of them read an index with truncated keys.
    plans: u64,
    cut: u64,
    /// Other forms of the query: counts, writes, hints.
    others: u64,
    writes: u64,
}

/// A query with its expected result.
struct Case {
    filter: Document,
    sort: Option<Sort>,
    collation: Option<Document>,
    collator: Option<Arc<Collator>>,
    expected: Vec<Document>,
}

/// `exec::scan`: S4.
#[test]
fn keys_that_are_cut_answer_as_a_scan_does() {
    let (queries, first) = (
        number("ROMANESCO_QUERIES", DEFAULT),
        number("ROMANESCO_SEED", 0),
    );
    let mut done = Done::default();
    for seed in first.. {
        if queries <= done.queries {
            break;
        }
        let mut lane = Lane::new(seed);
        for at in 0..QUERIES {
            lane.query(&mut done);
            if at == QUERIES / 2 {
                lane.fixture.reopen();
            }
        }
        lane.check_store();
    }
    println!("{done:?}");
    if queries < DEFAULT {
        return;
    }
    assert!(done.queries * 3 < done.plans, "{done:?}");
    assert!(done.queries * 2 < done.cut, "{done:?}");
    assert!(done.queries < done.others + done.writes, "{done:?}");
}

impl Lane {
    fn new(seed: u64) -> Lane {
        let mut rng = Rng::new(seed);
        let fixture = Fixture::within(Narrow::around);
        let pool = Pool::new(&mut rng);
        let clustered = rng.chance(0.25);
        let options = CollectionOptions {
            clustered: clustered.then(|| "by_id".to_owned()),
            collation: rng.chance(0.15).then(|| data::collation(&mut rng)),
            ..CollectionOptions::default()
        };
        let created = fixture.store.create(&fixture.op, &fixture.ns, options);
        created.unwrap();
        let mut lane = Lane {
            seed,
            arrays: ["none", "a", "b", "c"][rng.index(4)],
            pool,
            fixture,
            clustered,
            rng,
            documents: Vec::new(),
        };
        let built = lane.rng.index(5);
        for number in 0..4 {
            if number == built {
                lane.insert_some();
            }
            let spec = data::index(&mut lane.rng, &lane.pool, &format!("i{number}"));
            // Some index builds fail: duplicate keys of unique indexes, arrays in hashed ones.
            let Fixture { store, op, ns, .. } = &lane.fixture;
            drop(store.create_indexes(op, ns, &[spec]));
        }
        if built == 4 {
            lane.insert_some();
        }
        lane.look();
        lane
    }

    fn insert_some(&mut self) {
        for number in 0..40 {
            let parts = (number, self.arrays, self.clustered);
            let document = data::document(&mut self.rng, &self.pool, parts);
            self.insert(&document);
        }
    }

    /// Insert a document, unless a unique index or arrays forbid it.
    fn insert(&self, document: &Document) {
        let raw = raw(document);
        let Fixture { store, op, ns, .. } = &self.fixture;
        let reply = store.insert(op, ns, &[&raw], InsertOptions::default());
        let reply = reply.unwrap();
        if let Some(refused) = reply.errors.first()
            && refused.error.code.0 == 11000
        {
            assert!(self.is_duplicate(document), "{}: {refused:?}", self.seed);
        }
    }

    fn collection(&self) -> Arc<Collection> {
        self.fixture.store.collection(&self.fixture.ns).unwrap()
    }

    /// Read all documents in the order of their records.
    fn look(&mut self) {
        let request = FindRequest {
            hint: Some(Bson::Document(doc! { "$natural": 1 })),
            batch_size: Some(1000),
            ..FindRequest::default()
        };
        self.documents = self.fixture.find(&request);
    }

    /// Draw a query; `None` if it would be invalid.
    fn draw(&mut self) -> Option<Case> {
        let rng = &mut self.rng;
        let filter = data::filter(rng, &self.pool, 2);
        let sort = data::sort(rng);
        let collation = rng.chance(0.15).then(|| data::collation(rng));
        let query = self.parsed(&filter, collation.as_ref())?;
        let sort = sort.and_then(|sort| Sort::parse(&raw(&sort)).ok());
        let collator = query.collated.collator.clone();
        let parsed: &Filter = &query.purpose.filter;
        let matches = |document: &&Document| parsed.matches(&raw(document)).unwrap();
        let mut expected: Vec<Document> = self.documents.iter().filter(matches).cloned().collect();
        let key = |document: &Document| match &sort {
            None => Ok(None),
            Some(sort) => sort.key(&raw(document), collator.as_deref()).map(Some),
        };
        if expected.iter().any(|document| key(document).is_err()) {
            return None;
        }
        expected.sort_by_key(|document| key(document).unwrap());
        Some(Case {
            filter,
            sort,
            collation,
            collator,
            expected,
        })
    }

    fn parsed(&self, filter: &Document, collation: Option<&Document>) -> Option<Query> {
        let collation = collation.map(raw);
        let collection = self.collection();
        let op = &self.fixture.op;
        Query::plain(op, &collection, &raw(filter), collation.as_deref(), None).ok()
    }

    fn query(&mut self, done: &mut Done) {
        let case = self.only_query(done);
        if let Some(case) = case
            && self.rng.chance(0.4)
        {
            done.writes += 1;
            self.write(&case);
        }
    }

    /// A query without a write.
    fn only_query(&mut self, done: &mut Done) -> Option<Case> {
        done.queries += 1;
        let case = self.draw()?;
        self.by_every_plan(&case, done);
        for _ in 0..2 {
            done.others += 1;
            match self.rng.below(6) {
                0 => self.found(&case),
                1 => self.counted(&case),
                2 => self.distinct(&case),
                3 => self.between_edges(&case),
                4 => self.keys(&case),
                _ => self.sliced(&case),
            }
        }
        Some(case)
    }

    fn what(&self, case: &Case, how: &str) -> String {
        let specs: Vec<Document> = self
            .collection()
            .indexes()
            .iter()
            .map(|index| index.spec().to_document())
            .collect();
        format!(
            "ROMANESCO_SEED={} {how}: {} sort {:?} collation {:?} of {specs:?}",
            self.seed,
            case.filter,
            case.sort.as_ref().map(Sort::to_document),
            case.collation,
        )
    }

    /// Run the query by each of its plans, and by every index that contains all documents.
    fn by_every_plan(&mut self, asked: &Case, done: &mut Done) {
        let collection = self.collection();
        let mut query = self
            .parsed(&asked.filter, asked.collation.as_ref())
            .unwrap();
        if let Some(sort) = &asked.sort {
            query.set_parsed_sort(sort.clone());
        }
        query.purpose.tail.limit = self.rng.chance(0.2).then(|| 1 + self.rng.below(9));
        let limit = query.purpose.tail.limit;
        let mut candidates = query.candidates().unwrap().candidates;
        for hint in self.hints().into_iter().flatten() {
            query.set_hint(Some(&hint)).unwrap();
            candidates.extend(query.candidates().unwrap().candidates);
        }
        let mut rng = Rng::new(self.rng.next_u64());
        let (store, op) = (&self.fixture.store, &self.fixture.op);
        with_view(store, op, &mut |view| {
            for candidate in &candidates {
                done.plans += 1;
                let cut = candidate.access.scans().any(|scan| scan.index.cut);
                done.cut += u64::from(cut);
                let found = run(&collection, &query, candidate, view, &mut rng);
                let how = case(asked.sort.as_ref(), candidate);
                self.agree(asked, &found, limit, &how);
            }
            Ok(())
        })
        .unwrap();
    }

    /// Whether documents are those expected, or some of them, in the order asked for.
    fn agree(&self, case: &Case, found: &[Document], limit: Option<u64>, how: &str) {
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
        let wanted: Vec<&Document> = case.expected.iter().take(limit).collect();
        let what = || self.what(case, how);
        assert_eq!(found.len(), wanted.len(), "{}", what());
        if let Some(sort) = &case.sort {
            let key = |document: &Document| {
                let key = sort.key(&raw(document), case.collator.as_deref());
                key.unwrap()
            };
            let keys: Vec<SortKey> = found.iter().map(key).collect();
            let wanted: Vec<SortKey> = wanted.iter().map(|document| key(document)).collect();
            assert!(keys == wanted, "{}", what());
        }
        let numbers = |documents: &mut dyn Iterator<Item = &Document>| {
            let mut numbers: Vec<i32> = documents.map(|d| d.get_i32("n").unwrap()).collect();
            numbers.sort_unstable();
            numbers
        };
        let (found, all) = (
            numbers(&mut found.iter()),
            numbers(&mut case.expected.iter()),
        );
        match limit < all.len() {
            true => assert!(found.iter().all(|n| all.contains(n)), "{}", what()),
            false => assert_eq!(found, all, "{}", what()),
        }
    }

    fn request(&self, case: &Case) -> FindRequest {
        FindRequest {
            filter: raw(&case.filter),
            sort: case.sort.as_ref().map(|sort| raw(&sort.to_document())),
            collation: case.collation.as_ref().map(raw),
            batch_size: Some(1000),
            ..FindRequest::default()
        }
    }

    /// The hints of indexes that hold every document.
    fn hints(&self) -> Vec<Option<Bson>> {
        let collection = self.collection();
        let whole = |index: &&Arc<Index>| {
            let spec = index.spec();
            let wildcard = index.fields().iter().any(|f| f.1 == FieldKind::Wildcard);
            is_hinted(index) && !spec.sparse && spec.partial.is_none() && !wildcard
        };
        let indexes = collection.indexes().iter().filter(whole);
        let names = indexes.map(|index| Some(Bson::from(index.name())));
        let records = self.clustered.then(|| Some(Bson::from("by_id")));
        names.chain(records).chain([None]).collect()
    }

    fn drawn_hint(&mut self) -> Option<Bson> {
        let hints = self.hints();
        hints[self.rng.index(hints.len())].clone()
    }

    fn found(&mut self, case: &Case) {
        let hint = self.drawn_hint();
        let request = FindRequest {
            hint: hint.clone(),
            ..self.request(case)
        };
        let found = self.fixture.find(&request);
        self.agree(case, &found, None, &format!("find by {hint:?}"));
    }

    /// With a projection that an index may cover, and in batches.
    fn sliced(&mut self, case: &Case) {
        let hint = self.drawn_hint();
        let field = data::FIELDS[self.rng.index(4)];
        let request = |hint: Option<Bson>| FindRequest {
            hint,
            projection: Some(raw(&doc! { field: 1, "_id": 0 })),
            batch_size: Some(7),
            sort: None,
            ..self.request(case)
        };
        let shown = |documents: Vec<Document>| {
            let mut shown: Vec<String> = documents.iter().map(Document::to_string).collect();
            shown.sort();
            shown
        };
        let natural = Some(Bson::Document(doc! { "$natural": 1 }));
        let want = shown(self.fixture.find(&request(natural)));
        let got = shown(self.fixture.find(&request(hint.clone())));
        assert_eq!(
            got,
            want,
            "{}",
            self.what(case, &format!("{field} by {hint:?}"))
        );
    }

    fn counted(&mut self, case: &Case) {
        let hint = self.drawn_hint();
        let request = CountRequest {
            filter: raw(&case.filter),
            hint: hint.clone(),
            collation: case.collation.as_ref().map(raw),
            ..CountRequest::default()
        };
        let Fixture { store, op, ns, .. } = &self.fixture;
        let count = store.count(op, ns, &request).unwrap();
        let how = format!("count by {hint:?}");
        assert_eq!(
            count,
            case.expected.len() as u64,
            "{}",
            self.what(case, &how)
        );
    }

    /// `distinct_scan`: D1, D2 and D3.
    fn distinct(&mut self, case: &Case) {
        let all = self.rng.chance(0.5);
        let key = data::FIELDS[self.rng.index(4)].to_owned();
        let request = |hint: Option<Bson>| DistinctRequest {
            key: key.clone(),
            filter: if all {
                RawDocumentBuf::new()
            } else {
                raw(&case.filter)
            },
            hint,
            collation: case.collation.as_ref().map(raw),
            variables: None,
        };
        let Fixture { store, op, ns, .. } = &self.fixture;
        let natural = Some(Bson::Document(doc! { "$natural": 1 }));
        let want = store.distinct(op, ns, &request(natural)).unwrap();
        let got = store.distinct(op, ns, &request(None)).unwrap();
        let collator = case.collator.as_deref();
        let same = want.len() == got.len()
            && want
                .iter()
                .zip(&got)
                .all(|(want, got)| compare_with(want, got, collator).is_eq());
        assert!(same, "{}: {got:?} {want:?}", self.what(case, &key));
    }
}

/// The whole keys of a document.
fn whole_keys(index: &Index, document: &Document) -> Vec<Vec<u8>> {
    let mut keys = KeySet::uncut();
    if index.maker().keys(&raw(document), &mut keys).is_err() {
        return Vec::new();
    }
    keys.keys().map(|key| key.bytes.to_vec()).collect()
}

impl Lane {
    /// `returnKey` of a drawn index without arrays.
    fn keys(&mut self, case: &Case) {
        let collection = self.collection();
        let plain = |index: &&Arc<Index>| {
            let wildcard = index.fields().iter().any(|f| f.1 == FieldKind::Wildcard);
            let whole = !wildcard && !index.is_multikey() && index.spec().collation.is_none();
            is_hinted(index) && whole
        };
        let indexes: Vec<&Arc<Index>> = collection.indexes().iter().filter(plain).collect();
        if indexes.is_empty() {
            return;
        }
        let index = indexes[self.rng.index(indexes.len())];
        let request = FindRequest {
            return_key: true,
            hint: Some(Bson::from(index.name())),
            batch_size: Some(1000),
            ..FindRequest::default()
        };
        let shown = |documents: &[Document]| {
            let mut shown: Vec<String> = documents.iter().map(Document::to_string).collect();
            shown.sort();
            shown
        };
        let found = match index.spec().partial.is_some() {
            true => return,
            false => shown(&self.fixture.find(&request)),
        };
        let mut wanted = Vec::new();
        for document in &self.documents {
            let mut keys = KeySet::uncut();
            index.maker().keys(&raw(document), &mut keys).unwrap();
            for key in keys.keys() {
                let decoded = crate::key::decode(key.bytes, key.type_bits, index.directions());
                let names = index.fields().iter().map(|(path, _)| path.clone());
                let values = decoded.unwrap().0.into_iter();
                let values = values.map(|value| Bson::try_from(value).unwrap());
                wanted.push(names.zip(values).collect::<Document>());
            }
        }
        let how = format!("keys of {}", index.name());
        assert_eq!(found, shown(&wanted), "{}", self.what(case, &how));
    }

    /// Whether some unique index has a key of the document already.
    fn is_duplicate(&self, document: &Document) -> bool {
        let collection = self.collection();
        let there = self.fixture.find(&FindRequest {
            hint: Some(Bson::Document(doc! { "$natural": 1 })),
            batch_size: Some(1000),
            ..FindRequest::default()
        });
        let mut unique = collection.indexes().iter().filter(|index| index.unique());
        let collation = collection.options().collation.as_ref();
        let collator = collation.map(crate::collate::collator);
        let collator = collator.and_then(|collator| collator.unwrap());
        let same_id = |other: &Document| {
            let of = |d: &Document| d.get("_id").cloned().unwrap();
            compare_with(&of(other), &of(document), collator.as_deref()).is_eq()
        };
        self.clustered && there.iter().any(same_id)
            || unique.any(|index| {
                let keys = whole_keys(index, document);
                let mut others = there.iter().flat_map(|other| whole_keys(index, other));
                others.any(|other| keys.contains(&other))
            })
    }

    /// The entries are right, unique keys are, and keys are no longer than the engine takes.
    fn check_store(&mut self) {
        self.look();
        let Fixture { store, op, ns, .. } = &self.fixture;
        let report = store.validate(op, ns).unwrap();
        let valid = report.get_bool("valid").unwrap();
        assert!(valid, "ROMANESCO_SEED={}: {report}", self.seed);
        let collection = self.collection();
        for index in collection.indexes() {
            let mut all: Vec<Vec<u8>> = Vec::new();
            for document in &self.documents {
                all.extend(whole_keys(index, document));
            }
            let longest = all.iter().map(Vec::len).max().unwrap_or(0);
            let limit = if self.clustered { LIMIT / 2 } else { LIMIT };
            assert!(longest <= limit || index.may_be_cut(), "{}", self.seed);
            if index.unique() {
                let before = all.len();
                all.sort();
                all.dedup();
                assert_eq!(all.len(), before, "ROMANESCO_SEED={}", self.seed);
            }
        }
    }
}
