//! Cursors and changes of the data between their batches.

use std::collections::BTreeSet;
use std::time::Duration;

use bson::{Document, RawDocumentBuf, doc};
use docdb::{Batch, Capped, CollectionOptions, FindRequest, GetMore, Op};

use crate::lab::{Lab, documents, ns, of, on_each, op, raw};
use crate::write::{del, set};

fn find(lab: &Lab, request: &FindRequest) -> Batch {
    lab.store.find(&op(), &ns("c"), request).unwrap()
}

fn fill(lab: &Lab, n: i32) {
    let documents: Vec<Document> = (0..n).map(|i| doc! { "_id": i, "a": i }).collect();
    lab.insert(&ns("c"), &documents);
    lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
}

fn ids(batch: &Batch) -> Vec<i32> {
    let id = |d: &Document| d.get_i32("_id").unwrap();
    documents(batch).iter().map(id).collect()
}

fn delete(lab: &Lab, filter: Document) {
    lab.store
        .delete(&op(), &ns("c"), &[del(filter, true)], true)
        .unwrap();
}

/// Read `request` to its end while documents before and behind the cursor are inserted and deleted.
fn disturbed(lab: &Lab, request: &FindRequest, pipeline: bool) {
    fill(lab, 300);
    let mut batch = if pipeline {
        let mut asked = of(&[
            doc! { "$match": { "a": { "$gte": 0 } } },
            doc! { "$addFields": { "x": 1 } },
        ]);
        asked.batch_size = Some(7);
        lab.store.aggregate(&op(), &ns("c"), &asked).unwrap()
    } else {
        find(lab, request)
    };
    let mut seen = BTreeSet::new();
    let mut gone: BTreeSet<i32> = BTreeSet::new();
    let mut next = 1000;
    loop {
        for id in ids(&batch) {
            assert!(seen.insert(id), "{}: {id} is given twice", lab.engine());
            assert!(!gone.contains(&id), "{}: {id} was deleted", lab.engine());
        }
        if batch.id == 0 {
            break;
        }
        // One document that was returned and two that were not, near the cursor's position and far
        // from it.
        let mut left = (0..300).filter(|id| !seen.contains(id) && !gone.contains(id));
        let doomed = [
            left.next(),
            left.next_back(),
            seen.iter().next_back().copied(),
        ];
        for id in doomed.into_iter().flatten() {
            delete(lab, doc! { "_id": id });
            gone.insert(id);
        }
        if next < 1020 {
            lab.insert(&ns("c"), &[doc! { "_id": next, "a": next - 1000 }]);
            next += 1;
        }
        batch = lab.more(&batch, 7).unwrap();
    }
    let kept = (0..300).filter(|id| !gone.contains(id));
    for id in kept {
        assert!(seen.contains(&id), "{}: {id} is missing", lab.engine());
    }
}

/// `exec::scan`: S1 and S2.
#[test]
fn others_write_between_batches_of_a_collection_scan() {
    on_each(|lab| {
        let request = FindRequest {
            batch_size: Some(7),
            ..FindRequest::default()
        };
        disturbed(lab, &request, false);
    });
}

#[test]
fn others_write_between_batches_of_an_index_scan() {
    on_each(|lab| {
        let request = FindRequest {
            batch_size: Some(7),
            filter: raw(&doc! { "a": { "$gte": 0 } }),
            sort: Some(raw(&doc! { "a": -1 })),
            ..FindRequest::default()
        };
        disturbed(lab, &request, false);
    });
}

#[test]
fn others_write_between_batches_of_a_union_and_of_a_merge() {
    on_each(|lab| {
        let parts = doc! { "$or": [{ "a": { "$lt": 200 } }, { "_id": { "$gte": 100 } }] };
        let request = FindRequest {
            batch_size: Some(7),
            filter: raw(&parts),
            ..FindRequest::default()
        };
        disturbed(lab, &request, false);
    });
    on_each(|lab| {
        let parts = doc! { "$or": [{ "a": { "$lt": 200 } }, { "a": { "$gte": 100 } }] };
        let request = FindRequest {
            batch_size: Some(7),
            filter: raw(&parts),
            sort: Some(raw(&doc! { "a": 1 })),
            ..FindRequest::default()
        };
        disturbed(lab, &request, false);
    });
}

#[test]
fn others_write_between_batches_of_a_pipeline() {
    on_each(|lab| disturbed(lab, &FindRequest::default(), true));
}

#[test]
fn documents_updated_in_place_are_given_once() {
    on_each(|lab| {
        fill(lab, 50);
        let request = FindRequest {
            batch_size: Some(10),
            ..FindRequest::default()
        };
        let first = find(lab, &request);
        let all = docdb::UpdateStatement {
            multi: true,
            ..set(doc! {}, doc! { "$set": { "big": "x".repeat(500) } })
        };
        lab.store
            .update(&op(), &ns("c"), &[all], true, false)
            .unwrap();
        let rest = lab.drain(first, 10).unwrap();
        assert_eq!(rest.len(), 50);
        assert!(!rest[9].contains_key("big"));
        assert!(rest[10].contains_key("big"));
    });
}

#[test]
fn a_dropped_collection_or_index_ends_its_cursors() {
    on_each(|lab| {
        fill(lab, 50);
        let by_index = FindRequest {
            batch_size: Some(5),
            hint: Some("a".into()),
            ..FindRequest::default()
        };
        let plain = FindRequest {
            batch_size: Some(5),
            ..FindRequest::default()
        };
        let (indexed, scan) = (find(lab, &by_index), find(lab, &plain));
        lab.store
            .drop_indexes(
                &op(),
                &ns("c"),
                &docdb::IndexNames::Names(vec!["a".to_owned()]),
            )
            .unwrap();
        assert_eq!(lab.more(&indexed, 5).unwrap_err().code.0, 175);
        assert_eq!(lab.more(&indexed, 5).unwrap_err().code.0, 43);
        assert_eq!(ids(&lab.more(&scan, 5).unwrap()), [5, 6, 7, 8, 9]);
        let mut asked = of(&[doc! { "$addFields": { "x": 1 } }]);
        asked.batch_size = Some(5);
        let pipeline = lab.store.aggregate(&op(), &ns("c"), &asked).unwrap();
        lab.store.drop_collection(&op(), &ns("c")).unwrap();
        lab.insert(&ns("c"), &[doc! { "_id": 1000 }]);
        assert_eq!(lab.more(&scan, 5).unwrap_err().code.0, 175);
        assert_eq!(lab.more(&pipeline, 5).unwrap_err().code.0, 175);
        assert_eq!(lab.store.cursor_figures().open, 0);
    });
}

#[test]
fn killed_cursors_are_gone() {
    on_each(|lab| {
        fill(lab, 50);
        let request = FindRequest {
            batch_size: Some(0),
            ..FindRequest::default()
        };
        let batch = find(lab, &request);
        assert!(batch.documents.is_empty());
        let killed = lab
            .store
            .kill_cursors(&[batch.id, 7], &|of, _| *of == ns("c"));
        assert_eq!((killed.killed, killed.not_found), (vec![batch.id], vec![7]));
        assert_eq!(lab.more(&batch, 1).unwrap_err().code.0, 43);
    });
}

/// `cursor::batch`: B1.
#[test]
fn batches_end_at_their_limits() {
    on_each(|lab| {
        fill(lab, 250);
        let first = find(lab, &FindRequest::default());
        assert_eq!(first.documents.len(), 101);
        assert_eq!(lab.drain(first, 100).unwrap().len(), 250);
        let exact = FindRequest {
            limit: Some(5),
            batch_size: Some(5),
            ..FindRequest::default()
        };
        assert_eq!(find(lab, &exact).id, 0);
        let large: Vec<Document> = (1000..1005)
            .map(|i| doc! { "_id": i, "large": "x".repeat(6_000_000) })
            .collect();
        lab.insert(&ns("c"), &large);
        let request = FindRequest {
            filter: raw(&doc! { "_id": { "$gte": 1000 } }),
            ..FindRequest::default()
        };
        let batch = find(lab, &request);
        let bytes = |d: &RawDocumentBuf| d.as_bytes().len();
        assert!(batch.documents.iter().map(bytes).sum::<usize>() <= docdb::BATCH_BYTES);
        assert_eq!(batch.documents.len(), 2);
        assert_eq!(lab.drain(batch, 100).unwrap().len(), 5);
    });
}

#[test]
fn tailable_cursors_follow_a_capped_collection() {
    on_each(|lab| {
        let options = CollectionOptions {
            capped: Some(Capped {
                size: 1 << 20,
                max: Some(10),
            }),
            ..CollectionOptions::default()
        };
        lab.store.create(&op(), &ns("c"), options).unwrap();
        let add = |range: std::ops::Range<i32>| {
            let documents: Vec<Document> = range.map(|i| doc! { "_id": i }).collect();
            lab.insert(&ns("c"), &documents);
        };
        add(0..3);
        for await_data in [false, true] {
            let request = FindRequest {
                tailable: true,
                await_data,
                ..FindRequest::default()
            };
            let first = find(lab, &request);
            assert_ne!(first.id, 0);
            let from = ids(&first).last().copied().unwrap() + 1;
            assert!(ids(&lab.more(&first, 10).unwrap()).is_empty());
            add(from..from + 2);
            let batch = lab.more(&first, 10).unwrap();
            assert_eq!((ids(&batch), batch.id), (vec![from, from + 1], first.id));
            assert!(ids(&lab.more(&first, 10).unwrap()).is_empty());
            // Documents that the cursor has not read are overwritten: it cannot continue.
            add(from + 2..from + 14);
            assert_eq!(lab.more(&first, 10).unwrap_err().code.0, 136);
            assert_eq!(lab.more(&first, 10).unwrap_err().code.0, 43);
        }
        let plain = FindRequest {
            tailable: true,
            ..FindRequest::default()
        };
        lab.insert(&ns("plain"), &[doc! {}]);
        let error = lab.store.find(&op(), &ns("plain"), &plain).unwrap_err();
        assert_eq!(error.code.0, 2);
    });
}

#[test]
fn return_key_gives_the_keys_in_place_of_documents() {
    on_each(|lab| {
        let request = |filter: Document| FindRequest {
            filter: raw(&filter),
            return_key: true,
            ..FindRequest::default()
        };
        let keys =
            |request: &FindRequest| documents(&lab.store.find(&op(), &ns("k"), request).unwrap());
        assert_eq!(keys(&request(doc! {})), []);
        let nested = doc! { "_id": 2, "a": [3, 1], "b": { "c": 1.5 }, "d": 1 };
        lab.insert(&ns("k"), &[doc! { "_id": 1, "a": 2, "d": 2 }, nested]);
        lab.index("k", doc! { "key": { "a": 1, "b.c": -1 }, "name": "a" });
        // Without an index there is no key.
        assert_eq!(keys(&request(doc! {})), [doc! {}, doc! {}]);
        assert_eq!(keys(&request(doc! { "_id": 2 })), [doc! { "_id": 2 }]);
        let two = doc! { "a": 2, "b.c": null };
        let by_a = request(doc! { "a": { "$gte": 2 } });
        assert_eq!(keys(&by_a), [two.clone(), doc! { "a": 3, "b.c": 1.5 }]);
        // A sort by another field needs the documents; a projection has no effect.
        let sorted = FindRequest {
            sort: Some(raw(&doc! { "d": 1 })),
            projection: Some(raw(&doc! { "d": 1 })),
            hint: Some("a".into()),
            ..by_a.clone()
        };
        assert_eq!(keys(&sorted), [doc! { "a": 3, "b.c": 1.5 }, two]);
        // Branches of an `$or` are merged in order, across batches.
        let merged = FindRequest {
            sort: Some(raw(&doc! { "a": 1 })),
            show_record_id: true,
            batch_size: Some(1),
            ..request(doc! { "$or": [{ "a": 2 }, { "a": 3 }] })
        };
        let first = lab.store.find(&op(), &ns("k"), &merged).unwrap();
        // The smallest element of the array determines the position of its document.
        let key = doc! { "a": 3, "b.c": 1.5 };
        assert_eq!(documents(&first), [key]);
    });
}

#[test]
fn a_limit_of_time_holds_for_all_batches_together() {
    on_each(|lab| {
        fill(lab, 50);
        let request = FindRequest {
            batch_size: Some(10),
            ..FindRequest::default()
        };
        let free = find(lab, &request);
        assert_eq!(lab.store.cursor_left(free.id), None);
        let hour = Duration::from_secs(3600);
        let within = |left: Duration| Op {
            deadline: Some(stdx::time::now() + left),
            ..op()
        };
        let limited = lab.store.find(&within(hour), &ns("c"), &request).unwrap();
        let left = lab.store.cursor_left(limited.id).unwrap();
        assert!(left <= hour, "{left:?}");
        let more = GetMore {
            id: limited.id,
            ns: ns("c"),
            batch_size: Some(10),
            waits: false,
            waited: false,
        };
        let half = left / 2;
        let batch = lab.store.get_more(&within(half), &more).unwrap();
        assert_eq!(batch.documents.len(), 10);
        let left = lab.store.cursor_left(limited.id).unwrap();
        assert!(left <= half, "{left:?} of {half:?}");
        let over = lab.store.get_more(&within(Duration::ZERO), &more);
        assert_eq!(over.unwrap_err().code.0, 50);
        assert_eq!(lab.store.cursor_left(limited.id), None, "it is gone");
    });
}
