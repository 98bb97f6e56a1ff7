//! Reads at a held snapshot.

use std::collections::BTreeSet;

use bson::{RawDocumentBuf, Timestamp, doc};
use docdb::{FindRequest, GetMore, InsertOptions, Op};

use crate::lab::{Lab, ns, on_each, op, raw};

/// The time of the last write.
fn now(lab: &Lab) -> Timestamp {
    lab.store.oplog_visible().unwrap()
}

/// The number of documents at a time, read in batches of one.
fn count(lab: &Lab, time: Option<Timestamp>, now: Timestamp) -> query::Result<(usize, Timestamp)> {
    let store = std::sync::Arc::clone(&lab.store);
    let find = FindRequest {
        batch_size: Some(1),
        ..FindRequest::default()
    };
    let body = move |op: &Op<'_>| store.find(op, &ns("c"), &find);
    let (mut batch, time) = lab.store.at_moment(op(), time, now, body)?;
    let mut count = batch.documents.len();
    while batch.id != 0 {
        assert_eq!(lab.store.cursor_time(batch.id), Some(time));
        let store = std::sync::Arc::clone(&lab.store);
        let more = GetMore {
            id: batch.id,
            ns: ns("c"),
            batch_size: Some(1),
            waits: false,
            waited: false,
        };
        let body = move |op: &Op<'_>| store.get_more(op, &more);
        batch = lab.store.at_moment(op(), Some(time), now, body)?.0;
        count += batch.documents.len();
    }
    Ok((count, time))
}

/// `session::moment`: M1.
#[test]
fn a_moment_stays_as_it_was() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }, doc! { "_id": 1 }]);
        let old = now(lab);
        lab.insert(&ns("c"), &[doc! { "_id": 2 }]);
        let first = now(lab);
        assert_eq!(count(lab, None, first), Ok((3, first)));
        lab.insert(&ns("c"), &[doc! { "_id": 3 }]);
        let second = now(lab);
        assert_eq!(count(lab, None, second), Ok((4, second)));
        assert_eq!(count(lab, Some(first), second), Ok((3, first)));
        assert_eq!(lab.all(&ns("c")).len(), 4);
        let old = count(lab, Some(old), second);
        assert_eq!(old.unwrap_err().code.0, 239, "nobody holds that time");
    });
}

#[test]
fn a_collection_that_was_changed_is_not_read_at_a_moment_before() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0, "a": 1 }]);
        let before = now(lab);
        count(lab, None, before).unwrap();
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a_1" });
        let after = now(lab);
        let changed = count(lab, Some(before), after);
        assert_eq!(changed.unwrap_err().code.0, 246);
        assert_eq!(count(lab, None, after), Ok((1, after)));
    });
}

#[test]
fn writes_go_on_beside_a_moment() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let before = now(lab);
        count(lab, None, before).unwrap();
        let store = std::sync::Arc::clone(&lab.store);
        let body = move |op: &Op<'_>| {
            let raw = raw(&doc! { "_id": 1 });
            store.insert(op, &ns("c"), &[&raw], InsertOptions::default())
        };
        let done = lab.store.at_moment(op(), Some(before), before, body);
        assert_eq!(done.unwrap().0.n, 1);
        assert_eq!(count(lab, Some(before), before), Ok((1, before)));
        assert_eq!(lab.all(&ns("c")).len(), 2);
    });
}

/// `session::moment`: M1, and trap 25 of replication: what is hashed under load is that of a
/// moment.
#[test]
fn a_snapshot_under_load_has_exactly_the_entries_up_to_its_time() {
    const WRITERS: i32 = 3;
    const EACH: i32 = 200;
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": -1 }]);
        let writer = |writer: i32| {
            let store = std::sync::Arc::clone(&lab.store);
            let body = move || {
                for id in writer * EACH..(writer + 1) * EACH {
                    let raw = raw(&doc! { "_id": id });
                    let options = InsertOptions::default();
                    store.insert(&op(), &ns("c"), &[&raw], options).unwrap();
                }
            };
            stdx::sync::spawn("writer", body).unwrap()
        };
        let threads: Vec<_> = (0..WRITERS).map(writer).collect();
        let ids = |op: &Op<'_>| {
            let find = FindRequest {
                batch_size: Some(10_000),
                ..FindRequest::default()
            };
            let found = lab.store.find(op, &ns("c"), &find)?.documents;
            let ids = found
                .iter()
                .map(|document| document.get_i32("_id").unwrap());
            Ok((op.held.unwrap().time(), ids.collect::<BTreeSet<i32>>()))
        };
        let looks: Vec<_> = (0..30)
            .map(|_| lab.store.at_present(&op(), ids).unwrap())
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let entries = crate::replay::entries(&lab.store);
        for (time, found) in looks {
            let until = entries
                .iter()
                .filter(|entry| entry.get_timestamp("ts").unwrap() <= time)
                .filter(|entry| entry.get_str("op").unwrap() == "i");
            let id = |entry: &RawDocumentBuf| {
                let document = entry.get_document("o").unwrap();
                document.get_i32("_id").unwrap()
            };
            let expected: BTreeSet<i32> = until.map(id).collect();
            assert!(found == expected, "M1 at {time:?} on {}", lab.engine());
        }
    });
}
