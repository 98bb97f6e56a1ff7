//! Entries with damaged bytes: an error or other events, never a panic.

use bson::{RawDocumentBuf, doc};
use docdb::IndexNames;
use stdx::Tape;

use super::{Beside, Log, drain, everything, on, open};
use crate::lab::{Lab, ns, on_each, op, raw};
use crate::write::set;

fn some_of_each(lab: &Lab) -> Log {
    lab.insert(&ns("c"), &[doc! { "_id": 1, "l": [1, { "a": 1 }] }]);
    lab.insert(&ns("c"), &[doc! { "_id": 2 }, doc! { "_id": 3 }]);
    for change in [
        doc! { "$set": { "l.1.a": 2, "n": { "x": 1 } } },
        doc! { "$push": { "l": { "$each": [], "$slice": 1 } }, "$unset": { "n": 1 } },
    ] {
        let change = set(doc! { "_id": 1 }, change);
        let changed = lab.store.update(&op(), &ns("c"), &[change], true, false);
        changed.unwrap();
    }
    let index = doc! { "key": { "a": 1 }, "name": "a" };
    lab.store.create_indexes(&op(), &ns("c"), &[index]).unwrap();
    let hide = raw(&doc! { "index": { "name": "a", "hidden": true } });
    lab.store.coll_mod(&op(), &ns("c"), &hide).unwrap();
    lab.store
        .drop_indexes(&op(), &ns("c"), &IndexNames::All)
        .unwrap();
    lab.store.rename(&op(), &ns("c"), &ns("d"), false).unwrap();
    lab.store.drop_database(&op(), "test").unwrap();
    Log::of(&lab.store)
}

#[test]
fn damaged_entries_give_events_or_errors() {
    on_each(|lab| {
        let log = some_of_each(lab);
        let beside = Beside {
            before: Some(doc! { "_id": 1, "l": [1] }),
            ..Beside::default()
        };
        let (mut sound, mut refused) = (0, 0);
        for seed in 0..6_000 {
            let mut tape = Tape::from_seed(seed, 32);
            let mut damaged = log.clone();
            let at = tape.index(damaged.entries.len());
            let mut bytes = damaged.entries[at].1.clone().into_bytes();
            for _ in 0..1 + tape.byte() % 3 {
                let at = 4 + tape.index(bytes.len() - 5);
                bytes[at] = tape.byte();
            }
            let Ok(bytes) = RawDocumentBuf::from_bytes(bytes) else {
                continue;
            };
            damaged.entries[at].1 = bytes;
            let stage = doc! {
                "showExpandedEvents": true, "fullDocument": "whenAvailable",
                "fullDocumentBeforeChange": "whenAvailable",
            };
            let mut all = stage.clone();
            all.insert("allChangesForCluster", true);
            for (stage, ns) in [(stage, on("c")), (all, everything())] {
                let mut stream = open(&stage, &ns).unwrap();
                match drain(&mut stream, &mut damaged, &beside) {
                    Ok(_) => sound += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(1_000 < sound && 1_000 < refused, "{sound} {refused}");
    });
}

/// A chain that leads forward or to itself is refused.
#[test]
fn a_chain_in_a_circle_is_refused() {
    on_each(|lab| {
        let documents: Vec<_> = (0..600).map(|id| doc! { "_id": id }).collect();
        lab.insert(&ns("c"), &documents);
        let log = Log::of(&lab.store);
        let last = log.entries.len() - 1;
        for offset in [0, 1] {
            let mut damaged = log.clone();
            let mut entry = bson::Document::try_from(&*log.entries[last].1).unwrap();
            let mut time = log.entries[last].0;
            time.increment += offset;
            entry.insert("prevOpTime", doc! { "ts": time, "t": 1_i64 });
            damaged.entries[last].1 = raw(&entry);
            let mut stream = open(&doc! {}, &on("c")).unwrap();
            let error = drain(&mut stream, &mut damaged, &Beside::default()).unwrap_err();
            assert_eq!(error.code.0, 9, "{error}");
        }
    });
}
