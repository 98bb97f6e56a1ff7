//! Applying the entries of another member.

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::{DateTime, Document, RawDocument, RawDocumentBuf, Timestamp, doc};
use docdb::oplog::entry::OpTime;
use docdb::replica::{Role, StoredEntry};
use docdb::{FindAndModify, InsertOptions, Store};
use query::Code;
use stdx::Tape;

use super::history::History;
use super::pair::Member;
use super::state::State;
use crate::lab::{ns, op, raw};
use crate::session::session;
use crate::write::set;

fn insert(store: &Store, id: i32, size: usize) {
    let document = raw(&doc! { "_id": id, "x": "x".repeat(size) });
    let documents: [&RawDocument; 1] = [&document];
    let options = InsertOptions::default();
    let reply = store.insert(&op(), &ns("c"), &documents, options).unwrap();
    assert_eq!(reply.n, 1);
}

/// Append and apply all that another member has.
fn catch_up(from: &Member, to: &Member) {
    to.fetch(from, usize::MAX).unwrap();
    let last = from.replica().written();
    assert_eq!(to.replica().apply_to(&op(), last).unwrap(), last);
}

/// `oplog::stored`: H1. A member that was a follower answers as the primary did.
#[test]
fn a_retried_statement_is_answered_alike_after_a_failover() {
    for factory in [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ] {
        let (first, second) = (Member::new(factory), Member::follower(factory));
        let asked = FindAndModify {
            filter: raw(&doc! { "_id": 1 }),
            update: Some(bson::RawBson::Document(raw(&doc! { "$inc": { "n": 1 } }))),
            ..FindAndModify::default()
        };
        let two: [&RawDocument; 2] = [&raw(&doc! { "_id": 1 }), &raw(&doc! { "_id": 2 })];
        let write = |store: &Arc<Store>| {
            let options = InsertOptions::default();
            let inserted = store
                .insert(&session(1, 1), &ns("c"), &two, options)
                .unwrap();
            let mut up = set(doc! { "_id": 9 }, doc! { "$set": { "a": 1 } });
            up.upsert = true;
            let updated = store.update(&session(2, 1), &ns("c"), &[up], true, false);
            let found = store.find_and_modify(&session(3, 1), &ns("c"), &asked);
            (inserted.n, updated.unwrap(), found.unwrap().value)
        };
        // The second member has read the sessions before their records arrive.
        let ids: Vec<_> = [1, 2, 3]
            .map(|id| session(id, 1).session.unwrap().id)
            .into();
        second.store.refresh_sessions(&ids).unwrap();
        let answered = write(&first.store);
        let inner = Arc::clone(&first.store);
        let body = move |op: &docdb::Op<'_>| {
            let document = raw(&doc! { "_id": 5 });
            inner.insert(op, &ns("c"), &[&document], InsertOptions::default())
        };
        first
            .store
            .in_transaction(session(4, 1), true, body)
            .unwrap();
        first.store.commit_transaction(&session(4, 1)).unwrap();
        catch_up(&first, &second);
        second.replica().lead(&op(), 2).unwrap();
        assert_eq!(second.replica().role(), Role::Primary);
        let before = second.replica().written();
        let again = write(&second.store);
        assert_eq!(again.0, answered.0, "H1");
        assert_eq!(again.1.upserted, answered.1.upserted, "H1");
        assert_eq!(again.2, answered.2, "H1");
        second.store.commit_transaction(&session(4, 1)).unwrap();
        assert_eq!(second.replica().written(), before, "nothing is done twice");
    }
}

/// `replica::apply`: J1, J2. A batch that changes more than it may hold is one transaction, too.
#[test]
fn large_documents_are_written_before_the_batch_ends() {
    let (primary, follower) = (
        Member::new(kv::memory::factory()),
        Member::follower(kv::memory::factory()),
    );
    for id in 0..6 {
        insert(&primary.store, id, 8 << 20);
    }
    catch_up(&primary, &follower);
    for round in 0..2 {
        for id in 0..6 {
            let change = set(doc! { "_id": id }, doc! { "$set": { "n": round } });
            primary
                .store
                .update(&op(), &ns("c"), &[change], true, false)
                .unwrap();
        }
    }
    catch_up(&primary, &follower);
    let none = BTreeSet::new();
    let expected = State::of(&primary.store, &none);
    expected.check(&State::of(&follower.store, &none), "large documents");
    State::validate(&follower.store, "large documents");
}

/// `entries::settle`: E3.
#[test]
fn a_key_passes_from_one_document_to_another_in_a_batch() {
    let (primary, follower) = (
        Member::new(kv::memory::factory()),
        Member::follower(kv::memory::factory()),
    );
    let index = doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true };
    primary
        .store
        .create_indexes(&op(), &ns("c"), &[index])
        .unwrap();
    for id in 0..4 {
        insert(&primary.store, id, 1);
    }
    let change = |id: i32, change: Document| {
        let change = [set(doc! { "_id": id }, change)];
        let reply = primary.store.update(&op(), &ns("c"), &change, true, false);
        assert_eq!(reply.unwrap().n_modified, 1);
    };
    change(1, doc! { "$set": { "u": 7 } });
    change(2, doc! { "$set": { "u": 8 } });
    catch_up(&primary, &follower);
    change(1, doc! { "$unset": { "u": 1 } });
    change(3, doc! { "$set": { "u": 7 } });
    change(2, doc! { "$unset": { "u": 1 } });
    change(0, doc! { "$set": { "u": 8 } });
    catch_up(&primary, &follower);
    State::validate(&follower.store, "E3");
}

/// An entry after `at` that another primary could not have written.
fn entry(at: OpTime, change: &Document) -> StoredEntry {
    let ts = Timestamp {
        time: at.ts.time + 1,
        increment: 1,
    };
    let mut entry = doc! {
        "op": "n", "ns": "", "o": { "msg": "note" }, "ts": ts, "t": 1_i64, "v": 2_i64,
        "wall": DateTime::MIN,
    };
    entry.extend(change.clone());
    StoredEntry {
        at: OpTime { ts, term: 1 },
        value: raw(&entry).into_bytes(),
    }
}

/// `replica::apply`: J3.
#[test]
fn what_cannot_be_applied_is_named_and_leaves_nothing() {
    let primary = Member::new(kv::memory::factory());
    insert(&primary.store, 1, 1);
    let uuid = primary.store.collection(&ns("c")).unwrap().uuid();
    let other = bson::Uuid::from_bytes([9; 16]);
    let of = |op: &str, o: Document| doc! { "op": op, "ns": "test.c", "ui": uuid, "o": o };
    let command = |o: Document| doc! { "op": "c", "ns": "test.$cmd", "o": o };
    let with = |mut entry: Document, key: &str, value: bson::Bson| {
        entry.insert(key, value);
        entry
    };
    let key = bson::Bson::Document(doc! { "_id": 7 });
    let here = bson::Bson::Document(doc! { "_id": 1 });
    let previous = doc! { "ts": Timestamp { time: 5, increment: 5 }, "t": 1_i64 };
    let bad = [
        of("i", doc! { "_id": 1 }),
        of("i", doc! { "a": 1 }),
        of("d", doc! { "_id": 7 }),
        with(of("u", doc! { "_id": 7 }), "o2", key.clone()),
        with(of("u", doc! { "_id": 7 }), "o2", here.clone()),
        with(
            of("u", doc! { "$v": 1, "$set": { "a": 1 } }),
            "o2",
            here.clone(),
        ),
        with(of("u", doc! { "$v": 2, "diff": 1 }), "o2", here.clone()),
        with(of("i", doc! { "_id": 7 }), "ui", other.into()),
        with(of("i", doc! { "_id": 7 }), "ns", "test.d".into()),
        command(doc! { "noSuch": 1 }),
        command(doc! { "drop": "c" }),
        with(command(doc! { "drop": "c" }), "ui", other.into()),
        command(doc! { "create": "e" }),
        with(
            command(doc! { "create": "e", "capped": 5, "size": "x" }),
            "ui",
            other.into(),
        ),
        with(command(doc! { "create": "c" }), "ui", other.into()),
        with(command(doc! { "create": "system.foo" }), "ui", other.into()),
        with(
            command(doc! { "dropIndexes": "c", "index": "none" }),
            "ui",
            uuid.into(),
        ),
        with(
            command(doc! { "collMod": "c", "noSuch": 1 }),
            "ui",
            uuid.into(),
        ),
        with(
            command(doc! { "convertToCapped": "c", "size": -1 }),
            "ui",
            uuid.into(),
        ),
        with(
            command(doc! { "commitIndexBuild": "c", "indexBuildUUID": other, "indexes": [{}] }),
            "ui",
            uuid.into(),
        ),
        command(doc! { "applyOps": [command(doc! { "drop": "c" })] }),
        command(doc! { "applyOps": [of("d", doc! { "_id": 1 }), of("d", doc! { "_id": 1 })] }),
        with(
            command(doc! { "applyOps": [of("d", doc! { "_id": 1 })], "count": 2_i64 }),
            "prevOpTime",
            previous.into(),
        ),
        with(command(doc! { "create": "own" }), "ns", "local.$cmd".into()),
        with(
            with(command(doc! { "create": "own" }), "ns", "local.$cmd".into()),
            "ui",
            other.into(),
        ),
    ];
    for change in bad {
        let follower = Member::follower(kv::memory::factory());
        catch_up(&primary, &follower);
        let none = BTreeSet::new();
        let before = State::of(&follower.store, &none);
        let applied = follower.replica().applied();
        let last = entry(applied, &change);
        follower.append(std::slice::from_ref(&last)).unwrap();
        let error = follower
            .replica()
            .apply_to(&op(), last.at)
            .expect_err(&change.to_string());
        let place = change.get_str("ns").unwrap();
        let named = format!(
            "cannot apply the entry Timestamp({}, 1) of term 1 to {place}",
            last.at.ts.time
        );
        assert!(
            error.message.starts_with(&named),
            "J3: {error} for {change}"
        );
        assert_eq!(follower.replica().applied(), applied, "J3: {change}");
        before.check(&State::of(&follower.store, &none), "nothing is applied");
    }
}

/// The entries of a history.
fn some(seed: u64) -> Vec<StoredEntry> {
    with_state(seed).0
}

/// The entries of a history, and what they lead to.
fn with_state(seed: u64) -> (Vec<StoredEntry>, State) {
    let primary = Member::new(kv::memory::factory());
    let mut history = History::new(&primary.store, seed);
    for _ in 0..30 {
        history.step();
    }
    let all = primary
        .replica()
        .stored_after(OpTime::NONE.ts, usize::MAX, usize::MAX);
    (all.unwrap(), State::of(&primary.store, &BTreeSet::new()))
}

/// Damaged entries are refused, or applied as what they are: nothing panics.
#[test]
fn damaged_entries_are_applied_or_refused() {
    let (mut applied, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut entries = some(seed % 20);
        let mut tape = Tape::from_seed(seed, 24);
        let damaged = tape.index(entries.len());
        let value = &mut entries[damaged].value;
        for _ in 0..1 + tape.byte() % 3 {
            let at = tape.index(value.len());
            value[at] = tape.byte();
        }
        let follower = Member::follower(kv::memory::factory());
        let done = follower.append(&entries).and_then(|()| {
            let last = follower.replica().written();
            follower.replica().apply_to(&op(), last)
        });
        match done {
            Ok(_) => applied += 1,
            Err(error) => {
                assert_ne!(error.code, Code::WRITE_CONFLICT);
                refused += 1;
            }
        }
    }
    assert!(
        30 < applied && 100 < refused,
        "{applied} applied, {refused} refused"
    );
}

/// `replica`: Q2. A left out entry and a lost mark are found: the members differ.
#[test]
fn a_left_out_entry_and_a_lost_mark_are_found() {
    let (mut left_out, mut lost) = (0, 0);
    for seed in 0..20 {
        let (all, expected) = with_state(seed);
        let follower = Member::follower(kv::memory::factory());
        let mut fewer = all.clone();
        fewer.remove(all.len() / 2);
        follower.append(&fewer).unwrap();
        let last = follower.replica().written();
        let done = follower.replica().apply_to(&op(), last);
        let same = || State::of(&follower.store, &BTreeSet::new()) == expected;
        left_out += usize::from(done.is_err() || !same());
        let follower = Member::follower(kv::memory::factory());
        follower.append(&all).unwrap();
        let mark = |store: &Store| {
            let tree = store.engine().open_tree("_catalog").unwrap();
            let snapshot = store.engine().begin_read().unwrap();
            (tree, snapshot.get(tree, b"a").unwrap().unwrap())
        };
        let (tree, before) = mark(&follower.store);
        follower
            .replica()
            .apply_to(&op(), all.last().unwrap().at)
            .unwrap();
        let mut batch = kv::Batch::new();
        batch.put(tree, b"a", &before);
        let engine = follower.store.engine();
        engine.write(&batch, kv::Durability::Interval).unwrap();
        let again = follower.again();
        let done = again
            .replica()
            .unwrap()
            .apply_to(&op(), all.last().unwrap().at);
        lost += usize::from(done.is_err());
    }
    assert!(12 < left_out, "{left_out} of 20");
    // A history can lead twice to the same.
    assert!(17 < lost, "Q2: {lost} of 20");
}

/// Entries as raw documents are what clients of a follower are shown once they are applied.
#[test]
fn clients_of_a_follower_are_shown_what_is_applied() {
    let (primary, follower) = (
        Member::new(kv::memory::factory()),
        Member::follower(kv::memory::factory()),
    );
    for id in 0..5 {
        insert(&primary.store, id, 1);
    }
    follower.fetch(&primary, usize::MAX).unwrap();
    let all: Vec<RawDocumentBuf> = primary.store.oplog_after(OpTime::NONE.ts, 99).unwrap();
    let entries = primary
        .replica()
        .stored_after(OpTime::NONE.ts, 99, usize::MAX)
        .unwrap();
    for (count, entry) in entries.iter().enumerate() {
        let until = follower.replica().apply_to(&op(), entry.at).unwrap();
        assert_eq!(until, entry.at);
        let shown = follower.store.oplog_after(OpTime::NONE.ts, 99).unwrap();
        assert_eq!(shown, all[..=count]);
        assert_eq!(follower.store.oplog_visible(), Some(entry.at.ts));
        let at = follower
            .store
            .at_present(&op(), |op| Ok(op.held.unwrap().time()));
        assert_eq!(at.unwrap(), entry.at.ts, "`oplog::applied`: X1");
    }
}
