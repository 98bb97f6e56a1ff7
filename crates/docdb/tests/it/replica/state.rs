//! What a member has, for comparison.

use std::collections::{BTreeMap, BTreeSet};

use bson::RawDocumentBuf;
use docdb::{Namespace, Store};

use crate::lab::op;

/// Collections and views, pre-images, and the records of sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) collections: BTreeMap<String, Collection>,
    pub(crate) images: Vec<Vec<u8>>,
    pub(crate) sessions: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collection {
    options: RawDocumentBuf,
    uuid: Option<bson::Uuid>,
    indexes: Vec<String>,
    /// In the order of the records if it is capped.
    documents: Vec<RawDocumentBuf>,
    counts: (i64, i64),
}

impl State {
    /// The state of a store, with the records of these sessions.
    pub(crate) fn of(store: &Store, sessions: &BTreeSet<u8>) -> State {
        let mut state = State::default();
        for (ns, named) in store.catalog().iter().filter(|(ns, _)| ns.db != "local") {
            let mut one = Collection {
                options: named.options().to_raw().unwrap(),
                uuid: None,
                indexes: Vec::new(),
                documents: Vec::new(),
                counts: (0, 0),
            };
            if let Some(collection) = named.collection() {
                let records = records(store, collection.records());
                if ns.coll == "system.preimages" {
                    state.images = records;
                    continue;
                }
                one.uuid = Some(collection.uuid());
                one.counts = (collection.count(), collection.data_size());
                let indexes = store.list_indexes(ns).unwrap();
                one.indexes = indexes.iter().map(|index| format!("{index:?}")).collect();
                one.indexes.sort();
                let parsed = records.into_iter().map(RawDocumentBuf::from_bytes);
                one.documents = parsed.collect::<Result<_, _>>().unwrap();
                if !collection.is_capped() {
                    one.documents.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
                }
            }
            state.collections.insert(ns.to_string(), one);
        }
        let tree = store.engine().open_tree("_sessions").unwrap();
        state.sessions = pairs(store, tree).into_iter().collect();
        let known = |key: &Vec<u8>| sessions.contains(&key[0]);
        state.sessions.retain(|key, _| known(key));
        state
    }

    /// Keep the pre-images of entries after a time.
    pub(crate) fn keep_images_after(&mut self, since: bson::Timestamp) {
        let is_later = |image: &Vec<u8>| {
            let image = bson::RawDocument::from_bytes(image).unwrap();
            since
                < image
                    .get_document("_id")
                    .unwrap()
                    .get_timestamp("ts")
                    .unwrap()
        };
        self.images.retain(is_later);
    }

    /// Check that another one has the same collections, with a part of the documents of those with
    /// these UUIDs, and all of the others.
    pub(crate) fn check_part(&self, part: &State, open: &BTreeSet<bson::Uuid>, context: &str) {
        let names = |state: &State| state.collections.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(part), names(self), "`copy`: Y1: {context}");
        for (ns, all) in &self.collections {
            let some = part.collections.get(ns).unwrap();
            if !all.uuid.is_some_and(|uuid| open.contains(&uuid)) {
                assert_eq!(some, all, "`copy`: Y1: {ns}, {context}");
                continue;
            }
            let (left, right) = (
                Collection {
                    documents: Vec::new(),
                    counts: (0, 0),
                    ..some.clone()
                },
                Collection {
                    documents: Vec::new(),
                    counts: (0, 0),
                    ..all.clone()
                },
            );
            assert_eq!(left, right, "`copy`: Y1: {ns}, {context}");
            let known: BTreeSet<&[u8]> = all.documents.iter().map(|d| d.as_bytes()).collect();
            for document in &some.documents {
                let found = known.contains(document.as_bytes());
                assert!(found, "`copy`: Y1: {document:?} in {ns}, {context}");
            }
        }
    }

    /// Keep the records of these sessions only.
    pub(crate) fn keep_sessions(&mut self, sessions: &BTreeSet<u8>) {
        self.sessions.retain(|key, _| sessions.contains(&key[0]));
    }

    /// Check that every collection is sound, with all its indexes.
    pub(crate) fn validate(store: &Store, context: &str) {
        let catalog = store.catalog();
        let is_local = |ns: &Namespace| ns.db == "local";
        for (ns, named) in catalog.iter().filter(|(ns, _)| !is_local(ns)) {
            if named.collection().is_some() {
                let report = store.validate(&op(), ns).unwrap();
                assert!(report.get_bool("valid").unwrap(), "{context}: {report}");
            }
        }
    }

    /// Check that another one is equal, part by part.
    pub(crate) fn check(&self, found: &State, context: &str) {
        for (ns, expected) in &self.collections {
            let there = found.collections.get(ns);
            assert_eq!(there, Some(expected), "Q2: {ns}, {context}");
        }
        assert_eq!(
            found.collections.len(),
            self.collections.len(),
            "Q2: {context}"
        );
        assert_eq!(found.sessions, self.sessions, "`stored`: H1: {context}");
        assert_eq!(found.images, self.images, "`image`: P1: {context}");
    }
}

fn records(store: &Store, tree: kv::TreeId) -> Vec<Vec<u8>> {
    pairs(store, tree)
        .into_iter()
        .map(|(_, value)| value)
        .collect()
}

fn pairs(store: &Store, tree: kv::TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.engine().begin_read().unwrap();
    let (all, forward) = (kv::KeyRange::ALL, kv::Direction::Forward);
    let mut cursor = snapshot.cursor(tree, all, forward).unwrap();
    let mut pairs = Vec::new();
    while cursor.advance().unwrap() {
        pairs.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    pairs
}
