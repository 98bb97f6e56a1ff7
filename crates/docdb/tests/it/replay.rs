//! Replays the oplog of a store into an empty one: both must have the same collections, indexes and
//! documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Document, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use docdb::oplog::entry::{Command, Entry, Operation};
use docdb::{
    Applied, AppliedEntry, AppliedUpdate, CollectionOptions, IndexNames, Namespace, Options, Store,
};
use kv::EngineOptions;

use crate::lab::op;

/// A time before all entries.
pub(crate) const BEGIN: Timestamp = Timestamp {
    time: 0,
    increment: 0,
};

/// Check that the oplog of a store leads to its state (`oplog::log`: O1, O2; `oplog::noted`: O4).
pub(crate) fn check(store: &Store, context: &str) {
    let directory = tempfile::tempdir().unwrap();
    let factory = kv::memory::factory();
    let engine = factory.open(directory.path(), &EngineOptions::default());
    let options = Options {
        ttl_period: None,
        ..Options::default()
    };
    let copy = Store::open(Arc::from(engine.unwrap()), options).unwrap();
    replay(store, &copy);
    let (there, here) = (content(store), content(&copy));
    for (ns, state) in &there {
        assert_eq!(
            here.get(ns),
            Some(state),
            "O1: the state of {ns} on {context}"
        );
    }
    assert_eq!(here.len(), there.len(), "O4: collections on {context}");
}

/// All entries of a store, in order.
pub(crate) fn entries(store: &Store) -> Vec<RawDocumentBuf> {
    let mut all: Vec<RawDocumentBuf> = Vec::new();
    let mut last = BEGIN;
    loop {
        let more = store.oplog_after(last, 100).unwrap();
        for bytes in &more {
            let at = Entry::parse(bytes).unwrap().at.ts;
            assert!(last < at, "O3: {last:?}, {at:?}");
            last = at;
        }
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

fn replay(from: &Store, into: &Store) {
    for bytes in entries(from) {
        let entry = Entry::parse(&bytes).unwrap();
        if matches!(entry.operation, Operation::Nothing { .. }) {
            continue;
        }
        let Operation::Command {
            database,
            uuid,
            command,
            ..
        } = &entry.operation
        else {
            apply(into, std::slice::from_ref(&entry.operation));
            continue;
        };
        match Command::parse(command).unwrap() {
            Command::ApplyOps(group) => apply(into, &group.operations),
            command => run(into, (database, *uuid), command),
        }
    }
}

/// Apply changes of documents.
fn apply(into: &Store, operations: &[Operation<'_>]) {
    let entries: Vec<AppliedEntry> = operations.iter().map(applied).collect();
    let done = into.apply(&op(), &entries, true);
    done.unwrap_or_else(|(at, error)| panic!("{error}: {:?}", operations[at]));
}

fn applied(operation: &Operation<'_>) -> AppliedEntry {
    let (place, change) = match operation {
        Operation::Insert {
            place, document, ..
        } => (place, Applied::Insert((*document).to_owned())),
        Operation::Update { place, update, key } => {
            let update = match update.get("$v").unwrap() {
                Some(_) => AppliedUpdate::Delta(update.get_document("diff").unwrap().to_owned()),
                None => AppliedUpdate::Document((*update).to_owned()),
            };
            let change = Applied::Update {
                filter: equal(key),
                update,
                upsert: false,
            };
            (place, change)
        }
        Operation::Delete { place, key } => (place, Applied::Delete(equal(key))),
        other => panic!("no change of a document: {other:?}"),
    };
    AppliedEntry {
        ns: Namespace::parse(place.ns).unwrap(),
        change,
    }
}

/// The filter of a key, also of one whose value looks like an operator.
fn equal(key: &RawDocument) -> RawDocumentBuf {
    let id = bson::RawBson::from(key.get("_id").unwrap().unwrap());
    let mut condition = RawDocumentBuf::new();
    condition.append(bson::raw::cstr!("$eq"), id);
    let mut filter = RawDocumentBuf::new();
    filter.append(bson::raw::cstr!("_id"), condition);
    filter
}

/// Change the catalog.
fn run(into: &Store, (database, uuid): (&str, Option<Uuid>), command: Command<'_>) {
    let op = op();
    let ns = |collection: &str| Namespace::new(database, collection).unwrap();
    match command {
        Command::Create {
            collection,
            options,
        } => {
            let mut fields = RawDocumentBuf::new();
            for field in &options {
                let (name, value) = field.unwrap();
                if !["idIndex", "temp"].contains(&name.as_str()) {
                    fields.append(name, value);
                }
            }
            let options = CollectionOptions::parse_raw(&fields).unwrap();
            match uuid {
                Some(uuid) => into.create_with_uuid(&op, &ns(collection), options, uuid),
                None => into.create(&op, &ns(collection), options),
            }
            .unwrap();
        }
        Command::Drop { collection } => {
            assert!(into.drop_collection(&op, &ns(collection)).unwrap())
        }
        Command::CreateIndexes { collection, index } => {
            into.create_indexes_raw(&op, &ns(collection), &[index])
                .unwrap();
        }
        Command::StartIndexBuild(_) | Command::AbortIndexBuild { .. } => {}
        Command::CommitIndexBuild(build) => {
            let specs: Vec<RawDocumentBuf> =
                build.indexes.iter().map(|i| (*i).to_owned()).collect();
            into.create_indexes_raw(&op, &ns(build.collection), &specs)
                .unwrap();
        }
        Command::DropIndexes { collection, index } => {
            let names = IndexNames::Names(vec![index.to_owned()]);
            into.drop_indexes(&op, &ns(collection), &names).unwrap();
        }
        Command::CollMod {
            collection,
            changes,
        } => {
            into.coll_mod(&op, &ns(collection), &changes).unwrap();
        }
        Command::ConvertToCapped { collection, size } => {
            into.convert_to_capped(&op, &ns(collection), size).unwrap();
        }
        Command::RenameCollection { from, to, dropped } => {
            let (from, to) = (
                Namespace::parse(from).unwrap(),
                Namespace::parse(to).unwrap(),
            );
            into.rename(&op, &from, &to, dropped.is_some()).unwrap();
        }
        Command::DropDatabase => {}
        other => panic!("no change of the catalog: {other:?}"),
    }
}

/// What a collection or a view is: options, UUID, indexes, and documents in the order of their
/// bytes.
#[derive(Debug, PartialEq)]
struct State {
    options: RawDocumentBuf,
    uuid: Option<Uuid>,
    indexes: Vec<String>,
    documents: Vec<Vec<u8>>,
}

fn content(store: &Store) -> BTreeMap<String, State> {
    let mut all = BTreeMap::new();
    // Pre-images have no entries.
    let replicated = |ns: &Namespace| ns.db != "local" && ns.coll != "system.preimages";
    for (ns, named) in store.catalog().iter().filter(|(ns, _)| replicated(ns)) {
        let mut state = State {
            options: named.options().to_raw().unwrap(),
            uuid: None,
            indexes: Vec::new(),
            documents: Vec::new(),
        };
        if let Some(collection) = named.collection() {
            state.uuid = Some(collection.uuid());
            let indexes = store.list_indexes(ns).unwrap();
            state.indexes = indexes.iter().map(|index| format!("{index:?}")).collect();
            state.indexes.sort();
            let snapshot = store.engine().begin_read().unwrap();
            let (all, forward) = (kv::KeyRange::ALL, kv::Direction::Forward);
            let mut cursor = snapshot.cursor(collection.records(), all, forward).unwrap();
            while cursor.advance().unwrap() {
                state.documents.push(cursor.value().to_vec());
            }
            state.documents.sort();
        }
        all.insert(ns.to_string(), state);
    }
    all
}

/// An entry as a document.
pub(crate) fn shown(entry: &RawDocument) -> Document {
    Document::try_from(entry).unwrap()
}
