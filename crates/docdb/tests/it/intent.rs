//! Plain writes during open transactions: they wait, and never make a commit fail.

use std::sync::Arc;
use std::time::Duration;

use bson::{DateTime, Document, RawDocument, doc};
use docdb::{FindAndModify, FindRequest, InsertOptions, Op, Store, UpdateStatement};
use query::Result;
use stdx::Rng;

use crate::lab::{Lab, documents, find, ns, on_each, op, raw};
use crate::session::session;
use crate::write::{del, set};

/// A plain write to the collection `c`.
type Write = fn(&Store, &Op<'_>) -> Result<()>;

/// An operation with a short time limit.
fn brief() -> Op<'static> {
    let mut op = op();
    op.deadline = Some(stdx::time::now() + Duration::from_millis(20));
    op
}

fn insert(store: &Store, op: &Op<'_>, document: &Document) -> Result<()> {
    let raw = raw(document);
    let documents: [&RawDocument; 1] = [&raw];
    let reply = store.insert(op, &ns("c"), &documents, InsertOptions::default())?;
    match reply.errors.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(first.error),
    }
}

fn update(store: &Store, op: &Op<'_>, statement: UpdateStatement) -> Result<i64> {
    let reply = store.update(op, &ns("c"), &[statement], true, false)?;
    match reply.errors.into_iter().next() {
        None => Ok(reply.n),
        Some(first) => Err(first.error),
    }
}

/// Run a statement in a transaction of a session.
fn within<R: Send + 'static>(
    lab: &Lab,
    (id, number): (u8, i64),
    start: bool,
    body: impl FnOnce(&Store, &Op<'_>) -> Result<R> + Send + 'static,
) -> Result<R> {
    let store = Arc::clone(&lab.store);
    let run = move |op: &Op<'_>| body(&store, op);
    lab.store.in_transaction(session(id, number), start, run)
}

fn one_writer(lab: &Lab) -> bool {
    !lab.store.engine().capabilities().concurrent_writers
}

fn inc(id: i32, by: i32) -> UpdateStatement {
    set(doc! { "_id": id }, doc! { "$inc": { "n": by } })
}

/// Writes that conflict with those of [`open`].
const WRITES: [(&str, Write); 10] = [
    ("update", |store, op| {
        update(store, op, inc(0, 10)).map(drop)
    }),
    ("update of many", |store, op| {
        let many = UpdateStatement {
            multi: true,
            ..set(doc! {}, doc! { "$inc": { "n": 10 } })
        };
        update(store, op, many).map(drop)
    }),
    ("replacement", |store, op| {
        let next = doc! { "n": 11, "u": 0 };
        update(store, op, set(doc! { "_id": 0 }, next)).map(drop)
    }),
    ("delete", |store, op| {
        let statement = del(doc! { "_id": 0 }, false);
        store.delete(op, &ns("c"), &[statement], true).map(drop)
    }),
    ("delete of many", |store, op| {
        let statement = del(doc! { "_id": { "$lt": 3 } }, true);
        store.delete(op, &ns("c"), &[statement], true).map(drop)
    }),
    ("findAndModify", |store, op| {
        let asked = FindAndModify {
            filter: raw(&doc! { "_id": 0 }),
            ..FindAndModify::default()
        };
        store.find_and_modify(op, &ns("c"), &asked).map(drop)
    }),
    ("insert of an _id", |store, op| {
        insert(store, op, &doc! { "_id": 9, "u": 100 })
    }),
    ("upsert of an _id", |store, op| {
        let upsert = UpdateStatement {
            upsert: true,
            ..inc(9, 1)
        };
        update(store, op, upsert).map(drop)
    }),
    ("insert of a unique key", |store, op| {
        insert(store, op, &doc! { "_id": 10, "u": 9 })
    }),
    ("insert of a key that was freed", |store, op| {
        insert(store, op, &doc! { "_id": 11, "u": 2 })
    }),
];

/// Insert documents 0 to 4 with a unique key, and open a transaction that has changed 0, inserted 9
/// and removed 2.
fn open(lab: &Lab, number: i64) {
    if number == 1 {
        lab.index(
            "c",
            doc! { "key": { "u": 1 }, "name": "u_1", "unique": true },
        );
    }
    lab.store
        .delete(&op(), &ns("c"), &[del(doc! {}, true)], true)
        .unwrap();
    let all: Vec<Document> = (0..5).map(|i| doc! { "_id": i, "n": 0, "u": i }).collect();
    assert_eq!(lab.insert(&ns("c"), &all).n, 5);
    within(lab, (1, number), true, |store, op| {
        assert_eq!(update(store, op, inc(0, 1))?, 1);
        insert(store, op, &doc! { "_id": 9, "u": 9 })?;
        store.delete(op, &ns("c"), &[del(doc! { "_id": 2 }, false)], true)
    })
    .unwrap();
}

/// `intent`: I1.
#[test]
fn a_plain_write_does_not_overtake_a_transaction() {
    on_each(|lab| {
        for (number, (name, write)) in (1..).zip(WRITES) {
            let context = format!("{name} on {}", lab.engine());
            open(lab, number);
            let early = write(&lab.store, &brief());
            assert_eq!(early.unwrap_err().code.0, 50, "{context}");
            let store = Arc::clone(&lab.store);
            let later = stdx::sync::spawn("plain", move || write(&store, &op())).unwrap();
            let committed = lab.store.commit_transaction(&session(1, number));
            assert_eq!(committed, Ok(()), "{context}");
            match later.join().unwrap() {
                Err(e) => assert!(
                    name.contains("insert") && e.code.0 == 11000,
                    "{context}: {e}"
                ),
                Ok(()) => assert!(!name.ends_with("an _id") || name.starts_with("upsert")),
            }
        }
    });
}

#[test]
fn a_plain_write_goes_on_when_the_transaction_aborts_or_ends_with_its_session() {
    on_each(|lab| {
        for (number, (name, write)) in (1..).zip(WRITES) {
            open(lab, number);
            let store = Arc::clone(&lab.store);
            let later = stdx::sync::spawn("plain", move || write(&store, &op())).unwrap();
            if number % 2 == 0 {
                lab.store.abort_transaction(&session(1, number)).unwrap();
            } else {
                let id = session(1, number).session.unwrap().id;
                lab.store.end_sessions(&[id]).unwrap();
            }
            let done = later.join().unwrap();
            let taken = name == "insert of a key that was freed";
            assert_eq!(done.is_err(), taken, "{name} on {}: {done:?}", lab.engine());
        }
    });
}

#[test]
fn what_expires_passes_by_what_a_transaction_has_written() {
    on_each(|lab| {
        // With one writer the write waits for the transaction.
        if one_writer(lab) {
            return;
        }
        let index = doc! { "key": { "t": 1 }, "name": "t_1", "expireAfterSeconds": 1 };
        lab.index("c", index);
        let old = |id: i32| doc! { "_id": id, "t": DateTime::from_millis(0) };
        lab.insert(&ns("c"), &[old(0), old(1), old(2)]);
        let touch = |store: &Store, op: &Op<'_>| update(store, op, inc(1, 1));
        assert_eq!(within(lab, (1, 1), true, touch), Ok(1));
        assert_eq!(lab.store.expire(&op()), Ok(2));
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        assert_eq!(lab.all(&ns("c")).len(), 1);
        assert_eq!(lab.store.expire(&op()), Ok(1));
    });
}

/// The field `n` of a document, as a transaction sees it.
fn read(store: &Store, op: &Op<'_>, coll: &str, id: i32) -> Result<i32> {
    let found = store.find(op, &ns(coll), &find(doc! { "_id": id }))?;
    Ok(documents(&found)[0].get_i32("n").unwrap())
}

#[test]
fn a_transaction_that_has_only_read_holds_no_writer_up() {
    on_each(|lab| {
        for coll in ["c", "d"] {
            lab.insert(&ns(coll), &[doc! { "_id": 0, "n": 0 }]);
        }
        let look = |store: &Store, op: &Op<'_>| read(store, op, "c", 0);
        assert_eq!(within(lab, (1, 1), true, look), Ok(0));
        assert_eq!(update(&lab.store, &brief(), inc(0, 1)), Ok(1));
        assert_eq!(within(lab, (1, 1), false, look), Ok(0), "its snapshot");
        // The transaction has read a document that was changed since: a write based on it must
        // fail.
        let late = within(lab, (1, 1), false, |store, op| update(store, op, inc(0, 1)));
        assert_eq!(late.unwrap_err().code.0, 112, "{}", lab.engine());
        // Retry as drivers do: with one writer no other write can intervene now.
        assert_eq!(within(lab, (1, 2), true, look), Ok(1));
        if one_writer(lab) {
            let waits = update(&lab.store, &brief(), inc(0, 1));
            assert_eq!(waits.unwrap_err().code.0, 50);
        }
        let write = |store: &Store, op: &Op<'_>| update(store, op, inc(0, 1));
        assert_eq!(within(lab, (1, 2), false, write), Ok(1));
        lab.store.commit_transaction(&session(1, 2)).unwrap();
        // Documents that the transaction has not read may change.
        let other = |store: &Store, op: &Op<'_>| read(store, op, "d", 0);
        assert_eq!(within(lab, (1, 3), true, other), Ok(0));
        assert_eq!(update(&lab.store, &brief(), inc(0, 1)), Ok(1));
        let other = |store: &Store, op: &Op<'_>| {
            let statement = [inc(0, 1)];
            store.update(op, &ns("d"), &statement, true, false)
        };
        within(lab, (1, 3), false, other).unwrap();
        lab.store.commit_transaction(&session(1, 3)).unwrap();
        assert_eq!(read(&lab.store, &op(), "c", 0), Ok(3));
        assert_eq!(read(&lab.store, &op(), "d", 0), Ok(1));
        // A transaction that only reads commits.
        let all = |store: &Store, op: &Op<'_>| store.find(op, &ns("c"), &FindRequest::default());
        within(lab, (1, 4), true, all).unwrap();
        assert_eq!(update(&lab.store, &brief(), inc(0, 1)), Ok(1));
        lab.store.commit_transaction(&session(1, 4)).unwrap();
    });
}

/// A conflict makes only the next transaction of its session the writer from its first read on.
#[test]
fn a_transaction_that_begins_with_a_write_ends_the_precedence_after_a_conflict() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0, "n": 0 }]);
        let look = |store: &Store, op: &Op<'_>| read(store, op, "c", 0);
        let write = |store: &Store, op: &Op<'_>| update(store, op, inc(0, 1));
        assert_eq!(within(lab, (1, 1), true, look), Ok(0));
        assert_eq!(update(&lab.store, &brief(), inc(0, 1)), Ok(1));
        let late = within(lab, (1, 1), false, write);
        assert_eq!(late.unwrap_err().code.0, 112, "{}", lab.engine());
        assert_eq!(within(lab, (1, 2), true, write), Ok(1));
        lab.store.commit_transaction(&session(1, 2)).unwrap();
        assert_eq!(within(lab, (1, 3), true, look), Ok(2));
        assert_eq!(update(&lab.store, &brief(), inc(0, 1)), Ok(1));
        lab.store.commit_transaction(&session(1, 3)).unwrap();
    });
}

const DOCUMENTS: u64 = 4;
const ROUNDS: usize = 40;

/// Transactions that move amounts between documents. Statements may conflict, commits may not.
fn transfers(lab: &Lab, id: u8, rng: &mut Rng) {
    let mut number = 0;
    let mut done = 0;
    while done < ROUNDS {
        number += 1;
        let pick = |rng: &mut Rng| i32::try_from(rng.below(DOCUMENTS)).unwrap();
        let (from, to) = (pick(rng), pick(rng));
        let looks = rng.chance(0.5);
        let moved = within(lab, (id, number), true, move |store, op| {
            if looks {
                read(store, op, "c", from)?;
            }
            update(store, op, inc(from, -1))
        })
        .and_then(|_| {
            within(lab, (id, number), false, move |store, op| {
                update(store, op, inc(to, 1))
            })
        });
        match moved {
            // A conflict, or a timeout of the wait for the one writer.
            Err(e) => assert!([112, 24].contains(&e.code.0), "{}: {e}", lab.engine()),
            Ok(_) => {
                let committed = lab.store.commit_transaction(&session(id, number));
                assert_eq!(committed, Ok(()), "{}", lab.engine());
                done += 1;
            }
        }
    }
}

#[test]
fn commits_do_not_fail_beside_plain_writes_and_no_write_is_lost() {
    let seed = 16;
    on_each(|lab| {
        let all: Vec<Document> = (0..4).map(|i| doc! { "_id": i, "n": 0 }).collect();
        lab.insert(&ns("c"), &all);
        let lab = &*lab;
        std::thread::scope(|scope| {
            for id in 0..3 {
                scope.spawn(move || transfers(lab, id, &mut Rng::new(seed + u64::from(id))));
                scope.spawn(move || {
                    let mut rng = Rng::new(seed + 100 + u64::from(id));
                    for _ in 0..ROUNDS {
                        let to = i32::try_from(rng.below(DOCUMENTS)).unwrap();
                        assert_eq!(update(&lab.store, &op(), inc(to, 1)), Ok(1));
                    }
                });
            }
        });
        let sum: i32 = lab
            .all(&ns("c"))
            .iter()
            .map(|d| d.get_i32("n").unwrap())
            .sum();
        assert_eq!(sum, 3 * i32::try_from(ROUNDS).unwrap(), "seed {seed}");
    });
}
