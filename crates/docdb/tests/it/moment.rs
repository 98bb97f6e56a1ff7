//! Reads at a held snapshot.

use bson::{Timestamp, doc};
use docdb::{FindRequest, GetMore, InsertOptions, Op};

use crate::lab::{Lab, ns, on_each, op, raw};

const fn at(time: u32) -> Timestamp {
    Timestamp { time, increment: 1 }
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
        assert_eq!(count(lab, None, at(5)), Ok((2, at(5))));
        lab.insert(&ns("c"), &[doc! { "_id": 2 }]);
        assert_eq!(count(lab, None, at(6)), Ok((3, at(6))));
        assert_eq!(count(lab, Some(at(5)), at(6)), Ok((2, at(5))));
        assert_eq!(lab.all(&ns("c")).len(), 3);
        let old = count(lab, Some(at(4)), at(6));
        assert_eq!(old.unwrap_err().code.0, 239, "nobody holds that time");
    });
}

#[test]
fn a_collection_that_was_changed_is_not_read_at_a_moment_before() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0, "a": 1 }]);
        count(lab, None, at(5)).unwrap();
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a_1" });
        let changed = count(lab, Some(at(5)), at(6));
        assert_eq!(changed.unwrap_err().code.0, 246);
        assert_eq!(count(lab, None, at(6)), Ok((1, at(6))));
    });
}

#[test]
fn writes_go_on_beside_a_moment() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        count(lab, None, at(5)).unwrap();
        let store = std::sync::Arc::clone(&lab.store);
        let body = move |op: &Op<'_>| {
            let raw = raw(&doc! { "_id": 1 });
            store.insert(op, &ns("c"), &[&raw], InsertOptions::default())
        };
        let done = lab.store.at_moment(op(), Some(at(5)), at(5), body);
        assert_eq!(done.unwrap().0.n, 1);
        assert_eq!(count(lab, Some(at(5)), at(5)), Ok((1, at(5))));
        assert_eq!(lab.all(&ns("c")).len(), 2);
    });
}
