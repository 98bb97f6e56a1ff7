//! Reads at a snapshot while a build ends: a plan uses only indexes that the snapshot contains.

use std::cell::Cell;
use std::sync::Arc;

use bson::{Timestamp, doc};
use kv::Durability;
use query::{Code, Namespace, Result};

use super::super::Point::{Begun, Looked, Marked};
use super::rig::{Site, counting, named, on_filled, raw, spec};
use crate::ddl::IndexNames;
use crate::stop::at_points;
use crate::store::Store;
use crate::txn::{Op, SessionId, SessionRef};

fn session() -> Op<'static> {
    let id = SessionId {
        id: [1; 16],
        uid: [0; 32],
    };
    Op {
        session: Some(SessionRef {
            id,
            txn_number: Some(1),
            stmt_id: 0,
            stmt_ids: None,
        }),
        ..Op::new(Durability::Group)
    }
}

/// The number of documents with `a` equal to 7, by a query that the index could serve.
fn sevens(store: &Store, op: &Op<'_>, ns: &Namespace) -> Result<u64> {
    store.count(op, ns, &counting(&doc! { "a": 7 }))
}

fn in_transaction(site: &Site, start: bool) -> Result<u64> {
    let (store, ns) = (Arc::clone(&site.store), site.ns.clone());
    let read = move |op: &Op<'_>| sevens(&store, op, &ns);
    site.store.in_transaction(session(), start, read)
}

fn at_moment(site: &Site) -> Result<u64> {
    let (store, ns) = (Arc::clone(&site.store), site.ns.clone());
    let time = Timestamp {
        time: 5,
        increment: 1,
    };
    let read = move |op: &Op<'_>| sevens(&store, op, &ns);
    let done = site
        .store
        .at_moment(Op::new(Durability::Group), Some(time), time, read);
    done.map(|(count, _)| count)
}

/// The transaction and the snapshot begin when the catalog lists the index and the index has no
/// entries. They read when the stored catalog marks the index as ready and the catalog in memory
/// does not.
/// `catalog`: G1.
#[test]
fn a_moment_before_the_end_of_a_build_does_without_the_index() {
    on_filled(|site| {
        let wanted = spec(&doc! { "a": 1 }, doc! {});
        let builder = site.create(&site.ns, &[wanted], &[Begun, Marked]);
        builder.at(Marked);
        builder.go().at(Begun);
        assert_eq!(in_transaction(site, true), Ok(10));
        assert_eq!(at_moment(site), Ok(10));
        builder.go().at(Marked);
        for _ in 0..2 {
            assert_eq!(in_transaction(site, false), Ok(10));
            assert_eq!(at_moment(site), Ok(10));
            assert_eq!(sevens(&site.store, &site.op, &site.ns), Ok(10));
        }
        builder.finish().unwrap();
        let late = in_transaction(site, false).unwrap_err();
        assert_eq!(late.code, Code::SNAPSHOT_UNAVAILABLE);
        assert_eq!(at_moment(site).unwrap_err().code, late.code);
        assert_eq!(sevens(&site.store, &site.op, &site.ns), Ok(10));
    });
}

/// A pipeline resolves names when it reaches them, after its snapshot was opened.
#[test]
fn a_pipeline_does_without_an_index_that_is_newer_than_its_snapshot() {
    for factory in [kv_betree::factory(), kv::memory::factory()] {
        let site = Site::new(factory);
        site.fill();
        let built = Cell::new(false);
        // The server calls this after the snapshot was opened and before the join is planned.
        let report = |_: &Namespace, _: &query::stage::Statistics| {
            let wanted = spec(&doc! { "a": 1 }, doc! {});
            site.store.create_indexes(&site.op, &site.ns, &[wanted])?;
            built.set(true);
            Ok(vec![doc! { "k": 7 }])
        };
        let join = doc! { "$lookup": {
            "from": {"db": "d", "coll": "c"}, "localField": "k", "foreignField": "a", "as": "found",
        } };
        let count = doc! { "$project": { "n": { "$size": "$found" } } };
        let stages = [doc! { "$listSessions": {} }, join, count];
        let request = crate::AggregateRequest {
            pipeline: stages.iter().map(raw).collect(),
            ..crate::AggregateRequest::default()
        };
        let ns = Namespace::new("config", "system.sessions").unwrap();
        let found = site
            .store
            .aggregate_with(&site.op, &ns, &request, Some(&report))
            .unwrap();
        assert!(built.get());
        let first = found.documents.first().unwrap();
        assert_eq!(first.get_i32("n").unwrap(), 10, "{first:?}");
    }
}

/// Between a read of the catalog and the opening of the snapshot the index is dropped and a
/// document is inserted: the read must still find the document.
/// `txn::view`: V1.
#[test]
fn a_read_does_without_an_index_that_was_dropped_before_its_snapshot() {
    type Read = fn(&Store, &Op<'_>, &Namespace) -> Result<u64>;
    let reads: [Read; 3] = [sevens, found, different];
    on_filled(|site| {
        for (round, read) in (1..).zip(reads) {
            let wanted = spec(&doc! { "a": 1 }, doc! {});
            let created = site.store.create_indexes(&site.op, &site.ns, &[wanted]);
            created.unwrap();
            let done = Cell::new(false);
            let (store, ns) = (Arc::clone(&site.store), site.ns.clone());
            let document = raw(&doc! { "_id": 100 + i64::try_from(round).unwrap(), "a": 7 });
            let hook = move |point| {
                if point == Looked && !done.replace(true) {
                    let op = Op::new(Durability::Group);
                    let names = IndexNames::All;
                    store.drop_indexes(&op, &ns, &names).unwrap();
                    let options = crate::InsertOptions::default();
                    store.insert(&op, &ns, &[&document], options).unwrap();
                }
            };
            let n = at_points(hook, || read(&site.store, &site.op, &site.ns));
            assert_eq!(n, Ok(10 + round), "round {round}");
        }
    });
}

/// The result of `find`.
fn found(store: &Store, op: &Op<'_>, ns: &Namespace) -> Result<u64> {
    let request = crate::FindRequest {
        filter: raw(&doc! { "a": 7 }),
        ..crate::FindRequest::default()
    };
    Ok(store.find(op, ns, &request)?.documents.len() as u64)
}

/// The result of `distinct`.
fn different(store: &Store, op: &Op<'_>, ns: &Namespace) -> Result<u64> {
    let request = crate::DistinctRequest {
        key: "_id".to_owned(),
        filter: raw(&doc! { "a": 7 }),
        ..crate::DistinctRequest::default()
    };
    Ok(store.distinct(op, ns, &request)?.len() as u64)
}

/// Between a read of the catalog and the opening of the snapshot a document with an array is
/// inserted: the read must return it once.
/// `txn::view`: V1.
#[test]
fn a_read_knows_of_arrays_that_came_before_its_snapshot() {
    on_filled(|site| {
        let ns = named("arrays");
        site.put(&ns, &doc! { "_id": 0, "a": 1 }).unwrap();
        let wanted = spec(&doc! { "a": 1 }, doc! {});
        site.store.create_indexes(&site.op, &ns, &[wanted]).unwrap();
        let filter = doc! { "a": { "$gte": 0, "$lte": 9 } };
        let (store, of_hook) = (Arc::clone(&site.store), ns.clone());
        let hook = move |point| {
            if point == Looked {
                let document = raw(&doc! { "_id": 1, "a": [2, 3, 4] });
                let options = crate::InsertOptions::default();
                let op = Op::new(Durability::Group);
                // At the second call the document exists.
                store.insert(&op, &of_hook, &[&document], options).unwrap();
            }
        };
        let n = at_points(hook, || site.count(&ns, filter));
        assert_eq!(n, 2);
    });
}
