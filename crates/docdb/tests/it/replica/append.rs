//! Appending the entries of another member.

use bson::{Document, RawDocument, Timestamp, doc};
use docdb::oplog::entry::OpTime;
use docdb::replica::Role;
use docdb::{CollectionOptions, InsertOptions};
use kv::Factory;
use query::Code;
use stdx::Tape;

use super::pair::Member;
use crate::lab::{ns, op, raw};
use crate::session::session;

fn factories() -> [&'static dyn Factory; 3] {
    [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ]
}

fn insert(member: &Member, id: i32, number: i64) -> query::Result<()> {
    let document = raw(&doc! { "_id": id, "x": "x".repeat(100) });
    let documents: [&RawDocument; 1] = [&document];
    let op = session(1, number);
    let reply = member
        .store
        .insert(&op, &ns("c"), &documents, InsertOptions::default())?;
    match reply.errors.first() {
        Some(error) => Err(error.error.clone()),
        None => Ok(()),
    }
}

/// `replica`: Q1, Q3; `oplog::segments`: N3.
#[test]
fn a_follower_appends_entries_as_they_are_stored_and_does_not_apply_them() {
    for factory in factories() {
        let (primary, mut follower) = (Member::new(factory), Member::follower(factory));
        for id in 0..60 {
            insert(&primary, id, i64::from(id) + 1).unwrap();
            primary.store.tend_oplog().unwrap();
        }
        let all = primary.replica().stored_after(BEGIN.ts, 100, usize::MAX);
        let all = all.unwrap();
        let hidden = |value: &[u8]| value.len() - RawDocumentLength::of(value);
        assert!(100 < hidden(&all.last().unwrap().value), "`stored`: H1");
        while follower.replica().written() != primary.replica().written() {
            follower.fetch(&primary, 7).unwrap();
        }
        for _ in 0..2 {
            let replica = follower.replica();
            assert_eq!(replica.role(), Role::Follower);
            let copied = replica.stored_after(BEGIN.ts, 100, usize::MAX).unwrap();
            assert_eq!(copied, all, "Q1: as stored");
            assert_eq!(replica.applied(), OpTime::NONE);
            assert_eq!(replica.sync().unwrap(), all.last().unwrap().at);
            assert!(follower.store.catalog().get(&ns("c")).is_none());
            // What clients read ends with what is applied.
            assert_eq!(follower.store.oplog_after(BEGIN.ts, 100).unwrap().len(), 0);
            assert!(
                1 < follower
                    .store
                    .engine()
                    .trees()
                    .unwrap()
                    .iter()
                    .filter(|t| t.starts_with("_oplog."))
                    .count()
            );
            if !follower.reopen() {
                break;
            }
        }
    }
}

/// The length of the first document of a stored value.
struct RawDocumentLength;

impl RawDocumentLength {
    fn of(value: &[u8]) -> usize {
        let length = i32::from_le_bytes(*value.first_chunk().unwrap());
        usize::try_from(length).unwrap()
    }
}

const BEGIN: OpTime = OpTime::NONE;

/// `replica`: Q3.
#[test]
fn a_follower_changes_nothing_that_has_entries() {
    for factory in factories() {
        let member = Member::new(factory);
        insert(&member, 1, 1).unwrap();
        member.replica().follow(&op()).unwrap();
        let written = member.replica().written();
        let refused = insert(&member, 2, 2).unwrap_err();
        assert_eq!(refused.code, Code::NOT_WRITABLE_PRIMARY, "Q3");
        let options = CollectionOptions::default();
        let refused = member.store.create(&op(), &ns("d"), options).unwrap_err();
        assert_eq!(refused.code, Code::NOT_WRITABLE_PRIMARY, "Q3");
        let note = raw(&doc! { "msg": "note" });
        let refused = member.store.append_oplog_note(&op(), &note).unwrap_err();
        assert_eq!(refused.code, Code::NOT_WRITABLE_PRIMARY, "Q3");
        let local = docdb::Namespace::new("local", "own").unwrap();
        let documents: [&RawDocument; 1] = [&raw(&doc! { "_id": 1 })];
        let reply = member
            .store
            .insert(&op(), &local, &documents, InsertOptions::default());
        assert_eq!(reply.unwrap().n, 1, "what has no entries is written");
        assert_eq!(member.replica().written(), written);
        assert_eq!(member.replica().applied(), written);
        // It leads again, in a later term.
        let refused = member.replica().lead(&op(), 0).unwrap_err();
        assert_eq!(refused.code, Code::ILLEGAL_OPERATION);
        member.replica().lead(&op(), 7).unwrap();
        let later = Timestamp {
            time: written.ts.time + 50,
            increment: 3,
        };
        let begun = member.replica().begin_term(&op(), later, &note).unwrap();
        assert_eq!(begun, OpTime { ts: later, term: 7 });
        insert(&member, 2, 2).unwrap();
        assert_eq!(member.replica().written().term, 7);
        assert!(later < member.replica().written().ts);
    }
}

/// An entry that is sound but for some fields, behind a time.
fn entry(change: &Document) -> Vec<u8> {
    let mut entry = doc! {
        "op": "n", "ns": "", "o": {"msg": "note"},
        "ts": Timestamp { time: 2_000_000_000, increment: 5 }, "t": 1_i64, "v": 2_i64,
        "wall": bson::DateTime::MIN,
    };
    for (name, value) in change {
        match value {
            bson::Bson::Null => drop(entry.remove(name)),
            value => drop(entry.insert(name, value.clone())),
        }
    }
    raw(&entry).into_bytes()
}

/// `replica`: Q1.
#[test]
fn what_does_not_follow_or_is_no_entry_is_refused_and_leaves_nothing() {
    let member = Member::follower(kv::memory::factory());
    let append = |after: OpTime, values: &[Vec<u8>]| {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_slice()).collect();
        member.replica().append(&op(), after, &values)
    };
    let good = entry(&doc! {});
    let first = append(BEGIN, std::slice::from_ref(&good)).unwrap();
    assert_eq!(first.ts.increment, 5);
    let at = |increment| Timestamp {
        time: 2_000_000_000,
        increment,
    };
    let next = entry(&doc! { "ts": at(6) });
    for (name, after, bad) in [
        ("another position", BEGIN, next.clone()),
        ("its own time", first, good.clone()),
        ("an earlier time", first, entry(&doc! { "ts": at(4) })),
        (
            "an earlier term",
            first,
            entry(&doc! { "ts": at(7), "t": 0_i64 }),
        ),
        ("no term", first, entry(&doc! { "ts": at(7), "t": null })),
        ("no version", first, entry(&doc! { "ts": at(7), "v": null })),
        (
            "another version",
            first,
            entry(&doc! { "ts": at(7), "v": 1_i64 }),
        ),
        (
            "no operation",
            first,
            entry(&doc! { "ts": at(7), "op": null }),
        ),
        (
            "too large",
            first,
            entry(&doc! { "ts": at(7), "o": {"x": "x".repeat(17 << 20)} }),
        ),
        ("a cut one", first, next[..next.len() - 1].to_vec()),
        (
            "a hidden part that is none",
            first,
            [&next[..], &[1]].concat(),
        ),
        (
            "a hidden part of another form",
            first,
            [&next[..], raw(&doc! {"retry": 1}).as_bytes()].concat(),
        ),
    ] {
        // Together with a sound one, which is not appended either.
        let sound = entry(&doc! { "ts": at(6) });
        let done = match name {
            "another position" => append(after, &[bad]),
            _ => append(after, &[sound, bad]),
        };
        let error = done.expect_err(name);
        assert!(!error.message.is_empty());
        assert_eq!(member.replica().written(), first, "Q1: {name}");
    }
    let all = append(first, &[next, entry(&doc! { "ts": at(9), "t": 3_i64 })]).unwrap();
    assert_eq!((all.ts, all.term), (at(9), 3));
    let primary = Member::new(kv::memory::factory());
    let values: [&[u8]; 1] = [&good];
    let refused = primary.replica().append(&op(), BEGIN, &values).unwrap_err();
    assert_eq!(refused.code, Code::ILLEGAL_OPERATION);
}

/// Damaged entries are refused, or appended as what they are: nothing panics.
#[test]
fn damaged_entries_are_appended_or_refused() {
    let source = Member::new(kv::memory::factory());
    insert(&source, 1, 1).unwrap();
    let all = source
        .replica()
        .stored_after(BEGIN.ts, 9, usize::MAX)
        .unwrap();
    let mut appended = 0;
    for seed in 0..1_000 {
        let mut tape = Tape::from_seed(seed, 24);
        let mut value = all[tape.index(all.len())].value.clone();
        for _ in 0..1 + tape.byte() % 3 {
            let at = tape.index(value.len());
            value[at] = tape.byte();
        }
        let member = Member::follower(kv::memory::factory());
        let values: [&[u8]; 1] = [&value];
        appended += usize::from(member.replica().append(&op(), BEGIN, &values).is_ok());
    }
    assert!(100 < appended, "{appended}");
}
