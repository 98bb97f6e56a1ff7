//! `local.oplog.rs`: the oplog read as a collection.

use bson::{Document, RawDocument, Timestamp, doc};
use docdb::oplog::entry::Entry;
use docdb::{
    CollectionOptions, CountRequest, FindRequest, GetMore, IndexNames, InsertOptions, Namespace,
    Verbosity, WriteError,
};

use crate::lab::{Lab, documents, find, is_ready, ns, on_each, op, raw};
use crate::replay;
use crate::write::{del, set};

fn oplog() -> Namespace {
    Namespace::new("local", "oplog.rs").unwrap()
}

/// A store whose oplog has `count` inserts in several segments; the entries.
fn fill(lab: &Lab, count: i32) -> Vec<Document> {
    for id in 0..count {
        lab.insert(&ns("c"), &[doc! { "_id": id, "fill": "x".repeat(300) }]);
        if id % 5 == 0 {
            lab.store.tend_oplog().unwrap();
        }
    }
    entries(lab)
}

fn entries(lab: &Lab) -> Vec<Document> {
    let all = replay::entries(&lab.store);
    all.iter().map(|entry| replay::shown(entry)).collect()
}

fn time(entry: &Document) -> Timestamp {
    entry.get_timestamp("ts").unwrap()
}

fn read(lab: &Lab, request: &FindRequest) -> Vec<Document> {
    let batch = lab.store.find(&op(), &oplog(), request).unwrap();
    lab.drain(batch, 3).unwrap()
}

fn few(filter: Document) -> FindRequest {
    FindRequest {
        batch_size: Some(3),
        ..find(filter)
    }
}

#[test]
fn the_oplog_is_found_in_both_directions_with_filter_projection_and_limit() {
    on_each(|lab| {
        let all = fill(lab, 40);
        assert_eq!(read(lab, &few(doc! {})), all);
        let mut backward = few(doc! {});
        backward.sort = Some(raw(&doc! { "$natural": -1 }));
        let reversed: Vec<Document> = all.iter().rev().cloned().collect();
        assert_eq!(read(lab, &backward), reversed);
        backward.limit = Some(5);
        backward.projection = Some(raw(&doc! { "o2": 1, "_id": 0 }));
        let five = read(lab, &backward);
        let newest: Vec<Document> = (35..40)
            .rev()
            .map(|id| doc! { "o2": { "_id": id } })
            .collect();
        assert_eq!(five, newest);
        let one = read(lab, &few(doc! { "op": "i", "o._id": 17 }));
        assert_eq!(one.len(), 1);
        let count = lab.store.count(&op(), &oplog(), &CountRequest::default());
        assert_eq!(count.unwrap(), all.len() as u64);
        let stats = lab.store.coll_stats(&oplog()).unwrap();
        let counted = usize::try_from(stats.get_i32("count").unwrap()).unwrap();
        assert_eq!(counted, all.len());
        assert!(stats.get_bool("capped").unwrap());
        let bytes: usize = all.iter().map(|entry| raw(entry).as_bytes().len()).sum();
        assert_eq!(
            usize::try_from(stats.get_i32("size").unwrap()).unwrap(),
            bytes
        );
        let grouped = lab
            .store
            .aggregate(
                &op(),
                &oplog(),
                &crate::lab::of(&[
                    doc! { "$match": { "ts": { "$gte": time(&all[10]) } } },
                    doc! { "$count": "n" },
                ]),
            )
            .unwrap();
        let n = i32::try_from(all.len() - 10).unwrap();
        assert_eq!(documents(&grouped), [doc! { "n": n }]);
    });
}

/// A bound on `ts` is a place to begin, not a filter over all entries.
#[test]
fn a_bound_of_the_time_is_a_seek() {
    on_each(|lab| {
        let all = fill(lab, 40);
        let last = all.len() - 1;
        for at in [0, 1, 7, 20, last] {
            let ts = time(&all[at]);
            let from = |filter: Document| read(lab, &few(doc! { "ts": filter }));
            assert_eq!(from(doc! { "$gte": ts }), all[at..]);
            assert_eq!(from(doc! { "$gt": ts }), all[at + 1..]);
            assert_eq!(from(doc! { "$lt": ts }), all[..at]);
            assert_eq!(from(doc! { "$lte": ts }), all[..=at]);
            assert_eq!(from(doc! { "$eq": ts }), all[at..=at]);
            let mut backward = few(doc! { "ts": { "$lte": ts } });
            backward.sort = Some(raw(&doc! { "$natural": -1 }));
            let reversed: Vec<Document> = all[..=at].iter().rev().cloned().collect();
            assert_eq!(read(lab, &backward), reversed);
        }
        assert_eq!(
            read(
                lab,
                &few(doc! { "ts": { "$gt": time(&all[3]), "$lt": time(&all[3]) } })
            ),
            Vec::<Document>::new()
        );
        let near = few(doc! { "ts": { "$gte": time(&all[last - 1]) } });
        let report = lab
            .store
            .explain_find(&op(), &oplog(), &near, Verbosity::ExecutionStats);
        let report = report.unwrap();
        let executed = report.get_document("executionStats").unwrap();
        assert_eq!(executed.get_i32("totalDocsExamined").unwrap(), 2);
    });
}

fn more(lab: &Lab, id: i64) -> query::Result<Vec<Document>> {
    let request = GetMore {
        id,
        ns: oplog(),
        batch_size: None,
        waits: false,
        waited: false,
    };
    let batch = lab.store.get_more(&op(), &request)?;
    assert_eq!(batch.id, id);
    Ok(documents(&batch))
}

/// Traps 1 and 12 of replication: a tailing reader sees each entry once.
#[test]
fn a_tailable_cursor_follows_the_oplog() {
    on_each(|lab| {
        let all = fill(lab, 10);
        let mut request = find(doc! { "ts": { "$gt": time(all.last().unwrap()) } });
        request.tailable = true;
        request.await_data = true;
        let batch = lab.store.find(&op(), &oplog(), &request).unwrap();
        assert!(batch.documents.is_empty() && batch.id != 0);
        assert_eq!(more(lab, batch.id).unwrap(), Vec::<Document>::new());
        let mut seen = Vec::new();
        for id in 100..140 {
            lab.insert(&ns("c"), &[doc! { "_id": id, "fill": "x".repeat(300) }]);
            lab.store.tend_oplog().unwrap();
            seen.extend(more(lab, batch.id).unwrap());
        }
        let spec = doc! { "key": { "a": 1 }, "name": "a" };
        lab.index("c", spec);
        seen.extend(more(lab, batch.id).unwrap());
        assert_eq!(seen, entries(lab)[all.len()..]);
        lab.store.kill_cursors(&[batch.id], &|_, _| true);
    });
}

/// A waiting cursor is woken by a change of the catalog too.
#[test]
fn a_waiting_cursor_is_woken_by_any_entry() {
    on_each(|lab| {
        let all = fill(lab, 1);
        let mut request = find(doc! { "ts": { "$gt": time(all.last().unwrap()) } });
        request.tailable = true;
        request.await_data = true;
        let batch = lab.store.find(&op(), &oplog(), &request).unwrap();
        let more = |waited| lab.more_waiting(&batch, waited);
        let mut awaiting = more(false).awaits.unwrap();
        assert!(!is_ready(&mut awaiting));
        let options = CollectionOptions::default();
        lab.store.create(&op(), &ns("d"), options).unwrap();
        assert!(is_ready(&mut awaiting));
        assert_eq!(documents(&more(true)), entries(lab)[all.len()..]);
        lab.store.kill_cursors(&[batch.id], &|_, _| true);
    });
}

#[test]
fn retention_that_overtakes_a_cursor_ends_it() {
    on_each(|lab| {
        fill(lab, 10);
        for tailable in [true, false] {
            let mut request = few(doc! {});
            (request.tailable, request.await_data) = (tailable, tailable);
            let batch = lab.store.find(&op(), &oplog(), &request).unwrap();
            assert_ne!(batch.id, 0);
            let all = lab.store.oplog_limits().unwrap().bytes;
            lab.store.set_oplog_limits(|limits| limits.bytes = 1);
            for id in 0..60 {
                let change = doc! { "$set": { "n": id, "fill": "y".repeat(300) } };
                let change = [set(doc! { "_id": 0 }, change)];
                lab.store
                    .update(&op(), &ns("c"), &change, true, false)
                    .unwrap();
                lab.store.tend_oplog().unwrap();
            }
            assert_eq!(more(lab, batch.id).unwrap_err().code.0, 136);
            lab.store.set_oplog_limits(|limits| limits.bytes = all);
            let left = entries_kept(lab);
            assert_eq!(read(lab, &few(doc! {})).len(), left);
        }
        lab.forget_oplog();
    });
}

fn entries_kept(lab: &Lab) -> usize {
    let mut reader = docdb::OplogReader::from_start(&lab.store).unwrap();
    reader.next(usize::MAX, usize::MAX).unwrap().len()
}

#[test]
fn nothing_writes_or_changes_the_oplog() {
    on_each(|lab| {
        let all = fill(lab, 3);
        let (store, ns) = (&lab.store, oplog());
        let code = |error: query::Error| error.code.0;
        let document = raw(&doc! { "_id": 1 });
        let documents: [&RawDocument; 1] = [&document];
        let one = |errors: Vec<WriteError>| match errors.into_iter().next() {
            Some(refused) => Err(refused.error),
            None => Ok(()),
        };
        let not_written = |done: query::Result<()>| {
            assert_eq!(done.map_err(code).unwrap_err(), 73);
        };
        let insert = store.insert(&op(), &ns, &documents, InsertOptions::default());
        not_written(insert.and_then(|reply| one(reply.errors)));
        let change = [set(doc! { "op": "i" }, doc! { "$set": { "a": 1 } })];
        let refused = |done: query::Result<()>| assert_eq!(done.map_err(code).unwrap_err(), 20);
        let update = store.update(&op(), &ns, &change, true, false);
        not_written(update.and_then(|reply| one(reply.errors)));
        let delete = store.delete(&op(), &ns, &[del(doc! {}, true)], true);
        not_written(delete.and_then(|reply| one(reply.errors)));
        refused(store.drop_collection(&op(), &ns).map(|_| ()));
        refused(store.drop_database(&op(), "local").map(|_| ()));
        let other = Namespace::new("local", "other").unwrap();
        refused(store.rename(&op(), &ns, &other, false));
        store
            .create(&op(), &other, CollectionOptions::default())
            .unwrap();
        refused(store.rename(&op(), &other, &ns, true));
        refused(store.convert_to_capped(&op(), &ns, 4096));
        let hide = raw(&doc! { "validator": {} });
        refused(store.coll_mod(&op(), &ns, &hide).map(|_| ()));
        refused(store.drop_indexes(&op(), &ns, &IndexNames::All).map(|_| ()));
        let index = doc! { "key": { "a": 1 }, "name": "a" };
        let index = store.create_indexes(&op(), &ns, &[index]);
        assert_eq!(index.map_err(code).unwrap_err(), 67);
        assert_eq!(entries(lab), all);
        let listed = store.list_collections("local").unwrap();
        let names: Vec<&str> = listed.iter().map(|c| c.get_str("name").unwrap()).collect();
        assert_eq!(names, ["oplog.rs", "other"]);
        assert!(store.list_indexes(&ns).unwrap().is_empty());
        assert!(Entry::parse(&raw(&all[0])).is_ok());
        drop(store.compact(&op(), &ns));
    });
}
